"""Puts the stand-in in place: environment, C runtime, torch_npu, eager kernels, kernel driver, Inductor backend."""

from __future__ import annotations

import importlib
import io
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from typing import Any

from fuzzer.simnpu.environment import require
from fuzzer.simnpu.options import SimOptions, SimulatorError

ENVIRONMENT = {
    # Without it `import torch` would load torch_npu before the stand-in is there.
    "TORCH_DEVICE_BACKEND_AUTOLOAD": "0",
    # One device allocation per tensor: its guard pages are then next to the tensor and not somewhere in a pool.
    "PYTORCH_NO_NPU_MEMORY_CACHING": "1",
    # No launch thread: everything is synchronous, and the process may fork.
    "TASK_QUEUE_ENABLE": "0",
    # No warnings about a CANN of some other version: there is none.
    "TORCH_NPU_WARNING_DISABLE": "1",
    # Kernels are compiled in this process, where the driver is; nothing is taken from an earlier run.
    "TORCHINDUCTOR_COMPILE_THREADS": "1",
    "TORCH_WARM_POOL": "0",
    "TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1",
}
"""Set before torch is imported; a value that the user has set already is kept."""

UNWANTED = ("CI",)
"""Taken out of the environment: where CI is set, torch refuses fallbacks that torch_npu registers at import."""

_installed: SimOptions | None = None


def installed_options() -> SimOptions | None:
    """The options of the machine that `install` has put in place in this process, or None."""
    return _installed


@contextmanager
def _quiet_about_cann() -> Iterator[None]:
    """Takes torch_npu's line about ASCEND_HOME_PATH off standard output; any other line comes after, unchanged."""
    printed = io.StringIO()
    try:
        with redirect_stdout(printed):
            yield
    finally:
        kept = [line for line in printed.getvalue().splitlines(keepends=True) if "ASCEND_HOME_PATH" not in line]
        sys.stdout.writelines(kept)


def _allow_fork() -> None:
    """Lets a forked child go on with the device: its memory is the parent's, copied. A real device cannot do that."""
    from multiprocessing.util import register_after_fork

    module = importlib.import_module("torch_npu.npu")

    def keep_initialized(module: Any) -> None:
        module._initialized = module._initialized or module._is_internal_in_bad_fork
        module._is_internal_in_bad_fork = False

    register_after_fork(module, keep_initialized)


def _check_order(options: SimOptions) -> bool:
    """Whether there is anything to do; raises where it is too late to do it."""
    if _installed is not None:
        if _installed != options:
            raise SimulatorError(f"already installed in this process as {_installed}; start a new one for {options}")
        return False
    if "torch_npu" in sys.modules:
        raise SimulatorError("torch_npu is already imported; call fuzzer.simnpu.install() before anything imports it")
    return True


def install(options: SimOptions | None = None) -> None:
    """Makes `import torch_npu` work with no NPU in this process. A second call with the same options does nothing.

    Raises SimulatorError if something is missing (the message says what to install), if torch_npu was imported
    before, or if other options are in place already.
    """
    global _installed
    options = options or SimOptions()
    if not _check_order(options):
        return
    require()
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    for name in UNWANTED:
        os.environ.pop(name, None)
    os.environ["TORCHINDUCTOR_NPU_BACKEND"] = str(options.backend)

    from fuzzer.simnpu.preload import preload

    preload(options)
    with warnings.catch_warnings(), _quiet_about_cann():
        warnings.simplefilter("ignore")  # torch_npu warns at import about a CANN that is not there
        torch_npu = importlib.import_module("torch_npu")
        if not torch_npu.npu.is_available():
            raise SimulatorError("torch_npu does not see the simulated device; is a real CANN on LD_LIBRARY_PATH?")

        from fuzzer.simnpu.driver import install_kernels
        from fuzzer.simnpu.eager import install_eager

        install_eager()
        install_kernels(options)
        importlib.import_module("torch_npu._inductor")
    _allow_fork()
    _installed = options
