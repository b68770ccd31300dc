"""Which combinations of parameters are in `make test`, and which among the long tests."""

from __future__ import annotations

from itertools import combinations, product

import pytest

from tests.products import every_pair

AXES = ("abc", [0, 1], [False, True], ["x", "y", "z"])


def combined(**options) -> dict[bool, list[tuple]]:
    """The combinations by whether they are long."""
    _, cases = every_pair("p, q, r, s", *AXES, **options).mark.args
    return {
        long: [case.values for case in cases if bool(case.marks) == long] for long in (False, True)
    }


def pairs(cases) -> set:
    return {pair for case in cases for pair in combinations(enumerate(case), 2)}


def test_every_pair_of_values_is_met_without_the_long_tests_and_every_combination_with_them():
    found = combined()
    assert pairs(found[False]) == pairs(product(*AXES))
    assert len(found[False]) <= 12
    assert sorted(found[False] + found[True]) == sorted(product(*AXES))


def test_combinations_without_sense_are_nowhere_and_cover_nothing():
    def makes_sense(p, q, r, s):
        return (p, s) != ("a", "x")

    found = combined(makes_sense=makes_sense)
    allowed = [case for case in product(*AXES) if makes_sense(*case)]
    assert sorted(found[False] + found[True]) == sorted(allowed)
    assert pairs(found[False]) == pairs(allowed)


def test_of_one_axis_every_value_is_kept():
    mark = every_pair("p", "abc").mark
    assert mark.args == (["p"], [pytest.param(value) for value in "abc"])
