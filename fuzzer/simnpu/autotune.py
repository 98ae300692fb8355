"""Autotuning without a clock: torch_npu takes the first configuration that fits, and compiles no other."""

from __future__ import annotations

import functools
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from fuzzer.simnpu.toolchain import KernelCompileError, UnifiedBufferOverflow, find_compile_error

EXPERIMENTAL_HEURISTICS = "torch_npu._inductor.triton_experimental.npu_triton_heuristics"
DEFAULT_HEURISTICS = "torch_npu._inductor.runtime.triton_heuristics"


_first = 0


def begin_at(index: int) -> None:
    """Try the configuration of this index first, from the next kernel on."""
    global _first
    _first = index


def starting_at(configs: Sequence[Any], first: int) -> list[Any]:
    """The configurations in the order they are tried: from index `first` (taken modulo their number), around."""
    if not configs:
        return []
    split = first % len(configs)
    return [*configs[split:], *configs[:split]]


def most_telling(errors: Sequence[BaseException]) -> KernelCompileError | None:
    """Of the failures of all configurations the one to report: the last that is more than not fitting."""
    found = [error for error in map(find_compile_error, reversed(errors)) if error is not None]
    defects = [error for error in found if not isinstance(error, UnifiedBufferOverflow)]
    return next(iter(defects or found), None)


def first_that_fits(
    configs: Sequence[Any], compile_one: Callable[[Any], tuple[list[Any], list[tuple[Any, Exception]]]]
) -> tuple[list[Any], list[tuple[Any, Exception]]]:
    """Compile configurations in order until one succeeds; `compile_one` gives (results, failures)."""
    failures: list[tuple[Any, Exception]] = []
    for config in configs:
        results, failed = compile_one(config)
        failures.extend(failed)
        if results:
            return results[:1], failures
    return [], failures


@contextmanager
def _cause_of_failure(autotuner: Any) -> Iterator[None]:
    """Give the autotuner's own error, raised when no configuration compiled, the compiler failure as its cause."""
    autotuner._simnpu_failures = []
    try:
        yield
    except Exception as error:
        cause = most_telling([*autotuner._simnpu_failures, error])
        if cause is None or cause is error or error.__cause__ is not None:
            raise
        raise error from cause
    finally:
        del autotuner._simnpu_failures


def replace_experimental(module: ModuleType) -> None:
    """Make `triton_experimental`'s autotuner compile one configuration. Everything else of it runs unchanged."""
    autotuner = module.NPUCachingAutotuner
    compile_batch = autotuner._compile_configs_batch
    precompile = autotuner._precompile_worker
    small_blocks = autotuner._compile_small_block_fallback
    precompile_config = autotuner._precompile_config

    @functools.wraps(compile_batch)
    def compile_configs_batch(self: Any, configs: Sequence[Any]) -> tuple[list[Any], list[Any], Exception | None]:
        def compile_one(config: Any) -> tuple[list[Any], list[tuple[Any, Exception]]]:
            results, failed, _ = compile_batch(self, [config])
            return results, failed

        results, failures = first_that_fits(starting_at(configs, _first), compile_one)
        self._simnpu_failures = [*getattr(self, "_simnpu_failures", ()), *(error for _, error in failures)]
        return results, failures, failures[-1][1] if failures else None

    @functools.wraps(small_blocks)
    def compile_small_block_fallback(self: Any) -> tuple[list[Any], Exception | None]:
        from triton.compiler.errors import MLIRCompilationError

        found = False

        def until_one_fits(config: Any) -> Any:
            nonlocal found
            if found:
                raise MLIRCompilationError("simnpu", "a smaller tile fits already")
            result = precompile_config(self, config)
            found = True
            return result

        self._precompile_config = until_one_fits
        try:
            results, error = small_blocks(self)
        finally:
            del self._precompile_config
        return results, error

    @functools.wraps(precompile)
    def precompile_worker(self: Any) -> None:
        with _cause_of_failure(self):
            precompile(self)

    autotuner._compile_configs_batch = compile_configs_batch
    autotuner._compile_small_block_fallback = compile_small_block_fallback
    autotuner._precompile_worker = precompile_worker


def replace_default(module: ModuleType) -> None:
    """The same for the older `default` backend, whose autotuner can skip benchmarking by itself."""
    autotuner = module.NPUCachingAutotuner
    compile_once = autotuner._precompile_configs_once
    precompile_current = autotuner._precompile_current_configs

    @functools.wraps(compile_once)
    def precompile_configs_once(self: Any, configs: Sequence[Any]) -> tuple[list[Any], list[Any], list[str]]:
        compiled: list[Any] = []
        errors: list[Any] = []
        stacks: list[str] = []
        for config in starting_at(configs, _first):
            results, failures, traces = compile_once(self, [config])
            compiled, errors, stacks = results, errors + failures, stacks + traces
            if any(result is not None for result in results):
                break
        self._simnpu_failures = [*getattr(self, "_simnpu_failures", ()), *(error for error in errors if error)]
        return compiled, errors, stacks

    @functools.wraps(precompile_current)
    def precompile_current_configs(self: Any, compile_fn: Any) -> None:
        with _cause_of_failure(self):
            precompile_current(self, compile_fn)

    autotuner._precompile_configs_once = precompile_configs_once
    autotuner._precompile_configs_parallel_once = precompile_configs_once
    autotuner._precompile_current_configs = precompile_current_configs
    autotuner._should_skip_autotune_for_determinism = lambda self: True


class _AfterImport(importlib.abc.MetaPathFinder):
    """Runs an edit on one module right after its code ran."""

    def __init__(self, name: str, edit: Callable[[ModuleType], None]) -> None:
        self._name = name
        self._edit = edit

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if name != self._name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        execute, edit = spec.loader.exec_module, self._edit

        def exec_module(module: ModuleType) -> None:
            execute(module)
            edit(module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]  # this loader loads this module only
        return spec


def after_import(name: str, edit: Callable[[ModuleType], None]) -> None:
    """Apply `edit` to the module `name`, now if it is loaded, else as soon as it is."""
    module = sys.modules.get(name)
    if module is not None:
        edit(module)
    else:
        sys.meta_path.insert(0, _AfterImport(name, edit))


def install_autotune() -> None:
    """Replace the autotuning of both backends, whenever their heuristics are imported."""
    after_import(EXPERIMENTAL_HEURISTICS, replace_experimental)
    after_import(DEFAULT_HEURISTICS, replace_default)
