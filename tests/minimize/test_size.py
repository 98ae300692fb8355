"""The order of programs is well-founded and knows what readers mind."""

from __future__ import annotations

from dataclasses import replace

from fuzzer.generators import generate
from fuzzer.minimize import size
from fuzzer.program import DType, InputSpec, Layout, LayoutKind, Mode, Program, Regime, TensorType


def test_every_component_is_a_natural_number_and_there_are_always_as_many() -> None:
    sizes = [size(generate(1, index)) for index in range(40)]
    assert all(component >= 0 for one in sizes for component in one)
    assert len({len(one) for one in sizes}) == 1


def test_each_complication_of_an_input_or_the_mode_makes_a_program_larger() -> None:
    shape = TensorType(shape=(4, 8), dtype=DType.FLOAT32)
    plain = Program(inputs=(InputSpec(name="x0", type=shape),), nodes=(), outputs=("x0",))
    spec = plain.inputs[0]
    for worse in (
        replace(spec, regime=Regime.ONES),
        replace(spec, seed=3),
        replace(spec, layout=Layout(kind=LayoutKind.PERMUTED, dims=(1, 0))),
        replace(spec, type=replace(shape, shape=(4, 9))),
        replace(spec, type=replace(shape, shape=(4, 8, 1))),
    ):
        assert size(replace(plain, inputs=(worse,))) > size(plain)
    for mode in (Mode(training=True), Mode(dynamic=True), Mode(calls=2), Mode(config=(("a", 1),))):
        assert size(replace(plain, mode=mode)) > size(plain)
