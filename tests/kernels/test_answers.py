"""Sums over members' answers, weights of logarithms, even codes: one result on every engine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ensemble_gpu.arrays.namespace import locate
from ensemble_gpu.kernels.cpu.engine import CpuEngine
from ensemble_gpu.kernels.protocol import ABSTAIN, EVEN_BINS, LEFT, RIGHT, Layout, one_class
from ensemble_gpu.kernels.reference.engine import ReferenceEngine
from tests.places import DEVICE, NUMPY

PLACES: list[tuple[Any, Any]] = [
    (lambda: CpuEngine(1), NUMPY),
    (lambda: CpuEngine(2), NUMPY),
    (lambda: ReferenceEngine(locate(DEVICE.put(np.zeros(1)))), DEVICE),
]
CORNERS = np.array([0, 1, -1, 2**31, -(2**33), 2**62, -(2**63), 2**63 - 1])


@pytest.mark.parametrize(("make", "place"), PLACES, ids=["one thread", "two threads", "reference"])
@pytest.mark.parametrize(("n", "members"), [(1, 1), (64, 3), (65, 70), (700, 130)])
@pytest.mark.parametrize("abstaining", [False, True])
def test_sums_of_answers_are_those_of_a_matrix_product(make, place, n, members, abstaining):
    rng = np.random.default_rng(n)
    answers = rng.choice(
        np.array([-1, 0, 1] if abstaining else [-1, 1], dtype=np.int8), (members, n)
    )
    q = rng.integers(-(2**40), 2**40, (2, n))
    q[1, : len(CORNERS)] = CORNERS[:n]
    engine = make()
    halves = answers[: members // 2].T, answers[members // 2 :].T
    packed = engine.pack_answers((place.put(part) for part in halves if part.size), n)
    assert packed.abstains == bool((answers == 0).any())
    sums = engine.answer_sums(packed, place.put(q))
    for plane in range(2):
        for side, vote in enumerate((-1, 1)):
            expected = ((answers == vote) * q[plane]).sum(axis=1)
            np.testing.assert_array_equal(sums[plane, side], expected)
    for member in (0, members - 1):
        leaf = np.array([LEFT, ABSTAIN, RIGHT])[answers[member] + 1]
        np.testing.assert_array_equal(place.host(engine.answer(packed, member)), leaf)


def test_weights_of_logarithms_are_the_same_on_every_engine():
    logs = np.random.default_rng(0).integers(-(2**36), 2**33, 500)
    found = [
        (place.host(q), E)
        for make, place in PLACES
        for q, E in [make().quantised(place.put(logs), 26)]
    ]
    assert found[0][1] == found[1][1] == found[2][1]
    np.testing.assert_array_equal(found[0][0], found[2][0])
    exact = 2.0 ** (logs / 2.0**30 - found[0][1] + 26)
    np.testing.assert_allclose(found[0][0], exact, atol=0.51)


def test_even_codes_are_the_integer_quotients_on_every_engine():
    rng = np.random.default_rng(1)
    Z = rng.integers(-1000, 1000, (90, 11)).astype(np.float64)
    low, step = Z.min(axis=0), np.full(11, 8.0)
    expected = np.floor((Z - low) / step)
    Z[::7, 3] = np.nan
    expected[::7, 3] = EVEN_BINS
    layout = one_class(90)
    for make, place in PLACES:
        engine = make()
        space = engine.even_codes(layout, 11)
        for part, values in ((-Z, -Z.max(axis=0)), (Z, low)):  # the second round is what counts
            for first, last in ((8, 11), (0, 8)):
                at = slice(first, last)
                space.put(first, place.put(part[:, at]), values[at], step[at])
            codes = space.codes()
        found = [place.host(engine.column(codes, f)) for f in range(11)]
        np.testing.assert_array_equal(np.stack(found, axis=1), expected)


def test_joined_codes_are_those_of_all_features():
    rng = np.random.default_rng(2)
    X, rows = rng.normal(size=(60, 19)), np.arange(60)
    layout = Layout(np.array([0, 25, 60]), np.zeros((1, 2), dtype=np.int64))
    for make, place in PLACES:
        engine, there, at = make(), place.put(X), place.put(rows)
        edges = [np.quantile(x, np.arange(1, 6 + f) / (6 + f)) for f, x in enumerate(X.T)]
        whole = engine.encode(there, edges, at, layout)
        parts = [
            engine.encode(there[:, a:b], edges[a:b], at, layout, whole.width)
            for a, b in ((0, 8), (8, 16), (16, 19))
        ]
        joined = engine.join(parts, layout)
        np.testing.assert_array_equal(joined.counts, whole.counts)
        for f in range(19):
            one, other = (place.host(engine.column(codes, f)) for codes in (joined, whole))
            np.testing.assert_array_equal(one, other)
