"""`python -m fuzzer.simnpu [options] script.py args...`: runs anyone's torch_npu script with no NPU."""

from __future__ import annotations

import argparse
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from fuzzer.simnpu.installation import install
from fuzzer.simnpu.options import CUBE_CORES, Backend, Executor, SimOptions, SimulatorError


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """One line, exit status 2."""
        self.exit(2, f"simnpu: {message} (see python -m fuzzer.simnpu --help)\n")


def _parser() -> argparse.ArgumentParser:
    defaults = SimOptions()
    parser = _Parser(
        prog="python -m fuzzer.simnpu",
        usage="%(prog)s [options] (script.py | -m module) [arguments ...]",
        description="Run a torch_npu script on a simulated Ascend NPU.",
    )
    parser.add_argument("--soc", choices=tuple(CUBE_CORES), default=defaults.soc, help="device to pretend to be")
    parser.add_argument("--devices", type=int, default=defaults.devices, help="number of devices, 1 to 16")
    parser.add_argument("--executor", choices=[str(item) for item in Executor], default=str(defaults.executor))
    parser.add_argument("--backend", choices=[str(item) for item in Backend], default=str(defaults.backend))
    parser.add_argument("--no-fit-check", action="store_true", help="do not ask the compiler whether a kernel fits")
    parser.add_argument("--no-guard", action="store_true", help="no inaccessible pages around device memory")
    parser.add_argument(
        "--poison", type=lambda text: int(text, 0), default=defaults.poison, help="byte in fresh memory"
    )
    parser.add_argument("--tile-config", type=int, default=defaults.tile_config, help="first autotune configuration")
    parser.add_argument("-m", dest="module", action="store_true", help="run a module instead of a file")
    parser.add_argument("target", help="script file, or module with -m")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="passed to the script")
    return parser


def main(arguments: Sequence[str]) -> None:
    """Installs the simulated machine and runs the script as `__main__`. Exits with 2 for bad usage or environment."""
    parser = _parser()
    given = parser.parse_args(arguments)
    if not given.module and not Path(given.target).is_file():
        parser.error(f"no such script: {given.target}")
    try:
        options = SimOptions(
            soc=given.soc,
            devices=given.devices,
            executor=Executor(given.executor),
            fit_check=not given.no_fit_check,
            backend=Backend(given.backend),
            guard=not given.no_guard,
            poison=given.poison,
            tile_config=given.tile_config,
        )
        install(options)
    except (ValueError, SimulatorError) as error:
        parser.error(str(error))
    sys.argv = [given.target, *given.arguments]
    if given.module:
        runpy.run_module(given.target, run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = str(Path(given.target).resolve().parent)
        runpy.run_path(given.target, run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1:])
