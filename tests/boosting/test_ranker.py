"""What a ranking is: pairs within queries, whatever the order of rows, engine and library."""

from __future__ import annotations

import re

import numpy as np
import pytest

from ensemble_gpu import BoostingRanker, metrics, use_engine
from ensemble_gpu.learners import HalfSpaces
from examples import ranking as example
from tests.places import DEVICE
from tests.ranking import pairs_of, ranking

X, Y, QID = ranking(400, 12, missing=0.05)
FORMS = {
    "stumps": {},
    "trees": {"max_depth": 3, "min_samples_leaf": 5},
    "leaves": {"max_depth": None, "max_leaf_nodes": 4, "subsample": 1.0, "max_features": None},
    "line search": {"step": "line_search"},
    "candidates": {"candidates": 3},
    "logistic": {"loss": "logistic"},
    "lambda": {"loss": "lambda", "truncation": 5},
    "monotone": {"monotonic_cst": [1, 0, 0, -1]},
    "learns missing": {"missing": "learn"},
}


def ranker(**parameters):
    return BoostingRanker(**{"n_estimators": 12, "learning_rate": 0.3, **parameters})


def prints(model):
    return model.model_.fingerprint()


@pytest.mark.parametrize("parameters", FORMS.values(), ids=FORMS)
def test_the_model_is_the_same_on_every_engine_and_for_any_order_of_rows(parameters):
    model = ranker(**parameters).fit(X, Y, qid=QID)
    assert metrics.pairwise_error(Y, model.predict(X), qid=QID) < 0.35
    at = np.random.default_rng(0).permutation(400)
    with use_engine("reference"):
        other = ranker(**parameters, n_jobs=1).fit(X[at], Y[at], qid=QID[at])
    assert prints(other) == prints(model)


def test_defaults_are_those_that_the_documentation_names():
    told = {
        "learning_rate": 0.2, "subsample": 0.5, "max_features": None, "min_samples_leaf": 20,
        "min_hessian": 0.001, "l2_regularization": 1.0,
    }  # fmt: skip
    usual = BoostingRanker(n_estimators=3, max_depth=2).fit(X, Y, qid=QID)
    assert prints(usual) == prints(usual.set_params(**told).fit(X, Y, qid=QID))
    ranks = BoostingRanker("lambda", n_estimators=3, max_depth=2).fit(X, Y, qid=QID)
    ranks_told = {**told, "subsample": 0.65}
    assert prints(ranks) == prints(ranks.set_params(**ranks_told).fit(X, Y, qid=QID))
    stumps = BoostingRanker(n_estimators=3).fit(X, Y, qid=QID)
    plain = {**told, "subsample": 1.0, "min_samples_leaf": 1, "min_hessian": 0.0}
    plain["l2_regularization"] = 0.0
    assert prints(stumps) == prints(stumps.set_params(**plain).fit(X, Y, qid=QID))
    rates = {n: BoostingRanker(n_estimators=n)._resolved_rate() for n in (100, 300, None, 5000)}
    assert rates == {100: 0.2, 300: 0.1, None: 0.06, 5000: 0.03}
    book = BoostingRanker(variant="rankboost", n_estimators=3).fit(X, Y, qid=QID)
    assert prints(book) == prints(book.set_params(learning_rate=1.0).fit(X, Y, qid=QID))
    text = BoostingRanker.__doc__
    for said in (
        "None: 30 / n_estimators, at least 0.03", "most 0.2; 0.06 where", "0.5 (0.65 for loss",
        '"auto": all.', 'early_stopping : bool or "auto", default=False',
    ):  # fmt: skip
        assert said in text, said


@pytest.mark.slow
def test_the_example_ranks_by_queries_and_by_pairs(capsys):
    example.main(n_queries=40, n_rounds=20)
    told = capsys.readouterr().out
    wrong = [float(value) for value in re.findall(r"pairwise error (\d\.\d+)", told)]
    assert len(wrong) == 7
    assert max(wrong) < 0.25
    misordered, R = map(float, re.search(r"pairs (\S+) are .* R = (\S+)", told).groups())
    assert misordered <= R


def test_arrays_of_another_library_give_the_same_model_and_their_own_predictions():
    model = ranker().fit(X, Y, qid=QID)
    x, y, q = map(DEVICE.put, (X, Y, QID))
    other = ranker().fit(x, y, qid=q)
    assert prints(other) == prints(model)
    assert other.engine_ == "reference"
    DEVICE.check(other.predict(x), "float64")
    assert other.score(x, y, qid=q) == model.score(X, Y, qid=QID)


def test_many_rows_are_packed_with_the_same_bits_on_both_engines():
    rng = np.random.default_rng(0)
    many = rng.normal(size=(21_000, 2)).astype(np.float32)
    y = (many[:, 0] + rng.normal(size=21_000) > 0).astype(int) + (many[:, 1] > 1)
    qid = rng.integers(0, 700, 21_000)
    weights = rng.random(21_000)
    found = set()
    for engine in ("cpu", "reference"):
        with use_engine(engine):
            found.add(prints(ranker(n_estimators=4).fit(many, y, weights, qid=qid)))
    assert len(found) == 1


def test_names_of_queries_do_not_matter():
    named = np.array([f"query {q}" for q in QID])
    assert prints(ranker().fit(X, Y, qid=named)) == prints(ranker().fit(X, Y, qid=QID))
    assert prints(ranker().fit(X, Y, qid=-QID)) == prints(ranker().fit(X, Y, qid=QID))


def test_whole_weights_are_repetitions_of_rows():
    w = np.random.default_rng(1).integers(0, 3, 400)
    w[:50] = 1
    repeated = [np.repeat(a, w, axis=0) for a in (X, Y, QID)]
    weighted = ranker().fit(X, Y, w, qid=QID)
    assert prints(ranker().fit(*repeated[:2], qid=repeated[2])) == prints(weighted)


def test_weights_of_queries_weigh_their_pairs():
    labels = np.unique(QID)
    w = np.where(labels < np.median(labels), 1.0, 0.0)
    some = np.isin(QID, labels[w > 0])
    weighted = ranker().fit(X, Y, w, qid=QID)
    assert prints(weighted) == prints(ranker().fit(X[some], Y[some], qid=QID[some]))


def test_a_query_with_one_level_adds_nothing():
    more = np.concatenate([X, 5.0 + X[:20]])
    y, qid = np.concatenate([Y, np.full(20, 3.0)]), np.concatenate([QID, np.full(20, 999)])
    assert prints(ranker().fit(more, y, qid=qid)) == prints(ranker().fit(X, Y, qid=QID))


def test_only_the_order_of_relevance_matters_to_pairs():
    assert prints(ranker().fit(X, 10.0 * Y**3 - 7.0, qid=QID)) == prints(
        ranker().fit(X, Y, qid=QID)
    )


def test_pairs_of_the_queries_give_the_stumps_of_the_queries():
    pairs = pairs_of(Y, QID)
    for loss in ("exponential", "logistic"):
        given = ranker(loss=loss).fit(X, pairs=pairs)
        model = ranker(loss=loss).fit(X, Y, qid=QID)
        np.testing.assert_array_equal(given.model_.rounds.feature, model.model_.rounds.feature)
        np.testing.assert_allclose(given.predict(X), model.predict(X), rtol=1e-5, atol=1e-6)


def test_given_pairs_are_the_same_in_any_order_and_on_both_engines():
    pairs = pairs_of(Y, QID)
    w = np.random.default_rng(2).integers(1, 5, len(pairs))
    at = np.random.default_rng(3).permutation(len(pairs))
    model = ranker().fit(X, pairs=pairs, pair_weight=w)
    with use_engine("reference"):
        other = ranker().fit(X, pairs=pairs[at], pair_weight=w[at])
    assert prints(other) == prints(model)
    repeated = ranker().fit(X, pairs=np.repeat(pairs, w, axis=0))
    assert prints(repeated) == prints(model)


def test_contradictory_pairs_cancel():
    pairs = pairs_of(Y, QID)[:50]
    both = np.concatenate([pairs, pairs[:, ::-1]])
    assert ranker().fit(X, pairs=both).n_estimators_ == 0


def test_two_levels_of_one_query_are_the_exponential_loss_of_pairs_of_classes():
    """The bipartite loss: e^-F over preferred rows times e^F over the others."""
    y = (Y > 1).astype(float)
    model = ranker(callbacks=[lambda info: None]).fit(X, y, qid=np.zeros(400))
    for n, scores in enumerate(model.staged_predict(X)):
        expected = np.mean(np.exp(-scores[y == 1])) * np.mean(np.exp(scores[y == 0]))
        assert model.history_.training[n] == pytest.approx(expected, rel=1e-9)
    assert (np.diff(model.history_.training) < 0.0).all()


def test_a_constant_offset_of_a_query_changes_nothing_and_is_not_part_of_scores():
    offset = 3.0 * (QID % 5)
    model = ranker().fit(X, Y, qid=QID, init_score=offset)
    np.testing.assert_allclose(model.predict(X), ranker().fit(X, Y, qid=QID).predict(X), atol=1e-6)


def test_monotone_features_are_monotone():
    model = ranker(monotonic_cst=[1, 0, 0, -1], n_estimators=60).fit(X, Y, qid=QID)
    line = np.zeros((50, 4))
    line[:, 0] = np.linspace(-3, 3, 50)
    assert (np.diff(model.predict(line)) >= 0.0).all()


def test_learners_of_the_package_and_regressors_rank():
    from sklearn.linear_model import LinearRegression

    full = np.nan_to_num(X)
    for estimator in (HalfSpaces(20), LinearRegression()):
        model = ranker(estimator=estimator).fit(full, Y, qid=QID)
        assert metrics.pairwise_error(Y, model.predict(full), qid=QID) < 0.35


def test_categories_are_split_by_sets():
    colours = (np.arange(400) * 7 % 5).astype(float)[:, None]
    y = np.isin(colours[:, 0], [1, 3]) + (np.arange(400) % 2)
    model = ranker(categorical_features=[0]).fit(colours, y, qid=QID)
    scores = model.predict(np.arange(5.0)[:, None])
    assert min(scores[[1, 3]]) > max(scores[[0, 2, 4]])


def test_warm_start_adds_rounds_to_the_same_queries():
    model = ranker(warm_start=True, n_estimators=5).fit(X, Y, qid=QID)
    model.set_params(n_estimators=12).fit(X, Y, qid=QID)
    assert prints(model) == prints(ranker().fit(X, Y, qid=QID))
    with pytest.raises(ValueError, match="what has changed: qid"):
        model.set_params(n_estimators=20).fit(X, Y, qid=QID % 5)


def test_score_is_ndcg_at_10():
    model = ranker().fit(X, Y, qid=QID)
    assert model.score(X, Y, qid=QID) == metrics.ndcg(Y, model.predict(X), qid=QID, k=10)
    with pytest.raises(ValueError, match="qid must say which query"):
        model.score(X, Y)


def test_gradients_of_e_to_the_1000_do_not_overflow():
    offset = np.random.default_rng(0).normal(size=400) * 1000.0
    model = ranker(n_estimators=3).fit(X, Y, qid=QID, init_score=offset)
    assert np.isfinite(model.predict(X)).all()
