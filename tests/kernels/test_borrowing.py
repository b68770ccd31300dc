"""Functions that own no array count no references; those that do, do."""

from __future__ import annotations

import sys
from typing import NamedTuple

import numpy as np
import pytest
from numba import typeof

from ensemble_gpu.kernels.jit import inner, kernel


class Pair(NamedTuple):
    """Arrays that travel together."""

    first: np.ndarray
    second: np.ndarray


PAIR = Pair(np.arange(6.0), np.ones(6))


@inner
def _add(pair):
    total, three = 0.0, pair.second.reshape(2, -1)[0][:3]
    for i in range(three.shape[0]):
        total += pair.first[i] * three[i]
    return total


@inner
def _swapped_sum(pair):
    other = Pair(pair.second[1:], pair.first)
    return _add(other)


@inner
def _swapped(pair):
    return Pair(pair.second, pair.first)


@inner
def _made(pair):
    other = np.empty(3)
    other[:] = pair.first[:3]
    return other.sum()


@inner
def _picked(pair):
    return pair.first[pair.second[:2].astype(np.int64)][0]


@inner
def _at_places(values, places):
    return values[places][0]


@inner
def _moved(values):
    values[1:4] = values[0:3]
    return values[3]


@inner
def _chosen(pair, swaps):
    if swaps:
        pair = _swapped(pair)
    return _add(pair)


@kernel
def run(pair, times):
    """All of them, many times."""
    total = 0.0
    for i in range(times):
        swapped = _swapped(pair)
        total += _add(pair) + _swapped_sum(swapped) + _made(pair) + _chosen(pair, i % 2 == 0)
    return total


def code_of(function, *arguments):
    function.compile(tuple(typeof(a) for a in arguments))
    (made,) = function.overloads.values()
    return made.library.get_llvm_str()


@pytest.mark.parametrize(
    ("function", "arguments", "counts"),
    [
        (_add, (PAIR,), False), (_swapped_sum, (PAIR,), False), (_swapped, (PAIR,), True),
        (_made, (PAIR,), True), (_chosen, (PAIR, True), True), (_picked, (PAIR,), True),
        (_at_places, (np.ones(3), np.arange(2)), True), (_moved, (np.ones(4),), True),
    ],
)  # fmt: skip
def test_references_are_counted_where_arrays_are_made_or_returned(function, arguments, counts):
    fresh = inner(function.py_func)
    assert ("NRT_incref" in code_of(fresh, *arguments)) == counts


def test_no_reference_is_left_or_lost():
    first, second = np.arange(6.0), np.ones(6)
    pair = Pair(first, second)
    before = sys.getrefcount(first), sys.getrefcount(second)
    for _ in range(3):
        assert run(pair, 10) == 10 * ((0 + 1 + 2) + (1 + 2 + 3) + (0 + 1 + 2) + (0 + 1 + 2))
    assert (sys.getrefcount(first), sys.getrefcount(second)) == before
    assert np.array_equal(first, np.arange(6.0))
