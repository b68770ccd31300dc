"""One model, bit for bit: over engines, namespaces, devices, threads, layouts and data types."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from itertools import cycle, product
from typing import Any

import numpy as np
import pytest

from ensemble_gpu import AdaBoostClassifier, use_engine
from tests.datasets import ADVERSARIAL, Data, fingerprint, fit, random_data
from tests.places import DEVICE, NARROW, PLACES, Place
from tests.products import every_pair

VARIANTS = ["real", "discrete", "gentle"]
HOLES = ["none", "abstain", "learn"]


@cache
def make(n_classes: int, weighted: bool, holes: str, n: int = 250, p: int = 6) -> Data:
    data = random_data(n_classes, n=n, p=p)
    data = data.with_weights() if weighted else data
    return data if holes == "none" else data.with_missing()


@cache
def standard(variant: str, n_classes: int, weighted: bool, holes: str) -> str:
    """Fingerprint on the CPU engine from a C-ordered float64 NumPy array, one thread."""
    data = make(n_classes, weighted, holes)
    return fingerprint(data, n_jobs=1, **parameters(variant, holes))


def parameters(variant: str, holes: str) -> dict[str, Any]:
    return {"variant": variant, "missing": "abstain" if holes == "none" else holes}


def cases(chosen: Iterable[tuple[str, int, bool, str]]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(
        ("variant", "n_classes", "weighted", "holes"),
        list(chosen),
        ids=lambda value: (
            {True: "weighted", False: "unweighted"}.get(value, str(value))
            if isinstance(value, bool)
            else str(value)
        ),
    )


# Every variant with every kind of holes; classes and weights in turn, so that each meets each.
few_cases = cases(
    (variant, *more, holes)
    for (variant, holes), more in zip(
        product(VARIANTS, HOLES), cycle([(2, False), (5, True), (5, False), (2, True)])
    )
)


@every_pair("variant, n_classes, weighted, holes", VARIANTS, [2, 5], [False, True], HOLES)
def test_reference_engine_gives_the_model_of_the_cpu_engine(variant, n_classes, weighted, holes):
    with use_engine("reference"):
        found = fit(make(n_classes, weighted, holes), **parameters(variant, holes))
    assert found.engine_ == "reference"
    assert found.model_.fingerprint() == standard(variant, n_classes, weighted, holes)


@pytest.mark.slow
@every_pair(
    "place, variant, n_classes, weighted, holes", PLACES, VARIANTS, [2, 5], [False, True], HOLES
)
def test_every_namespace_and_device_gives_the_same_model(
    place: Place, variant, n_classes, weighted, holes
):
    data = make(n_classes, weighted, holes)
    estimator = AdaBoostClassifier(n_estimators=20, **parameters(variant, holes))
    estimator.fit(place.put(data.X), place.put(data.y), place.put(data.weights))
    assert estimator.engine_ == {"numpy": "cpu", "cupy": "cuda"}.get(place.name, "reference")
    assert estimator.model_.fingerprint() == standard(variant, n_classes, weighted, holes)


@pytest.mark.parametrize("place", NARROW, ids=str)
def test_a_device_without_wide_types_gives_the_same_model_and_says_that_it_copies(place):
    data = random_data()
    X, y = place.put(data.X.astype(np.float32)), place.put(data.y.astype(np.int32))
    with pytest.warns(RuntimeWarning, match=r"no 64-bit numbers: the array is copied to the host"):
        found = AdaBoostClassifier(n_estimators=20).fit(X, y)
    assert found.model_.fingerprint() == fingerprint(data)
    with pytest.warns(RuntimeWarning, match="copied to the host"):
        p = found.predict_proba(X)
    assert p.device == X.device
    assert p.dtype == X.dtype
    quiet = AdaBoostClassifier(n_estimators=20, device="cpu").fit(X, y)
    assert quiet.model_.fingerprint() == fingerprint(data)
    assert quiet.predict(X).device == X.device


def _strided(X: np.ndarray) -> np.ndarray:
    wide = np.full((2 * X.shape[0], 3 * X.shape[1]), -7.0)
    wide[1::2, ::3] = X
    return wide[1::2, ::3]


def _reversed(X: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(X[::-1, ::-1])[::-1, ::-1]


def _read_only(X: np.ndarray) -> np.ndarray:
    X = X.copy()
    X.flags.writeable = False
    return X


LAYOUTS = {
    "Fortran order": np.asfortranarray,
    "non-contiguous": _strided,
    "negative strides": _reversed,
    "read-only": _read_only,
    "float32": lambda X: X.astype(np.float32),
    "float32 in Fortran order": lambda X: np.asfortranarray(X.astype(np.float32)),
    "big-endian": lambda X: X.astype(">f8"),
}


@pytest.mark.parametrize(
    ("layout", "variant", "n_classes"),
    [(layout, *more) for layout, more in zip(LAYOUTS, cycle(product(VARIANTS, [2, 5])))],
)
def test_memory_layout_and_float_width_do_not_change_the_model(engine, layout, variant, n_classes):
    data = make(n_classes, True, "abstain")
    found = fit(Data(LAYOUTS[layout](data.X), data.y, data.weights), variant=variant)
    assert found.model_.fingerprint() == standard(variant, n_classes, True, "abstain")


@pytest.mark.slow
def test_float32_on_a_device_gives_the_model_of_its_float64_copy():
    place = DEVICE
    data = make(2, False, "learn")
    X = place.put(data.X.astype(np.float32))
    found = AdaBoostClassifier(n_estimators=20, missing="learn").fit(X, place.put(data.y))
    assert found.model_.fingerprint() == standard("real", 2, False, "learn")


@pytest.mark.slow
@few_cases
def test_model_is_the_same_for_any_thread_count(variant, n_classes, weighted, holes):
    data = make(n_classes, weighted, holes, n=12_000, p=9)
    params = {"n_estimators": 12, **parameters(variant, holes)}
    found = {fingerprint(data, n_jobs=n_jobs, **params) for n_jobs in (1, 2, 4, None)}
    assert len(found) == 1


@pytest.mark.slow
@pytest.mark.parametrize("variant", VARIANTS)
def test_reference_engine_agrees_on_data_that_the_cpu_engine_cuts_into_parts(variant):
    data = make(5, True, "learn", n=12_000, p=9)
    params = {"missing": "learn", "variant": variant, "n_estimators": 12}
    with use_engine("reference"):
        found = fingerprint(data, **params)
    assert found == fingerprint(data, **params)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("n_jobs", [2, 4])
def test_one_feature_shared_by_several_threads_gives_the_same_model(variant, n_jobs):
    rng = np.random.default_rng(8)
    X = rng.normal(size=(90_000, 1))
    data = Data(X, (np.sin(3 * X[:, 0]) + rng.normal(size=90_000) > 0).astype(int))
    assert fingerprint(data, variant=variant, n_jobs=n_jobs) == fingerprint(
        data, variant=variant, n_jobs=1
    )


@pytest.mark.long
@pytest.mark.parametrize(("n_classes", "missing"), [(2, "abstain"), (5, "learn")])
@pytest.mark.parametrize("variant", VARIANTS)
def test_few_rounds_are_the_first_of_many_on_both_engines(variant, n_classes, missing):
    data = make(n_classes, True, missing)
    params = {"variant": variant, "missing": missing}
    long = fit(data, **params, n_estimators=500).model_
    assert len(long.rounds) > 256  # past a requantisation
    many = min(len(long.rounds), 300)
    for engine, n in (("cpu", 50), ("reference", many)):
        with use_engine(engine):
            short = fit(data, **params, n_estimators=n).model_
        assert len(short.rounds) == n
        assert long.first(n).fingerprint() == short.fingerprint()


def assert_finite(estimator: AdaBoostClassifier, X: np.ndarray) -> None:
    model = estimator.model_
    for table in model.tables.values():
        assert np.isfinite(table.values).all()
        assert np.isfinite(table.missing).all()
    for array in (
        model.rounds.values, model.intercept, estimator.errors_, estimator.alphas_,
        estimator.feature_importances_, estimator.decision_function(X),
        estimator.predict_proba(X), estimator.predict_log_proba(X),
    ):  # fmt: skip
        assert np.isfinite(array).all()


# Where nothing is missing, what is done with missing values changes nothing.
ROUGH = [
    (name, variant, missing)
    for name, variant in product(ADVERSARIAL, VARIANTS)
    for missing in (["abstain", "learn"] if "missing" in name else ["abstain"])
]


@pytest.mark.long
@pytest.mark.parametrize(("name", "variant", "missing"), ROUGH)
def test_adversarial_data_gives_one_finite_model_on_all_engines(name, variant, missing):
    data = ADVERSARIAL[name]()
    params = {"variant": variant, "missing": missing, "n_estimators": 25}
    found = fit(data, **params)
    assert_finite(found, data.X)
    place = DEVICE
    there = AdaBoostClassifier(**params)
    there.fit(place.put(data.X), place.put(data.y), place.put(data.weights))
    assert there.engine_ == "reference"
    assert found.model_.fingerprint() == there.model_.fingerprint()
    float32 = Data(data.X.astype(np.float32), data.y, data.weights)
    if np.array_equal(float32.X, data.X, equal_nan=True):
        assert found.model_.fingerprint() == fingerprint(float32, **params)


def separable(n: int = 200) -> Data:
    """Separable by two features together and by no single stump."""
    rng = np.random.default_rng(9)
    X = rng.uniform(-1, 1, size=(n, 3))
    X = X[np.abs(X[:, 0] + X[:, 1]) > 0.1]
    return Data(X, (X[:, 0] + X[:, 1] > 0).astype(int))


@pytest.mark.parametrize(
    ("variant", "n_rounds"),
    [
        ("real", 5000), ("discrete", 1000), ("gentle", 1000),
        pytest.param("discrete", 5000, marks=pytest.mark.long),
        pytest.param("gentle", 5000, marks=pytest.mark.long),
    ],
)  # fmt: skip
def test_thousands_of_rounds_on_separable_data_stay_finite(variant, n_rounds):
    data = separable()
    found = fit(data, variant=variant, n_estimators=n_rounds)
    assert found.n_estimators_ == n_rounds
    assert found.score(data.X, data.y) == 1.0
    assert_finite(found, data.X)


@pytest.mark.long
def test_two_thousand_rounds_on_separable_data_are_the_same_on_the_reference_engine():
    data = separable(60)
    found = fingerprint(data, n_estimators=2000)
    with use_engine("reference"):
        assert found == fingerprint(data, n_estimators=2000)


def test_scaling_the_weights_by_a_power_of_two_does_not_change_the_model():
    data = make(2, True, "none")
    scaled = Data(data.X, data.y, data.weights * 2.0**-500)
    assert fingerprint(data) == fingerprint(scaled)


def test_a_row_of_weight_zero_is_as_if_absent():
    data = make(2, True, "none")
    kept = data.weights > 0
    assert fingerprint(data) == fingerprint(Data(data.X[kept], data.y[kept], data.weights[kept]))


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_order_of_the_rows_does_not_change_the_model(variant):
    data = make(5, True, "learn")
    order = np.random.default_rng(10).permutation(len(data.y))
    shuffled = Data(data.X[order], data.y[order], data.weights[order])
    params = {"variant": variant, "missing": "learn"}
    assert fingerprint(data, **params) == fingerprint(shuffled, **params)


def test_other_data_give_another_fingerprint():
    assert fingerprint(random_data()) != fingerprint(random_data(seed=1))
