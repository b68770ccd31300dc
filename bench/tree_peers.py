"""Ours and the peers as boosters of trees, with the settings that people use.

A setting is asked of those that have it. All have the same rounds, learning rate, bins and threads,
no penalty on leaf values, and no held-out rows. Differences that remain:

- XGBoost has no least number of rows a leaf: it takes the sum of second derivatives that so many
  rows have at the start, a quarter each;
- features are drawn for every node by ours, LightGBM, XGBoost and scikit-learn, by CatBoost for
  every search;
- CatBoost's categories become numbers, which is another algorithm, and scikit-learn draws no rows:
  they do not take part there. CatBoost grows level by level or best first, as the others do, not
  its oblivious trees (bench/forest_peers.py has those).
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import catboost
import lightgbm
import numpy as np
import xgboost
from sklearn.ensemble import HistGradientBoostingClassifier

from bench.forest_peers import Fitted
from bench.peers import MAX_BINS, OURS, openmp
from ensemble_gpu import BoostingClassifier

RATE = 0.1
SHARE_OF_FEATURES, SHARE_OF_ROWS = 0.4, 0.8


@dataclass(frozen=True)
class Setting:
    """What the trees are like: of a depth, or of so many leaves, the best grown first.

    `signs[f]` = +1 (-1): feature f may only raise (lower) the output; `categories` are the numbers
    of the features that hold some.
    """

    depth: int | None = 6
    leaves: int | None = None
    min_rows: int = 1
    draws_features: bool = False
    draws_rows: bool = False
    signs: tuple[int, ...] = ()
    categories: tuple[int, ...] = ()

    @property
    def most_leaves(self) -> int:
        return self.leaves or 1 << (self.depth or 0)

    @property
    def share_of_features(self) -> float:
        return SHARE_OF_FEATURES if self.draws_features else 1.0

    @property
    def share_of_rows(self) -> float:
        return SHARE_OF_ROWS if self.draws_rows else 1.0


@dataclass(frozen=True)
class Task:
    """Rows, and how to fit them."""

    X: np.ndarray
    y: np.ndarray
    weights: np.ndarray | None
    rounds: int
    threads: int
    setting: Setting


def _ours(task: Task) -> Fitted:
    setting = task.setting
    model = BoostingClassifier(
        n_estimators=task.rounds, learning_rate=RATE, max_depth=setting.depth,
        max_leaf_nodes=setting.leaves, min_samples_leaf=setting.min_rows, min_hessian=0.0,
        l2_regularization=0.0, early_stopping=False, random_state=0, n_jobs=task.threads,
        subsample=setting.share_of_rows,
        max_features=SHARE_OF_FEATURES if setting.draws_features else None,
        monotonic_cst=list(setting.signs) or None,
        categorical_features=list(setting.categories) or None,
    )  # fmt: skip
    model.fit(task.X, task.y, sample_weight=task.weights)
    forest = model.model_
    leaves = partial(statistics.fmean, [forest.n_leaves(t) for t in range(len(forest))])
    return Fitted(lambda X: model.predict_proba(X)[:, 1], leaves)


def _lightgbm(task: Task) -> Fitted:
    setting = task.setting
    told: dict[str, Any] = {
        "objective": "binary", "learning_rate": RATE, "max_bin": MAX_BINS, "verbosity": -1,
        "num_threads": task.threads, "force_col_wise": True, "num_leaves": setting.most_leaves,
        "max_depth": setting.depth or -1, "min_data_in_leaf": setting.min_rows,
        "min_sum_hessian_in_leaf": 0.0, "feature_fraction_bynode": setting.share_of_features,
    }  # fmt: skip
    if setting.draws_rows:
        told |= {"bagging_freq": 1, "bagging_fraction": SHARE_OF_ROWS}
    if setting.signs:
        told["monotone_constraints"] = list(setting.signs)
    categories = list(setting.categories) or "auto"
    rows = lightgbm.Dataset(task.X, task.y, weight=task.weights, categorical_feature=categories)
    booster = lightgbm.train(told, rows, task.rounds)

    def leaves() -> float:
        counts = re.findall(r"^num_leaves=(\d+)", booster.model_to_string(), re.MULTILINE)
        return statistics.fmean(map(int, counts))

    return Fitted(lambda X: np.asarray(booster.predict(X, num_threads=task.threads)), leaves)


def _xgboost(task: Task) -> Fitted:
    setting, p = task.setting, task.X.shape[1]
    told: dict[str, Any] = {
        "objective": "binary:logistic", "learning_rate": RATE, "max_bin": MAX_BINS, "verbosity": 0,
        "tree_method": "hist", "nthread": task.threads, "reg_lambda": 0.0,
        "min_child_weight": 0.25 * setting.min_rows if setting.min_rows > 1 else 0.0,
        "max_depth": setting.depth or 0, "subsample": setting.share_of_rows,
        "colsample_bynode": setting.share_of_features,
    }  # fmt: skip
    if setting.leaves:
        told |= {"grow_policy": "lossguide", "max_leaves": setting.leaves}
    if setting.signs:
        told["monotone_constraints"] = setting.signs
    kinds = ["c" if f in setting.categories else "q" for f in range(p)]
    more: dict[str, Any] = {"feature_types": kinds, "enable_categorical": bool(setting.categories)}
    rows = xgboost.QuantileDMatrix(
        task.X, task.y, weight=task.weights, max_bin=MAX_BINS, nthread=task.threads, **more
    )
    booster = xgboost.train(told, rows, task.rounds)

    def predict(X: np.ndarray) -> np.ndarray:
        return np.asarray(booster.predict(xgboost.DMatrix(X, nthread=task.threads, **more)))

    return Fitted(predict, lambda: statistics.fmean(t.count("leaf=") for t in booster.get_dump()))


def _catboost(task: Task) -> Fitted:
    setting = task.setting
    told: dict[str, Any] = {
        "iterations": task.rounds, "learning_rate": RATE, "border_count": MAX_BINS - 1,
        "boosting_type": "Plain", "bootstrap_type": "No", "random_strength": 0,
        "leaf_estimation_iterations": 1, "l2_leaf_reg": 0.0, "thread_count": task.threads,
        "verbose": False, "allow_writing_files": False, "min_data_in_leaf": setting.min_rows,
        "grow_policy": "Lossguide" if setting.leaves else "Depthwise",
        "rsm": setting.share_of_features,
    }  # fmt: skip
    told |= {"max_leaves": setting.leaves, "depth": 16} if setting.leaves else {"depth": 6}
    if setting.draws_rows:
        told |= {"bootstrap_type": "Bernoulli", "subsample": SHARE_OF_ROWS}
    model = catboost.CatBoostClassifier(**told).fit(task.X, task.y, sample_weight=task.weights)
    predict = partial(model.predict_proba, thread_count=task.threads)
    return Fitted(
        lambda X: predict(X)[:, 1], lambda: statistics.fmean(model.get_tree_leaf_counts())
    )


def _histogram_boosting(task: Task) -> Fitted:
    setting = task.setting
    model = HistGradientBoostingClassifier(
        max_iter=task.rounds, learning_rate=RATE, max_depth=setting.depth, max_bins=MAX_BINS,
        max_leaf_nodes=setting.leaves, min_samples_leaf=setting.min_rows, early_stopping=False,
        max_features=setting.share_of_features, monotonic_cst=list(setting.signs) or None,
        categorical_features=list(setting.categories) or None,
    )  # fmt: skip
    with openmp(task.threads):
        model.fit(task.X, task.y, sample_weight=task.weights)
    trees = [tree for one_round in model._predictors for tree in one_round]
    leaves = partial(statistics.fmean, [tree.get_n_leaf_nodes() for tree in trees])
    return Fitted(lambda X: model.predict_proba(X)[:, 1], leaves)


BOOSTERS: dict[str, Callable[[Task], Fitted]] = {
    OURS: _ours,
    "LightGBM": _lightgbm,
    "XGBoost": _xgboost,
    "CatBoost": _catboost,
    "sklearn HistGB": _histogram_boosting,
}


def takes_part(name: str, setting: Setting) -> bool:
    """Whether a contestant has the setting."""
    if name == "CatBoost":
        return not setting.categories and not setting.signs
    return name != "sklearn HistGB" or not setting.draws_rows
