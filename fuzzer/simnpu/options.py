"""What the stand-in pretends to be: one frozen record, read by every other module of `simnpu`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType


class SimulatorError(RuntimeError):
    """The stand-in cannot run here; the one-line message says what is wrong and what to install or change."""


class Executor(str, Enum):
    """How a generated Triton kernel is executed."""

    NATIVE = "native"
    """The whole real compiler chain, lowered to host code in its last step."""
    INTERPRETER = "interpreter"
    """Triton's own interpreter on numpy: slow, but sees every load and store with its source line."""

    def __str__(self) -> str:
        return self.value


class Backend(str, Enum):
    """Which of torch_npu's Inductor backends lowers the program (`TORCHINDUCTOR_NPU_BACKEND`)."""

    TRITON_EXPERIMENTAL = "triton_experimental"
    DEFAULT = "default"

    def __str__(self) -> str:
        return self.value


CUBE_CORES: Mapping[str, int] = MappingProxyType(
    {
        "Ascend910B1": 24,
        "Ascend910B2": 24,
        "Ascend910B3": 20,
        "Ascend910B4": 20,
        "Ascend910_9362": 20,
        "Ascend910_9372": 20,
        "Ascend910_9381": 24,
        "Ascend910_9382": 24,
        "Ascend910_9391": 24,
        "Ascend910_9392": 24,
    }
)
"""Cube cores of each known device, as `bishengir-opt --hacc-append-device-spec=target=NAME` prints them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SimOptions:
    """The simulated machine. Everything that can change a result is a field here."""

    soc: str = "Ascend910B2"
    """Name that `aclrtGetSocName` and Triton's target report."""
    devices: int = 1
    """How many devices torch_npu sees, 1 to 16."""
    executor: Executor = Executor.NATIVE
    fit_check: bool = True
    """Run `bishengir-compile`, so that a kernel that overflows the unified buffer is refused as on the device."""
    backend: Backend = Backend.TRITON_EXPERIMENTAL
    guard: bool = True
    """Put every device allocation between inaccessible pages, so that a stray access is a named fault."""
    poison: int = 0xFF
    """Byte that fresh device memory is filled with. 0xFF reads as NaN in every float format and -1 in every int."""
    tile_config: int = 0
    """Index of the autotune configuration to begin with; later ones are tried only if it does not fit."""

    def __post_init__(self) -> None:
        if self.soc not in CUBE_CORES:
            raise ValueError(f"soc must be one of {', '.join(CUBE_CORES)}, not {self.soc!r}")
        if not 1 <= self.devices <= 16:
            raise ValueError(f"devices must be 1 to 16, not {self.devices}")
        if not 0 <= self.poison <= 0xFF:
            raise ValueError(f"poison must be one byte, 0 to 255, not {self.poison}")
        if self.tile_config < 0:
            raise ValueError(f"tile_config must not be negative, got {self.tile_config}")

    @property
    def cube_cores(self) -> int:
        """Matrix cores of the device."""
        return CUBE_CORES[self.soc]

    @property
    def vector_cores(self) -> int:
        """Vector cores of the device: a generated kernel launches that many programs at most."""
        return 2 * self.cube_cores
