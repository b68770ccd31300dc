"""A ranker among scikit-learn's tools: its checks, queries by metadata routing, folds."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.model_selection import cross_validate as sklearn_cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ensemble_gpu import BoostingRanker, BoostingRegressor, cross_validate, metrics, tune
from tests.estimators.checks import assert_checks_pass
from tests.ranking import ranking

X, Y, QID = ranking(300, 10)


def ranker(**parameters):
    return BoostingRanker(**{"n_estimators": 10, "learning_rate": 0.3, **parameters})


class OneQuery(BoostingRanker):
    """scikit-learn's checks know no queries: all rows are one."""

    def fit(self, X, y=None, sample_weight=None):
        n = 0 if y is None else np.asarray(y).size
        return super().fit(X, y, sample_weight, qid=np.zeros(n, dtype=int))

    def score(self, X, y, sample_weight=None):
        return super().score(X, y, np.zeros(len(y), dtype=int), sample_weight)


@pytest.mark.slow
def test_the_checks_of_scikit_learn_pass_for_rows_of_one_query():
    assert_checks_pass(OneQuery(n_estimators=5))


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def routed(model):
    return model.set_fit_request(qid=True).set_score_request(qid=True)


def test_queries_are_routed_through_cross_validation_and_grids(routing):
    params = {"qid": QID, "groups": QID}
    found = sklearn_cross_validate(
        routed(ranker()), X, Y, params=params, cv=GroupKFold(3), return_estimator=True
    )
    assert (found["test_score"] > 0.5).all()
    pipeline = make_pipeline(StandardScaler(), routed(ranker()))
    grid = GridSearchCV(pipeline, {"boostingranker__n_estimators": [2, 10]}, cv=GroupKFold(3))
    grid.fit(X, Y, **params)
    assert grid.best_score_ > 0.5


def test_own_cross_validation_holds_out_whole_queries_and_judges_every_round():
    found = cross_validate(
        ranker(), X, Y, qid=QID, cv=3, metrics=["ndcg@5", "pairwise_error"], rounds="all",
        return_estimators=True, bins="fold",
    )  # fmt: skip
    assert found.scores["ndcg@5"].shape == (3, 10)
    for fold, ((train, test), model) in enumerate(zip(found.folds, found.estimators, strict=True)):
        assert not set(QID[train]) & set(QID[test])
        alone = ranker().fit(X[train], Y[train], qid=QID[train])
        assert alone.model_.fingerprint() == model.model_.fingerprint()
        expected = metrics.pairwise_error(Y[test], alone.predict(X[test]), qid=QID[test])
        assert found.scores["pairwise_error"][fold, -1] == expected
    assert found.mean["pairwise_error"][-1] < found.mean["pairwise_error"][0]


def test_own_cross_validation_takes_weights_of_queries_and_metrics_with_queries():
    def mine(y, scores, qid, sample_weight):
        return metrics.ndcg(y, scores, qid=qid, k=3, sample_weight=sample_weight)

    mine.greater_is_better = True
    weights = np.arange(1.0, 1.0 + len(np.unique(QID)))
    found = cross_validate(
        ranker(), X, Y, qid=QID, sample_weight=weights, cv=3, metrics=[mine, "ndcg@3"]
    )
    np.testing.assert_allclose(found.scores["mine"], found.scores["ndcg@3"])


def test_tune_chooses_rounds_by_ndcg_and_keeps_test_queries_apart():
    model = tune(
        ranker(), X, Y, {"learning_rate": [0.1, 0.5]}, qid=QID, cv=3, test_size=0.3, rule="one_se"
    )
    chosen = [row for row in model.table_.rows if row.chosen]
    assert model.table_.metric == "ndcg@10"
    assert chosen[0].test > 0.5
    assert model.n_estimators_ == model.best_params_["n_estimators"]


def test_queries_are_for_rankers_and_rankers_need_them():
    with pytest.raises(ValueError, match="qid must say which query each row belongs to"):
        cross_validate(ranker(), X, Y)
    with pytest.raises(ValueError, match="qid is for estimators that rank"):
        cross_validate(BoostingRegressor(), X, Y, qid=QID)


def test_copies_of_the_model_are_the_model():
    model = ranker(max_depth=2).fit(X, Y, qid=QID)
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.predict(X), model.predict(X))
    assert clone(model).get_params() == model.get_params()
