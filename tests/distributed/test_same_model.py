"""The model of a team is that of one fit to all rows, whoever has which of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from ensemble_gpu import (
    AdaBoostClassifier,
    BoostingClassifier,
    BoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from tests.distributed.teams import CUTS, team_fit
from tests.places import DEVICE

N = 520


def some_now(cases: list[Any], n: int = 2) -> list[Any]:
    """The first n cases in `make test`, the others among the long tests."""
    later = (case if isinstance(case, tuple) else (case,) for case in cases[n:])
    return [*cases[:n], *(pytest.param(*case, marks=pytest.mark.long) for case in later)]


def rows(kind: str = "2", weights: str = "none", n: int = N, seed: int = 0) -> tuple[Any, Any, Any]:
    """X with ties and missing values, y of 2 or 3 classes or a number, weights."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 5)).astype(np.float32)
    X[:, 3] = np.round(X[:, 3])
    score = X[:, 0] + X[:, 1] * X[:, 2] + 0.5 * rng.standard_normal(n)
    X[rng.random(X.shape) < 0.05] = np.nan
    y: Any = score.astype(np.float64)
    if kind != "number":
        y = np.digitize(score, np.quantile(score, np.arange(1, int(kind)) / int(kind)))
    w = {"none": None, "real": rng.random(n) + 0.1, "whole": 1.0 * rng.integers(0, 4, n)}[weights]
    return X, y, w


def check(make: Any, X: Any, y: Any, w: Any = None, **more: Any) -> tuple[Any, Any]:
    """All workers have the model of the local fit; returns that and one of theirs."""
    local = make().set_params(n_jobs=1).fit(X, y, w)
    fitted = team_fit(make, X, y, w, **more)
    found = {one.model_.fingerprint() for one in fitted}
    assert found == {local.model_.fingerprint()}
    return local, fitted[-1]


ADABOOST = [
    ({}, "2", "none"),
    ({}, "2", "real"),
    ({}, "3", "whole"),
    ({"variant": "discrete"}, "2", "none"),
    ({"variant": "discrete"}, "3", "none"),
    ({"variant": "gentle", "missing": "learn"}, "2", "whole"),
    ({"variant": "logit"}, "2", "none"),
    ({"multiclass": "single"}, "3", "none"),
    ({"max_bins": None}, "2", "none"),
    ({"class_weight": "balanced", "max_bins": 16}, "3", "real"),
]


@pytest.mark.parametrize(("parameters", "kind", "weights"), some_now(ADABOOST, 3))
def test_adaboost(parameters, kind, weights):
    def make() -> Any:
        return AdaBoostClassifier(n_estimators=15, **parameters)

    local, shared = check(make, *rows(kind, weights))
    assert shared.scale_ == local.scale_
    assert shared.history_.training.tolist() == pytest.approx(local.history_.training.tolist())
    np.testing.assert_array_equal(shared.background_.weight, local.background_.weight)


BOOSTING = [
    ({"max_depth": 1}, "2", "none"),
    ({"max_depth": 1}, "3", "real"),
    ({}, "2", "whole"),
    ({}, "2", "real"),
    ({"multiclass": "each"}, "3", "none"),
    ({"max_leaf_nodes": 6, "max_depth": None, "max_features": None, "subsample": 1.0}, "2", "none"),
    ({"n_bags": 2}, "2", "none"),
    ({"loss": "hinge", "max_depth": 1}, "2", "none"),
    ({"loss": "exponential"}, "2", "none"),
    ({"loss": "squared", "max_depth": 1}, "2", "none"),
]


@pytest.mark.parametrize(("parameters", "kind", "weights"), some_now(BOOSTING, 3))
def test_gradient_boosting_of_classes(parameters, kind, weights):
    check(lambda: BoostingClassifier(n_estimators=6, **parameters), *rows(kind, weights))


LOSSES = [
    ({"max_depth": 1}, "real"),
    ({}, "none"),
    ({"loss": "absolute"}, "whole"),
    ({"loss": "huber", "max_depth": 1}, "real"),
    ({"loss": "quantile", "quantile": [0.1, 0.9]}, "none"),
    ({"loss": "poisson"}, "none"),
]


@pytest.mark.parametrize(("parameters", "weights"), some_now(LOSSES, 3))
def test_gradient_boosting_of_numbers(parameters, weights):
    X, y, w = rows("number", weights)
    y = np.floor(np.exp(y)) if parameters.get("loss") == "poisson" else y
    check(lambda: BoostingRegressor(n_estimators=6, **parameters), X, y, w)


@pytest.mark.parametrize(
    ("make", "kind", "weights"),
    [
        (lambda: RandomForestClassifier(n_estimators=5, random_state=1), "3", "whole"),
        (lambda: RandomForestClassifier(n_estimators=5, class_weight="balanced_subsample",
                                        random_state=1), "2", "real"),
        (lambda: RandomForestRegressor(n_estimators=5, min_samples_leaf=3, random_state=1),
         "number", "none"),
        (lambda: RandomForestRegressor(n_estimators=5, splitter="random", bootstrap=False,
                                       random_state=1), "number", "real"),
    ],
)  # fmt: skip
def test_forests(make, kind, weights):
    check(make, *rows(kind, weights))


@pytest.mark.parametrize("weights", some_now(["whole", "none", "real"], 1))
@pytest.mark.parametrize("make", [
    lambda: AdaBoostClassifier(n_estimators=40, early_stopping=True, n_iter_no_change=4,
                               random_state=3),
    lambda: BoostingClassifier(n_estimators=40, early_stopping=True, n_iter_no_change=4,
                               metric=["roc_auc", "log_loss"]),
])  # fmt: skip
def test_early_stopping_holds_out_the_same_rows(make, weights):
    local, shared = check(make, *rows("2", weights))
    np.testing.assert_array_equal(shared.validation_loss_, local.validation_loss_)
    assert shared.stop_reason_ == local.stop_reason_


def test_a_given_validation_set_is_judged_by_the_first_worker():
    X, y, _ = rows()
    X_val, y_val, _ = rows(seed=1)

    def make() -> Any:
        return BoostingClassifier(n_estimators=8, early_stopping=True)

    local = make().fit(X, y, eval_set=[(X_val, y_val)])
    shared = team_fit(make, X, y, eval_set=[(X_val, y_val)])[1]
    assert shared.model_.fingerprint() == local.model_.fingerprint()
    np.testing.assert_array_equal(shared.validation_loss_, local.validation_loss_)


def test_init_scores_belong_to_the_rows():
    X, y, _ = rows("number")
    offset = np.linspace(-1.0, 1.0, len(X))
    local = BoostingRegressor(n_estimators=5).fit(X, y, init_score=offset)
    together = np.column_stack([X, offset])  # so that each worker gets its own

    class Offset(BoostingRegressor):
        def fit(self, X: Any, y: Any, sample_weight: Any = None, **more: Any) -> Any:
            score = X[:, -1].astype(np.float64)
            return super().fit(np.ascontiguousarray(X[:, :-1].astype(np.float32)), y,
                               sample_weight, init_score=score)  # fmt: skip

    shared = team_fit(lambda: Offset(n_estimators=5), together, y)
    assert shared[0].model_.fingerprint() == local.model_.fingerprint()


@pytest.mark.parametrize("make", [
    lambda: AdaBoostClassifier(n_estimators=10),
    lambda: BoostingClassifier(n_estimators=5),
    lambda: RandomForestClassifier(n_estimators=3, random_state=0),
])  # fmt: skip
def test_categories_are_those_of_all_workers(make):
    X, y, _ = rows()
    frame = pd.DataFrame(X, columns=list("abcde"))
    names = np.array(["red", "green", "blue", "black", "white", "pink"])
    frame["f"] = names[(np.arange(N) * 7 // 5 + y) % 6]
    frame.loc[: CUTS[2], "f"] = "red"  # a worker that has met one of them
    frame["f"] = frame["f"].astype("category")
    check(make, frame, y)


def test_labels_are_those_of_all_workers():
    X, y, _ = rows("3")
    order = np.argsort(y, kind="stable")  # a worker has one class, another two
    X, names = X[order], np.array(["low", "middle", "top"])[y[order]]
    local, shared = check(lambda: AdaBoostClassifier(n_estimators=10), X, names)
    assert shared.classes_.tolist() == local.classes_.tolist() == ["low", "middle", "top"]


def test_parts_in_any_order_and_of_any_number():
    X, y, w = rows("2", "whole")
    for cuts, owners in [((0,), (0,)), ((0, 300), (1, 0)), ((0, 20, 21, 25, 400), (2, 1, 0, 1, 0))]:
        check(lambda: BoostingClassifier(n_estimators=4), X, y, w, cuts=cuts, owners=owners)


def test_repeated_rows_are_drawn_each_for_itself_wherever_they_are():
    X, y, _ = rows(n=60)
    X, y = np.tile(X, (9, 1)), np.tile(y, 9)
    check(lambda: BoostingClassifier(n_estimators=4, subsample=0.4), X, y)
    check(lambda: RandomForestClassifier(n_estimators=3, random_state=0), X, y)


def test_more_rows_than_the_sample_of_the_edges():
    X, y, _ = rows(n=140_000)
    more = {"cuts": (0, 30_000, 30_000, 90_000, 120_000)}
    check(lambda: AdaBoostClassifier(n_estimators=3, calibrate=False), X, y, **more)
    check(lambda: BoostingClassifier(n_estimators=2, early_stopping=False), X, y, **more)


@pytest.mark.parametrize("make", [
    lambda: AdaBoostClassifier(n_estimators=5),
    lambda: BoostingClassifier(n_estimators=3),
    lambda: BoostingRegressor("absolute", n_estimators=3),
    lambda: RandomForestRegressor(n_estimators=2, random_state=0),
])  # fmt: skip
def test_the_reference_engine_on_a_device_of_its_own(make):
    X, y, w = rows("2", "whole", n=430)
    y = y.astype(np.float64) if "Regressor" in type(make()).__name__ else y
    local = make().fit(X, y, w)
    shared = team_fit(make, X, y, w, put=DEVICE.put)
    assert {one.model_.fingerprint() for one in shared} == {local.model_.fingerprint()}
    assert {one.engine_ for one in shared} == {"reference"}
