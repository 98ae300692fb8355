"""JUnit XML of a replay, the form that CI systems read."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

UNPRINTABLE = dict.fromkeys(code for code in range(32) if chr(code) not in "\t\n\r")
"""Characters that XML 1.0 cannot hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TestCase:
    """One test, whatever was tested."""

    __test__ = False

    name: str
    group: str
    seconds: float
    failure: str = ""
    """One line on why it failed; empty when it did not."""
    skipped: str = ""
    """One line on why nothing can be said; empty when something can."""
    details: tuple[str, ...] = ()


def write(path: Path, suite: str, cases: Sequence[TestCase]) -> None:
    """Writes one test suite."""
    root = ET.Element(
        "testsuite",
        name=suite,
        tests=str(len(cases)),
        failures=str(sum(bool(case.failure) for case in cases)),
        errors="0",
        skipped=str(sum(bool(case.skipped) and not case.failure for case in cases)),
        time=f"{sum(case.seconds for case in cases):.3f}",
    )
    for case in cases:
        element = ET.SubElement(root, "testcase", name=case.name, classname=case.group, time=f"{case.seconds:.3f}")
        if case.failure:
            failure = ET.SubElement(element, "failure", message=_clean(case.failure))
            failure.text = _clean("\n".join(case.details))
        elif case.skipped:
            ET.SubElement(element, "skipped", message=_clean(case.skipped))
    tree = ET.ElementTree(ET.Element("testsuites"))
    wrapper = tree.getroot()
    assert wrapper is not None
    wrapper.append(root)
    ET.indent(tree)
    tree.write(path, encoding="utf-8", xml_declaration=True)


def _clean(text: str) -> str:
    return text.translate(UNPRINTABLE)
