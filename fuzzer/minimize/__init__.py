"""Shrink a program while a predicate holds; knows nothing of targets."""

from fuzzer.minimize.driver import Budget, Interesting, Minimized, minimize
from fuzzer.minimize.passes import PASSES, Pass
from fuzzer.minimize.size import size

__all__ = ["PASSES", "Budget", "Interesting", "Minimized", "Pass", "minimize", "size"]
