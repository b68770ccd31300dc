"""One small fit of every estimator that can be saved, made once for all tests."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

import ensemble_gpu as eg
from ensemble_gpu import smoothers
from ensemble_gpu.learners import Balls, Boxes, HalfSpaces, Neighbours, Pool, Rectangles, Ridge
from ensemble_gpu.losses import Huber
from ensemble_gpu.selection.thresholds import ThresholdClassifier

RNG = np.random.default_rng(3)
X = RNG.normal(size=(48, 4))
WITH_MISSING = np.where(RNG.random(X.shape) < 0.1, np.nan, X)
TWO = (X[:, 0] + X[:, 1] > 0).astype(np.int64)
THREE = np.digitize(X[:, 0], [-0.5, 0.5])
WORDS = np.array(["no", "yes"])[TWO]
REAL = 2.0 * X[:, 0] + X[:, 1]
CODES = np.concatenate([X, RNG.integers(0, 5, (48, 1)).astype(float)], axis=1)


def _pool() -> Pool:
    shallow = (
        eg.DecisionTreeClassifier(max_depth=1, max_features=1, random_state=s) for s in (1, 2)
    )
    return Pool([tree.fit(X, TWO) for tree in shallow])


def _tree(**params: Any) -> Any:
    return eg.DecisionTreeClassifier(max_depth=2, **params)


CASES: dict[str, Callable[[], Any]] = {
    "AdaBoost, labels": lambda: eg.AdaBoostClassifier(
        n_estimators=8, early_stopping=True, random_state=0
    ).fit(
        WITH_MISSING, WORDS, eval_set=[(X, WORDS)], eval_names=["held out"]
    ),
    "AdaBoost, three classes": lambda: eg.AdaBoostClassifier(n_estimators=5).fit(X, THREE),
    "AdaBoost, trees": lambda: eg.AdaBoostClassifier(_tree(), n_estimators=3).fit(X, THREE),
    "AdaBoost, coded trees": lambda: eg.AdaBoostClassifier(
        _tree(), n_estimators=3, multiclass="codes", variant="discrete"
    ).fit(X, THREE),
    "AdaBoost, pool": lambda: eg.AdaBoostClassifier(
        _pool(), n_estimators=3, variant="discrete"
    ).fit(X, TWO),
    "AdaBoost, rectangles": lambda: eg.AdaBoostClassifier(
        Rectangles(), n_estimators=2, variant="discrete"
    ).fit(X, TWO),
    "AdaBoost, half-spaces": lambda: eg.AdaBoostClassifier(
        HalfSpaces(9), n_estimators=3
    ).fit(X, TWO),
    "AdaBoost, balls": lambda: eg.AdaBoostClassifier(Balls(9), n_estimators=3).fit(X, TWO),
    "AdaBoost, boxes": lambda: eg.AdaBoostClassifier(Boxes(9), n_estimators=3).fit(X, TWO),
    "Boosting, classes": lambda: eg.BoostingClassifier(
        n_estimators=3, n_bags=2, categorical_features=[4]
    ).fit(CODES, THREE),
    "Boosting, stumps": lambda: eg.BoostingClassifier(
        n_estimators=4, max_depth=1, random_state=np.random.RandomState(7)
    ).fit(X, TWO, X_val=X, y_val=TWO),
    "Boosting, numbers": lambda: eg.BoostingRegressor(
        n_estimators=3, loss=Huber(delta=0.7), monotonic_cst=np.array([1, 0, 0, -1])
    ).fit(X, REAL),
    "Boosting, quantiles": lambda: eg.BoostingRegressor(
        n_estimators=3, loss="quantile", quantile=(0.1, 0.5)
    ).fit(X, REAL),
    "Boosting, neighbours": lambda: eg.BoostingRegressor(
        estimator=Neighbours(), n_estimators=2
    ).fit(X, REAL),
    "Boosting, ridge": lambda: eg.BoostingRegressor(estimator=Ridge(), n_estimators=2).fit(X, REAL),
    "Boosting, regression trees": lambda: eg.BoostingClassifier(
        estimator=eg.DecisionTreeRegressor(max_depth=2), n_estimators=2
    ).fit(X, THREE),
    "ranker": lambda: eg.BoostingRanker(n_estimators=3).fit(X, THREE, qid=np.arange(48) // 8),
    "L1, classes": lambda: eg.L1BoostingClassifier(n_estimators=8, radii=3, n_folds=2).fit(X, TWO),
    "L1, numbers": lambda: eg.L1BoostingRegressor(n_estimators=8, radius=2.0).fit(X, REAL),
    "L2": lambda: eg.L2BoostRegressor(n_estimators=4).fit(X, REAL),
    "L2, splines": lambda: eg.L2BoostRegressor(
        smoothers.Spline(n_knots=6), n_estimators=4, componentwise=True
    ).fit(X, REAL),
    "tree": lambda: _tree(class_weight={"no": 2.0, "yes": 1.0}).fit(WITH_MISSING, WORDS),
    "regression tree": lambda: eg.DecisionTreeRegressor(max_depth=3).fit(WITH_MISSING, REAL),
    "forest": lambda: eg.RandomForestClassifier(
        4, oob_score=True, categorical_features=[4], random_state=0
    ).fit(CODES, WORDS),
    "regression forest": lambda: eg.RandomForestRegressor(
        3, capacity="max_depth", capacity_grid=[1, 2], random_state=0
    ).fit(X, REAL),
    "bagging": lambda: eg.BaggingClassifier(
        _tree(), n_estimators=3, max_features=0.5, random_state=0
    ).fit(X, WORDS),
    "bagged boosting": lambda: eg.BaggingRegressor(
        eg.BoostingRegressor(n_estimators=2), n_estimators=2, oob_score=True, random_state=0
    ).fit(X, REAL),
    "neighbours": lambda: eg.NeighboursClassifier(3).fit(X, WORDS),
    "neighbours of numbers": lambda: eg.NeighboursRegressor(3).fit(X, REAL),
    "linear": lambda: eg.LinearClassifier().fit(X, THREE),
    "ridge": lambda: eg.RidgeRegressor().fit(X, REAL),
    "threshold": lambda: ThresholdClassifier(
        eg.AdaBoostClassifier(n_estimators=3), cost_fp=1.0, cost_fn=3.0, cv=2
    ).fit(X, WORDS),
}  # fmt: skip


@cache
def fitted(name: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return CASES[name]()


def rows_of(estimator: Any) -> np.ndarray:
    """Rows of its width, some cells missing where it takes that."""
    if estimator.n_features_in_ == 5:
        return CODES
    takes_missing = ("AdditiveModel", "Forest")
    model = getattr(estimator, "model_", None)
    return WITH_MISSING if type(model).__name__ in takes_missing else X
