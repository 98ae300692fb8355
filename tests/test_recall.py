"""Scores over trials: a median counts a miss as never."""

from __future__ import annotations

from fuzzer.recall import Trial, scores
from fuzzer.report.bench import line, markdown, summary

TRIALS = [
    Trial(slug="a", seed=0, programs=9, reached=1.0, triggered=2.0, detected=4.0, statements=2),
    Trial(slug="b", seed=0, programs=9, reached=1.0),
    Trial(slug="a", seed=1, programs=9, reached=2.0, triggered=6.0),
    Trial(slug="a", seed=2, programs=9, reached=3.0, triggered=7.0, detected=8.0, statements=4),
]


def test_the_median_over_seeds_counts_a_miss_as_never() -> None:
    a, b = scores(TRIALS)
    assert (a.slug, a.seeds, a.hits) == ("a", 3, {"reached": 3, "triggered": 3, "detected": 2})
    assert a.medians == {"reached": 2.0, "triggered": 6.0, "detected": 8.0}
    assert (a.statements, a.is_detected) == (3, True)
    assert (b.medians["detected"], b.is_detected, b.statements) == (None, False, None)


def test_the_table_says_how_many_of_all() -> None:
    assert summary(scores(TRIALS)) == (
        "1 of 2 defects detected in at least half of the seeds; of 4 trials: reached 4, triggered 3, detected 2"
    )
    identity = {"versions": {"torch": "2"}, "workers": 2, "source": "generators", "seconds": 120.0}
    assert "| a | 2 s (3/3) | 6 s (3/3) | 8 s (2/3) | 3 |" in markdown(scores(TRIALS), identity).splitlines()
    assert line(TRIALS[1], True) == "b seed 0: reached 1 s, triggered never, detected never in 9 programs"
