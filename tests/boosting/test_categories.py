"""Gradient boosting of categorical features: the best subsets, everywhere the same, as in trees."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import combinations, product
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.exceptions import NotFittedError
from sklearn.metrics import log_loss, mean_squared_error
from threadpoolctl import threadpool_limits

from ensemble_gpu import (
    BoostingClassifier,
    BoostingRegressor,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    use_engine,
)
from ensemble_gpu.boosting import integers
from ensemble_gpu.data.keys import row_keys
from ensemble_gpu.data.sampling import items_of, stratified_holdout
from ensemble_gpu.kernels.cpu import engine as cpu_engine
from ensemble_gpu.kernels.cpu.trees import grower as cpu_grower
from ensemble_gpu.kernels.edges import SAMPLE_ROWS, sample_positions
from ensemble_gpu.model.additive import AdditiveModel
from ensemble_gpu.model.forest import Forest
from tests.boosters import plain
from tests.boosting.bad import Bad, on
from tests.datasets import Data, fitted_state
from tests.estimators.checks import all_when_long, assert_checks_pass, each_setting
from tests.places import Place

KINDS = [BoostingClassifier, BoostingRegressor]
every_kind = pytest.mark.parametrize("kind", KINDS)
CATEGORICAL = [2, 3]


@cache
def mixed(n: int = 300, n_classes: int | None = None, seed: int = 0) -> Data:
    """Two columns of numbers, one of five and one of nine categories, with holes in the last.

    No two splits are equally good. The target is real, or with `n_classes` a class.
    """
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)).astype(np.float32).astype(np.float64)
    X[:, 2], X[:, 3] = rng.integers(5, size=n), rng.integers(9, size=n)
    effects = np.array([0.4, -1.1, 1.5, -0.3, 0.8]), 0.7 * rng.normal(size=9)
    y = np.sin(2.0 * X[:, 0]) + sum(
        effect[X[:, f].astype(int)] for f, effect in zip(CATEGORICAL, effects, strict=True)
    )
    y = y * (1.0 + 0.3 * X[:, 1]) + 0.3 * rng.normal(size=n)
    X[rng.random(n) < 0.1, 3] = np.nan
    if n_classes:
        y = np.searchsorted(np.quantile(y, np.arange(1, n_classes) / n_classes), y)
    return Data(X, y.astype(np.float32).astype(np.float64) if not n_classes else y, None)


def classes(n: int = 300, n_classes: int = 2) -> Data:
    return mixed(n, n_classes)


def data_for(kind: Any, n: int = 300) -> Data:
    return classes(n) if kind is BoostingClassifier else mixed(n)


# --- the splits are right ----------------------------------------------------------------------

SHAPES = [
    {"max_depth": 1},
    {"max_depth": 4},
    {"max_leaf_nodes": 9},
    {"max_depth": 4, "min_samples_leaf": 12},
    {"max_depth": 4, "categorical_split": "single"},
    {"max_depth": 5, "max_features": 2, "random_state": 5},
]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_one_round_of_the_squared_loss_is_the_regression_tree(shape, weighted, engine):
    data = mixed()
    weights = np.random.default_rng(1).gamma(2.0, size=len(data.y)) if weighted else None
    params = {"categorical_features": CATEGORICAL, "max_bins": None, **shape}
    ours = BoostingRegressor(**plain(params, n_estimators=1, learning_rate=1.0))
    ours.fit(data.X, data.y, weights)
    tree = DecisionTreeRegressor(**params).fit(data.X, data.y, weights)
    one, other = ours.model_, tree.model_
    for name in ("feature", "left", "right", "missing_left", "subset", "n_samples"):
        np.testing.assert_array_equal(getattr(one.nodes, name), getattr(other.nodes, name))
    np.testing.assert_array_equal(one.subsets, other.subsets)
    assert (one.nodes.subset >= 0).any()
    assert one.categories.keys() == other.categories.keys()
    for f in CATEGORICAL:
        np.testing.assert_array_equal(one.categories[f], other.categories[f])
    np.testing.assert_array_equal(one.apply(data.X), other.apply(data.X))
    np.testing.assert_allclose(ours.predict(data.X), tree.predict(data.X), atol=1e-6)
    np.testing.assert_allclose(ours.feature_importances_, tree.feature_importances_, atol=1e-6)


def sides(x: np.ndarray, categorical: bool) -> Iterator[np.ndarray]:
    """Which rows go left: every threshold or every set of categories, both sides of missing."""
    values = np.unique(x[~np.isnan(x)]).tolist()
    if categorical:
        sizes = range(1, len(values) + 1)
        sets: Any = (chosen for size in sizes for chosen in combinations(values, size))
    else:
        sets = (values[: i + 1] for i in range(len(values)))
    for chosen, missing_left in product(sets, (False, True)):
        yield np.isin(x, chosen) | (np.isnan(x) & missing_left)


def best_side(X: np.ndarray, g: np.ndarray, h: np.ndarray) -> tuple[float, np.ndarray | None]:
    """(gain, which rows go left) of the best split by G^2 / H of all there are."""
    before = g.sum() ** 2 / h.sum()
    best, found = 1e-9, None
    for f in range(X.shape[1]):
        for left in sides(X[:, f], f in CATEGORICAL):
            if left.any() and not left.all():
                parts = [g[side].sum() ** 2 / h[side].sum() for side in (left, ~left)]
                if sum(parts) - before > best:
                    best, found = sum(parts) - before, left
    return best, found


def newton_tree(X: np.ndarray, g: np.ndarray, h: np.ndarray, depth: int) -> np.ndarray:
    """What a tree adds to each row: the best of all splits, leaf values -G / H."""
    found = best_side(X, g, h)[1] if depth else None
    if found is None:
        return np.full(len(g), -g.sum() / h.sum())
    out = np.empty(len(g))
    for side in (found, ~found):
        out[side] = newton_tree(X[side], g[side], h[side], depth - 1)
    return out


@cache
def few() -> Data:
    """Six categories, numbers with ties, missing values in both; weights."""
    data, rng = mixed(90, 2), np.random.default_rng(4)
    X = np.column_stack([np.round(data.X[:, 0], 1), data.X[:, 1] > 0.0, data.X[:, 2:]])
    X[:, 3] = np.minimum(X[:, 3], 5.0)
    X[rng.random(90) < 0.1, 0] = np.nan
    return Data(X, data.y, rng.gamma(2.0, size=90))


def derivatives(data: Data, F: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    p = 1.0 / (1.0 + np.exp(-F))
    return data.weights * (p - data.y), data.weights * p * (1.0 - p)


def first_margin(data: Data) -> np.ndarray:
    share = np.average(data.y, weights=data.weights)
    return np.full(len(data.y), np.log(share / (1.0 - share)))


def test_the_newton_gain_of_the_logistic_loss_is_that_of_the_best_of_all_subsets(engine):
    data = replace(few(), weights=np.ones(90))
    found = BoostingClassifier(n_estimators=1, categorical_features=CATEGORICAL, max_depth=1)
    found.fit(data.X, data.y)
    gain, left = best_side(data.X, *derivatives(data, first_margin(data)))
    assert found.errors_[0] == pytest.approx(gain, rel=1e-5)
    leaf = found.model_.apply(data.X)[:, 0]
    assert len({*zip(leaf.tolist(), left.tolist(), strict=True)}) == 2


@pytest.mark.parametrize("size", [{}, {"max_depth": 3}], ids=str)
def test_newton_rounds_of_the_logistic_loss_are_those_of_trying_all_subsets(engine, size):
    data = few()
    ours = BoostingClassifier(
        **plain(size, n_estimators=3, learning_rate=0.4, categorical_features=CATEGORICAL)
    ).fit(data.X, data.y, data.weights)
    F = first_margin(data)
    for _ in range(3):
        F = F + 0.4 * newton_tree(data.X, *derivatives(data, F), size.get("max_depth", 1))
    np.testing.assert_allclose(ours.decision_function(data.X), F, atol=2e-6)


def test_a_single_category_goes_left_where_that_is_asked_for():
    data = classes()
    params = {"categorical_features": CATEGORICAL, "max_depth": 3, "n_estimators": 5}
    sets = BoostingClassifier(**plain(params)).fit(data.X, data.y).model_.subsets
    single = (
        BoostingClassifier(**plain(params, categorical_split="single")).fit(data.X, data.y).model_
    )
    assert max(int(word).bit_count() for word in sets[:, 0]) > 1
    assert all(sum(int(word).bit_count() for word in row) == 1 for row in single.subsets)


@every_kind
def test_a_category_needs_one_split_where_numbers_need_many(kind):
    x = np.random.default_rng(0).integers(8, size=(200, 1)).astype(float)
    y = (x[:, 0] % 2).astype(int)
    params = {"n_estimators": 1, "learning_rate": 1.0, "max_depth": 8}
    as_sets = kind(**plain(params, categorical_features=[0])).fit(x, y)
    as_numbers = kind(**plain(params)).fit(x, y)
    assert as_sets.model_.n_leaves() == 2
    assert as_numbers.model_.n_leaves() == 8


@pytest.mark.parametrize(("n_categories", "max_bins"), [(200, 255), (700, None)])
def test_many_categories_have_more_than_one_word(n_categories, max_bins):
    rng = np.random.default_rng(1)
    x = rng.integers(n_categories, size=4000).astype(float)[:, None]
    y = (rng.random(n_categories) < 0.5)[x[:, 0].astype(int)]
    params = {"n_estimators": 2, "categorical_features": [0], "max_bins": max_bins}
    found = BoostingClassifier(**plain(params)).fit(x, y)
    with use_engine("reference"):
        assert BoostingClassifier(**plain(params)).fit(x, y).model_ == found.model_
    assert found.model_.subsets.shape[1] >= n_categories // 64
    assert found.score(x, y) == 1.0


def test_a_rare_category_among_many_rows_is_told_from_all_others():
    n = SAMPLE_ROWS + 1000
    x = 2.0 * (np.arange(n) % 2)
    rare = np.setdiff1d(np.arange(n), sample_positions(n))[0]  # a sample for edges lacks it
    x[rare] = 1.0
    model = BoostingRegressor(
        n_estimators=1,
        learning_rate=1.0,
        categorical_features=[0],
        max_depth=1,
        early_stopping=False,
    )
    model.fit(x[:, None], np.where(x == 1.0, 1000.0, 0.0))
    np.testing.assert_allclose(model.predict([[0.0], [1.0], [2.0]]), [0.0, 1000.0, 0.0], atol=1e-3)


def test_missing_categories_learn_a_side_and_unknown_ones_take_it():
    data = mixed()
    gone = np.isnan(data.X[:, 3])
    y = data.y + 4.0 * gone
    model = BoostingRegressor(
        **plain(categorical_features=CATEGORICAL, max_depth=3, n_estimators=30)
    )
    model.fit(data.X, y)
    assert np.mean((model.predict(data.X) - y)[gone] ** 2) < 0.5
    strange = data.X.copy()
    for other in (77.0, -1.0, 2.5, 1e300):
        strange[gone, 3] = other
        np.testing.assert_array_equal(model.predict(strange), model.predict(data.X))
    strange[:, 2] = 5.0
    absent = data.X.copy()
    absent[:, 2] = np.nan
    np.testing.assert_array_equal(model.predict(strange), model.predict(absent))


def test_numbers_beside_categories_stay_monotone():
    data = mixed()
    model = BoostingRegressor(
        **plain(
            categorical_features=CATEGORICAL,
            max_depth=4,
            n_estimators=20,
            monotonic_cst=[1, 0, 0, 0],
        )
    ).fit(data.X, data.y)
    rows = data.X[:30].repeat(25, axis=0)
    rows[:, 0] = np.tile(np.linspace(-3.0, 3.0, 25), 30)
    steps = np.diff(model.predict(rows).reshape(30, 25), axis=1)
    assert (steps >= 0.0).all()
    assert (steps > 0.0).any()


# --- single splits -----------------------------------------------------------------------------


@every_kind
def test_stumps_of_categories_are_trees_of_depth_one(kind):
    data = data_for(kind)
    params = {"n_estimators": 6, "categorical_features": CATEGORICAL}
    model = kind(**plain(params)).fit(data.X, data.y).model_
    assert isinstance(model, Forest)
    assert {model.depth(t) for t in range(6)} == {1}
    for size in ({"max_depth": 1}, {"max_leaf_nodes": 2}):
        assert kind(**plain(params, **size)).fit(data.X, data.y).model_ == model
    assert isinstance(kind(n_estimators=2, max_depth=1).fit(data.X, data.y).model_, AdditiveModel)


@every_kind
@pytest.mark.parametrize("given", [None, "from_dtype", [], [False] * 4], ids=str)
def test_a_choice_of_no_feature_changes_nothing(kind, given):
    data = data_for(kind)
    plain = kind(n_estimators=3).fit(data.X, data.y).model_
    assert kind(n_estimators=3, categorical_features=given).fit(data.X, data.y).model_ == plain


def test_the_exponential_loss_of_categories_is_boosted_by_trees():
    data = classes()
    model = BoostingClassifier(
        "exponential",
        categorical_features=CATEGORICAL,
        n_estimators=30,
        callbacks=[lambda info: None],
        max_depth=1,
    ).fit(data.X, data.y)
    assert isinstance(model.model_, Forest)
    assert model.history_.training[-1] < 0.8 * model.history_.training[0]


def test_discrete_stumps_of_categories_are_refused():
    data = classes()
    model = BoostingClassifier(stump="discrete", step="line_search", n_estimators=2, max_depth=1)
    with pytest.raises(ValueError, match=r"stump='discrete'.*categorical_features.*\[2, 3\]"):
        model.set_params(categorical_features=CATEGORICAL).fit(data.X, data.y)
    assert model.set_params(categorical_features=None).fit(data.X, data.y).n_estimators_ == 2


# --- as good as histogram gradient boosting ----------------------------------------------------


@cache
def many(n: int = 6000) -> tuple[np.ndarray, np.ndarray]:
    """Twelve and thirty categories whose numbers say nothing, two numbers, noise."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, 4))
    X[:, 2], X[:, 3] = rng.integers(12, size=n), rng.integers(30, size=n)
    a, b = rng.normal(size=12), rng.normal(size=30)
    c, d = X[:, 2].astype(int), X[:, 3].astype(int)
    y = a[c] + b[d] + 0.5 * (c < 6) * X[:, 0] + 0.5 * X[:, 1]
    return X, y + 0.5 * rng.normal(size=n)


SIZES = [{"max_depth": 3}, {"max_leaf_nodes": 8}]
PEER = {
    "max_depth": None, "max_leaf_nodes": None, "min_samples_leaf": 1, "early_stopping": False,
    "max_iter": 40, "categorical_features": CATEGORICAL,
}  # fmt: skip


def on_half(ours: Any, peer: Any, y: np.ndarray, score: Callable[..., float]) -> list[float]:
    """Scores on the other half of the rows."""
    X, half = many()[0], len(y) // 2
    with threadpool_limits(1):
        models = [model.fit(X[:half], y[:half]) for model in (ours, peer)]
    rest = slice(half, None)
    return [score(y[rest], getattr(m, "predict_proba", m.predict)(X[rest])) for m in models]


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_log_loss_is_that_of_hist_gradient_boosting(size):
    y = (many()[1] > 0.0).astype(np.int64)
    ours = BoostingClassifier(
        **plain(size, n_estimators=40, categorical_features=CATEGORICAL, n_jobs=1)
    )
    found = on_half(ours, HistGradientBoostingClassifier(**PEER | size), y, log_loss)
    assert found[0] == pytest.approx(found[1], rel=0.03)
    blind = clone(ours).set_params(categorical_features=None)
    assert on_half(blind, ours, y, log_loss)[0] > 1.1 * found[0]


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_squared_error_is_that_of_hist_gradient_boosting(size):
    y = many()[1]
    ours = BoostingRegressor(
        **plain(size, n_estimators=40, categorical_features=CATEGORICAL, n_jobs=1)
    )
    found = on_half(ours, HistGradientBoostingRegressor(**PEER | size), y, mean_squared_error)
    assert found[0] == pytest.approx(found[1], rel=0.03)


# --- one model, bit for bit --------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """What is fitted; `n_classes` is None for a regression."""

    loss: str
    n_classes: int | None
    params: dict[str, Any] = field(hash=False)
    weighted: bool = False
    n: int = 130

    def __str__(self) -> str:
        return f"{self.loss}, {self.n_classes or 'no'} classes, {self.params}"

    def estimator(self, **more: Any) -> Any:
        kind = BoostingRegressor if self.n_classes is None else BoostingClassifier
        params = {"n_estimators": 4, "categorical_features": CATEGORICAL, "learning_rate": 0.5}
        return kind(self.loss, **{**params, **self.params, **more})

    @property
    def data(self) -> Data:
        data = mixed(self.n, self.n_classes)
        if self.loss == "poisson":
            data = replace(data, y=np.abs(data.y))
        return data.with_weights() if self.weighted else data

    def fit(self, data: Data | None = None, **more: Any) -> Any:
        data = data or self.data
        return self.estimator(**more).fit(data.X, data.y, data.weights)


@cache
def standard(case: Case) -> str:
    """Fingerprint on the CPU engine, one thread."""
    found = case.fit(n_jobs=1)
    assert found.engine_ == "cpu"
    assert (found.model_.nodes.subset >= 0).any()
    return found.model_.fingerprint()


DRAWN = {"max_depth": 4, "max_features": 2, "subsample": 0.6, "random_state": 3}
CASES = [
    Case("logistic", 2, {"max_depth": 3}),
    Case("logistic", 2, {}, weighted=True),
    Case("logistic", 3, {"max_leaf_nodes": 6}, weighted=True),
    Case("exponential", 2, {"max_depth": 2, "categorical_split": "single"}),
    Case("hinge", 2, {"max_depth": 3, "step": "line_search"}),
    Case("logistic", 2, DRAWN),
    Case("squared", None, {"max_depth": 3}, weighted=True),
    Case("squared", None, {}),
    Case("squared", None, DRAWN),
    Case("huber", None, {"max_leaf_nodes": 7, "min_samples_leaf": 5, "max_bins": None}),
    Case("poisson", None, {"max_depth": 3, "step": "newton"}, weighted=True),
]
FEW = [CASES[1], CASES[2], CASES[8]]
every_case = pytest.mark.parametrize("case", CASES, ids=str)


@every_case
def test_the_reference_engine_gives_the_model_of_the_cpu_engine(case):
    with use_engine("reference"):
        found = case.fit()
    assert found.engine_ == "reference"
    assert found.model_.fingerprint() == standard(case)


@every_case
def test_packed_gradients_give_one_model_on_both_engines(case, monkeypatch):
    monkeypatch.setattr(integers, "FINE_ROWS", 0)  # the format for many rows
    here = case.fit().model_
    with use_engine("reference"):
        assert case.fit().model_ == here


@pytest.mark.slow
@pytest.mark.parametrize("form", ["fine", "packed"])
@every_case
def test_threads_and_kept_sums_do_not_change_the_model(case, form, monkeypatch):
    monkeypatch.setattr(integers, "FINE_ROWS", 0 if form == "packed" else 10**6)
    alone = case.fit(n_jobs=1).model_
    monkeypatch.setattr(cpu_grower, "KEEP_ROWS", 8)
    for module in (cpu_engine, cpu_grower):
        monkeypatch.setattr(module, "CELLS_PER_THREAD", 1)
    for n_jobs in (1, 2, 4):
        assert case.fit(n_jobs=n_jobs).model_ == alone


@pytest.mark.parametrize("case", FEW, ids=str)
def test_every_namespace_and_device_gives_the_same_model(place: Place, case):
    data = case.data
    X = place.put(data.X)
    found = case.estimator().fit(X, place.put(data.y), place.put(data.weights))
    assert found.model_.fingerprint() == standard(case)
    predicted = found.predict(X)
    place.check(predicted, "float64" if case.n_classes is None else "int64")
    np.testing.assert_array_equal(place.host(predicted), case.fit().predict(data.X))


@pytest.mark.interop
@pytest.mark.parametrize("case", FEW, ids=str)
def test_torch_and_jax_give_the_model_of_numpy_and_get_their_own_arrays(library, case, engine):
    data = case.data
    X = library.put(data.X)
    found = case.estimator().fit(X, library.put(data.y), library.put(data.weights))
    assert found.engine_ == engine
    assert found.model_.fingerprint() == standard(case)
    library.check(found.predict(X), "float64" if case.n_classes is None else "int64")


@pytest.mark.parametrize("case", [c for c in CASES if "subsample" not in c.params], ids=str)
def test_the_order_of_the_rows_and_the_width_of_floats_do_not_change_the_model(case):
    data, order = case.data, np.random.default_rng(10).permutation(case.n)
    weights = None if data.weights is None else data.weights[order]
    shuffled = Data(data.X[order].astype(np.float32), data.y[order], weights)
    assert case.fit(shuffled).model_.fingerprint() == standard(case)


@pytest.mark.parametrize("case", [c for c in CASES if c.weighted], ids=str)
def test_a_row_of_weight_zero_is_as_if_absent(case):
    data = case.data
    kept = data.weights > 0.0
    X = data.X.copy()
    X[~kept, 2] = 7.5  # not even its category counts
    rest = Data(data.X[kept], data.y[kept], data.weights[kept])
    assert case.fit(replace(data, X=X)).model_ == case.fit(rest).model_


# --- frames ------------------------------------------------------------------------------------

COLOURS = np.array(["red", "green", "blue", "grey", "pink"], dtype=object)


def table(data: Data) -> dict[str, Any]:
    """Columns by name, labels in place of the categories, None where one is missing."""
    letters = np.array([*"abcdefghi", None], dtype=object)
    number = np.nan_to_num(data.X[:, 3], nan=9).astype(int)
    return {
        "size": data.X[:, 0], "age": data.X[:, 1], "colour": COLOURS[data.X[:, 2].astype(int)],
        "letter": letters[number],
    }  # fmt: skip


def pandas_frame(data: Data) -> pd.DataFrame:
    return pd.DataFrame(table(data)).astype({"colour": "category", "letter": "category"})


def polars_frame(data: Data) -> pl.DataFrame:
    kinds = {"colour": pl.Categorical, "letter": pl.Categorical}
    return pl.DataFrame(
        [pl.Series(name, list(c), dtype=kinds.get(name)) for name, c in table(data).items()]
    )


@every_kind
@pytest.mark.parametrize("size", [{}, {"max_depth": 3}], ids=str)
def test_frames_give_the_same_model_and_predictions_as_their_codes(kind, size):
    data = data_for(kind)
    params = {"n_estimators": 5, **size}
    frames = pandas_frame(data), polars_frame(data)
    fits = [kind(**plain(params)).fit(frame, data.y) for frame in frames]
    assert fits[0].model_ == fits[1].model_
    assert list(fits[0].feature_names_in_) == ["size", "age", "colour", "letter"]
    sorted_place = np.argsort(np.argsort(COLOURS))  # a label's number is its place when sorted
    X = data.X.copy()
    X[:, 2] = sorted_place[X[:, 2].astype(int)]
    codes = kind(**plain(params, categorical_features=CATEGORICAL)).fit(X, data.y)
    assert codes.model_ == fits[0].model_
    for frame, fitted in product(frames, fits):
        np.testing.assert_array_equal(fitted.predict(frame), codes.predict(X))
    stages = list(fits[0].staged_predict(frames[1]))
    assert len(stages) == 5
    np.testing.assert_array_equal(stages[-1], codes.predict(X))


@every_kind
def test_names_indices_and_a_mask_choose_the_same_features(kind):
    data = data_for(kind)
    frame = pd.DataFrame(data.X, columns=list("abcd"))
    choices: list[tuple[Any, Any]] = [
        (CATEGORICAL, data.X), (np.array([3, 2]), data.X), ([False, False, True, True], data.X),
        (["c", "d"], frame), (["d", "c"], pl.DataFrame(frame)), (CATEGORICAL, data.X.tolist()),
    ]  # fmt: skip
    models = [
        kind(**plain({"max_depth": 2}, categorical_features=given, n_estimators=3))
        .fit(X, data.y)
        .model_
        for given, X in choices
    ]
    assert len({model.fingerprint() for model in models}) == 1


@every_kind
def test_unknown_labels_are_treated_as_missing_and_the_order_of_labels_is_not_looked_at(kind):
    data = data_for(kind)
    frame = pandas_frame(data)
    model = kind(max_depth=3, n_estimators=5).fit(frame, data.y)
    unknown = frame.assign(colour=pd.Categorical(["mauve"] * len(frame)))
    missing = frame.assign(colour=pd.Categorical([None] * len(frame), categories=COLOURS))
    np.testing.assert_array_equal(model.predict(unknown), model.predict(missing))
    other = frame.assign(colour=frame["colour"].cat.set_categories(["x", *COLOURS[::-1]]))
    np.testing.assert_array_equal(model.predict(other), model.predict(frame))


@every_kind
def test_a_frame_with_other_columns_is_refused(kind):
    data = data_for(kind)
    frame = pandas_frame(data)
    model = kind(max_depth=3, n_estimators=3).fit(frame, data.y)
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[["colour", "letter", "size", "age"]])
    with pytest.raises(ValueError, match=r"X_val: .*feature names should match"):
        model.fit(frame, data.y, X_val=frame[["colour", "letter", "size", "age"]], y_val=data.y)


@every_kind
def test_a_second_fit_forgets_the_labels_of_the_first(kind):
    data = data_for(kind)
    model = kind(max_depth=2, n_estimators=3)
    plain = model.fit(data.X, data.y).model_
    model.fit(pandas_frame(data), data.y)
    assert model.fit(data.X, data.y).model_ == plain
    assert model.predict(data.X).shape == data.y.shape


# --- stages, watching, scikit-learn ------------------------------------------------------------


@every_kind
def test_stages_are_the_first_rounds_to_the_last_bit(kind):
    data = data_for(kind)
    params = {"max_depth": 3, "categorical_features": CATEGORICAL}
    model = kind(**plain(params, n_estimators=5)).fit(data.X, data.y)
    for n, stage in enumerate(model.staged_predict(data.X), 1):
        fewer = kind(**plain(params, n_estimators=n)).fit(data.X, data.y)
        np.testing.assert_array_equal(stage, fewer.predict(data.X))
        assert model.model_.first(n) == fewer.model_


@pytest.mark.parametrize("frame", [pandas_frame, polars_frame, None])
def test_validation_losses_are_those_of_the_stages(frame, engine):
    train, other = classes(200), mixed(100, 2, seed=5)
    other.X[:20, 2] = 4.0
    train = Data(*(a[train.X[:, 2] != 4.0] for a in (train.X, train.y)))  # unknown in training
    params: dict[str, Any] = {} if frame else {"categorical_features": CATEGORICAL}
    X, X_val = (frame(d) if frame else d.X for d in (train, other))
    model = BoostingClassifier(
        **plain(
            params,
            max_depth=3,
            early_stopping=True,
            n_estimators=60,
            learning_rate=0.5,
            n_iter_no_change=4,
        )
    ).fit(X, train.y, X_val=X_val, y_val=other.y)
    history = model.validation_loss_
    assert model.n_estimators_ == len(model.model_) == history.argmin() + 1 < 60
    stages = [log_loss(other.y, p) for p in model.staged_predict_proba(X_val)]
    np.testing.assert_allclose(history[: len(stages)], stages, rtol=1e-9)


def test_categories_of_rows_that_are_held_out_are_unknown():
    data = mixed()
    X = data.X.copy()
    X[0, 2] = 9.0  # one row of its own kind: held out with some seed
    items, none = items_of(row_keys(data.y, X), None), np.zeros(300, dtype=np.int64)
    seed = next(s for s in range(100) if 0 in stratified_holdout(none, items, 1, 0.1, s))
    held_out = stratified_holdout(none, items, 1, 0.1, seed)
    params = {"max_depth": 3, "categorical_features": CATEGORICAL, "random_state": seed}
    stopped = plain(params, n_estimators=40, early_stopping=True)
    model = BoostingRegressor(**stopped).fit(X, data.y)
    rest = np.delete(np.arange(300), held_out)
    alone = BoostingRegressor(**plain(params, n_estimators=model.n_estimators_)).fit(
        X[rest], data.y[rest]
    )
    assert model.model_ == alone.model_
    assert 9.0 not in model.model_.categories[2]


@pytest.mark.parametrize("kind_of_rows", ["labels", "codes"])
def test_callbacks_are_told_which_categories_go_left(kind_of_rows):
    data, seen = classes(), []
    X: Any = pandas_frame(data) if kind_of_rows == "labels" else data.X
    given = "from_dtype" if kind_of_rows == "labels" else CATEGORICAL
    model = BoostingClassifier(
        **plain(max_depth=2, n_estimators=12, callbacks=[seen.append], categorical_features=given)
    ).fit(X, data.y)
    forest = model.model_
    roots = forest.nodes.subset[forest.starts] >= 0
    assert 0 < roots.sum() < len(seen)
    known = {
        "labels": {2: sorted(COLOURS), 3: list("abcdefghi")},
        "codes": {2: list(range(5)), 3: list(range(9))},
    }[kind_of_rows]
    for start, by_category, info in zip(forest.starts, roots, seen, strict=True):
        assert info.feature == forest.nodes.feature[start]
        np.testing.assert_equal(info.threshold, forest.nodes.threshold[start])
        if by_category:
            assert np.isnan(info.threshold)
            word = int(forest.subsets[forest.nodes.subset[start], 0])
            names = known[info.feature]
            assert info.categories == [n for c, n in enumerate(names) if word >> c & 1]
            assert 0 < len(info.categories) < len(names)
        else:
            assert info.categories is None


@every_kind
def test_importances_are_shares_and_a_category_without_effect_has_little(kind):
    data = data_for(kind, 600)
    X = np.column_stack([data.X, np.random.default_rng(0).integers(3, size=600)])
    model = kind(max_depth=2, n_estimators=20, categorical_features=[2, 3, 4]).fit(X, data.y)
    shares = model.feature_importances_
    assert shares.sum() == pytest.approx(1.0)
    assert shares[2] > 0.3
    assert shares[4] < 0.05


@every_kind
def test_a_pickle_predicts_the_same_and_a_clone_has_no_model(kind):
    data = data_for(kind)
    frame = pandas_frame(data)
    model = kind(max_depth=3, n_estimators=3, categorical_features=["colour", "letter"])
    model.fit(frame, data.y)
    copy = pickle.loads(pickle.dumps(model))
    assert copy.model_ == model.model_
    np.testing.assert_array_equal(copy.predict(frame), model.predict(frame))
    fresh = clone(model)
    assert fresh.get_params() == model.get_params()
    with pytest.raises(NotFittedError):
        fresh.predict(frame)


@every_kind
def test_parameters_and_defaults_are_those_of_trees(kind):
    tree = DecisionTreeClassifier().get_params()
    for name in ("categorical_features", "categorical_split"):
        assert kind().get_params()[name] == tree[name]


CHECKED = [
    BoostingClassifier(
        categorical_features=[], categorical_split="single", n_estimators=5, max_depth=1
    ),
    BoostingRegressor(**plain(categorical_features=None, max_leaf_nodes=5, n_estimators=10)),
]


@each_setting(CHECKED)
@all_when_long
def test_the_checks_of_scikit_learn_for_models_pass(estimator, first, others):
    assert_checks_pass(estimator, others=others)


# --- bad input ---------------------------------------------------------------------------------

GOOD = mixed(60, 2)
THIRD = np.array([0.0, 0.0, 1.0, 0.0])

BAD: dict[str, Callable[[], Bad]] = {
    "a code that is no integer": lambda: Bad(
        ("feature 0", "out of range", "integers from 0 to 254"),
        params={"categorical_features": [0]},
    ),
    "a negative code": lambda: Bad(
        ("feature 2", "-1", "out of range", "0 to 254"), X=GOOD.X - THIRD,
        params={"categorical_features": [2]},
    ),
    "a code out of range": lambda: Bad(
        ("feature 2", "254 (max_bins=255)"), X=GOOD.X + 252.0 * THIRD,
        params={"categorical_features": [2]},
    ),
    "a code beyond the bins on a device": lambda: Bad(
        ("feature 2", "out of range", "max_bins=3"), on(1, GOOD.X), on(1, GOOD.y),
        params={"categorical_features": [2], "max_bins": 3},
    ),
    "a feature that X does not have": lambda: Bad(
        ("categorical_features", "[7]", "0 to 3"), params={"categorical_features": [1, 7]}
    ),
    "a name where X has none": lambda: Bad(
        ("categorical_features", "'colour'", "no column names"),
        params={"categorical_features": ["colour"]},
    ),
    "a name of no column": lambda: Bad(
        ("categorical_features", "['hue']", "'colour'"), X=pandas_frame(GOOD),
        params={"categorical_features": ["colour", "hue"]},
    ),
    "a mask of another length": lambda: Bad(
        ("categorical_features", "mask of 2", "4 features"),
        params={"categorical_features": [True, False]},
    ),
    "a word": lambda: Bad(
        ("categorical_features", "'from_dtype'", "'auto'"), params={"categorical_features": "auto"}
    ),
    "a constraint for a category": lambda: Bad(
        ("monotonic_cst", "categorical", "[3]"),
        params={"categorical_features": [2, 3], "monotonic_cst": [1, 0, 0, -1]},
    ),
    "another split": lambda: Bad(
        ("categorical_split", "'subset', 'single'", "'all'"), params={"categorical_split": "all"}
    ),
    "more labels than bins": lambda: Bad(
        ("'letter'", "9 categories", "max_bins=5"), X=pandas_frame(GOOD), params={"max_bins": 5}
    ),
    "a missing label where it is refused": lambda: Bad(
        ("X", "NaN", "missing='error'"), X=pandas_frame(GOOD), params={"missing": "error"}
    ),
}  # fmt: skip


@pytest.mark.slow
@every_kind
@pytest.mark.parametrize("size", [{}, {"max_depth": 3}], ids=str)
@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_named_and_leaves_a_fitted_estimator_as_it_was(case, size, kind):
    bad = BAD[case]()
    fresh = kind(**plain(size, n_estimators=2))
    with pytest.raises(bad.error) as caught:
        bad.fit(fresh, GOOD.X, GOOD.y)
    for text in bad.says:
        assert text in str(caught.value)
    assert "\n" not in str(caught.value)
    assert set(vars(fresh)) == set(kind().get_params())
    fitted = kind(**plain(size, n_estimators=2)).fit(pandas_frame(GOOD), GOOD.y)
    before, predicted = fitted_state(fitted), fitted.predict(pandas_frame(GOOD))
    with pytest.raises(bad.error):
        bad.fit(fitted, GOOD.X, GOOD.y)
    assert fitted_state(fitted) == before
    fitted.set_params(missing="abstain")
    np.testing.assert_array_equal(fitted.predict(pandas_frame(GOOD)), predicted)


@every_kind
def test_numbers_in_place_of_labels_are_refused(kind):
    data = data_for(kind)
    model = kind(max_depth=2, n_estimators=2).fit(pandas_frame(data), data.y)
    with pytest.raises(ValueError, match=r"fitted with labels such as 'blue'; got numbers"):
        model.predict(data.X)
