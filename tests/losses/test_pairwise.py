"""Losses over pairs against loops over all pairs, on both engines."""

from __future__ import annotations

import numpy as np
import pytest

from ensemble_gpu.arrays.namespace import NUMPY
from ensemble_gpu.boosting.ranking import lambda_loss, pair_loss
from ensemble_gpu.data.groups import Groups
from ensemble_gpu.data.pairs import read_pairs
from ensemble_gpu.data.queries import queries_of
from ensemble_gpu.kernels.cpu.engine import CpuEngine
from ensemble_gpu.losses.by_query import QueryExponential, QueryLogistic
from tests.ranking import pairs_of, ranking

_, Y, QID = ranking(90, 5)
ORDER = np.lexsort((Y, QID))
Y, QID = Y[ORDER], QID[ORDER]
PAIRS = pairs_of(Y, QID)
F = np.random.default_rng(0).normal(size=90)
WEIGHTS = np.random.default_rng(1).integers(1, 4, 90).astype(np.float64)
PHI = {
    "exponential": (lambda v: np.exp(-v), lambda v: -np.exp(-v), lambda v: np.exp(-v)),
    "logistic": (
        lambda v: np.log1p(np.exp(-v)),
        lambda v: -1 / (1 + np.exp(v)),
        lambda v: np.exp(v) / (1 + np.exp(v)) ** 2,
    ),
}
LOSSES = {"exponential": QueryExponential, "logistic": QueryLogistic}
CPU = CpuEngine()


def of_queries(name, weights=None, group_weights=None):
    index = np.unique(QID, return_inverse=True)[1]
    groups = Groups(index, group_weights)
    return LOSSES[name](queries=queries_of(Y, groups, weights, NUMPY), exp=CPU.exp)


def by_pairs(name, F, pair_weights, weights):
    """Mean loss, and derivatives of n R / 2 divided by the rows' weights."""
    phi, slope, curve = PHI[name]
    i, j = PAIRS.T
    v, w = F[i] - F[j], pair_weights / pair_weights.sum()
    g, h = np.zeros(len(F)), np.zeros(len(F))
    np.add.at(g, i, w * slope(v))
    np.add.at(g, j, -w * slope(v))
    np.add.at(h, i, w * curve(v))
    np.add.at(h, j, w * curve(v))
    half = weights.sum() / 2
    return np.sum(w * phi(v)), half * g / weights, half * h / weights


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("how", ["even", "rows", "queries"])
def test_derivatives_and_value_are_those_of_all_pairs(name, how):
    weights = WEIGHTS if how == "rows" else np.ones(90)
    of_query = np.array([1.0, 2.0, 3.0, 0.5, 1.0]) if how == "queries" else None
    loss = of_queries(name, weights if how == "rows" else None, of_query)
    pair_weights = weights[PAIRS].prod(axis=1)
    if of_query is not None:
        pair_weights = pair_weights * of_query[np.unique(QID, return_inverse=True)[1][PAIRS[:, 0]]]
    value, g, h = by_pairs(name, F, pair_weights, weights)
    found = np.average(loss.value(Y, F), weights=weights)
    assert found == pytest.approx(value, rel=1e-8)
    for derivatives in (loss.derivatives(Y, F), CPU.derivatives(loss, Y, F)):
        np.testing.assert_allclose(derivatives[0], g, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(derivatives[1], h, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("name", LOSSES)
def test_given_pairs_have_the_derivatives_of_the_queries(name):
    pairs = read_pairs(PAIRS, None, 90)
    given = pair_loss(name, pairs, 90, NUMPY)
    for mine, theirs in zip(given.derivatives(Y, F), of_queries(name).derivatives(Y, F),
                            strict=True):  # fmt: skip
        np.testing.assert_allclose(mine, theirs, rtol=1e-7, atol=1e-10)
    assert np.mean(given.value(Y, F)) == pytest.approx(np.mean(of_queries(name).value(Y, F)))


@pytest.mark.parametrize("spread", [1.0, 40.0, 1000.0])
@pytest.mark.parametrize("name", [*LOSSES, "lambda"])
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["even", "weighted"])
def test_the_kernel_gives_the_bits_of_the_array_calls(name, spread, weights):
    loss = of_queries("logistic" if name == "lambda" else name, weights)
    if name == "lambda":
        index = np.unique(QID, return_inverse=True)[1]
        keys = np.random.default_rng(3).permutation(90).astype(np.uint64)
        loss = lambda_loss(queries_of(Y, Groups(index), weights, NUMPY, keys), 7)
    F = np.round(spread * np.random.default_rng(2).normal(size=90), 1)  # with ties
    for mine, oracle in zip(CPU.derivatives(loss, Y, F), loss.derivatives(Y, F), strict=True):
        assert np.isfinite(oracle).all()
        np.testing.assert_array_equal(mine, oracle)


def test_levels_far_apart_lose_no_pair():
    """Of pairs in order by 60 the weight is e^-60: relative to F of the level it is not lost."""
    loss = of_queries("exponential")
    apart = 60.0 * Y + 0.1 * F
    _, g, h = by_pairs("exponential", apart, np.ones(len(PAIRS)), np.ones(90))
    found = CPU.derivatives(loss, Y, apart)
    np.testing.assert_allclose(found[0], g, rtol=1e-6, atol=1e-40)
    np.testing.assert_allclose(found[1], h, rtol=1e-6, atol=1e-40)


def test_a_constant_added_to_the_scores_of_a_query_changes_no_gradient():
    for name in LOSSES:
        loss = of_queries(name)
        moved = F + 8.0 * np.unique(QID, return_inverse=True)[1]
        for mine, same in zip(CPU.derivatives(loss, Y, moved), CPU.derivatives(loss, Y, F),
                              strict=True):  # fmt: skip
            np.testing.assert_allclose(mine, same, rtol=1e-9, atol=1e-12)


def test_lambda_weighs_pairs_by_the_change_of_ndcg():
    index = np.unique(QID, return_inverse=True)[1]
    keys = np.arange(90, dtype=np.uint64)
    loss = lambda_loss(queries_of(Y, Groups(index), None, NUMPY, keys), 1000)
    g = np.zeros(90)
    for q in np.unique(index):
        rows = np.flatnonzero(index == q)
        rank = np.empty(len(rows))
        rank[np.argsort(-F[rows])] = np.arange(len(rows))
        gain, discount = 2.0 ** Y[rows] - 1.0, 1.0 / np.log2(2.0 + rank)
        best = np.sum(np.sort(gain)[::-1] / np.log2(2.0 + np.arange(len(rows))))
        for a, i in enumerate(rows):
            for b, j in enumerate(rows):
                if Y[i] > Y[j]:
                    delta = (gain[a] - gain[b]) * abs(discount[a] - discount[b]) / best
                    p = delta / (1.0 + np.exp(F[i] - F[j]))
                    g[i] -= p
                    g[j] += p
    found = loss.derivatives(Y, F)[0]
    np.testing.assert_allclose(found, g * (found @ g) / (g @ g), rtol=1e-9, atol=1e-12)
