"""Sizes that are products of others follow them."""

from __future__ import annotations

from fuzzer.minimize.products import follow


def test_product_follows_its_factors_and_so_does_what_is_made_of_it() -> None:
    assert follow({4: 2}, [(1200, (4, 300)), (2400, (2, 1200))]) == {4: 2, 1200: 600, 2400: 1200}


def test_factor_makes_up_for_a_smaller_product() -> None:
    assert follow({1200: 8}, [(1200, (4, 300))]) == {1200: 8, 300: 2}


def test_sizes_that_contradict_each_other_are_refused() -> None:
    assert follow({1200: 7}, [(1200, (4, 300))]) is None
    assert follow({4: 2}, [(16, (4, 4)), (64, (16, 4)), (64, (8, 8))]) is None
