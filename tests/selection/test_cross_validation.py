"""Cross-validation is the loop of separate fits; rounds are those of fits of so many rounds."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score, root_mean_squared_error
from sklearn.model_selection import KFold, RepeatedKFold, TimeSeriesSplit

from ensemble_gpu import (
    AdaBoostClassifier,
    BaggingClassifier,
    BoostingClassifier,
    BoostingRegressor,
    DecisionTreeClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
    cross_validate,
)
from ensemble_gpu.data.matrix import gaps_of
from ensemble_gpu.kernels.cpu.engine import CpuEngine
from ensemble_gpu.kernels.edges import edges_of
from ensemble_gpu.selection import folds
from ensemble_gpu.selection.judging import _checked
from tests.metrics.places import WHERE

RNG = np.random.default_rng(2)
N = 240
X = RNG.normal(size=(N, 4))
Y = (X[:, 0] + X[:, 1] ** 2 + 0.5 * RNG.normal(size=N) > 0.8).astype(int)
T = X[:, 0] + X[:, 1] ** 2 + 0.3 * RNG.normal(size=N)
W = RNG.integers(1, 4, size=N).astype(float)
ADA = AdaBoostClassifier(n_estimators=12)
ESTIMATORS = [
    ADA,
    BoostingClassifier(n_estimators=8, max_depth=1),
    BoostingRegressor(n_estimators=8, max_depth=1),
    DecisionTreeClassifier(max_depth=3),
    RandomForestClassifier(n_estimators=3, random_state=0),
    RandomForestRegressor(n_estimators=3, random_state=0),
    BaggingClassifier(DecisionTreeClassifier(max_depth=2), n_estimators=2, random_state=0),
]


def fingerprint(model) -> list[str]:
    if hasattr(model, "model_"):
        return [model.model_.fingerprint()]
    return [learner.model_.fingerprint() for learner in model.estimators_]


@pytest.mark.parametrize("weights", [None, W], ids=["unweighted", "weights"])
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_with_bins_of_the_fold_every_model_is_that_of_a_separate_fit(estimator, weights):
    y = Y if is_classifier(estimator) else T
    found = cross_validate(
        estimator, X, y, sample_weight=weights, cv=2, bins="fold", return_estimators=True
    )
    for model, (train, test) in zip(found.estimators, found.folds, strict=True):
        w = None if weights is None else weights[train]
        alone = clone(estimator).fit(X[train], y[train], w)
        assert fingerprint(model) == fingerprint(alone)
        predict = alone.predict_proba if is_classifier(estimator) else alone.predict
        np.testing.assert_array_equal(found.out_of_fold[test], predict(X[test]))


@pytest.mark.parametrize("estimator", ESTIMATORS[:6], ids=lambda e: type(e).__name__)
def test_where_all_rows_have_the_bins_of_the_fold_shared_bins_give_its_model(estimator):
    y = Y if is_classifier(estimator) else T
    levels = np.round(X).clip(-1, 1)
    given = {"cv": 2, "return_estimators": True}
    shared = cross_validate(estimator, levels, y, **given)
    separate = cross_validate(estimator, levels, y, bins="fold", **given)
    for one, other in zip(shared.estimators, separate.estimators, strict=True):
        assert fingerprint(one) == fingerprint(other)
        assert "_bins" not in vars(one)


def test_shared_bins_are_cut_at_the_edges_of_all_rows():
    edges = edges_of(gaps_of(CpuEngine(1), X, np.arange(N), 8))
    for bins in ("shared", "fold"):
        found = cross_validate(
            clone(ADA).set_params(max_bins=8), X, Y, bins=bins, return_estimators=True
        )
        inside = [
            np.isin(table.thresholds[np.isfinite(table.thresholds)], edges[f]).all()
            for model in found.estimators
            for f, table in ((f, model.model_.shape_function(f)) for f in range(4))
        ]
        assert all(inside) == (bins == "shared")


def test_scores_by_round_are_those_of_fits_of_so_many_rounds():
    given = {"cv": 3, "bins": "fold"}
    found = cross_validate(ADA, X, Y, metrics=["log_loss", "auc"], rounds=[1, 5, 12], **given)
    assert found.metrics == ("log_loss", "roc_auc")
    assert found.rounds.tolist() == [1, 5, 12]
    assert found.scores["roc_auc"].shape == (3, 3)
    for j, n in enumerate(found.rounds):
        alone = cross_validate(
            clone(ADA).set_params(n_estimators=n), X, Y, metrics=["auc"], **given
        )
        np.testing.assert_array_equal(found.scores["roc_auc"][:, j], alone.scores["roc_auc"])
    every = cross_validate(ADA, X, Y, metrics=["log_loss", "auc"], rounds="all", **given)
    np.testing.assert_array_equal(every.scores["roc_auc"][:, [0, 4, 11]], found.scores["roc_auc"])
    mean = every.mean["log_loss"]
    assert every.best_round == int(np.argmin(mean)) + 1
    expected = every.scores["log_loss"].std(axis=0, ddof=1) / np.sqrt(3)
    np.testing.assert_allclose(every.standard_error["log_loss"], expected)


def test_scores_are_scikit_learns_of_the_predictions_out_of_fold():
    found = cross_validate(
        ADA, X, Y, sample_weight=W, metrics=["log_loss", "roc_auc"], rounds="all"
    )
    at = found.best_round - 1
    for b, (_, test) in enumerate(found.folds):
        p = found.out_of_fold[test]
        expected = log_loss(Y[test], p, sample_weight=W[test])
        assert found.scores["log_loss"][b, at] == pytest.approx(expected, rel=1e-12)
        expected = roc_auc_score(Y[test], p[:, 1], sample_weight=W[test])
        assert found.scores["roc_auc"][b, at] == pytest.approx(expected, rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("place", WHERE)
def test_scores_and_predictions_are_the_same_on_every_library(place):
    expected = cross_validate(ADA, X, Y, sample_weight=W, cv=3, rounds=[3, 12])
    found = cross_validate(
        ADA, place.put(X), place.put(Y), sample_weight=place.put(W), cv=3, rounds=[3, 12],
        return_estimators=True, return_apparent=True,
    )  # fmt: skip
    place.check(found.out_of_fold, "float64")
    np.testing.assert_allclose(place.host(found.out_of_fold), expected.out_of_fold, rtol=1e-9)
    np.testing.assert_allclose(found.scores["log_loss"], expected.scores["log_loss"], rtol=1e-9)
    assert (found.apparent["log_loss"] < found.mean["log_loss"].max()).all()


def test_numbers_foreign_estimators_and_metrics_of_your_own():
    def worst(y, prediction):
        return np.abs(y - prediction).max()

    found = cross_validate(ESTIMATORS[2], X, T, metrics=["rmse", worst], rounds="all")
    assert set(found.mean) == {"rmse", "worst"}
    (_, test), at = found.folds[0], found.best_round - 1
    expected = root_mean_squared_error(T[test], found.out_of_fold[test])
    assert found.scores["rmse"][0, at] == pytest.approx(expected, rel=1e-12)
    assert found.scores["worst"][0, at] == np.abs(T - found.out_of_fold)[test].max()
    theirs = cross_validate(LogisticRegression(), X, Y)
    assert 0.3 < theirs.mean["log_loss"] < 0.7


def test_repeats_are_averaged_and_rows_that_no_fold_holds_out_are_nan():
    cv = RepeatedKFold(n_splits=2, n_repeats=2, random_state=0)
    found = cross_validate(ESTIMATORS[5], X, T, cv=cv, bins="fold", return_estimators=True)
    of_row = [m.predict(X[:1])[0] for m, (_, test) in zip(found.estimators, found.folds,
                                                        strict=True) if 0 in test]  # fmt: skip
    assert len(of_row) == 2
    assert found.out_of_fold[0] == pytest.approx(np.mean(of_row), rel=1e-14)
    later = cross_validate(ESTIMATORS[5], X, T, cv=TimeSeriesSplit(3))
    assert np.isnan(later.out_of_fold).sum() == N // 4


def test_frames_pictures_progress_and_threads():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    pandas = pytest.importorskip("pandas")
    seen = []
    found = cross_validate(
        clone(ADA).set_params(n_jobs=2), pandas.DataFrame(X, columns=list("abcd")), Y, rounds="all",
        progress=lambda done, total: seen.append((done, total)),
    )  # fmt: skip
    alone = cross_validate(clone(ADA).set_params(n_jobs=1), X, Y, rounds="all")
    np.testing.assert_array_equal(found.scores["log_loss"], alone.scores["log_loss"])
    assert seen == [(b + 1, 5) for b in range(5)]
    frame = found.to_frame()
    assert list(frame.columns) == ["test-log_loss-mean", "test-log_loss-std"]
    np.testing.assert_array_equal(frame["test-log_loss-mean"], found.mean["log_loss"])
    ax = found.plot()
    assert any(np.array_equal(line.get_ydata(), found.mean["log_loss"]) for line in ax.get_lines())
    matplotlib.pyplot.close("all")
    with pytest.raises(ValueError, match="metric must be one of"):
        found.plot("rmse")
    with pytest.raises(ValueError, match="no curve to draw"):
        cross_validate(ESTIMATORS[3], X, Y).plot()


def test_rounds_beyond_those_of_a_fit_that_ended_early_keep_its_score():
    easy = (X[:, 0] > 0).astype(int)
    found = cross_validate(
        AdaBoostClassifier(n_estimators=30, variant="discrete", calibrate=False), X, easy, cv=2,
        rounds="all", metrics="error", return_estimators=True,
    )  # fmt: skip
    ends = [model.n_estimators_ for model in found.estimators]
    assert min(ends) < 30
    for end, curve in zip(ends, found.scores["error"], strict=True):
        assert (curve[end - 1 :] == curve[end - 1]).all()


BAD = {
    "bins must be one of": lambda: cross_validate(ADA, X, Y, bins="own"),
    "metric must be one of": lambda: cross_validate(ADA, X, Y, metrics="rmse"),
    "metrics must be a list of different metrics": lambda: cross_validate(ADA, X, Y, metrics=[]),
    "rounds is for boosting": lambda: cross_validate(ESTIMATORS[3], X, Y, rounds="all"),
    "rounds must be None, 'all' or": lambda: cross_validate(ADA, X, Y, rounds="some"),
    "rounds must ascend from 1 to at most 12": lambda: cross_validate(ADA, X, Y, rounds=[13]),
    "y must hold at least 2 classes": lambda: cross_validate(ADA, X, np.ones(N)),
    "one prediction a row": lambda: _checked(np.zeros((3, 2)), False),
}


@pytest.mark.parametrize("message", BAD)
def test_bad_input_is_named(message):
    with pytest.raises(ValueError, match=message):
        BAD[message]()


def test_a_metric_that_returns_an_array_is_refused():
    with pytest.raises(TypeError, match="metric must return a number"):
        cross_validate(ADA, X, Y, metrics=lambda y, p: p)
    with pytest.raises(TypeError, match="metrics must be names, callables"):
        cross_validate(ADA, X, Y, metrics=3)


def test_folds_whose_rounds_depend_on_their_rows_are_judged_by_those_that_all_have():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(49, 2))
    y = (X[:, 0] + rng.normal(size=49) > 0).astype(int)
    found = cross_validate(
        AdaBoostClassifier(n_estimators="consistent", calibrate=False), X, y, cv=KFold(3),
        rounds="all", return_estimators=True,
    )  # fmt: skip
    lengths = {model.n_estimators_ for model in found.estimators}
    assert len(lengths) == 2
    assert len(found.rounds) == min(lengths)


@pytest.mark.parametrize("place", WHERE)
def test_predictions_out_of_fold_are_the_same_in_blocks_of_rows(place, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4_000, 3)).astype(np.float32)
    y = X[:, 0] + rng.normal(size=4_000)
    model = BoostingRegressor(n_estimators=5, max_depth=1, max_bins=8, early_stopping=False)
    taken, sizes, outcomes = [], [], folds.outcomes

    def watched(estimator, held, stages):
        sizes.append(held.n)
        return outcomes(estimator, held, stages)

    monkeypatch.setattr(folds, "outcomes", watched)
    for block in (8192, 301):
        monkeypatch.setattr(folds, "BLOCK", block)
        found = cross_validate(model, place.put(X), place.put(y), cv=3, rounds="all")
        taken.append(place.host(found.out_of_fold))
    assert sizes[:3] == [1334, 1333, 1333]  # losses are read off tables
    assert max(sizes[3:]) == 301
    assert np.isfinite(taken[0]).all()
    np.testing.assert_array_equal(*taken)


def test_a_row_that_is_held_out_several_times_has_the_mean_of_its_predictions():
    splits = [
        (np.arange(4, 12), np.array([0, 3, 1])),
        (np.arange(4, 12), np.array([1, 2])),
        (np.arange(4, 12), np.array([3, 1])),
    ]
    layers = folds._places([test for _, test in splits], np.array([1, 3, 1, 2, 0]))
    assert layers.tolist() == [[0, 2, 4, 1, 7], [7, 3, 7, 5, 7], [7, 6, 7, 7, 7]]
