"""The language shim has every name that the installed code generators emit, and each computes what torch does."""

from __future__ import annotations

import importlib.util
import math
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from fuzzer.simnpu import language
from fuzzer.simnpu.options import Executor
from tests.simnpu.host_kernels import compile_on_host

pytestmark = pytest.mark.sim

BINARY = {"atan2", "copysign", "fdiv", "fmod", "hypot", "ldexp", "nextafter", "pow"}
UNTESTED = {"cyl_bessel_i0", "div_rz", "flip", "fma", "gamma", "umulhi"}
"""Not emitted by the code generators, or (div_rz) refused by triton-ascend 3.2.0 itself."""
TORCH: dict[str, Callable[..., torch.Tensor]] = {
    "fast_tanhf": torch.tanh,
    "fdiv": torch.div,
    "ilogb": lambda x: torch.floor(torch.log2(x.abs())),
    "ldexp": lambda x, n: x * 2.0 ** n.trunc(),
    "llrint": torch.round,
    "nearbyint": torch.round,
    "rint": torch.round,
    "round": lambda x: torch.sign(x) * torch.floor(x.abs() + 0.5),
}
LOOSE = {"acos": 1e-3, "asin": 1e-3}
"""Triton-ascend approximates these by short series."""

KERNEL = """
@triton.jit
def kernel_{name}(x, y, out, n, BLOCK: tl.constexpr):
    index = tl.arange(0, BLOCK)
    a = tl.load(x + index, index < n)
    b = tl.load(y + index, index < n)
    tl.store(out + index, (libdevice.{name}({arguments})).to(tl.float32), index < n)
"""


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    """One kernel per function, in a file, because Triton reads the source of a kernel."""
    language.install_language()
    text = "import triton\nimport triton.language as tl\nfrom triton.language.extra.cann import libdevice\n"
    for name in language.LIBDEVICE_NAMES:
        text += KERNEL.format(name=name, arguments="a, b" if name in BINARY else "a")
    path = tmp_path_factory.mktemp("kernels") / "libdevice_kernels.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def _folder(package: str) -> Path:
    spec = importlib.util.find_spec(package)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent


def _names_after(prefix: str) -> set[str]:
    """What the installed Inductor backends write after `prefix.` in the kernels they generate."""
    folders = (
        _folder("torch_npu") / "_inductor" / "triton_experimental",
        _folder("torch_npu") / "_inductor" / "codegen",
        _folder("torch_npu") / "_inductor" / "runtime",
    )
    files = [file for folder in folders for file in folder.rglob("*.py")]
    files.append(_folder("torch") / "_inductor" / "codegen" / "triton.py")
    files.append(_folder("torch") / "_inductor" / "runtime" / "triton_helpers.py")
    pattern = re.compile(rf"\b{prefix}\.(\w+)\(")
    return {name for file in files for name in pattern.findall(file.read_text())}


def test_every_libdevice_function_that_the_code_generators_emit_is_there() -> None:
    libdevice: Any = language.install_language().libdevice
    emitted = _names_after("libdevice")
    assert len(emitted) > 35
    assert emitted <= set(language.LIBDEVICE_NAMES)
    assert all(callable(getattr(libdevice, name)) for name in language.LIBDEVICE_NAMES)


def test_every_extension_that_the_code_generators_emit_is_there_or_known_to_be_missing() -> None:
    extension = language.install_language().extension
    emitted = _names_after("extension")
    assert {"gather_out_to_ub", "index_put"} <= emitted <= set(language.EXTENSION_NAMES)
    assert set(language.missing_extensions()) == {"custom", "scatter_ub_to_out"}
    for name in language.EXTENSION_NAMES:
        assert hasattr(extension, name) == (name not in language.missing_extensions())


def test_the_package_is_imported_by_the_names_that_generated_kernels_use() -> None:
    language.install_language()
    import triton.language as tl
    from triton.language.extra.cann import libdevice
    from triton.language.extra.cann.extension import extract_slice

    assert tl.extra.cann.libdevice is libdevice
    assert callable(extract_slice)


def test_installing_twice_keeps_the_first_package() -> None:
    assert language.install_language() is language.install_language()


@pytest.mark.parametrize("executor", list(Executor))
@pytest.mark.parametrize("name", sorted(set(language.LIBDEVICE_NAMES) - UNTESTED))
def test_a_libdevice_function_computes_what_torch_computes(name: str, executor: Executor, kernels: ModuleType) -> None:
    if (name, executor) == ("nextafter", Executor.INTERPRETER):
        pytest.skip("Triton's interpreter lacks an all-ones constant of int1, which this function uses")
    x = torch.tensor([0.3, 0.9, -0.4, 0.01, -0.99, 0.5, 1.5, 2.5, -3.5, 4.0, 0.0, 0.11, 7.0])
    y = torch.tensor([2.0, 3.0, -1.0, 4.0, 1.0, 2.0, 3.0, -2.0, 2.0, 1.0, 3.0, 0.0, 2.0])
    out = torch.full_like(x, 77.0)
    signature = {"x": "*fp32", "y": "*fp32", "out": "*fp32", "n": "i32"}
    kernel = compile_on_host(getattr(kernels, f"kernel_{name}"), signature, {"BLOCK": 16}, executor=executor)
    kernel[(1, 1, 1)](x, y, out, len(x))
    function = TORCH.get(name) or getattr(torch, name, None) or getattr(torch.special, name)
    expected = (function(x, y) if name in BINARY else function(x)).float()
    tolerance = LOOSE.get(name, 2e-5)
    torch.testing.assert_close(out, expected, rtol=tolerance, atol=tolerance, equal_nan=True)


@pytest.mark.parametrize("kind", ["i32", "i64"])
def test_integer_powers_wrap_and_take_negative_exponents_as_torch_does(kind: str, tmp_path: Path) -> None:
    path = tmp_path / f"integer_power_{kind}.py"
    path.write_text(
        "import triton\nimport triton.language as tl\nfrom triton.language.extra.cann import libdevice\n"
        "@triton.jit\ndef power(x, y, out, n, BLOCK: tl.constexpr):\n"
        "    i = tl.arange(0, BLOCK)\n"
        "    a = tl.load(x + i, i < n)\n    b = tl.load(y + i, i < n)\n"
        "    tl.store(out + i, libdevice.pow(a, b), i < n)\n"
    )
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    dtype = {"i32": torch.int32, "i64": torch.int64}[kind]
    x = torch.tensor([2, 3, -1, -1, 1, 0, 7, 5], dtype=dtype)
    y = torch.tensor([40, 5, -3, -2, -7, 0, 30, 1], dtype=dtype)
    bits = 32 if kind == "i32" else 64
    expected = [
        int(a**b) if b >= 0 else math.trunc(float(a) ** float(b)) for a, b in zip(x.tolist(), y.tolist(), strict=True)
    ]
    wrapped = [((value + (1 << (bits - 1))) % (1 << bits)) - (1 << (bits - 1)) for value in expected]
    out = torch.zeros_like(x)
    signature = {"x": f"*{kind}", "y": f"*{kind}", "out": f"*{kind}", "n": "i32"}
    compile_on_host(module.power, signature, {"BLOCK": 16})[(1, 1, 1)](x, y, out, len(x))
    assert out.tolist() == wrapped
