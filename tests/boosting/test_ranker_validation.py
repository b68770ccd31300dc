"""Validation queries of a ranker: early stopping, metrics, callbacks, history; and bad input."""

from __future__ import annotations

import numpy as np
import pytest

from ensemble_gpu import BoostingRanker, metrics
from tests.places import DEVICE
from tests.ranking import pairs_of, ranking

X, Y, QID = ranking(400, 20)
TRAIN = np.quantile(QID, 0.6) > QID
GIVEN = (X[TRAIN], Y[TRAIN])
HELD = {"X_val": X[~TRAIN], "y_val": Y[~TRAIN], "qid_val": QID[~TRAIN]}


def ranker(**parameters):
    return BoostingRanker(**{"n_estimators": 40, "learning_rate": 0.5, **parameters})


NAMES = {
    "ndcg@5": lambda y, s, q: metrics.ndcg(y, s, qid=q, k=5),
    "map": lambda y, s, q: metrics.average_precision_by_query(y, s, qid=q),
    "mrr": lambda y, s, q: metrics.reciprocal_rank(y, s, qid=q),
    "pairwise_error": lambda y, s, q: metrics.pairwise_error(y, s, qid=q),
}


@pytest.mark.parametrize("parameters", [{}, {"variant": "rankboost"}, {"max_depth": 2}])
def test_early_stopping_keeps_the_best_round_of_the_first_metric(parameters):
    seen = []
    model = ranker(
        metric=[*NAMES, "loss"], early_stopping=True, n_iter_no_change=5,
        callbacks=[seen.append], **parameters,
    ).fit(*GIVEN, qid=QID[TRAIN], **HELD)  # fmt: skip
    found = model.history_.evals["validation"]
    best = int(np.argmax(found["ndcg@5"]))
    assert model.n_estimators_ == best + 1
    for name, metric in NAMES.items():
        expected = metric(HELD["y_val"], model.predict(HELD["X_val"]), HELD["qid_val"])
        assert found[name][best] == pytest.approx(expected, abs=1e-12)
    assert [info.evals["validation"]["map"] for info in seen] == found["map"].tolist()
    scores, pairs = model.predict(HELD["X_val"]), pairs_of(HELD["y_val"], HELD["qid_val"])
    loss = np.mean(np.exp(np.diff(scores[pairs], axis=1)))
    assert found["loss"][best] == pytest.approx(loss, rel=1e-9)


@pytest.mark.parametrize("loss", ["logistic", "lambda"])
def test_the_loss_of_validation_queries_is_that_of_their_pairs(loss):
    model = ranker(loss=loss, n_estimators=5).fit(*GIVEN, qid=QID[TRAIN], **HELD)
    y, qid = HELD["y_val"], HELD["qid_val"]
    scores, pairs = model.predict(HELD["X_val"]), pairs_of(y, qid)
    expected = np.mean(np.log1p(np.exp(np.diff(scores[pairs], axis=1))))
    if loss == "lambda":
        expected = 1.0 - metrics.ndcg(y, scores, qid=qid, empty=None)
    assert model.history_.validation[-1] == pytest.approx(expected, rel=1e-7)


def test_queries_are_held_out_as_a_whole_and_by_the_seed():
    one = ranker(early_stopping=True, validation_fraction=0.25).fit(X, Y, qid=QID)
    at = np.random.default_rng(0).permutation(400)
    same = ranker(early_stopping=True, validation_fraction=0.25).fit(X[at], Y[at], qid=QID[at])
    assert same.model_.fingerprint() == one.model_.fingerprint()
    other = ranker(early_stopping=True, validation_fraction=0.25, random_state=1)
    assert len(other.fit(X, Y, qid=QID).history_.validation) > 0


def test_several_sets_with_weights_and_a_metric_of_the_user_on_another_library():
    def mine(y, scores, qid, sample_weight=None):
        DEVICE.check(scores, "float64")
        return metrics.pairwise_error(y, scores, qid=qid, sample_weight=sample_weight)

    held = [DEVICE.put(HELD[name]) for name in ("X_val", "y_val", "qid_val")]
    ones = DEVICE.put(np.ones(len(HELD["y_val"])))
    model = ranker(metric=["pairwise_error", mine], n_estimators=4).fit(
        *map(DEVICE.put, GIVEN), qid=DEVICE.put(QID[TRAIN]),
        eval_set=[tuple(held), (*held, ones)], eval_names=["a", "b"],
    )  # fmt: skip
    for name in ("a", "b"):
        found = model.history_.evals[name]
        np.testing.assert_allclose(found["mine"], found["pairwise_error"])


PAIRS = pairs_of(Y, QID)[:30]
BAD = {
    "no qid": ({"qid": None}, "qid must say which query each row belongs to"),
    "no y": ({"y": None}, "requires y to be passed"),
    "qid of other length": ({"qid": QID[:-1]}, "X has 400 rows, qid has 399"),
    "two columns of qid": ({"qid": QID[:, None] + [0, 1]}, r"qid must be of one dim.*\(400, 2\)"),
    "NaN in qid": ({"qid": np.where(np.arange(400) == 3, np.nan, QID)}, "qid contains NaN"),
    "None in qid": ({"qid": [None, *QID[1:]]}, "qid contains NaN or None"),
    "NaN in y": ({"y": np.where(np.arange(400) == 3, np.nan, Y)}, "y contains NaN"),
    "one level": ({"y": QID}, "nothing to learn"),
    "a query a row": ({"qid": np.arange(400)}, "nothing to learn"),
    "no weight": ({"sample_weight": np.zeros(400)}, "sample_weight is zero for every row"),
    "weights of neither": ({"sample_weight": np.ones(7)}, "sample_weight has 7"),
    "y and pairs": ({"pairs": PAIRS}, "pairs and y were both given"),
    "pair_weight alone": ({"pair_weight": [1]}, "pair_weight is for pairs"),
    "validation without queries": (
        {"X_val": X, "y_val": Y}, "qid_val must say which query each row belongs to",
    ),
    "qid_val alone": ({"qid_val": QID}, "qid_val was given, and needs X_val"),
}  # fmt: skip


@pytest.mark.parametrize(("given", "message"), BAD.values(), ids=BAD)
def test_bad_input_is_named(given, message):
    with pytest.raises(ValueError, match=message):
        ranker().fit(X, **{"y": Y, "qid": QID, **given})


BAD_PAIRS = {
    "empty": (np.zeros((0, 2), int), "at least one; got none"),
    "of one row": ([[3, 3]], "pair 0 is row 3 with itself"),
    "out of range": ([[0, 1], [5, 400]], r"positions 0 to 399.*pair 1 is \[5, 400\]"),
    "negative": ([[-1, 2]], r"pair 0 is \[-1, 2\]"),
    "of three": ([[0, 1, 2]], r"got shape \(1, 3\)"),
    "floats": ([[0.0, 1.0]], "got dtype float64"),
}


@pytest.mark.parametrize(("pairs", "message"), BAD_PAIRS.values(), ids=BAD_PAIRS)
def test_bad_pairs_are_named(pairs, message):
    with pytest.raises(ValueError, match=message):
        ranker().fit(X, pairs=pairs)


@pytest.mark.parametrize(
    ("parameters", "given", "message"),
    [
        ({}, {"pair_weight": [1, 2]}, "pair_weight must hold 30 weights, one a pair; got 2"),
        ({}, {"pair_weight": [0] * 30}, "pair_weight is zero for every pair"),
        ({"loss": "lambda"}, {}, "with pairs loss must be 'exponential' or 'logistic'"),
        ({"early_stopping": True}, {}, "early_stopping=True with pairs needs validation queries"),
    ],
)
def test_what_pairs_do_not_go_with_is_named(parameters, given, message):
    with pytest.raises(ValueError, match=message):
        ranker(**parameters).fit(X, pairs=PAIRS, **given)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"loss": "squared"}, "loss must be one of 'exponential', 'logistic', 'lambda'"),
        ({"variant": "adaboost"}, "variant must be one of 'gradient', 'rankboost'"),
        ({"truncation": 0}, "truncation must be an integer >= 1; got 0"),
        ({"metric": "ndcg@0"}, "metric must be one of 'loss', 'ndcg', 'map', 'mrr'"),
        ({"loss": "lambda", "step": "line_search"}, "step must be None, 'newton' or 'constant'"),
        ({"loss": "lambda", "candidates": 2}, "candidates=2 compares losses"),
    ],
)
def test_bad_parameters_are_named(parameters, message):
    with pytest.raises(ValueError, match=message):
        ranker(**parameters).fit(X, Y, qid=QID)


def test_relevance_of_gains_is_whole_and_not_negative():
    for y, message in ((Y - 1.0, "relevance >= 0"), (Y / 2.0, "whole numbers from 0 to 1023")):
        with pytest.raises(ValueError, match=message):
            ranker(loss="lambda").fit(X, y, qid=QID)
        with pytest.raises(ValueError, match=message):
            ranker(n_estimators=2).fit(X, y, qid=QID).score(X, y, qid=QID)


def test_an_error_leaves_the_estimator_as_it_was():
    model = ranker(n_estimators=3).fit(X, Y, qid=QID)
    before = model.predict(X)
    with pytest.raises(ValueError, match="pair 0 is row 3 with itself"):
        model.fit(X, pairs=[[3, 3]])
    np.testing.assert_array_equal(model.predict(X), before)
