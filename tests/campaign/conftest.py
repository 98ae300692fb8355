"""One pool for all tests of this folder: its fork server imports torch once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fuzzer.campaign.protocol import Settings
from fuzzer.campaign.worker import Pool


@pytest.fixture(scope="session")
def pool() -> Iterator[Pool]:
    with Pool(Settings(target="cpu", timeout=20.0, memory=3 << 29), workers=2) as pool:
        yield pool
