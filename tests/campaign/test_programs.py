"""Generated programs have no end; those of a folder are read in order and have one."""

from __future__ import annotations

from pathlib import Path

import pytest

from fuzzer.campaign.programs import Files, Generators, read_programs
from fuzzer.campaign.protocol import Generate, RunCase
from fuzzer.program import FuzzerError
from tests.campaign.programs import PARSED

OPTION = (("triton.prefer_nd_tiling", True),)


def order(programs: Files) -> list[str]:
    jobs = [programs.job(number) for number in range(len(programs.cases) + 1)]
    assert jobs.pop() is None
    return [job.case.source.splitlines()[-1] for job in jobs if isinstance(job, RunCase)]


def test_programs_of_a_folder_are_read_in_order_and_begun_elsewhere_for_each_seed(tmp_path: Path) -> None:
    with pytest.raises(FuzzerError, match=r"no \.py file in this folder"):
        read_programs(tmp_path)
    for name in "hgfedcba":
        (tmp_path / f"{name}.py").write_text(PARSED + f"\n# {name}\n")
    programs = read_programs(tmp_path)
    assert order(programs) == [f"# {name}" for name in "abcdefgh"]
    assert order(programs.seeded(3, ())) == [f"# {name}" for name in "defghabc"]
    job = programs.seeded(0, OPTION).job(0)
    assert isinstance(job, RunCase)
    assert job.case.mode.config == OPTION


def test_generated_programs_go_on_for_every_seed() -> None:
    programs = Generators(families=("masking",)).seeded(5, OPTION)
    assert programs.job(10**6) == Generate(seed=5, index=10**6, families=("masking",), config=OPTION)
