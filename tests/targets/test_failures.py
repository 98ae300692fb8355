"""An exception becomes a stage and a name that does not depend on the program."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fuzzer.program import FuzzerError
from fuzzer.targets import platform
from fuzzer.targets.failures import failure_of
from fuzzer.verdict import Stage


def raised(file: str, function: str, statement: str) -> BaseException:
    """An exception whose innermost frame is `function` in `file`."""
    names: dict[str, Callable[[], None]] = {}
    exec(compile(f"def {function}():\n    {statement}\n", file, "exec"), names)
    try:
        names[function]()
    except BaseException as error:
        return error
    raise AssertionError


class InductorError(Exception):
    """Like Inductor's own: the exception that it wraps is an attribute, not a cause."""

    def __init__(self, inner: BaseException) -> None:
        super().__init__(str(inner))
        self.inner_exception = inner


BACKEND = "/lib/site-packages/torch_npu/_inductor/triton_experimental/codegen/triton.py"
GENERATED = "/tmp/inductor-x/6t/c6tn7v2ylxalnyt7s3dqmrqy5m4jqtmnkphwknf7i2a6dzdrxwyb.py"


def test_an_assertion_in_code_generation_is_named_by_its_function() -> None:
    inner = raised(BACKEND, "prepare_indexing", "assert False, 'Unregistered range symbol: r0_1'")
    failure = failure_of(InductorError(inner), Stage.INDUCTOR)
    assert (failure.stage, failure.origin) == (Stage.INDUCTOR, "AssertionError:prepare_indexing")
    assert not failure.compile_error
    assert "r0_1" in failure.message


def test_the_name_does_not_change_with_the_message_or_the_line() -> None:
    one = raised(BACKEND, "store", "raise ValueError('x0 of [8, 7]')")
    other = raised(BACKEND, "store", "x = 1; raise ValueError('x1 of [96]')")
    assert failure_of(one, Stage.INDUCTOR).origin == failure_of(other, Stage.INDUCTOR).origin


@pytest.mark.parametrize("name", ["r0_0numel", "r1_12numel"])
def test_an_undefined_name_in_a_generated_module_is_one_defect_whatever_its_counters(name: str) -> None:
    failure = failure_of(raised(GENERATED, "call", name), Stage.INDUCTOR)
    assert failure.origin == "generated:NameError rN_Nnumel"
    assert failure.stage is Stage.LAUNCH


def test_a_dynamo_failure_is_dynamos() -> None:
    failure = failure_of(
        raised("/lib/torch/_dynamo/variables/base.py", "call_method", "raise KeyError(1)"), Stage.INDUCTOR
    )
    assert (failure.stage, failure.origin) == (Stage.DYNAMO, "KeyError:call_method")


def test_a_failure_of_eager_is_eagers() -> None:
    failure = failure_of(raised("<program 12>", "program", "raise RuntimeError('shape')"), Stage.EAGER)
    assert (failure.stage, failure.origin) == (Stage.EAGER, "RuntimeError")


def test_a_cycle_of_causes_ends() -> None:
    error = ValueError("a")
    error.__cause__ = error
    assert failure_of(error, Stage.INDUCTOR).origin == "ValueError"


def test_a_compilers_refusal_is_found_anywhere_in_the_chain() -> None:
    from fuzzer.simnpu.toolchain import CompileStage, KernelCompileError, UnsupportedKernel

    refusal = KernelCompileError(
        stage=CompileStage.ADAPTER,
        kernel="k",
        tool="triton-adapter-opt",
        origin="triton-adapter-opt: SIGABRT",
        message="m",
    )
    outer = RuntimeError("no valid triton configs")
    outer.__cause__ = refusal
    failure = failure_of(InductorError(outer), Stage.INDUCTOR)
    assert (failure.stage, failure.origin) == (Stage.ADAPTER, "triton-adapter-opt: SIGABRT")
    assert failure.compile_error
    assert not failure.unsupported

    own = UnsupportedKernel(kernel="k", tool="bishengir-opt", origin="bishengir-opt: no lowering", message="m")
    assert failure_of(own, Stage.INDUCTOR).unsupported


def test_an_access_outside_an_argument_is_a_memory_failure_that_names_no_kernel() -> None:
    from fuzzer.simnpu.interpreter import KernelMemoryError, MemoryFault

    fault = MemoryFault(
        kernel="triton_0",
        argument="in_ptr0",
        offset=8,
        line=28,
        statement="tl.load(in_ptr0 + x0)",
        store=False,
        elements=8,
        program=(0, 0, 0),
    )
    failure = failure_of(InductorError(KernelMemoryError(fault)), Stage.INDUCTOR)
    assert (failure.stage, failure.origin, failure.memory) == (Stage.EXECUTE, "out-of-bounds", True)
    assert "reads in_ptr0[8], which has 8 elements" in failure.message


def test_triton_refusing_a_kernel_on_a_device_is_a_compile_error_of_the_frontend() -> None:
    error = raised(
        "/lib/triton/compiler/code_generator.py", "visit_Name", "raise type('CompilationError', (Exception,), {})()"
    )
    failure = failure_of(error, Stage.INDUCTOR)
    assert (failure.stage, failure.compile_error) == (Stage.FRONTEND, True)


@pytest.mark.parametrize(
    ("function", "stage"), [("ttir_to_linalg", Stage.ADAPTER), ("linalg_to_bin_enable_npu_compile", Stage.HIVM)]
)
def test_a_compiler_of_the_device_is_told_by_its_step(function: str, stage: Stage) -> None:
    error = raised("/lib/triton/backends/ascend/compiler.py", function, "raise RuntimeError('exit status 1')")
    failure = failure_of(error, Stage.INDUCTOR)
    assert (failure.stage, failure.compile_error) == (stage, True)


def test_a_refusal_of_the_simulators_eager_kernels_is_unsupported() -> None:
    error = raised("/lib/fuzzer/simnpu/eager.py", "run", "raise NotImplementedError('aten::foo')")
    assert failure_of(error, Stage.INDUCTOR).unsupported


def test_an_unknown_target_is_refused_with_the_known_ones() -> None:
    with pytest.raises(FuzzerError, match="use one of sim, npu, cpu, cuda"):
        platform("tpu")
