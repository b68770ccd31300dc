"""One tree, bit for bit: over engines, namespaces, devices, threads, layouts and data types."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from ensemble_gpu import use_engine
from ensemble_gpu.bagging.random_forest import RandomForestClassifier, RandomForestRegressor
from ensemble_gpu.kernels.cpu.trees import grower, whole_grower
from ensemble_gpu.trees.tree import DecisionTreeClassifier, DecisionTreeRegressor
from tests.datasets import ADVERSARIAL, Data, random_data
from tests.places import DEVICE, NARROW, Place
from tests.products import every_pair

TREE, FOREST = (
    {"class": DecisionTreeClassifier, "real": DecisionTreeRegressor},
    {"class": RandomForestClassifier, "real": RandomForestRegressor},
)

# name -> kind of target, number of classes, parameters
TREES: dict[str, tuple[str, int, dict[str, Any]]] = {
    "gini": ("class", 2, {}),
    "gini, 5 classes": ("class", 5, {}),
    "entropy": ("class", 2, {"criterion": "entropy"}),
    "entropy of leaves": ("class", 5, {"criterion": "entropy", "min_samples_leaf": 3}),
    "small leaves": ("class", 2, {"min_samples_leaf": 4}),
    "weight of leaves": ("class", 2, {"min_weight_fraction_leaf": 0.03}),
    "weight of leaves of a regression": ("real", 2, {"min_weight_fraction_leaf": 0.03}),
    "error": ("class", 2, {"criterion": "error"}),
    "error, 3 classes": ("class", 3, {"criterion": "error"}),
    "squared": ("real", 2, {}),
    "squared, small leaves": ("real", 2, {"min_samples_leaf": 4}),
    "poisson": ("real", 2, {"criterion": "poisson"}),
    "drawn features": ("class", 2, {"max_features": 2}),
    "drawn features, 5 classes": ("class", 5, {"max_features": "sqrt"}),
    "random thresholds": ("class", 2, {"splitter": "random"}),
    "random thresholds of drawn features": ("real", 2, {"splitter": "random", "max_features": 2}),
    "categories": ("class", 2, {"categorical_features": [5]}),
    "categories, 5 classes": ("class", 5, {"categorical_features": [5]}),
    "categories of a regression": ("real", 2, {"categorical_features": [5]}),
    "single categories": ("class", 3, {"categorical_features": [5], "categorical_split": "single"}),
    "random categories": ("class", 3, {"categorical_features": [5], "splitter": "random"}),
    "best first": ("class", 2, {"max_leaf_nodes": 9}),
    "best first regression": ("real", 2, {"max_leaf_nodes": 9}),
    "pruned": ("class", 3, {"ccp_alpha": 0.01}),
    "pruned regression": ("real", 2, {"ccp_alpha": 0.01}),
    "gain": ("real", 2, {"min_impurity_decrease": 0.01}),
    "monotone": ("class", 2, {"monotonic_cst": [1, 0, 0, -1, 0, 0]}),
    "monotone regression": ("real", 2, {"monotonic_cst": [1, 0, 0, -1, 0, 0]}),
    "balanced": ("class", 3, {"class_weight": "balanced"}),
    "few bins": ("class", 2, {"max_bins": 7}),
    "exact": ("real", 2, {"max_bins": None}),
}  # fmt: skip

FORESTS: dict[str, tuple[str, int, dict[str, Any]]] = {
    "forest": ("class", 2, {}),
    "forest, 5 classes": ("class", 5, {"criterion": "entropy"}),
    "regression forest": ("real", 2, {"max_features": 3}),
    "poisson forest": ("real", 2, {"criterion": "poisson"}),
    "extra trees": ("class", 3, {"splitter": "random", "bootstrap": False}),
    "balanced bags": ("class", 3, {"class_weight": "balanced_subsample"}),
    "half of the rows": ("class", 2, {"max_samples": 0.5, "max_leaf_nodes": 12}),
    "forest with categories": ("class", 3, {"categorical_features": [5]}),
    "out of bag": ("real", 2, {"oob_score": True, "n_estimators": 16}),
}

CASES = {**TREES, **FORESTS}
every_case = pytest.mark.parametrize("case", CASES)


@cache
def data_of(case: str, n: int = 150) -> Data:
    """Weights and holes in every other case; the last feature holds few distinct values."""
    kind, n_classes, _ = CASES[case]
    number = list(CASES).index(case)
    data = random_data(n_classes, n=n)
    data.X[:, 5] -= data.X[:, 5].min()
    if kind == "real":
        y = np.abs(data.X[:, 0] * 3.0 + data.y + np.sin(np.arange(n)))
        data = replace(data, y=y.astype(np.float32).astype(np.float64))
    data = data.with_weights() if number % 3 == 0 else data
    return data.with_missing() if number % 2 == 0 else data


def estimator(case: str, **more: Any) -> Any:
    kind, _, params = CASES[case]
    if case in TREES:
        return TREE[kind](**{"random_state": 3, **params, **more})
    return FOREST[kind](**{"n_estimators": 4, "random_state": 3, **params, **more})


def fingerprint(case: str, data: Data | None = None, **more: Any) -> str:
    data = data or data_of(case)
    return estimator(case, **more).fit(data.X, data.y, data.weights).model_.fingerprint()


@cache
def standard(case: str) -> str:
    """On the CPU engine from C-ordered float64, one thread."""
    return fingerprint(case, n_jobs=1)


@every_case
def test_the_model_is_the_same_for_any_number_of_threads(case, monkeypatch):
    monkeypatch.setattr(grower, "CELLS_PER_THREAD", 10)
    assert {fingerprint(case, n_jobs=n_jobs) for n_jobs in (2, 4)} == {standard(case)}


@every_case
def test_the_reference_engine_gives_the_model_of_the_cpu_engine(case):
    with use_engine("reference"):
        assert fingerprint(case) == standard(case)


@pytest.mark.slow
@every_case
def test_a_device_gives_the_same_model_and_keeps_its_results(case):
    place = DEVICE
    data = data_of(case)
    X = place.put(data.X)
    found = estimator(case).fit(X, place.put(data.y), place.put(data.weights))
    assert found.engine_ == "reference"
    assert found.model_.fingerprint() == standard(case)
    host = estimator(case).fit(data.X, data.y, data.weights)
    place.check(found.predict(X), "float64" if CASES[case][0] == "real" else "int64")
    place.check(found.apply(X), "int64")
    np.testing.assert_array_equal(place.host(found.predict(X)), host.predict(data.X))
    np.testing.assert_array_equal(place.host(found.apply(X)), host.apply(data.X))
    if CASES[case][0] == "class":
        place.check(found.predict_proba(X), "float64")
        np.testing.assert_array_equal(
            place.host(found.predict_proba(X)), host.predict_proba(data.X)
        )


@pytest.mark.parametrize("case", ["gini", "squared", "categories, 5 classes", "forest"])
def test_every_namespace_and_device_gives_the_same_model(case, place: Place):
    data = data_of(case)
    found = estimator(case).fit(place.put(data.X), place.put(data.y), place.put(data.weights))
    assert found.model_.fingerprint() == standard(case)


@pytest.mark.parametrize("place", NARROW, ids=str)
@pytest.mark.parametrize("case", ["gini, 5 classes", "extra trees"])
def test_a_device_without_wide_types_gives_the_same_model_and_says_that_it_copies(case, place):
    data = random_data(CASES[case][1])
    X, y = place.put(data.X.astype(np.float32)), place.put(data.y.astype(np.int32))
    with pytest.warns(RuntimeWarning, match="copied to the host"):
        found = estimator(case).fit(X, y)
    assert found.model_.fingerprint() == fingerprint(case, data)
    with pytest.warns(RuntimeWarning, match="copied to the host"):
        assert found.predict_proba(X).device == X.device


@pytest.mark.interop
@pytest.mark.parametrize("case", [*list(CASES)[::4], "forest", "out of bag"])
def test_other_libraries_give_the_same_model_and_get_their_own_arrays(case, library):
    data = data_of(case)
    X, y = library.put(data.X), library.put(data.y)
    found = estimator(case).fit(X, y, library.put(data.weights))
    assert found.model_.fingerprint() == standard(case)
    library.check(found.predict(X), "float64" if CASES[case][0] == "real" else "int64")
    library.check(found.apply(X), "int64")


LAYOUTS = {
    "float32": lambda X: X.astype(np.float32),
    "Fortran order": np.asfortranarray,
    "big-endian": lambda X: X.astype(">f8"),
    "every other column": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
}


@every_pair(
    "case, layout, engine",
    ["gini", "poisson", "categories", "exact", "forest"],
    LAYOUTS,
    ["cpu", "reference"],
    indirect=["engine"],
)
def test_memory_layout_and_float_width_do_not_change_the_model(case, layout, engine):
    data = data_of(case)
    assert fingerprint(case, replace(data, X=LAYOUTS[layout](data.X))) == standard(case)


@every_case
def test_keeping_sums_for_the_sibling_does_not_change_the_model(case, monkeypatch):
    for module in (grower, whole_grower):
        monkeypatch.setattr(module, "KEEP_ROWS", 5)
    assert fingerprint(case, n_jobs=1) == standard(case)


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("case", ["gini", "gini, 5 classes", "squared", "best first", "categories"])
def test_large_nodes_keep_sums_and_give_the_model_of_the_reference_engine(case, n_jobs):
    data = data_of(case, n=9000)
    found = fingerprint(case, data, n_jobs=n_jobs, max_depth=5)
    with use_engine("reference"):
        assert fingerprint(case, data, max_depth=5) == found


@pytest.mark.parametrize(
    "case", ["gini", "squared, small leaves", "entropy", "best first", "categories", "monotone"]
)
def test_rows_moved_in_pieces_by_two_threads_give_the_model_of_the_reference_engine(case):
    data = data_of(case, n=20_000)
    found = fingerprint(case, data, n_jobs=2, max_depth=4)
    with use_engine("reference"):
        assert fingerprint(case, data, max_depth=4) == found


PAIRS = [
    "gini", "entropy", "error", "squared", "weight of leaves", "small leaves",
    "weight of leaves of a regression", "drawn features", "best first", "best first regression",
    "categories", "categories of a regression", "monotone", "monotone regression", "gain", "exact",
    "forest", "regression forest",
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("case", PAIRS)
@pytest.mark.parametrize("n", [150, 7000])
def test_the_kernel_for_pairs_gives_the_model_of_the_general_one(case, n, monkeypatch):
    data = data_of(case, n)
    fast = fingerprint(case, data, n_jobs=1)
    found = []
    is_plain, counting = grower.is_plain, whole_grower._counting_for

    def never_plain(*arguments: Any) -> bool:
        found.append(is_plain(*arguments))
        return False

    def never_counted(*arguments: Any) -> None:
        found.append(counting(*arguments) is not None)

    monkeypatch.setattr(grower, "is_plain", never_plain)
    monkeypatch.setattr(whole_grower, "_counting_for", never_counted)
    assert fingerprint(case, data, n_jobs=1) == fast
    assert any(found)


@pytest.mark.slow
@pytest.mark.parametrize("name", ADVERSARIAL)
@pytest.mark.parametrize(
    "params",
    [
        {},
        {"min_samples_leaf": 5},
        {"criterion": "entropy", "max_features": 2},
        {"criterion": "error"},
    ],
    ids=str,
)
def test_engines_agree_on_adversarial_data(name, params):
    data = ADVERSARIAL[name]()
    fits = []
    for engine in ("cpu", "reference"):
        with use_engine(engine):
            tree = DecisionTreeClassifier(random_state=0, **params)
            fits.append(tree.fit(data.X, data.y, data.weights))
    assert fits[0].model_ == fits[1].model_
    for engine in ("cpu", "reference"):
        with use_engine(engine):
            p = fits[0].predict_proba(data.X)
            np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-12)


@pytest.mark.slow
@every_pair("name, criterion, min_rows", ADVERSARIAL, ["squared_error", "poisson"], [1, 4])
def test_engines_agree_on_adversarial_regressions(name, criterion, min_rows):
    data = ADVERSARIAL[name]()
    models = []
    for engine in ("cpu", "reference"):
        with use_engine(engine):
            tree = DecisionTreeRegressor(criterion=criterion, min_samples_leaf=min_rows)
            models.append(tree.fit(data.X, data.y, data.weights).model_)
    assert models[0] == models[1]
    assert np.isfinite(models[0].nodes.value).all()


@pytest.mark.slow
def test_out_of_bag_predictions_are_the_same_on_every_engine():
    data = data_of("out of bag")
    found = []
    for engine in ("cpu", "reference"):
        with use_engine(engine):
            forest = estimator("out of bag", n_estimators=20).fit(data.X, data.y, data.weights)
            found.append(forest)
    np.testing.assert_array_equal(found[0].oob_prediction_, found[1].oob_prediction_)
    assert found[0].oob_score_ == found[1].oob_score_


def test_another_seed_gives_another_forest_and_the_same_seed_the_same():
    data = data_of("forest")
    found = [fingerprint("forest", data, random_state=seed) for seed in (0, 0, 1)]
    assert found[0] == found[1]
    assert found[0] != found[2]
