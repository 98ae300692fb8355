"""What Python 3.10 lacks: one place, so that every module says `from fuzzer.backports import StrEnum`."""

import sys

if sys.version_info >= (3, 11):
    from enum import StrEnum

    import tomllib
else:
    import tomli as tomllib
    from backports.strenum import StrEnum

__all__ = ["StrEnum", "tomllib"]
