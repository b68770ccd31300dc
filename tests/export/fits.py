"""Fitted estimators of every kind that can be exported; each is fitted once."""

from __future__ import annotations

from functools import cache

import numpy as np

import ensemble_gpu as e

N = 240


@cache
def rows() -> np.ndarray:
    """Six features with holes; the fifth holds categories 0, 1, 2, 4, 6 and 7."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 6))
    X[:, 4] = np.array([0.0, 1.0, 2.0, 4.0, 6.0, 7.0])[rng.integers(0, 6, N)]
    X[rng.random(X.shape) < 0.08] = np.nan
    return X


@cache
def signal() -> np.ndarray:
    X = np.nan_to_num(rows(), nan=1.5)
    odd = np.isin(X[:, 4], [1.0, 4.0, 7.0])
    return X[:, 0] + X[:, 1] ** 2 + 2.0 * odd + 0.3 * np.random.default_rng(1).normal(size=N)


def classes(names: list) -> np.ndarray:
    """Labels: equally many rows of each, by the signal."""
    rank = np.argsort(np.argsort(signal()))
    return np.array(names)[rank * len(names) // N]


TWO, THREE = [False, True], ["low", "mid", "äö high"]
CATEGORIES = {"categorical_features": [4]}
ESTIMATORS = {
    "adaboost": lambda: (e.AdaBoostClassifier(n_estimators=30), TWO),
    "adaboost, missing learnt": lambda: (
        e.AdaBoostClassifier(n_estimators=30, missing="learn"), [-3, 5]),
    "adaboost, calibrated, discrete": lambda: (
        e.AdaBoostClassifier(n_estimators=30, variant="discrete", calibrate=True, random_state=0),
        TWO),
    "adaboost, 3 classes": lambda: (e.AdaBoostClassifier(n_estimators=20), THREE),
    "adaboost, a class a round": lambda: (
        e.AdaBoostClassifier(n_estimators=20, multiclass="single"), [1.0, 2.0, 4.0]),
    "adaboost, categories": lambda: (e.AdaBoostClassifier(n_estimators=20, **CATEGORIES), TWO),
    "adaboost of trees": lambda: (
        e.AdaBoostClassifier(e.DecisionTreeClassifier(max_depth=2), n_estimators=6), TWO),
    "adaboost of trees, votes, categories": lambda: (
        e.AdaBoostClassifier(e.DecisionTreeClassifier(max_depth=2, **CATEGORIES),
                             variant="discrete", n_estimators=6), THREE),
    "adaboost, missing refused": lambda: (
        e.AdaBoostClassifier(n_estimators=20, missing="error"), TWO),
    "logistic stumps": lambda: (e.BoostingClassifier(n_estimators=20, max_depth=1), TWO),
    "squared stumps, 2 classes": lambda: (
        e.BoostingClassifier("squared", n_estimators=20, max_depth=1), TWO),
    "squared stumps, 3 classes": lambda: (
        e.BoostingClassifier("squared", n_estimators=20, max_depth=1), THREE),
    "logistic trees, 3 classes, categories": lambda: (
        e.BoostingClassifier(n_estimators=5, max_depth=3, **CATEGORIES), THREE),
    "trees in bags": lambda: (
        e.BoostingRegressor(n_estimators=5, max_depth=2, n_bags=3, random_state=0), None),
    "stumps": lambda: (e.BoostingRegressor(n_estimators=30, max_depth=1), None),
    "poisson trees": lambda: (
        e.BoostingRegressor("poisson", n_estimators=10, max_depth=3, **CATEGORIES), None),
    "quantiles": lambda: (
        e.BoostingRegressor("quantile", quantile=[0.1, 0.5, 0.9], n_estimators=10), None),
    "L1 stumps": lambda: (e.L1BoostingClassifier(radius=2.0), TWO),
    "L1 stumps, 3 classes": lambda: (e.L1BoostingClassifier(radius=2.0), THREE),
    "L1 trees": lambda: (e.L1BoostingRegressor(radius=2.0, max_depth=2), None),
    "tree": lambda: (e.DecisionTreeClassifier(max_leaf_nodes=20, **CATEGORIES), THREE),
    "forest": lambda: (e.RandomForestClassifier(6, max_leaf_nodes=20, random_state=0), THREE),
    "forest regressor": lambda: (
        e.RandomForestRegressor(5, max_leaf_nodes=20, random_state=0, **CATEGORIES), None),
    "bag, categories": lambda: (
        e.BaggingClassifier(e.DecisionTreeClassifier(**CATEGORIES), 4, max_features=0.7,
                            random_state=0), THREE),
    "bag of votes": lambda: (e.BaggingClassifier(n_estimators=4, voting="hard", random_state=0),
                             THREE),
    "bag regressor": lambda: (
        e.BaggingRegressor(e.DecisionTreeRegressor(max_leaf_nodes=9), 4, random_state=0), None),
    "constant": lambda: (e.DecisionTreeRegressor(max_leaf_nodes=20, min_samples_leaf=N), None),
    "ranker": lambda: (e.BoostingRanker(n_estimators=10, max_depth=1), "queries"),
}  # fmt: skip


@cache
def fitted(name: str):
    estimator, labels = ESTIMATORS[name]()
    if labels == "queries":
        relevance = (signal() > 1.0).astype(np.int64)
        return estimator.fit(rows(), relevance, qid=np.arange(N) // 12)
    X = np.nan_to_num(rows()) if getattr(estimator, "missing", "") == "error" else rows()
    y = np.maximum(signal(), 0.0) if labels is None else classes(labels)
    return estimator.fit(X, y)


def taken(name: str, X: np.ndarray) -> np.ndarray:
    """Which rows the methods of an estimator take, whose model takes all."""
    refused = np.isinf(X)
    if getattr(fitted(name), "missing", "") == "error":
        refused |= np.isnan(X)
    return ~refused.any(axis=1)
