"""No model on record changes: whatever is rebuilt inside, the same data gives the same bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ensemble_gpu
from ensemble_gpu import use_engine
from ensemble_gpu.bagging.validation import VALIDATIONS
from ensemble_gpu.boosting.boosting_ranker import VARIANTS
from ensemble_gpu.boosting.steps import LEAF_STEP, STEPS
from ensemble_gpu.losses import CLASSIFICATION, RANKING, REGRESSION
from ensemble_gpu.trees.cutting import CAPACITIES
from ensemble_gpu.trees.judging import CLASS_LOSSES
from tests.record.data import data
from tests.record.fits import FITS, GROUPS, PARAMETERS, comparable, read_record

RECORDED = read_record()


def test_the_record_holds_these_fits_in_these_groups():
    for group in GROUPS:
        here = {name for name, fit in FITS.items() if fit.group == group}
        there = set(RECORDED[group])
        assert here == there, (
            f"{group}: not on record {sorted(here - there)}, on record only {sorted(there - here)}"
        )


@pytest.mark.parametrize("name", FITS)
def test_the_model_is_the_one_on_record(name):
    fit = FITS[name]
    reason = comparable(fit.group, RECORDED)
    if reason:
        pytest.skip(reason)
    with use_engine("cpu"):
        found = fit.fingerprint()
    recorded = RECORDED[fit.group].get(name, "nothing")
    if found != recorded:
        pytest.fail(
            f"{name!r} gives another model: {found[:16]}, on record is {recorded[:16]}.\n{fit}",
            pytrace=False,
        )


def recorded(kind: str, parameter: str) -> set[Any]:
    """The values of a parameter in the fits of an estimator (a class of losses: its name)."""
    own = [fit.estimator for fit in FITS.values() if fit.estimator.kind == kind]
    values = [made.changes.get(parameter, PARAMETERS[kind][parameter]) for made in own]
    return {getattr(value, "name", str(value)) for value in values}


def test_every_estimator_and_every_choice_that_makes_another_model_is_on_record():
    classifiers = {"DecisionTreeClassifier", "RandomForestClassifier"}
    regressors = {"DecisionTreeRegressor", "RandomForestRegressor"}
    boosted = {"BoostingClassifier", "BoostingRegressor"}
    kinds = ("Classifier", "Regressor", "Ranker")
    public = {name for name in ensemble_gpu.__all__ if name.endswith(kinds)}
    # models of the array library's own products and decompositions, whose last digits are its own
    public -= {"LinearClassifier", "RidgeRegressor"}
    public -= {"NeighboursClassifier", "NeighboursRegressor", "L2BoostRegressor"}
    assert {fit.estimator.kind for fit in FITS.values()} == public
    assert recorded("AdaBoostClassifier", "variant") == {"real", "discrete", "gentle", "logit"}
    assert recorded("AdaBoostClassifier", "multiclass") == {"shared", "single"}
    assert recorded("AdaBoostClassifier", "missing") >= {"abstain", "learn"}
    assert recorded("AdaBoostClassifier", "categorical_split") == {"subset", "single"}
    assert recorded("BoostingClassifier", "multiclass") == {"shared", "each"}
    assert recorded("BoostingClassifier", "loss") >= {*CLASSIFICATION}
    assert recorded("BoostingRegressor", "loss") >= {*REGRESSION}
    assert recorded("BoostingRanker", "loss") == {*RANKING}
    assert recorded("BoostingRanker", "variant") == {*VARIANTS}
    assert recorded("BoostingRanker", "step") == {*STEPS, "None"} - {LEAF_STEP, "newton"}
    for kind in boosted:
        steps = {*STEPS, "None"} - ({LEAF_STEP} if kind == "BoostingClassifier" else set())
        assert recorded(kind, "step") == steps
        assert recorded(kind, "missing") >= {"abstain", "learn"}
        assert recorded(kind, "subsample") >= {"0.5", "1.0"}
    for kind in classifiers:
        assert recorded(kind, "criterion") >= {"gini", "entropy", "error"}
    for kind in regressors:
        assert recorded(kind, "criterion") == {"squared_error", "poisson"}
    for kind in boosted | classifiers | regressors | {"BoostingRanker"}:
        assert len(recorded(kind, "categorical_features")) > 1
        assert len(recorded(kind, "monotonic_cst")) > 1
        assert len(recorded(kind, "max_bins")) > 1
    for kind in classifiers | regressors:
        assert recorded(kind, "splitter") == {"best", "random"}
    for kind in ("RandomForestClassifier", "RandomForestRegressor"):
        assert recorded(kind, "capacity") == {"None", *CAPACITIES}
        assert recorded(kind, "validation") == {*VALIDATIONS}
    assert recorded("RandomForestClassifier", "validation_loss") == {*CLASS_LOSSES}
    for kind in public:
        rows = [data(fit.data) for fit in FITS.values() if fit.estimator.kind == kind]
        assert {own.weights is None for own in rows} == {True, False}
        if "Classifier" in kind:
            assert {len(np.unique(own.y)) > 2 for own in rows} == {True, False}
