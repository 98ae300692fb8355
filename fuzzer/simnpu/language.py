"""What torch_npu 2.13 imports of a newer triton-ascend, over what 3.2.0 has.

`triton.language.extra.cann` is called `ascend` there. `triton._C.libtriton.ascend.ir` is part of `ir`; without it the
default backend's index code generation fails its own check on every kernel and gives way to another, without a word.
"""

from __future__ import annotations

import sys
from types import ModuleType

import triton
import triton.language as tl
import triton.language.extra as extra
import triton.language.math as tl_math
from triton.language.extra.ascend import libdevice as ascend_libdevice

PACKAGE = "triton.language.extra.cann"
DIALECTS = "triton._C.libtriton.ascend.ir"

LIBDEVICE_NAMES: tuple[str, ...] = (
    *"""abs acos acosh asin asinh atan atan2 atanh ceil copysign cos cosh cyl_bessel_i0 div_rz erf erfc erfinv exp exp2
    expm1 fast_tanhf fdiv flip floor fma fmod gamma hypot ilogb isinf isnan ldexp lgamma llrint log log10 log1p log2
    nearbyint nextafter pow reciprocal relu rint round rsqrt signbit sin sinh sqrt tan tanh trunc umulhi""".split(),  # noqa: SIM905  # fifty names read better as words
)
"""Every name that the Triton code generation can put after `libdevice.`, and the rest of CANN's."""

EXTENSION_NAMES: tuple[str, ...] = (
    *"""compile_hint custom extract_slice gather_out_to_ub get_element index_put index_select_simd insert_slice
    multibuffer parallel scatter_ub_to_out sync_block_all sync_block_set sync_block_wait""".split(),  # noqa: SIM905  # the same
)
"""What the two backends take from `extension`. Names that triton-ascend 3.2.0 lacks stay absent, as they would be."""

_MATH_FIRST = frozenset({"atan2", "div_rz"})
"""Names whose `libdevice` version in 3.2.0 does nothing but refer to `tl.math`."""


@triton.jit
def _erfc(x):  # type: ignore[no-untyped-def]  # Triton source, not Python
    return 1.0 - tl.erf(x)


@triton.jit
def _llrint(x):  # type: ignore[no-untyped-def]  # Triton source, not Python
    return ascend_libdevice.nearbyint(x).to(tl.int64)


@triton.jit
def _rint(x):  # type: ignore[no-untyped-def]  # Triton source, not Python
    return ascend_libdevice.nearbyint(x)


@triton.jit
def _fast_tanhf(x):  # type: ignore[no-untyped-def]  # Triton source, not Python
    return ascend_libdevice.tanh(x)


@triton.jit
def _fmod(x, y):  # type: ignore[no-untyped-def]  # Triton source, not Python
    return x % y  # of floats: the remainder with the sign of x, as C's fmod


_COMPOSED = {"erfc": _erfc, "llrint": _llrint, "rint": _rint, "fast_tanhf": _fast_tanhf, "fmod": _fmod}
"""Functions of the newer libdevice that 3.2.0 can express, but does not name or only names to refuse them."""


def _lookup_libdevice(name: str) -> object:
    if name in _COMPOSED:
        return _COMPOSED[name]
    order = (tl_math, ascend_libdevice) if name in _MATH_FIRST else (ascend_libdevice, tl_math)
    return next(getattr(module, name) for module in order if hasattr(module, name))


def _lookup_extension(name: str) -> object | None:
    for module in (tl, ascend_libdevice):
        found: object | None = getattr(module, name, None)
        if found is not None:
            return found
    return None


def missing_extensions() -> tuple[str, ...]:
    """Names of `EXTENSION_NAMES` that the installed triton-ascend cannot supply: a kernel that uses one is refused."""
    return tuple(name for name in EXTENSION_NAMES if _lookup_extension(name) is None)


def install_dialects() -> None:
    """Make `triton._C.libtriton.ascend.ir` importable; a newer triton-ascend that has it is left alone."""
    from triton._C import libtriton

    if hasattr(libtriton.ascend, "ir"):
        return
    module = ModuleType(DIALECTS)
    # `libtriton.ir.load_dialects` has loaded all of them. A context with threads would outlive its use and keep the
    # process from being forked.
    vars(module)["load_dialects"] = lambda context: context.disable_multithreading()
    sys.modules[DIALECTS] = module
    vars(libtriton.ascend)["ir"] = module


def install_language() -> ModuleType:
    """Make `triton.language.extra.cann` importable; a newer triton-ascend that has it already is left alone."""
    existing = getattr(extra, "cann", None)
    if isinstance(existing, ModuleType):
        return existing
    package = ModuleType(PACKAGE)
    package.__path__ = []
    libdevice = ModuleType(f"{PACKAGE}.libdevice")
    for name in LIBDEVICE_NAMES:
        setattr(libdevice, name, _lookup_libdevice(name))
    extension = ModuleType(f"{PACKAGE}.extension")
    for name in EXTENSION_NAMES:
        found = _lookup_extension(name)
        if found is not None:
            setattr(extension, name, found)
    vars(package).update(libdevice=libdevice, extension=extension)
    sys.modules.update({PACKAGE: package, libdevice.__name__: libdevice, extension.__name__: extension})
    vars(extra)["cann"] = package
    return package
