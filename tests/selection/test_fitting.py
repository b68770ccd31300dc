"""Fits of folds share work, and are what separate fits would be."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.model_selection import KFold, TimeSeriesSplit

from ensemble_gpu import (
    AdaBoostClassifier,
    BoostingClassifier,
    BoostingRegressor,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    L2BoostRegressor,
    NeighboursClassifier,
    NeighboursRegressor,
    RandomForestClassifier,
    RidgeRegressor,
    cross_validate,
    tune,
    use_engine,
)
from ensemble_gpu.boosting import estimators, gram
from ensemble_gpu.data.bins import SharedBins
from ensemble_gpu.estimators.reading import shared_bins
from ensemble_gpu.estimators.threads import fits_side_by_side, threads_of
from ensemble_gpu.selection.fitting import bins_of_folds
from ensemble_gpu.selection.splits import make_folds
from tests.selection.test_cross_validation import ADA, T, W, X, Y, fingerprint

GAPS = np.where(np.random.default_rng(5).random(X.shape) < 0.1, np.nan, X)
L2 = BoostingRegressor(n_estimators=30, max_depth=1, early_stopping=False, max_bins=16)
PLAIN = AdaBoostClassifier(n_estimators=9, calibrate=False)
CONTAINED = {
    "AdaBoost": (PLAIN, "n_estimators", [9, 2, 5]),
    "boosting": (
        BoostingClassifier(max_depth=2, learning_rate=0.3, early_stopping=False),
        "n_estimators",
        [3, 6],
    ),
    "forest": (RandomForestClassifier(random_state=0), "n_estimators", [2, 5]),
    "tree": (DecisionTreeClassifier(), "ccp_alpha", [0.02, 0.0, 0.005]),
    "regression tree": (DecisionTreeRegressor(), "ccp_alpha", [0.0, 0.01, 0.1]),
    "neighbours": (NeighboursClassifier(), "n_neighbors", [3, 7]),
    "mean of neighbours": (NeighboursRegressor(), "n_neighbors", [3, 7]),
    "ridge": (RidgeRegressor(), "l2", [0.1, 10.0]),
    "L2Boost": (L2BoostRegressor(criterion=None), "n_estimators", [2, 8]),
}
STAGED = ("AdaBoost", "boosting")


@pytest.mark.parametrize("case", [case for case in CONTAINED if case not in STAGED])
def test_one_fit_contains_the_models_of_all_values(case):
    source, name, options = CONTAINED[case]
    y = Y if is_classifier(source) else T
    for value, one in zip(
        options, clone(source)._fit_all(name, options, X[:90], y[:90]), strict=True
    ):
        alone = clone(source).set_params(**{name: value}).fit(X[:90], y[:90])
        assert one.get_params() == alone.get_params()
        assert one.model_.fingerprint() == alone.model_.fingerprint()


@pytest.mark.parametrize("case", CONTAINED)
def test_values_that_a_fit_contains_cost_no_further_fit(case):
    source, name, options = CONTAINED[case]
    y, totals = Y if is_classifier(source) else T, []
    found = tune(
        source, X, y, {name: options}, cv=2, progress=lambda done, total: totals.append(total)
    )
    assert totals == [2, 2]
    for line in found.table_.rows:
        alone = cross_validate(
            clone(source).set_params(**line.parameters), X, y, cv=2, return_apparent=True
        )
        (mean,), (apparent,) = alone.mean.values(), alone.apparent.values()
        assert line.validated == pytest.approx(mean, rel=1e-12)
        assert line.apparent == pytest.approx(apparent.mean(), rel=1e-12)


def test_what_follows_from_the_value_is_fitted_for_each_of_them():
    assert clone(ADA)._contained() == ()  # calibrated
    assert BoostingClassifier(learning_rate=None, early_stopping=False)._contained() == ()
    assert BoostingClassifier(learning_rate=0.1)._contained() == ()  # may stop early
    assert RandomForestClassifier(oob_score=True)._contained() == ()
    assert L2BoostRegressor()._contained() == ()
    with pytest.raises(ValueError, match="n_estimators"):
        tune(PLAIN, X, Y, {"n_estimators": [3, 0]}, cv=2)


def test_rounds_that_are_asked_for_are_judged_for_each_candidate():
    found = tune(PLAIN, X, Y, {"n_estimators": [3, 6]}, cv=2, rounds="all")
    curve = cross_validate(PLAIN, X, Y, cv=2, rounds="all").mean["log_loss"]
    for line in found.table_.rows:
        first = curve[: line.parameters["n_estimators"]]
        assert (line.rounds, line.validated) == (first.argmin() + 1, first.min())


@pytest.fixture
def sharing(monkeypatch):
    """Tables are shared however few rows there are."""
    monkeypatch.setattr(gram, "sharing_pays", lambda codes, shared: True)
    monkeypatch.setattr(gram, "visits_before_table", lambda codes, n, n_rounds: 0)
    monkeypatch.setattr(estimators, "pays", lambda model, part, n_stages: part.held is not None)


@pytest.mark.parametrize("engine", ["cpu", "reference"])
@pytest.mark.parametrize(
    "cv", [KFold(3), TimeSeriesSplit(3)], ids=["partition", "later rows are in no fold"]
)
def test_tables_of_all_rows_minus_the_folds_give_the_model_of_its_rows(sharing, engine, cv):
    with use_engine(engine):
        found = cross_validate(L2, GAPS, T, cv=cv, return_estimators=True)
        common = shared_bins(clone(L2), GAPS, T, None)
        for model, (train, _) in zip(found.estimators, found.folds, strict=True):
            alone = clone(L2)
            with alone._sharing(common):
                alone.fit(GAPS[train], T[train])
            assert model.model_.fingerprint() == alone.model_.fingerprint()


GIVEN_BINS = {
    "AdaBoost": (AdaBoostClassifier(n_estimators=9), Y, None),
    "AdaBoost, weights": (PLAIN, Y, W),
    "L2Boost": (L2, T, None),
    "logistic stumps": (
        BoostingClassifier(n_estimators=5, max_depth=1, early_stopping=False), Y, W
    ),
    "drawn features": (clone(L2).set_params(max_features=0.5), T, None),
    "stumps of many rows": (clone(L2).set_params(min_samples_leaf=30), T, None),
    "three classes, early stopping, weights": (
        AdaBoostClassifier(n_estimators=9, early_stopping=True, random_state=0), Y + (T > 2), W
    ),
    "drawn rows": (BoostingClassifier(n_estimators=5, max_depth=1, subsample=0.5), Y, None),
    "trees": (BoostingClassifier(n_estimators=3, max_depth=2), Y, W),
    "bags of L2Boost": (clone(L2).set_params(n_bags=2), T, None),
}  # fmt: skip


@pytest.mark.parametrize("case", GIVEN_BINS)
def test_a_fold_is_the_fit_to_its_rows_given_the_bins(sharing, case):
    source, y, w = GIVEN_BINS[case]
    found = cross_validate(source, GAPS, y, sample_weight=w, cv=2, return_estimators=True)
    common = shared_bins(clone(source), GAPS, y, w)
    for model, (train, _) in zip(found.estimators, found.folds, strict=True):
        alone = clone(source)
        with alone._sharing(common):
            alone.fit(GAPS[train], y[train], None if w is None else w[train])
        assert model.model_.fingerprint() == alone.model_.fingerprint()


def test_fits_that_look_at_codes_alone_take_no_rows():
    for case, alone in {"AdaBoost": False, "AdaBoost, weights": True, "L2Boost": True,
                        "logistic stumps": True, "drawn features": True, "drawn rows": False,
                        "trees": False, "bags of L2Boost": False, "stumps of many rows": False,
                        "three classes, early stopping, weights": False}.items():  # fmt: skip
        assert GIVEN_BINS[case][0]._reads_codes_alone() == alone
    for more in (
        {"warm_start": True},
        {"categorical_features": np.arange(2)},
        {"early_stopping": "auto"},
    ):
        assert not clone(L2).set_params(**more)._reads_codes_alone()
    assert not RandomForestClassifier()._reads_codes_alone()


def test_a_sparse_matrix_is_as_its_dense_copy():
    sparse = pytest.importorskip("scipy.sparse")
    few = np.where(np.abs(X) > 1.0, X, 0.0)
    given = {"cv": 3, "rounds": "all", "return_estimators": True}
    found, dense = (cross_validate(PLAIN, rows, Y, **given) for rows in
                    (sparse.csr_matrix(few), few))  # fmt: skip
    assert list(map(fingerprint, found.estimators)) == list(map(fingerprint, dense.estimators))
    np.testing.assert_array_equal(found.scores["log_loss"], dense.scores["log_loss"])


@pytest.mark.parametrize("rows", [X, GAPS], ids=["complete", "missing"])
def test_held_out_errors_from_tables_are_those_of_predictions(sharing, monkeypatch, rows):
    given = {"rounds": "all", "metrics": ["rmse", "mse"], "cv": 4}
    tables = cross_validate(L2, rows, T, **given)
    monkeypatch.setattr(estimators, "pays", lambda model, part, n_stages: False)
    staged = cross_validate(L2, rows, T, **given)
    for name in ("rmse", "mse"):
        np.testing.assert_allclose(tables.scores[name], staged.scores[name], rtol=1e-11)
    assert (tables.scores["mse"] != staged.scores["mse"]).any()  # another way of adding up


def test_squares_in_training_are_those_of_predictions(monkeypatch):
    given = {"metrics": ["rmse", "mse"], "cv": 2, "return_apparent": True}
    kept = [cross_validate(L2, GAPS, T, rounds=rounds, **given) for rounds in (None, [5, 30])]
    monkeypatch.setattr(BoostingRegressor, "_training_squares", lambda self: None)
    staged = [cross_validate(L2, GAPS, T, rounds=rounds, **given) for rounds in (None, [5, 30])]
    for ours, theirs in zip(kept, staged, strict=True):
        for name in ("rmse", "mse"):
            np.testing.assert_allclose(ours.apparent[name], theirs.apparent[name], rtol=1e-9)
            assert (ours.apparent[name] != theirs.apparent[name]).any()


def test_squares_of_other_rows_than_those_of_the_fit_are_not_taken_for_theirs():
    for other in ({"early_stopping": True}, {"n_bags": 2}, {"loss": "huber"}):
        assert clone(L2).set_params(**other).fit(X, T)._training_squares() is None
    assert len(clone(L2).fit(X, T)._training_squares()) == 30


def test_tables_of_a_part_are_the_sum_of_the_others_or_what_is_left_of_all():
    common = shared_bins(clone(L2), GAPS, T, None)
    folds = make_folds(KFold(3), T, len(T), stratified=False)
    parts = bins_of_folds(common, folds, len(T))
    assert list(common.partition) == parts
    for partition, signs in ((common.partition, [1, 0, 1]), ((), [1])):
        common.partition = partition
        for rows, signed in (
            (folds[1].train, parts[1].train_tables(16)), (folds[1].test, parts[1].held_tables(16))
        ):  # fmt: skip
            alone = SharedBins(common.engine, GAPS[rows], None)
            alone._made["gaps", 16] = common.gaps(16)
            for j in range(4):
                assert signed.tables.has(j)
                assert alone.tables(16).has(j)
                total = np.tensordot(signed.signs, signed.tables.of(j).astype(np.int64), 1)
                np.testing.assert_array_equal(total, alone.tables(16).of(j)[0])
        assert parts[1].train_tables(16).signs.tolist() == signs
    bins_of_folds(common, [*folds[:2], folds[0]], len(T))
    assert len(common.partition) == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("estimator", "y"), [(ADA, Y), (L2, T), (RandomForestClassifier(3, random_state=1), Y)],
    ids=["AdaBoost", "L2Boost", "forest"],
)  # fmt: skip
def test_results_do_not_depend_on_the_number_of_threads(estimator, y):
    found = [
        cross_validate(
            clone(estimator).set_params(n_jobs=n_jobs), X, y, sample_weight=W, cv=5,
            return_estimators=True, return_apparent=True,
        )
        for n_jobs in (1, 2, 3)
    ]  # fmt: skip
    for n_jobs, one in zip((1, 2, 3), found, strict=True):
        assert [m.n_jobs for m in one.estimators] == [n_jobs] * 5
        assert list(map(fingerprint, one.estimators)) == list(map(fingerprint, found[0].estimators))
        for name in one.scores:
            np.testing.assert_array_equal(one.scores[name], found[0].scores[name])
            np.testing.assert_array_equal(one.apparent[name], found[0].apparent[name])
        np.testing.assert_array_equal(one.out_of_fold, found[0].out_of_fold)


def test_as_many_fits_as_keep_all_threads_busy_run_on_one_each():
    alone = list(fits_side_by_side(lambda item, one: (item, one), list(range(5)), 2))
    assert alone == [(k, k < 4) for k in range(5)]
    assert list(fits_side_by_side(lambda item, one: one, [1, 2], 3)) == [False, False]
    assert threads_of(clone(ADA).set_params(n_jobs=3), X) == 3
    assert threads_of(RidgeRegressor(), X) == 1
    with use_engine("reference"):
        assert threads_of(clone(ADA).set_params(n_jobs=3), X) == 1


def test_an_error_of_a_fold_is_that_of_the_call():
    def broken(y, p):
        raise RuntimeError("broken metric")

    with pytest.raises(RuntimeError, match="broken metric"):
        cross_validate(clone(ADA).set_params(n_jobs=2), X, Y, metrics=broken)


def test_progress_is_a_bar_or_a_call(capsys):
    cross_validate(PLAIN, X, Y, cv=2, progress=True)
    assert capsys.readouterr().err == f"cross_validate [{30 * '#'}] fit 2/2\n"
    tune(PLAIN, X, Y, {"max_bins": [8, 16]}, cv=2, progress=True)
    assert capsys.readouterr().err == f"tune [{30 * '#'}] fit 4/4\n"
    with pytest.raises(TypeError, match="progress must be True, None or a callable"):
        cross_validate(PLAIN, X, Y, cv=2, progress="bar")


def test_quantile_loss_by_name_is_that_of_the_estimators_quantile():
    given = {"cv": 2, "metrics": "quantile_loss", "return_estimators": True}
    for source, q in (
        (BoostingRegressor(loss="quantile", quantile=0.9, n_estimators=5), 0.9),
        (RidgeRegressor(), 0.5),
    ):
        found = cross_validate(source, X, T, **given)
        for b, (_, test) in enumerate(found.folds):
            off = T[test] - found.out_of_fold[test]
            expected = np.maximum(q * off, (q - 1.0) * off).mean()
            assert found.scores["quantile_loss"][b] == pytest.approx(expected, rel=1e-12)
