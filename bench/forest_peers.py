"""Ours and the peers as growers of trees.

scikit-learn's forest is the same algorithm as ours, but for our 255 bins. LightGBM and XGBoost draw
63.2% of the rows without replacement instead of a bootstrap sample, with as many features a node.
They keep a histogram for every leaf and are not made for full trees, so they take part with a bound
on the leaves, the best grown first by everybody. Boosted trees have depth 6, no penalty and leaves
of any size; CatBoost's are oblivious: one question a level, which is less work and another model.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import catboost
import lightgbm
import numpy as np
import xgboost
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.ensemble import RandomForestClassifier as SklearnForest
from sklearn.ensemble import RandomForestRegressor as SklearnForestRegressor
from sklearn.tree import DecisionTreeClassifier as SklearnTree

from bench.peers import (
    MAX_BINS,
    OURS,
    WARM_ROWS,
    Job,
    catboost_settings,
    lightgbm_settings,
    openmp,
    xgboost_settings,
)
from ensemble_gpu import BoostingClassifier
from ensemble_gpu.bagging.random_forest import RandomForestClassifier, RandomForestRegressor
from ensemble_gpu.trees.tree import DecisionTreeClassifier

SKLEARN = "scikit-learn"
DEPTH, RATE = 6, 0.1  # of boosted trees
LEAVES = (256, 1_024, 4_096)  # bounds of forests in which everybody takes part
IN_BAG = 0.632

Predict = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Fitted:
    """A model: its predictions and, counted when asked for, the mean leaves of a tree."""

    predict: Predict
    leaves: Callable[[], float]


Fit = Callable[[Job], Fitted]


def _like_sklearn(estimator: Any, **settings: Any) -> Fit:
    """Ours and scikit-learn's, told the trees, the threads and the seed where they have them."""
    known = estimator().get_params()

    def fit(job: Job) -> Fitted:
        told = {"n_estimators": job.rounds, "n_jobs": job.threads, "random_state": 0}
        common = {name: value for name, value in told.items() if name in known}
        model = estimator(**common, **settings).fit(job.X, job.y)
        answer = getattr(model, "predict_proba", model.predict)

        def predict(X: np.ndarray) -> np.ndarray:
            if hasattr(model, "estimators_"):  # scikit-learn starts its threads for one row, too
                model.n_jobs = job.threads if len(X) > 1 else 1
            return answer(X)

        return Fitted(predict, partial(_mean_leaves, model))

    return fit


def _mean_leaves(model: Any) -> float:
    if hasattr(model, "model_"):
        return statistics.fmean(model.model_.n_leaves(t) for t in range(len(model.model_)))
    return statistics.fmean(tree.get_n_leaves() for tree in getattr(model, "estimators_", [model]))


def _lightgbm(*, leaves: int, forest: bool = False, **settings: Any) -> Fit:
    def fit(job: Job) -> Fitted:
        told = {**lightgbm_settings(job), "num_leaves": leaves, **settings}
        told |= {"min_data_in_leaf": 1, "min_sum_hessian_in_leaf": 0.0}
        if forest:
            told |= {"boosting": "rf", "bagging_freq": 1, "bagging_fraction": IN_BAG}
            told |= {"feature_fraction_bynode": job.X.shape[1] ** -0.5}
        booster = lightgbm.train(told, lightgbm.Dataset(job.X, job.y), job.rounds)

        def count() -> float:
            counts = re.findall(r"^num_leaves=(\d+)", booster.model_to_string(), re.MULTILINE)
            return statistics.fmean(map(int, counts))

        return Fitted(lambda X: np.asarray(booster.predict(X, num_threads=job.threads)), count)

    return fit


def _xgboost(*, forest: bool = False, **settings: Any) -> Fit:
    """One round of `trees` parallel trees is XGBoost's random forest."""

    def fit(job: Job) -> Fitted:
        told = {**xgboost_settings(job), "reg_lambda": 0.0, "min_child_weight": 0.0, **settings}
        if forest:
            told |= {"num_parallel_tree": job.rounds, "learning_rate": 1.0, "subsample": IN_BAG}
            told |= {"colsample_bynode": job.X.shape[1] ** -0.5}
        matrix = xgboost.QuantileDMatrix(job.X, job.y, max_bin=MAX_BINS, nthread=job.threads)
        booster = xgboost.train(told, matrix, 1 if forest else job.rounds)

        def count() -> float:
            return statistics.fmean(tree.count("leaf=") for tree in booster.get_dump())

        return Fitted(booster.inplace_predict, count)

    return fit


def _catboost(job: Job) -> Fitted:
    settings = {**catboost_settings(job), "depth": DEPTH, "l2_leaf_reg": 0.0}
    model = catboost.CatBoostClassifier(**settings).fit(job.X, job.y)
    predict = partial(model.predict_proba, thread_count=job.threads)
    return Fitted(predict, lambda: statistics.fmean(model.get_tree_leaf_counts()))


def _histogram_boosting(job: Job) -> Fitted:
    model = HistGradientBoostingClassifier(
        max_iter=job.rounds, learning_rate=job.rate, max_depth=DEPTH, max_leaf_nodes=None,
        min_samples_leaf=1, max_bins=MAX_BINS, early_stopping=False,
    )  # fmt: skip
    with openmp(job.threads):
        model.fit(job.X, job.y)
    trees = [tree for one_round in model._predictors for tree in one_round]
    count = partial(statistics.fmean, [tree.get_n_leaf_nodes() for tree in trees])
    return Fitted(model.predict_proba, count)


def _leafy(leaves: int) -> dict[str, Fit]:
    """Forests of trees with at most so many leaves."""
    return {
        OURS: _like_sklearn(RandomForestClassifier, max_leaf_nodes=leaves),
        SKLEARN: _like_sklearn(SklearnForest, max_leaf_nodes=leaves),
        "LightGBM": _lightgbm(leaves=leaves, forest=True),
        "XGBoost": _xgboost(forest=True, max_depth=0, grow_policy="lossguide", max_leaves=leaves),
    }


def _forests(**settings: Any) -> dict[str, Fit]:
    return {
        OURS: _like_sklearn(RandomForestClassifier, **settings),
        SKLEARN: _like_sklearn(SklearnForest, **settings),
    }


FITS: dict[str, dict[str, Fit]] = {
    "forest": _forests(),
    "forest, 5 rows a leaf": _forests(min_samples_leaf=5),
    "forest, entropy": _forests(criterion="entropy"),
    **{f"{leaves:,} leaves": _leafy(leaves) for leaves in LEAVES},
    "regression": {
        OURS: _like_sklearn(RandomForestRegressor),
        SKLEARN: _like_sklearn(SklearnForestRegressor),
    },
    "boosting": {
        OURS: _like_sklearn(
            BoostingClassifier,
            max_depth=DEPTH,
            learning_rate=RATE,
            early_stopping=False,
            min_samples_leaf=1,
            min_hessian=0.0,
            l2_regularization=0.0,
            subsample=1.0,
            max_features=None,
        ),
        "LightGBM": _lightgbm(leaves=1 << DEPTH, max_depth=DEPTH),
        "XGBoost": _xgboost(max_depth=DEPTH),
        "CatBoost, oblivious": _catboost,
        "sklearn HistGB": _histogram_boosting,
    },
    "tree": {
        OURS: _like_sklearn(DecisionTreeClassifier),
        SKLEARN: _like_sklearn(SklearnTree),
    },
    "exact tree": {
        OURS: _like_sklearn(DecisionTreeClassifier, max_bins=None),
        SKLEARN: _like_sklearn(SklearnTree),
    },
}


def warm_up(fit: Fit, job: Job) -> None:
    """A small fit and prediction: kernels are compiled and caches in place afterwards."""
    few = replace(job, X=job.X[:WARM_ROWS], y=job.y[:WARM_ROWS], rounds=2)
    fit(few).predict(few.X[:1])
