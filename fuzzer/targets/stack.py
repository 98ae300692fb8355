"""Imports a stack once per process and sets torch up for fuzzing: single-threaded, quiet, nothing silently eager."""

from __future__ import annotations

import importlib
import logging
import os
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from fuzzer.program import FuzzerError

ENVIRONMENT = {
    "TORCHINDUCTOR_COMPILE_THREADS": "1",
    "TORCHINDUCTOR_FORCE_DISABLE_CACHES": "0",
    "TORCHINDUCTOR_FX_GRAPH_REMOTE_CACHE": "0",
    "TORCHINDUCTOR_AUTOTUNE_REMOTE_CACHE": "0",
    "TORCHNPU_PRECOMPILE_THREADS": "1",
    "TORCH_WARM_POOL": "0",
    "TORCH_DEVICE_BACKEND_AUTOLOAD": "0",
    "TORCH_COMPILE_DEBUG": "0",
}
"""Set before torch is imported; TORCH_DEVICE_BACKEND_AUTOLOAD keeps an installed torch_npu out of target `cpu`."""

UNWANTED = ("CI",)
"""torch compiles differently where it is set, and torch_npu does not even import: a verdict must not depend on it."""


def set_environment() -> None:
    """Must come before the first import of torch."""
    os.environ.update(ENVIRONMENT)
    for name in UNWANTED:
        os.environ.pop(name, None)


@contextmanager
def private_caches() -> Iterator[None]:
    """Gives compilations a cache of their own until the block ends.

    Inductor's caches stay on, because users have them on and a wrong cache hit is a defect (pytorch#185382), but what
    another program left there must not answer for this one.
    """
    before = {name: os.environ.get(name) for name in ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")}
    with tempfile.TemporaryDirectory(prefix="inductor-", ignore_cleanup_errors=True) as folder:
        os.environ.update(TORCHINDUCTOR_CACHE_DIR=folder, TRITON_CACHE_DIR=os.path.join(folder, "triton"))
        try:
            yield
        finally:
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value


def import_or_refuse(module: str, remedy: str) -> None:
    """Imports a module of the stack, or raises FuzzerError with one line that says what to install."""
    try:
        importlib.import_module(module)
    except Exception as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else ""
        raise FuzzerError(f"cannot import {module} ({type(error).__name__}: {reason}): {remedy}") from error


def configure_torch() -> None:
    """One thread, no logging, no fallback to eager."""
    import torch
    import torch._dynamo.config
    import torch._inductor.config

    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", module=r"torch(_npu)?(\.|$)")
    for name in ("torch", "torch._dynamo", "torch._inductor", "torch_npu"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    torch._dynamo.config.automatic_dynamic_local_pgo = False
    torch._dynamo.config.automatic_dynamic_remote_pgo = False
    torch._dynamo.config.suppress_errors = False
    torch._dynamo.config.recompile_limit = 64
    torch._dynamo.config.accumulated_recompile_limit = 512
    torch._dynamo.config.fail_on_recompile_limit_hit = True
    torch._inductor.config.compile_threads = 1
    torch._inductor.config.fallback_random = True  # so that dropout draws what eager draws
