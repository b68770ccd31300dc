"""Gradient boosting on the CUDA engine: the CPU engine's model, fingerprint for fingerprint."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from ensemble_gpu import AdaBoostClassifier, BoostingClassifier, BoostingRegressor, use_engine
from ensemble_gpu.arrays.namespace import Where
from ensemble_gpu.boosting import integers
from ensemble_gpu.kernels.cuda import binning, evaluate, histogram, requantise, rowwise, score
from tests.boosters import plain
from tests.cuda.simulator.test_fits import data

FINE, PACKED = 10**6, 0  # rows up to which gradients are fine

# estimator, its parameters, classes (0: a real target), weights, share of missing values
Case = tuple[Any, dict[str, Any], int, bool, float]
# What is summed differs: one output, several, one at a time; stumps, trees, with counts.
EITHER: list[Case] = [
    (BoostingClassifier, {"missing": "learn", "step": "line_search"}, 2, False, 0.2),
    (BoostingClassifier, {"subsample": 0.6, "multiclass": "shared"}, 3, True, 0.0),
    (BoostingClassifier, {"multiclass": "each"}, 3, True, 0.2),
    (BoostingClassifier, {"max_depth": 2, "multiclass": "each"}, 3, True, 0.1),
    (
        BoostingClassifier,
        {"max_depth": 3, "min_hessian": 0.5, "l2_regularization": 1.5},
        3,
        True,
        0.1,
    ),
    (
        BoostingRegressor,
        {
            "max_leaf_nodes": 4,
            "l2_regularization": 2.0,
            "min_samples_leaf": 2,
            "monotonic_cst": [1, 0, -1],
        },
        0,
        True,
        0.1,
    ),
    (BoostingRegressor, {"loss": "huber", "monotonic_cst": [1, 0, -1]}, 0, False, 0.1),
    (BoostingRegressor, {"loss": "quantile", "quantile": [0.2, 0.8]}, 0, True, 0.1),
]
ONCE: list[Case] = [
    (BoostingClassifier, {}, 2, True, 0.2),
    (BoostingClassifier, {"loss": "hinge", "step": "constant", "stump": "discrete"}, 3, True, 0.1),
    (BoostingRegressor, {"subsample": 0.7, "missing": "learn"}, 0, True, 0.2),
    (BoostingRegressor, {"loss": "huber", "step": "line_search"}, 0, False, 0.1),
    (BoostingRegressor, {"loss": "absolute", "max_depth": 3}, 0, True, 0.1),
    (AdaBoostClassifier, {"variant": "logit"}, 2, False, 0.1),
    (
        AdaBoostClassifier,
        {"variant": "logit", "missing": "learn", "calibrate": False},
        3, True, 0.2,
    ),
    (BoostingRegressor, {}, 0, False, 0.0),
    (BoostingRegressor, {"missing": "learn", "n_estimators": 14}, 0, True, 0.2),
    (BoostingRegressor, {"loss": "poisson", "step": "newton", "max_features": 2}, 0, True, 0.0),
    (BoostingRegressor, {"loss": "quantile", "early_stopping": True}, 0, True, 0.0),
    (BoostingRegressor, {"loss": "huber", "max_leaf_nodes": 4}, 0, True, 0.1),
    (BoostingClassifier, {"loss": "hinge"}, 3, True, 0.1),
    (BoostingClassifier, {"loss": "squared"}, 3, True, 0.1),
    (BoostingClassifier, {"loss": "exponential", "subsample": 0.5}, 2, False, 0.0),
    (BoostingClassifier, {"callbacks": [str], "loss": "truncated_squared"}, 2, True, 0.0),
    (BoostingRegressor, {"n_bags": 2}, 0, False, 0.1),
    (BoostingRegressor, {"loss": "huber", "candidates": 2, "init": "zero"}, 0, True, 0.1),
    (BoostingClassifier, {"candidates": 3}, 2, True, 0.1),
    (BoostingClassifier, {"n_bags": 2, "subsample": 0.7}, 2, True, 0.1),
    (BoostingRegressor, {"max_depth": 3, "interaction_cst": [[0, 1], [1, 2]]}, 0, True, 0.1),
    (
        BoostingClassifier,
        {"max_leaf_nodes": 5, "interaction_cst": "no_interactions", "n_bags": 2, "max_features": 2},
        3, False, 0.1,
    ),
]  # fmt: skip


def named(case: Case) -> str:
    estimator, parameters, n_classes, weighted, missing = case
    weights = "weights" if weighted else "equal"
    return f"{estimator.__name__}-{parameters}-{n_classes}-{weights}-{missing}"


def rows(case: Case, n: int = 30) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    _, _, n_classes, weighted, missing = case
    X, y, weights = data(max(n_classes, 2), missing, n)
    if n_classes == 0:
        y = np.abs(np.nan_to_num(X[:, 0]) * 1.7 + np.random.default_rng(9).normal(size=n))
    return X, y, weights if weighted else None


def fits(case: Case, X: np.ndarray, y: np.ndarray, weights: Any) -> list[Any]:
    estimator, parameters, *_ = case
    parameters = {"n_estimators": 2, "max_bins": 6, "n_jobs": 1, "random_state": 3, **parameters}
    if estimator is not AdaBoostClassifier:
        parameters = plain(parameters)
    models = []
    for engine in ("cuda", "cpu"):
        with use_engine(engine):
            models.append(estimator(**parameters).fit(X, y, sample_weight=weights))
        assert models[-1].engine_ == engine
    return models


def assert_same(models: list[Any]) -> None:
    assert models[0].n_estimators_ > 0
    assert models[0].model_.fingerprint() == models[1].model_.fingerprint()
    assert models[0].stop_reason_ == models[1].stop_reason_


@pytest.mark.parametrize("weighted", [False, True])
def test_rows_are_drawn_in_any_order_as_on_the_cpu(weighted: bool) -> None:
    X, y, _ = rows((BoostingClassifier, {}, 2, False, 0.0))
    weights = np.random.default_rng(0).integers(0, 4, size=len(y)) * 1.0 if weighted else None
    case: Case = (BoostingClassifier, {"subsample": 0.5, "early_stopping": True}, 2, weighted, 0.0)
    models = fits(case, X, y, weights)
    assert_same(models)
    mixed = np.random.default_rng(1).permutation(len(y))
    again = fits(case, X[mixed], y[mixed], None if weights is None else weights[mixed])
    assert_same([models[0], again[0]])


def test_stumps_without_memory_for_tables_of_pairs_equal_the_cpu_fit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("ensemble_gpu.boosting.gram.MEMORY", 0)
    case: Case = (BoostingRegressor, {}, 0, True, 0.2)
    assert_same(fits(case, *rows(case)))


@pytest.mark.parametrize("fine_rows", [FINE, PACKED], ids=["fine", "packed"])
@pytest.mark.parametrize("case", EITHER, ids=named)
def test_fit_equals_the_cpu_fit(
    case: Case, fine_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(integers, "FINE_ROWS", fine_rows)
    assert_same(fits(case, *rows(case)))


@pytest.mark.parametrize("case", ONCE, ids=named)
def test_fit_of_other_losses_and_strategies_equals_the_cpu_fit(case: Case) -> None:
    assert_same(fits(case, *rows(case)))


@pytest.mark.parametrize(
    "case",
    [(BoostingRegressor, {}, 0, True, 0.05), (BoostingClassifier, {}, 2, False, 0.05)],
    ids=named,
)
def test_fit_with_sixteen_bit_codes_equals_the_cpu_fit(case: Case) -> None:
    X, y, weights = rows(case, 290)
    estimator, parameters, *rest = case
    case = (estimator, {**parameters, "max_bins": None, "n_estimators": 2}, *rest)
    assert_same(fits(case, X[:, :1], y, weights))


def test_predictions_equal_those_of_the_cpu() -> None:
    case: Case = (BoostingClassifier, {"loss": "hinge"}, 3, True, 0.1)
    X, y, weights = rows(case)
    models = fits(case, X, y, weights)
    with use_engine("cuda"):
        ours = models[0].predict_proba(X)
    np.testing.assert_array_equal(ours, models[1].predict_proba(X))


@pytest.mark.parametrize(("fine_rows", "n_classes"), [(FINE, 2), (PACKED, 3)], ids=str)
def test_launches_and_copies_of_a_round_are_those_of_the_docstring(
    fine_rows: int, n_classes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine's own: the loss and its step rule are counted apart, as `full` and numbers."""
    monkeypatch.setattr(integers, "FINE_ROWS", fine_rows)
    case: Case = (BoostingClassifier, {}, n_classes, False, 0.0)
    X, y, _ = rows(case)
    seen: Counter[str] = Counter()

    def counted(owner: Any, name: str, label: Any) -> None:
        inner = getattr(owner, name)

        def call(*args: Any, **keywords: Any) -> Any:
            seen[label(*args)] += 1
            return inner(*args, **keywords)

        monkeypatch.setattr(owner, name, call)

    for module in (binning, evaluate, histogram, requantise, rowwise, score):
        counted(module, "launch", lambda kernel, *_: kernel.fn.__name__)
    for name in ("put", "host"):
        counted(Where, name, lambda *_, name=name: name)
    totals = []
    for rounds in (2, 4):
        seen.clear()
        with use_engine("cuda"):
            BoostingClassifier(
                n_estimators=rounds, max_bins=6, max_depth=1, multiclass="shared"
            ).fit(X, y)
        totals.append(Counter(seen))
    a_round = {name: (totals[1][name] - totals[0][name]) / 2 for name in totals[1]}
    assert {name: n for name, n in a_round.items() if n} == {
        "move": 1, "exponentiate": 1, "build": 1, "put": 1, "host": 1,
        **({"pack": 1} if fine_rows == PACKED else {}),
    }  # fmt: skip
