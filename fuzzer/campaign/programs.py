"""Where the programs of a campaign come from: the generators, or files that somebody else made."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from fuzzer import corpus
from fuzzer.campaign.protocol import Generate, Job, RunCase
from fuzzer.program import Case, FuzzerError

Config = tuple[tuple[str, "bool | int | str"], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Generators:
    """The project's own: programs 0, 1, 2, ... of a seed, without end."""

    seed: int = 0
    families: tuple[str, ...] = ()
    """Families of operators to draw from; empty means all."""
    config: Config = ()
    """Inductor options that every program gets."""
    name: str = "generators"

    def job(self, number: int) -> Job | None:
        """What to run as program `number`; None when there are no more."""
        return Generate(seed=self.seed, index=number, families=self.families, config=self.config)

    def seeded(self, seed: int, config: Config) -> Generators:
        """The programs of another seed."""
        return replace(self, seed=seed, config=config)


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """A folder of plain .py files that define `inputs()` and `program(...)`, in the order of their names."""

    name: str
    cases: tuple[Case, ...]
    begin: int = 0
    config: Config = ()

    def job(self, number: int) -> Job | None:
        """What to run as program `number`; None when there are no more."""
        if number >= len(self.cases):
            return None
        case = self.cases[(self.begin + number) % len(self.cases)]
        return RunCase(case=replace(case, mode=replace(case.mode, config=(*case.mode.config, *self.config))))

    @property
    def families(self) -> tuple[str, ...]:
        """None is chosen: what the files hold is run."""
        return ()

    def seeded(self, seed: int, config: Config) -> Files:
        """The same programs, begun at another place for each seed."""
        return replace(self, begin=seed * len(self.cases) // 7 % len(self.cases), config=config)


Programs = Generators | Files


def read_programs(folder: Path) -> Files:
    """Every program of a folder. Raises FuzzerError when there is none, or one cannot be read."""
    files = sorted(folder.glob("*.py"))
    if not files:
        raise FuzzerError(f"{folder}: no .py file in this folder")
    return Files(name=str(folder), cases=tuple(corpus.load_case(file) for file in files))
