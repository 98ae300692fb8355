"""torch_npu compiles one configuration: the first that fits, beginning where the options say."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from fuzzer.simnpu import autotune
from fuzzer.simnpu.toolchain import CompileStage, KernelCompileError, UnifiedBufferOverflow
from tests.simnpu.conftest import RunPython

pytestmark = pytest.mark.sim


def overflow() -> UnifiedBufferOverflow:
    return UnifiedBufferOverflow(kernel="k", message="m", needed_bits=2, available_bits=1)


def defect(origin: str = "o") -> KernelCompileError:
    return KernelCompileError(stage=CompileStage.ADAPTER, kernel="k", tool="t", origin=origin, message="m")


def test_configurations_are_tried_from_the_named_one_on_and_around() -> None:
    assert autotune.starting_at("abcd", 0) == list("abcd")
    assert autotune.starting_at("abcd", 2) == list("cdab")
    assert autotune.starting_at("abcd", 7) == list("dabc")
    assert autotune.starting_at([], 3) == []


def test_no_configuration_is_compiled_after_the_first_that_fits() -> None:
    tried: list[str] = []

    def compile_one(config: str) -> tuple[list[str], list[tuple[str, Exception]]]:
        tried.append(config)
        return ([config.upper()], []) if config == "c" else ([], [(config, overflow())])

    results, failures = autotune.first_that_fits("abcd", compile_one)
    assert results == ["C"]
    assert [config for config, _ in failures] == ["a", "b"]
    assert tried == ["a", "b", "c"]


def test_a_defect_is_reported_before_a_tile_that_only_did_not_fit() -> None:
    last = defect("last")
    assert autotune.most_telling([defect("first"), last, overflow()]) is last
    only = overflow()
    assert autotune.most_telling([ValueError(), only]) is only
    assert autotune.most_telling([ValueError()]) is None


class FakeAutotuner:
    """Has the methods of torch_npu's autotuner that are replaced, and compiles what a table says."""

    def __init__(self, outcomes: dict[str, BaseException | None]) -> None:
        self.outcomes = outcomes
        self.tried: list[str] = []
        self.results: list[str] = []

    def _precompile_config(self, config: str) -> str:
        self.tried.append(config)
        outcome = self.outcomes[config]
        if outcome is not None:
            raise outcome
        return config

    def _compile_configs_batch(self, configs: list[str]) -> tuple[list[str], list[Any], Exception | None]:
        results, failed = [], []
        for config in configs:
            try:
                results.append(self._precompile_config(config))
            except KernelCompileError as error:
                failed.append((config, error))
        return results, failed, failed[-1][1] if failed else None

    def _compile_small_block_fallback(self) -> tuple[list[str], Exception | None]:
        from triton.compiler.errors import MLIRCompilationError

        results = []
        for config in ("small1", "small2", "small3"):
            try:
                results.append(self._precompile_config(config))
            except (KernelCompileError, MLIRCompilationError):
                continue
        return results, None

    def _precompile_worker(self) -> None:
        self.results, _, _ = self._compile_configs_batch(["a", "b", "c"])
        if not self.results:
            self.results, _ = self._compile_small_block_fallback()
        if not self.results:
            raise RuntimeError("no valid triton configs")


@pytest.fixture
def tuner() -> Iterator[type[FakeAutotuner]]:
    class Tuner(FakeAutotuner):
        pass

    module = ModuleType("heuristics")
    vars(module)["NPUCachingAutotuner"] = Tuner
    autotune.replace_experimental(module)
    autotune.begin_at(1)
    yield Tuner
    autotune.begin_at(0)


def test_the_experimental_autotuner_begins_at_the_named_configuration(tuner: type[FakeAutotuner]) -> None:
    made = tuner({"a": None, "b": overflow(), "c": None})
    made._precompile_worker()
    assert made.tried == ["b", "c"]
    assert made.results == ["c"]


def test_the_small_tiles_are_tried_until_one_fits(tuner: type[FakeAutotuner]) -> None:
    made = tuner({"a": overflow(), "b": overflow(), "c": overflow(), "small1": overflow(), "small2": None})
    made._precompile_worker()
    assert made.tried == ["b", "c", "a", "small1", "small2"]
    assert made.results == ["small2"]


def test_when_nothing_compiles_the_products_own_error_has_the_compiler_failure_as_its_cause(
    tuner: type[FakeAutotuner],
) -> None:
    wrong = defect()
    made = tuner({"a": overflow(), "b": wrong, "c": overflow(), **dict.fromkeys(("small1", "small2", "small3"), wrong)})
    with pytest.raises(RuntimeError, match="no valid triton configs") as raised:
        made._precompile_worker()
    assert raised.value.__cause__ is wrong


def test_an_edit_is_applied_right_after_a_module_is_imported(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tuned_later.py").write_text("VALUE = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    autotune.after_import("tuned_later", lambda module: vars(module).update(VALUE=module.VALUE + 1))
    finders = len(sys.meta_path)
    import tuned_later  # type: ignore[import-not-found]  # written above

    assert tuned_later.VALUE == 2
    assert len(sys.meta_path) == finders - 1
    autotune.after_import("tuned_later", lambda module: vars(module).update(VALUE=module.VALUE + 1))
    assert tuned_later.VALUE == 3


# --- with the released wheel ----------------------------------------------------------------------------------------


@pytest.mark.usefixtures("npu")
def test_compiled_programs_agree_with_eager_and_compile_each_kernel_once() -> None:
    import torch

    from fuzzer.simnpu import record

    programs = (
        (lambda x, w, b: torch.nn.functional.layer_norm(x, (33,), w, b), ((8, 33), (33,), (33,))),
        (lambda x, m: x.masked_fill(m > 0, -1e9).softmax(-1).transpose(0, 1).contiguous(), ((9, 17), (9, 17))),
        (lambda x, y: ((x * y).permute(2, 0, 1).clone(), (x * y).sum((0, 1))), ((4, 128, 48), (4, 128, 48))),
        (lambda x: x.cumsum(1) * 2, ((5, 9),)),
        (lambda x: (x.argmax(1) + 1, x > 0, (x > 0).any(1)), ((5, 9),)),
        (lambda x: ((x * 2 + 1).half().softmax(-1), x.bfloat16().sum(0)), ((5, 9),)),
    )
    generator = torch.Generator().manual_seed(0)
    for function, shapes in programs:
        torch._dynamo.reset()
        inputs = [torch.randn(shape, generator=generator) for shape in shapes]
        with warnings.catch_warnings(), record.recording() as recorder:
            warnings.simplefilter("ignore")
            actual = torch.compile(function)(*[tensor.npu() for tensor in inputs])  # type: ignore[attr-defined]
        expected = torch.utils._pytree.tree_leaves(function(*inputs))
        for want, got in zip(expected, torch.utils._pytree.tree_leaves(actual), strict=True):
            assert (got.shape, got.dtype) == (want.shape, want.dtype)
            rtol, atol = (5e-5, 5e-5) if want.dtype == torch.float32 else (None, None)
            torch.testing.assert_close(got.cpu(), want, rtol=rtol, atol=atol)
        compiled = [kernel for kernel in recorder.kernels if kernel.status == "ok"]
        assert len({kernel.name for kernel in compiled}) == len(compiled) > 0
        assert {launch.kernel for launch in recorder.launches} == {kernel.name for kernel in compiled}


DYNAMIC_AND_BREAKS = """
import json, sys, warnings
warnings.simplefilter("ignore")
from fuzzer import simnpu
from fuzzer.simnpu import record
simnpu.install(simnpu.SimOptions(backend=simnpu.Backend(sys.argv[1]), executor=simnpu.Executor(sys.argv[2]),
                                 tile_config=int(sys.argv[3])))
import torch

def broken_graph(x):
    y = x * 2
    return y + 1 if y.sum().item() > 0 else y - 1

def indexed(table, ids, mask):
    return table[ids].masked_fill(mask, 0).sum(-1)

def grows(x):
    return (x + 1).sum(0) * x.shape[0]

g = torch.Generator().manual_seed(0)
table, ids = torch.randint(0, 100, (20, 8), generator=g), torch.tensor([3, 0, 19, 3, 7, 1])
mask = torch.rand(6, 8, generator=g) > 0.5
worst, configs = 0.0, []
programs = (
    (indexed, (table, ids, mask), None),
    (broken_graph, (torch.randn(5, 7, generator=g),), None),
    (grows, (torch.randn(5, 9, generator=g),), True),
)
for function, inputs, dynamic in programs[: int(sys.argv[4])]:
    with record.recording() as recorder:
        compiled = torch.compile(function, dynamic=dynamic)
        actual = compiled(*[tensor.npu() for tensor in inputs]).cpu()
    worst = max(worst, (actual - function(*inputs)).abs().max().item())
    configs += [kernel.config for kernel in recorder.kernels if kernel.status == "ok"]
print(json.dumps([worst, configs]))
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("backend", "executor", "tile_config", "programs"),
    [
        ("triton_experimental", "native", 1, 3),
        ("triton_experimental", "interpreter", 0, 3),
        ("default", "native", 0, 1),
    ],
)
def test_graph_breaks_indexing_and_dynamic_shapes_work_on_both_backends_and_executors(
    backend: str, executor: str, tile_config: int, programs: int, run_python: RunPython
) -> None:
    done = run_python("-c", DYNAMIC_AND_BREAKS, backend, executor, str(tile_config), str(programs))
    assert done.returncode == 0, done.stderr[-3000:]
    worst, configs = json.loads(done.stdout.splitlines()[-1])
    assert worst <= 5e-5
    assert len(configs) >= programs
