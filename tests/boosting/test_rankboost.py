"""The textbook's RankBoost against brute force over all pairs, and its bounds."""

from __future__ import annotations

import numpy as np
import pytest

from ensemble_gpu import BoostingRanker, metrics, use_engine
from tests.ranking import pairs_of, ranking

ROUNDS = 8


def brute_force(X, pairs, weights, rounds, rate=1.0):
    """(feature, threshold, alpha, Z) of every round, pair by pair; NaN goes to the better side."""
    D = weights / weights.sum()
    half = 0.5 * weights.min() / weights.sum()
    found = []
    i, j = pairs.T
    for _ in range(rounds):
        best = None
        for f in range(X.shape[1]):
            x = X[:, f]
            values = np.unique(x[~np.isnan(x)])
            cuts = [*((values[:-1] + values[1:]) / 2), *([np.inf] if np.isnan(x).any() else [])]
            for cut in cuts:
                for missing in (0, 1) if np.isnan(x).any() else (0,):
                    h = np.where(np.isnan(x), missing, x > cut).astype(int)
                    plus, minus = D[h[i] > h[j]].sum(), D[h[i] < h[j]].sum()
                    gain = (np.sqrt(plus) - np.sqrt(minus)) ** 2
                    if best is None or gain > best[0] * (1 + 1e-6):
                        best = gain, f, cut, plus, minus, h
        _, f, cut, plus, minus, h = best
        alpha = rate * 0.5 * np.log((plus + half) / (minus + half))
        D = D * np.exp(-alpha * (h[i] - h[j]))
        Z = D.sum()
        D = D / Z
        found.append((f, cut, alpha, Z))
    return found


def check(model, expected):
    rounds = model.model_.rounds
    assert rounds.feature.tolist() == [one[0] for one in expected]
    np.testing.assert_allclose(rounds.threshold, [one[1] for one in expected])
    np.testing.assert_allclose(model.alphas_, [one[2] for one in expected], rtol=1e-8)
    np.testing.assert_allclose(model.history_.Z, [one[3] for one in expected], rtol=1e-10)


@pytest.mark.parametrize("rate", [1.0, 0.3])
@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_stumps_and_alphas_are_those_of_a_loop_over_all_pairs(engine, rate, missing):
    X, y, qid = ranking(60, 4, missing=missing)
    pairs = pairs_of(y, qid)
    expected = brute_force(X, pairs, np.ones(len(pairs)), ROUNDS, rate)
    parameters = {"variant": "rankboost", "n_estimators": ROUNDS, "learning_rate": rate}
    check(BoostingRanker(**parameters).fit(X, y, qid=qid), expected)
    check(BoostingRanker(**parameters).fit(X, pairs=pairs), expected)


def test_weights_of_rows_are_repetitions_of_pairs():
    X, y, qid = ranking(60, 4)
    w = np.random.default_rng(0).integers(1, 4, 60)
    pairs = pairs_of(y, qid)
    expected = brute_force(X, pairs, w[pairs].prod(axis=1).astype(float), ROUNDS)
    parameters = {"variant": "rankboost", "n_estimators": ROUNDS, "learning_rate": 1.0}
    weighted = BoostingRanker(**parameters).fit(X, y, w, qid=qid)
    check(weighted, expected)
    twice = [np.repeat(a, w, axis=0) for a in (X, y, qid)]
    repeated = BoostingRanker(**parameters).fit(*twice[:2], qid=twice[2])
    assert repeated.model_.fingerprint() == weighted.model_.fingerprint()


@pytest.fixture(scope="module")
def fitted():
    X, y, qid = ranking(300, 10, missing=0.05)
    model = BoostingRanker(variant="rankboost", n_estimators=40, learning_rate=1.0)
    return model.fit(X, y, qid=qid), X, y, qid


def test_the_loss_is_the_product_of_all_Z_and_bounds_the_pairwise_error(fitted):
    model, X, y, qid = fitted
    bounds = np.cumprod(model.history_.Z)
    np.testing.assert_allclose(model.history_.training, bounds)
    pairs = pairs_of(y, qid)
    for n, scores in enumerate(model.staged_predict(X)):
        R = np.mean(np.exp(-np.diff(-scores[pairs], axis=1)))
        assert bounds[n] == pytest.approx(R, rel=1e-9)
        assert metrics.pairwise_error(y, scores, qid=qid) <= R
    assert bounds[-1] < 0.6


def test_one_query_and_two_levels_bound_one_minus_the_area():
    X, y, _ = ranking(150, 1, levels=2)
    model = BoostingRanker(variant="rankboost", n_estimators=15, learning_rate=1.0)
    model.fit(X, y, qid=np.zeros(150))
    assert 1.0 - metrics.roc_auc(y, model.predict(X)) <= np.prod(model.history_.Z)


def test_the_model_is_the_same_on_both_engines_and_for_any_order(fitted):
    model, X, y, qid = fitted
    at = np.random.default_rng(0).permutation(300)
    with use_engine("reference"):
        other = BoostingRanker(**model.get_params()).fit(X[at], y[at], qid=qid[at])
    assert other.model_.fingerprint() == model.model_.fingerprint()
    alone = BoostingRanker(**{**model.get_params(), "n_jobs": 1}).fit(X, y, qid=-qid)
    assert alone.model_.fingerprint() == model.model_.fingerprint()


def test_it_ends_where_no_stump_orders_pairs():
    X = np.array([[0.0], [0.0], [1.0], [1.0]])
    model = BoostingRanker(variant="rankboost", n_estimators=5)
    model.fit(X, [0, 1, 0, 1], qid=[0, 0, 1, 1])
    assert model.n_estimators_ == 0
    assert model.stop_reason_ == "no stump orders pairs better than chance"


@pytest.mark.parametrize(
    "wrong",
    [{"loss": "logistic"}, {"max_depth": 2}, {"subsample": 0.5}, {"step": "newton"},
     {"monotonic_cst": [1, 0, 0, 0]}],
)  # fmt: skip
def test_parameters_of_gradients_are_refused(wrong):
    X, y, qid = ranking(60, 4)
    name = next(iter(wrong))
    with pytest.raises(ValueError, match=f"{name}=.* is for variant='gradient'"):
        BoostingRanker(variant="rankboost", **wrong).fit(X, y, qid=qid)
