"""Forests whose trees choose their capacity: curves, choices and trees are those of refits."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from ensemble_gpu import metrics, use_engine
from ensemble_gpu.bagging.random_forest import RandomForestClassifier, RandomForestRegressor
from ensemble_gpu.bagging.validation import Validation, kinds_of
from ensemble_gpu.kernels.cpu.engine import CpuEngine
from ensemble_gpu.trees.statistics import real_statistics
from ensemble_gpu.trees.tree import DecisionTreeClassifier, DecisionTreeRegressor
from tests.bagging.forests import bag
from tests.datasets import random_data
from tests.places import DEVICE

TREES = 3
DEPTHS, LEAVES, ALPHAS = (1, 2, 3, 5, None), (2, 3, 4, 7, 12, None), (0.1, 0.03, 0.01, 0.003, 0.0)
GRIDS: dict[str, tuple[Any, ...]] = {
    "max_depth": DEPTHS, "max_leaf_nodes": LEAVES, "ccp_alpha": ALPHAS
}  # fmt: skip
UNLIMITED = {"max_depth": None, "max_leaf_nodes": None, "ccp_alpha": 0.0}


@dataclass(frozen=True)
class Case:
    """Rows of some kind, and the parameters of a forest on them."""

    n_classes: int = 2
    real: bool = False
    missing: bool = False
    weighted: bool = False
    loss: str = "error"
    params: dict[str, Any] = field(default_factory=dict)

    def data(self) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        data = random_data(self.n_classes, n=160)
        data.X[:, 5] = np.abs(np.round(data.X[:, 5])) % 4  # categories, where they are named
        data = data.with_missing() if self.missing else data
        y = data.y
        if self.real:
            noise = np.random.default_rng(8).normal(size=len(y))
            y = data.X[:, 0] * 3.0 + data.y + noise
        weights = np.random.default_rng(2).gamma(1.0, size=len(y)) if self.weighted else None
        return data.X, y, weights

    def target(self) -> np.ndarray:
        """As the trees see it; without weights."""
        y = self.data()[1]
        return real_statistics("squared_error", y, None, CpuEngine(1)).target if self.real else y

    def forest(self, **more: Any) -> Any:
        own = {} if self.real else {"validation_loss": self.loss}
        kind = RandomForestRegressor if self.real else RandomForestClassifier
        return kind(**{"n_estimators": TREES, "random_state": 3, **self.params, **own, **more})

    def fitted(self, **more: Any) -> Any:
        return self.forest(**more).fit(*self.data())

    def lost(self, tree: Any, rows: np.ndarray, times: np.ndarray | None = None) -> float:
        """By the metric of that name."""
        X, y, weights = self.data()
        w = np.ones(len(y)) if weights is None else weights
        w = (w if times is None else w * times)[rows]
        F = tree(X[rows])
        if self.real:
            return metrics.mse(y[rows], F[:, 0], sample_weight=w)
        labels = list(range(self.n_classes))
        if self.loss == "error":
            return metrics.error(y[rows], np.argmax(F, axis=1), sample_weight=w)
        own = metrics.log_loss if self.loss == "log_loss" else metrics.brier
        return own(y[rows], F, sample_weight=w, labels=labels)


CASES = {
    "two classes": Case(missing=True, weighted=True),
    "two classes, brier": Case(loss="brier", params={"max_bins": 12}),
    "three classes": Case(3, loss="log_loss", params={"criterion": "entropy",
                                                      "categorical_features": [5]}),
    "four classes, brier": Case(4, missing=True, loss="brier", params={"splitter": "random"}),
    "real": Case(real=True, missing=True, params={"max_features": 3}),
    "real, weights": Case(real=True, weighted=True, params={"categorical_features": [5]}),
    "monotone": Case(real=True, params={"monotonic_cst": [1, 0, 0, -1, 0, 0]}),
}  # fmt: skip
every_case = pytest.mark.parametrize("name", CASES)
every_capacity = pytest.mark.parametrize("capacity", GRIDS)


@pytest.mark.slow
@every_capacity
@every_case
def test_curves_choices_and_trees_are_those_of_refits(name, capacity):
    case, grid = CASES[name], GRIDS[capacity]
    X, y, weights = case.data()
    forest = case.fitted(capacity=capacity, capacity_grid=grid[::-1])
    assert forest.capacity_grid_ == grid
    refits = [case.fitted(**{capacity: value}) for value in grid]
    for t in range(TREES):
        out = np.flatnonzero(bag(forest, t, X, y, weights=weights) == 0)
        expected = [case.lost(refit.model_.tree(t), out) for refit in refits]
        np.testing.assert_allclose(
            forest.validation_curves_[t], expected, rtol=1e-6 if case.weighted else 1e-11
        )
        best = int(np.argmin(forest.validation_curves_[t]))  # the first of equals
        assert forest.capacities_[t] == grid[best]
        assert forest.model_.tree(t) == refits[best].model_.tree(t)


@every_capacity
@pytest.mark.parametrize("name", ["two classes", "real"])
def test_a_grid_of_no_limit_gives_the_plain_forest(name, capacity):
    case, grid = CASES[name], [UNLIMITED[capacity]]
    plain = case.fitted().model_.fingerprint()
    for validation in ("oob", "cv"):
        forest = case.fitted(capacity=capacity, capacity_grid=grid, validation=validation)
        assert forest.model_.fingerprint() == plain
        assert forest.capacities_ == (UNLIMITED[capacity],) * TREES


@pytest.mark.slow
@every_capacity
@pytest.mark.parametrize("bootstrap", [True, False], ids=["bags", "all rows"])
@pytest.mark.parametrize("name", ["two classes, brier", "real"])
def test_folds_and_held_out_rows_judge_trees_of_the_other_rows(name, bootstrap, capacity):
    """Trees on all features have no chance in them, so that one alone can be grown again."""
    case, grid = CASES[name], GRIDS[capacity]
    X, y, _ = case.data()
    params = {"max_features": None, "max_bins": None, "bootstrap": bootstrap, "n_estimators": 2}
    kind = DecisionTreeRegressor if case.real else DecisionTreeClassifier
    for by, n_parts in (("holdout", 1), ("cv", 3)):
        forest = case.fitted(
            capacity=capacity, capacity_grid=grid, validation=by, validation_folds=3, **params
        )
        how = Validation(by, 0.2, 3, forest._seed, kinds_of(X, case.target(), None), None)
        for t in range(2):
            counts = bag(forest, t, X, y) if bootstrap else None
            parts = how.parts(counts, t)
            assert len(parts) == n_parts
            lost, weight = np.zeros(len(grid)), 0.0
            for part in parts:
                rows = np.flatnonzero(part.judged)
                for g, value in enumerate(grid):
                    tree = kind(max_bins=None, **{capacity: value}).fit(X, y, part.grown)
                    mean = case.lost(tree.model_, rows, part.judged)
                    lost[g] += mean * part.judged.sum()
                weight += part.judged.sum()
            np.testing.assert_allclose(forest.validation_curves_[t], lost / weight, rtol=1e-9)
            best = int(np.argmin(lost))
            grown = parts[0].grown if by == "holdout" else counts
            alone = kind(max_bins=None, **{capacity: grid[best]}).fit(X, y, grown).model_
            seen = slice(None) if grown is None else grown > 0
            np.testing.assert_allclose(forest.model_.tree(t)(X)[seen], alone(X)[seen], rtol=1e-13)
            assert forest.model_.n_leaves(t) == alone.n_leaves(0)


def test_the_loss_of_the_largest_capacity_is_that_of_the_uncut_tree():
    case = CASES["real"]
    X, y, _ = case.data()
    forest, plain = case.fitted(capacity="max_leaf_nodes"), case.fitted()
    assert forest.validation_curves_.shape == (TREES, len(forest.capacity_grid_))
    for t in range(TREES):
        out = np.flatnonzero(bag(forest, t, X, y) == 0)
        last = forest.validation_curves_[t, -1]
        assert last == pytest.approx(case.lost(plain.model_.tree(t), out), rel=1e-11)


def test_the_loss_of_a_tree_that_is_right_is_zero():
    X = np.repeat(np.arange(4.0), 20)[:, None] + np.tile(np.arange(20) / 100, 4)[:, None]
    y = 1e6 + np.repeat([0.1, 0.2, 0.4, 0.8], 20)
    forest = RandomForestRegressor(3, capacity="max_depth", random_state=0).fit(X, y)
    assert (forest.validation_curves_[:, -1] < 1e-20).all()
    assert all(forest.model_.n_leaves(t) == 4 for t in range(3))


ENGINES = {
    "two classes": {"capacity": "max_depth", "validation": "oob"},
    "three classes": {"capacity": "max_leaf_nodes", "validation": "cv", "validation_folds": 2},
    "real, weights": {"capacity": "ccp_alpha", "validation": "holdout"},
}


@cache
def standard(name: str) -> tuple[str, bytes]:
    return outcome(CASES[name].fitted(n_jobs=1, **ENGINES[name]))


def outcome(forest: Any) -> tuple[str, bytes]:
    return forest.model_.fingerprint(), forest.validation_curves_.tobytes()


@pytest.mark.slow
@pytest.mark.parametrize("name", ENGINES)
def test_engines_devices_and_threads_give_the_same_bits(name):
    case, params = CASES[name], ENGINES[name]
    assert outcome(case.fitted(n_jobs=2, **params)) == standard(name)
    with use_engine("reference"):
        assert outcome(case.fitted(**params)) == standard(name)
    forest = case.forest(**params).fit(*map(DEVICE.put, case.data()))
    assert forest.engine_ == "reference"
    assert outcome(forest) == standard(name)


@pytest.mark.interop
@pytest.mark.parametrize("name", ENGINES)
def test_other_libraries_give_the_same_bits(library, name):
    case = CASES[name]
    forest = case.forest(**ENGINES[name]).fit(*map(library.put, case.data()))
    assert outcome(forest) == standard(name)


def test_a_sparse_matrix_gives_the_same_bits():
    case = Case(3)
    X, y, _ = case.data()
    X[X < 0] = 0.0
    found = case.forest(capacity="max_depth").fit(sparse.csr_matrix(X), y)
    assert outcome(found) == outcome(case.forest(capacity="max_depth").fit(X, y))


@pytest.mark.parametrize("validation", ["oob", "holdout", "cv"])
def test_order_is_no_matter_and_whole_weights_are_repetitions(validation):
    case = Case(3, loss="brier")
    X, y, _ = case.data()
    weights = np.random.default_rng(0).integers(0, 4, size=len(y))
    rows = np.random.default_rng(1).permutation(np.repeat(np.arange(len(y)), weights))
    for params in ({}, {"bootstrap": False, "max_features": 2}):
        if validation == "oob" and params:
            continue
        forest = case.forest(capacity="ccp_alpha", validation=validation, **params)
        found = forest.fit(X, y, weights)
        curves, grid, nodes = found.validation_curves_, found.capacity_grid_, found.model_.nodes
        again = forest.fit(X[rows], y[rows])
        assert again.capacity_grid_ == grid
        np.testing.assert_array_equal(again.validation_curves_, curves)
        np.testing.assert_array_equal(again.model_.nodes.value, nodes.value)


@pytest.mark.parametrize("class_weight", ["balanced_subsample", {0: 9.5}], ids=str)
def test_weights_of_classes_count_in_the_loss(class_weight):
    case = Case(loss="error")
    X, y, _ = case.data()
    forest = case.fitted(capacity="max_depth", capacity_grid=[None], class_weight=class_weight)
    plain = case.fitted(class_weight=class_weight)
    for t in range(TREES):
        counts = bag(forest, t, X, y)
        sizes = np.bincount(y, counts)
        w = sizes.sum() / (2 * sizes) if class_weight == "balanced_subsample" else [9.5, 1.0]
        if class_weight != "balanced_subsample":  # weights of rows are part of what they hold
            counts = bag(forest, t, X, y, weights=np.array(w)[y])
        out = counts == 0
        wrong = np.argmax(plain.model_.tree(t)(X), axis=1) != y
        expected = np.average(wrong[out], weights=np.array(w)[y][out])
        assert forest.validation_curves_[t, 0] == pytest.approx(expected, rel=1e-4)


def test_a_warm_start_goes_on_choosing():
    case = CASES["two classes"]
    params = {"capacity": "ccp_alpha", "warm_start": True}
    warm = case.fitted(n_estimators=2, **params)
    warm.set_params(n_estimators=4).fit(*case.data())
    whole = case.fitted(n_estimators=4, **params)
    assert outcome(warm) == outcome(whole)
    assert warm.capacities_ == whole.capacities_
    for change in ({"capacity": None}, {"capacity_grid": [0.0]}, {"validation": "cv"},
                   {"validation_loss": "brier"}):  # fmt: skip
        changed = case.fitted(n_estimators=2, **params).set_params(n_estimators=4, **change)
        with pytest.raises(ValueError, match=f"whose {next(iter(change))} was .* and is"):
            changed.fit(*case.data())


def test_a_warm_start_without_a_capacity_has_no_judges_to_keep():
    case = CASES["two classes"]
    warm = case.fitted(n_estimators=2, warm_start=True)
    warm.set_params(n_estimators=TREES, validation="cv", validation_loss="brier")
    assert warm.fit(*case.data()).model_ == case.fitted().model_


def test_a_fit_without_a_capacity_forgets_the_choices():
    case = CASES["real"]
    forest = case.fitted(capacity="max_depth")
    forest.set_params(capacity=None).fit(*case.data())
    assert not any(hasattr(forest, f"{name}_") for name in ("capacities", "validation_curves"))


def test_the_score_out_of_bag_is_said_to_be_optimistic_where_it_is():
    case = Case()
    params = {"n_estimators": 30, "capacity": "max_depth", "oob_score": True}
    with pytest.warns(UserWarning, match="oob_score_ is optimistic") as caught:
        case.fitted(**params)
    assert "test_capacity" in caught[0].filename
    case.fitted(validation="holdout", **params)  # a warning would be an error


def test_a_tree_that_no_row_can_judge_keeps_the_largest_capacity():
    for params in ({}, {"validation": "holdout"}):
        forest = RandomForestClassifier(2, capacity="max_depth", random_state=0, **params)
        forest.fit([[1.0]], [1])
        assert forest.capacities_ == (None, None)
        assert np.isnan(forest.validation_curves_).all()


X_SMALL, Y_SMALL = random_data(n=40, p=3).X, random_data(n=40, p=3).y
DEPTH: dict[str, Any] = {"capacity": "max_depth"}
BAD: list[tuple[dict[str, Any], type[Exception], tuple[str, ...]]] = [
    ({"capacity": "depth"}, ValueError, ("capacity", "'max_depth'", "'depth'")),
    ({"validation": "test"}, ValueError, ("validation", "'oob'", "'test'")),
    ({"validation_fraction": 1.0}, ValueError, ("validation_fraction", "1.0")),
    ({"validation_fraction": 0.0}, ValueError, ("validation_fraction", "0.0")),
    ({"validation_folds": 1}, ValueError, ("validation_folds", ">= 2", "got 1")),
    ({"capacity_grid": [1, 2]}, ValueError, ("capacity_grid", "capacity is None")),
    ({**DEPTH, "capacity_grid": []}, ValueError, ("capacity_grid", "empty")),
    ({**DEPTH, "capacity_grid": (d for d in "1")}, TypeError, ("capacity_grid", "sequence")),
    ({**DEPTH, "capacity_grid": 3}, TypeError, ("capacity_grid", "sequence", "3")),
    ({**DEPTH, "capacity_grid": [[1]]}, TypeError, ("capacity_grid[0]", "[1]")),
    ({**DEPTH, "capacity_grid": [3, 0]}, ValueError, ("capacity_grid[1]", ">= 1", "0")),
    ({**DEPTH, "capacity_grid": [2.5]}, TypeError, ("capacity_grid[0]", "2.5")),
    ({"capacity": "max_leaf_nodes", "capacity_grid": [1]}, ValueError, ("capacity_grid", ">= 2")),
    ({"capacity": "ccp_alpha", "capacity_grid": [None]}, TypeError, ("capacity_grid[0]", "None")),
    ({"capacity": "ccp_alpha", "capacity_grid": [-1.0]}, ValueError, ("capacity_grid[0]", ">= 0")),
    ({**DEPTH, "max_depth": 4}, ValueError, ("max_depth", "capacity_grid", "4")),
    ({**DEPTH, "max_leaf_nodes": 4}, ValueError, ("max_leaf_nodes", "'max_depth'", "4")),
    ({**DEPTH, "ccp_alpha": 0.1}, ValueError, ("ccp_alpha", "'max_depth'", "0.1")),
    ({**DEPTH, "bootstrap": False}, ValueError, ("validation='oob'", "bootstrap")),
    ({**DEPTH, "validation": "cv", "validation_folds": 41}, ValueError,
     ("validation_folds", "41", "n_samples=40")),
]  # fmt: skip


@pytest.mark.parametrize(("params", "error", "says"), BAD, ids=lambda p: str(p)[:60])
def test_bad_parameters_are_named(params, error, says):
    forest = RandomForestClassifier(2, **params)
    with pytest.raises(error) as caught:
        forest.fit(X_SMALL, Y_SMALL)
    for text in says:
        assert text in str(caught.value)
    assert not hasattr(forest, "model_")


def test_an_unknown_loss_is_named():
    with pytest.raises(ValueError, match=r"validation_loss .* 'brier'; got 'mse'"):
        RandomForestClassifier(2, validation_loss="mse").fit(X_SMALL, Y_SMALL)
