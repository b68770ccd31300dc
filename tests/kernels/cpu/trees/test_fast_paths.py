"""The fast paths of the CPU's trees are taken where they are meant to be, and only there.

They give the same trees as the general path, so that no comparison of models tells who grew one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ensemble_gpu import (
    BoostingClassifier,
    BoostingRegressor,
    DecisionTreeClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from ensemble_gpu.kernels.cpu.trees import pair_splits, splits, whole_grower

# Rows of a sample whose large nodes keep their sums (KEEP_ROWS and KEEP_SAMPLE of
# kernels/cpu/trees/grower.py), and of one whose nodes do not.
LARGE, SMALL = 10_000, 3000

# Whole trees; nodes of two statistics with codes of more than a byte, few and many of them; large
# and small nodes in general; small nodes of several classes.
KERNELS = (
    (whole_grower, "grow_whole"),
    (pair_splits, "split_pairs"),
    (pair_splits, "split_wide_pairs"),
    (splits, "search_sums"),
    (splits, "split_nodes"),
    (splits, "split_class_nodes"),
)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths taken, call by call."""
    found: list[str] = []

    def spy(name: str, own: Callable[..., Any]) -> Callable[..., Any]:
        def called(*args: Any) -> Any:
            found.append(name)
            return own(*args)

        return called

    for module, name in KERNELS:
        monkeypatch.setattr(module, name, spy(name, getattr(module, name)))
    return found


def rows(n: int, n_classes: int = 2) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 6))
    level = X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=n)
    return X, np.digitize(level, np.quantile(level, np.arange(1, n_classes) / n_classes))


BOOSTED = {"n_estimators": 2, "max_depth": 6, "early_stopping": False, "max_features": None}


@pytest.mark.parametrize("n", [LARGE, SMALL])
@pytest.mark.parametrize(
    "estimator",
    [
        RandomForestClassifier(n_estimators=2, random_state=0),
        RandomForestClassifier(n_estimators=2, random_state=0, max_depth=4, bootstrap=False),
        RandomForestRegressor(n_estimators=2, random_state=0, max_features=2),
        RandomForestRegressor(n_estimators=2, random_state=0),  # draws no features
        RandomForestRegressor(n_estimators=2, random_state=0, max_features=2, min_samples_leaf=5),
        BoostingClassifier(**BOOSTED),
        BoostingClassifier(**BOOSTED, min_samples_leaf=1, min_hessian=0.0),
        BoostingRegressor(**BOOSTED),
        BoostingRegressor(**(BOOSTED | {"max_features": 2})),
        BoostingRegressor(**BOOSTED, subsample=0.5),
        BoostingRegressor(**BOOSTED, max_leaf_nodes=40),
        BoostingRegressor(**BOOSTED, monotonic_cst=[1, 0, 0, 0, 0, 0]),
        BoostingRegressor(**BOOSTED, categorical_features=[5]),
        BoostingRegressor(**BOOSTED, interaction_cst="pairwise"),
    ],
    ids=str,
)
def test_a_tree_of_two_statistics_is_one_compiled_call(estimator, n, calls):
    X, y = rows(n)
    X[:, 5] = np.abs(np.round(X[:, 5]))
    estimator.fit(X, y)
    assert calls == 2 * ["grow_whole"]


def test_several_classes_of_a_forest_are_one_compiled_call_a_tree(calls):
    RandomForestClassifier(n_estimators=2, random_state=0).fit(*rows(LARGE, 3))
    assert calls == 2 * ["grow_whole"]


def test_more_codes_than_a_byte_holds_are_pairs_without_words(calls):
    X, y = rows(LARGE)
    DecisionTreeClassifier(max_bins=None, max_depth=4).fit(np.round(X, 2), y)
    assert set(calls) == {"search_sums", "split_pairs"}


def test_rows_are_sorted_where_most_codes_do_not_occur_in_a_node(calls):
    DecisionTreeClassifier(max_bins=None, max_depth=3).fit(*rows(LARGE))
    assert set(calls) == {"split_wide_pairs"}


def test_several_classes_are_scored_in_one_loop(calls):
    DecisionTreeClassifier(criterion="entropy").fit(*rows(LARGE, 3))
    assert set(calls) == {"search_sums", "split_class_nodes"}


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"min_samples_leaf": 5},
        {"min_weight_fraction_leaf": 0.01},
        {"monotonic_cst": [1, 0, 0, 0, 0, 0]},
        {"categorical_features": [5]},
        {"criterion": "entropy"},
        {"criterion": "error"},
        {"max_leaf_nodes": 40},
    ],
    ids=str,
)
def test_conditions_and_other_criteria_take_the_same_path(changes, calls):
    X, y = rows(LARGE)
    X[:, 5] = np.abs(np.round(X[:, 5]))
    DecisionTreeClassifier(**changes).fit(X, y)
    RandomForestClassifier(n_estimators=2, random_state=0, **changes).fit(X, y)
    assert calls == 3 * ["grow_whole"]


def test_random_thresholds_are_searched_in_general(calls):
    DecisionTreeClassifier(splitter="random").fit(*rows(LARGE))
    assert set(calls) == {"search_sums", "split_nodes"}
