"""The tuned estimator is the best of the grid, fitted to all rows with the rounds of the curve."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, StratifiedKFold

from ensemble_gpu import (
    AdaBoostClassifier,
    BoostingClassifier,
    DecisionTreeClassifier,
    cross_validate,
    tune,
)
from ensemble_gpu.boosting import adaboost
from ensemble_gpu.boosting.calibration import learnt_scale
from tests.places import DEVICE
from tests.selection.test_cross_validation import ADA, T, X, Y

GRID = {"learning_rate": [0.3, 1.0], "max_bins": [8, 255]}


@pytest.mark.slow
def test_the_chosen_model_has_the_least_risk_and_is_fitted_to_all_rows():
    best = tune(ADA, X, Y, GRID, cv=3)
    lines = best.table_.rows
    assert [line.parameters for line in lines] == [
        {"learning_rate": rate, "max_bins": bins} for rate in (0.3, 1.0) for bins in (8, 255)
    ]
    (chosen,) = [line for line in lines if line.chosen]
    assert chosen.validated == min(line.validated for line in lines)
    assert best.best_params_ == {**chosen.parameters, "n_estimators": chosen.rounds}
    for line in lines:
        found = cross_validate(
            clone(ADA).set_params(**line.parameters), X, Y, cv=3, rounds="all",
            return_apparent=True,
        )  # fmt: skip
        at = found.best_round
        assert line.rounds == at
        assert line.validated == found.mean["log_loss"][at - 1]
        assert line.standard_error == found.standard_error["log_loss"][at - 1]
        assert line.apparent == pytest.approx(found.apparent["log_loss"].mean(), rel=1e-14)
        assert line.n_rows == 160
    alone = clone(ADA).set_params(**best.best_params_).fit(X, Y)
    assert best.model_.fingerprint() == alone.model_.fingerprint()
    assert not hasattr(ADA, "model_")
    assert "* learning_rate=" in str(best.table_)


def test_one_standard_error_takes_the_fewest_rounds_within_it():
    least, fewer = (tune(ADA, X, Y, {"max_bins": [64]}, cv=5, rule=r) for r in ("min", "one_se"))
    curve = least.validation_
    mean, error = curve.mean["log_loss"], curve.standard_error["log_loss"]
    k = int(np.argmin(mean))
    assert least.n_estimators == k + 1
    within = np.flatnonzero(mean <= mean[k] + error[k])
    assert fewer.n_estimators == within[0] + 1 < least.n_estimators


@pytest.mark.slow
def test_without_rounds_one_standard_error_takes_the_earliest_of_the_grid():
    grid = {"max_depth": [1, 2, 3, 4, 5]}
    given = {"cv": 5, "metric": "error"}
    least, first = (
        tune(DecisionTreeClassifier(), X, Y, grid, rule=r, **given) for r in ("min", "one_se")
    )
    lines = least.table_.rows
    (best,) = [line for line in lines if line.chosen]
    within = [line for line in lines if line.validated <= best.validated + best.standard_error]
    assert first.max_depth == within[0].parameters["max_depth"]
    search = GridSearchCV(
        DecisionTreeClassifier(), grid, cv=StratifiedKFold(5, shuffle=True, random_state=0)
    ).fit(X, Y)
    own = tune(DecisionTreeClassifier(), X, Y, grid, bins="fold", **given)
    scores = [1.0 - line.validated for line in own.table_.rows]
    np.testing.assert_allclose(scores, search.cv_results_["mean_test_score"], rtol=1e-12)


def test_a_test_share_is_kept_apart():
    best = tune(ADA, X, Y, {"max_bins": [16, 64]}, cv=3, test_size=0.25, metric="roc_auc")
    (chosen,) = [line for line in best.table_.rows if line.chosen]
    assert 0.5 < chosen.test <= 1.0
    assert chosen.n_rows == 120
    assert chosen.validated == max(line.validated for line in best.table_.rows)
    frame = best.table_.to_frame()
    assert frame["R_test"].notna().sum() == 1


def test_a_rate_that_follows_from_the_rounds_stays_that_of_the_folds():
    best = tune(BoostingClassifier(n_estimators=40, max_depth=1), X, Y, {"max_bins": [16]}, cv=2)
    assert best.learning_rate == 0.1
    assert best.early_stopping is False


@pytest.mark.slow
def test_the_choice_is_the_same_on_a_device():
    expected = tune(ADA, X, Y, {"learning_rate": [0.5, 1.0]}, cv=2)
    found = tune(ADA, DEVICE.put(X), DEVICE.put(Y), {"learning_rate": [0.5, 1.0]}, cv=2)
    assert found.model_.fingerprint() == expected.model_.fingerprint()
    assert found.engine_ == "reference"


BAD = {
    "rule must be one of": lambda: tune(ADA, X, Y, GRID, rule="best"),
    "grid must be a dict": lambda: tune(ADA, X, Y, {}),
    "grid has the parameter 'depth', which AdaBoostClassifier does not": lambda: tune(
        ADA, X, Y, {"depth": [1]}
    ),
    r"grid\['max_bins'\] must be a list of values": lambda: tune(ADA, X, Y, {"max_bins": []}),
    "metric must be a single one": lambda: tune(ADA, X, Y, GRID, metric=["error", "auc"]),
    "test_size must be None or a share": lambda: tune(ADA, X, Y, GRID, test_size=5),
    "bins must be one of": lambda: tune(ADA, X, Y, GRID, bins="own"),
    "test_size is drawn row by row": lambda: tune(
        AdaBoostClassifier(), X, Y, GRID, test_size=0.2, groups=np.arange(len(T))
    ),
}


@pytest.mark.parametrize("message", BAD)
def test_bad_input_is_named(message):
    with pytest.raises(ValueError, match=message):
        BAD[message]()


def test_folds_are_not_calibrated_where_the_metric_does_not_ask_for_it(monkeypatch):
    learnt = []

    def counted(*given):
        learnt.append(1)
        return learnt_scale(*given)

    monkeypatch.setattr(adaboost, "learnt_scale", counted)
    grid = {"n_estimators": [3, 8], "learning_rate": [0.5, 1.0]}
    best = tune(ADA, X, Y, grid, cv=2, metric="roc_auc")
    assert len(learnt) == 1  # of the chosen model
    assert best.scale_ != 1.0
    for line in best.table_.rows:
        found = cross_validate(
            clone(ADA).set_params(**line.parameters), X, Y, cv=2, metrics="roc_auc"
        )
        assert line.validated == found.mean["roc_auc"]
    del learnt[:]
    tune(ADA, X, Y, {"learning_rate": [1.0]}, cv=2)  # log-loss
    assert len(learnt) == 3
    tune(ADA, X, Y + (T > 2), {"learning_rate": [1.0]}, cv=2, metric="roc_auc")
    assert len(learnt) == 6
    tune(ADA, X, Y + (T > 2), {"learning_rate": [1.0]}, cv=2, metric="error")
    assert len(learnt) == 7
