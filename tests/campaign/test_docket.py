"""One loud defect does not keep quiet ones from being looked into."""

from __future__ import annotations

from fuzzer.campaign.docket import MOST_OF_A_CLASS, STALE, Docket, Failing
from fuzzer.campaign.examine import Suspect
from fuzzer.program import Case
from fuzzer.verdict import Kind, Signature, Stage

LOUD = Signature(kind=Kind.WRONG_RESULT, stage=Stage.JUDGE, origin="output")
QUIET = Signature(kind=Kind.CRASH, stage=Stage.EXECUTE, origin="SIGSEGV")


def failing(number: int, signature: Signature = LOUD) -> Failing:
    return Failing(number=number, case=Case(source="x" * number), signature=signature)


def suspect(number: int, signature: Signature = LOUD, *, live: bool = True) -> Suspect:
    return Suspect(number=number, case=Case(source="x" * number), signature=signature, live=live)


def docket(*, attributes: bool = False) -> tuple[Docket, list[int]]:
    dropped: list[int] = []
    return Docket(attributes=attributes, drop=dropped.append), dropped


def test_failing_programs_are_attributed_in_order() -> None:
    waiting, _ = docket()
    for number in (3, 5, 8):
        waiting.add(failing(number))
    assert [one.number for one in iter(waiting.next_failing, None)] == [3, 5, 8]
    assert waiting.waiting == 0


def test_caught_comes_before_live_then_the_class_looked_into_least_then_the_shortest() -> None:
    waiting, _ = docket(attributes=True)
    for one in (suspect(9), suspect(4), suspect(20, QUIET), suspect(30, live=False)):
        waiting.add(one)
    assert [one.number for one in iter(waiting.next_suspect, None)] == [30, 4, 20, 9]


def test_a_class_that_brings_nothing_new_is_closed() -> None:
    waiting, dropped = docket()
    for number in range(STALE + 2):
        waiting.add(suspect(number + 1))
        one = waiting.next_suspect()
        if one is not None:
            waiting.record(one, is_new=False)
    assert dropped == [STALE + 1, STALE + 2]
    waiting.add(failing(50))
    waiting.add(failing(51, QUIET))
    one_more = waiting.next_failing()
    assert one_more is not None
    assert one_more.number == 51
    assert dropped[-1] == 50


def test_a_class_that_keeps_bringing_new_findings_stays_open_for_long() -> None:
    waiting, dropped = docket()
    for number in range(MOST_OF_A_CLASS + 1):
        waiting.add(suspect(number + 1))
        one = waiting.next_suspect()
        if one is not None:
            waiting.record(one, is_new=True)
    assert dropped == [MOST_OF_A_CLASS + 1]


def test_a_live_class_that_is_closed_does_not_close_the_caught_one() -> None:
    waiting, dropped = docket(attributes=True)
    for number in range(STALE):
        waiting.add(suspect(number + 1))
        one = waiting.next_suspect()
        assert one is not None
        waiting.record(one, is_new=False)
    waiting.add(failing(10))
    assert waiting.next_failing() is not None
    waiting.add(suspect(11, live=False))
    assert waiting.next_suspect() is not None
    assert dropped == []


def test_a_suspect_that_made_room_comes_back_and_was_not_looked_into() -> None:
    waiting, _ = docket(attributes=True)
    waiting.add(suspect(5))
    one = waiting.next_suspect()
    assert one is not None
    assert not waiting.has_caught
    waiting.add(suspect(9, live=False))
    assert waiting.has_caught
    waiting.postpone(one)
    assert [one.number for one in iter(waiting.next_suspect, None)] == [9, 5]
