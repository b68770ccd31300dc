"""The array-API calls that CuPy arrays go through exist in CuPy, keyword for keyword."""

from __future__ import annotations

import functools
import inspect
from typing import Any

import array_api_strict
import numpy as np
import pytest

from ensemble_gpu import AdaBoostClassifier, BoostingClassifier, BoostingRegressor
from ensemble_gpu.arrays.namespace import to_numpy

DEVICE = array_api_strict.Device("device1")
CASES: list[dict[str, Any]] = [
    {"variant": "real", "early_stopping": True, "random_state": 0},
    {"variant": "gentle", "missing": "learn"},
    {"variant": "discrete"},
    {"variant": "logit"},
]
CLASSIFIERS: list[dict[str, Any]] = [
    {"early_stopping": True, "random_state": 0},
    {"subsample": 0.5, "random_state": 0, "missing": "learn"},
    {"loss": "truncated_squared", "step": "line_search", "track_loss": True},
    {"loss": "hinge", "step": "constant", "stump": "discrete"},
    {"loss": "exponential", "step": "constant"},
    {"loss": "squared"},
]
REGRESSORS: list[dict[str, Any]] = [
    {"gram_memory": 0},
    {"early_stopping": True, "random_state": 0, "missing": "learn"},
    {"loss": "huber"},
    {"loss": "absolute"},
    {"loss": "quantile", "quantile": 0.3},
    {"loss": "poisson", "step": "newton"},
]


def data(n_classes: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    X[::7, 1] = np.nan
    return X, np.arange(60) % max(n_classes, 2), rng.gamma(1.0, size=60) * (np.arange(60) % 5 > 0)


def work(case: dict[str, Any], n_classes: int, put: Any) -> list[Any]:
    """Fit and predict; the results are arrays of X's namespace."""
    X, y, weights = (put(a) for a in data(n_classes))
    model = AdaBoostClassifier(n_estimators=4, max_bins=6, **case).fit(X, y, sample_weight=weights)
    return [model.predict_proba(X), model.predict(X), model.decision_function(X),
            *model.staged_predict_proba(X)]  # fmt: skip


def gradient_work(estimator: Any, case: dict[str, Any], n_classes: int, put: Any) -> list[Any]:
    X, y, weights = data(n_classes)
    y = np.abs(weights + y) if n_classes == 0 else y
    placed = [put(a) for a in (X, y, weights)]
    model = estimator(n_estimators=4, max_bins=6, **case)
    model.fit(placed[0], placed[1], sample_weight=placed[2])
    return [model.predict(placed[0]), *model.staged_predict(placed[0])]


def strict(array: np.ndarray) -> Any:
    return array_api_strict.asarray(array, device=DEVICE)


@pytest.fixture(scope="module")
def calls() -> dict[str, set[str]]:
    """Functions of the namespace that fits and predictions call, with their keywords.

    Strict arrays take the reference engine and every other line that CuPy arrays take.
    """
    noted: dict[str, set[str]] = {}

    def recording(name: str, function: Any) -> Any:
        @functools.wraps(function)
        def call(*args: Any, **keywords: Any) -> Any:
            noted.setdefault(name, set()).update(keywords)
            return function(*args, **keywords)

        return call

    with pytest.MonkeyPatch.context() as patch:
        for name, value in list(vars(array_api_strict).items()):
            if inspect.isfunction(value) and not name.startswith("_"):
                patch.setattr(array_api_strict, name, recording(name, value))
        for case in CASES:
            for n_classes in (2, 3):
                work(case, n_classes, strict)
        for case in CLASSIFIERS:
            for n_classes in (2, 3):
                gradient_work(BoostingClassifier, case, n_classes, strict)
        for case in REGRESSORS:
            gradient_work(BoostingRegressor, case, 0, strict)
    return noted


def test_every_call_exists_in_cupy_with_its_keywords(calls: dict[str, set[str]]) -> None:
    cupy_namespace = pytest.importorskip("array_api_compat.cupy")
    assert {"take", "sort", "searchsorted", "cumulative_sum", "argsort"} <= set(calls)
    for name, keywords in calls.items():
        function = getattr(cupy_namespace, name)
        if not keywords:
            continue
        parameters = inspect.signature(function).parameters
        open_ended = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
        assert open_ended or keywords <= set(parameters), name


def test_a_missing_keyword_would_be_noticed() -> None:
    cupy_namespace = pytest.importorskip("array_api_compat.cupy")
    assert "no_such_keyword" not in inspect.signature(cupy_namespace.argsort).parameters
    assert not hasattr(cupy_namespace, "no_such_function")


def test_cupy_arrays_have_the_methods_that_the_engine_uses() -> None:
    cupy = pytest.importorskip("cupy")
    for method in ("set", "get", "view", "__setitem__", "__cuda_array_interface__", "__dlpack__"):
        assert hasattr(cupy.ndarray, method), method
    for name in ("from_dlpack", "asarray", "ascontiguousarray", "empty", "get_default_memory_pool"):
        assert hasattr(cupy, name), name
    for name in ("get_current_stream", "Device", "is_available"):
        assert hasattr(cupy.cuda, name), name
    assert issubclass(cupy.cuda.memory.OutOfMemoryError, MemoryError)
    assert {"mem_info", "attributes"} <= set(dir(cupy.cuda.Device))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["variant"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_nothing_moves_silently_to_another_device(case: dict[str, Any], n_classes: int) -> None:
    """array-api-strict refuses to mix devices, so an array left on the default one would raise."""
    there, here = work(case, n_classes, strict), work(case, n_classes, np.asarray)
    assert len(there) == len(here)
    for ours, expected in zip(there, here, strict=True):
        assert ours.device == DEVICE
        np.testing.assert_array_equal(to_numpy(ours), expected)


@pytest.mark.parametrize("case", CLASSIFIERS, ids=str)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_no_gradient_of_a_classifier_moves(case: dict[str, Any], n_classes: int) -> None:
    there = gradient_work(BoostingClassifier, case, n_classes, strict)
    here = gradient_work(BoostingClassifier, case, n_classes, np.asarray)
    for ours, expected in zip(there, here, strict=True):
        assert ours.device == DEVICE
        np.testing.assert_array_equal(to_numpy(ours), expected)


@pytest.mark.parametrize("case", REGRESSORS, ids=str)
def test_no_gradient_of_a_regressor_moves(case: dict[str, Any]) -> None:
    there = gradient_work(BoostingRegressor, case, 0, strict)
    here = gradient_work(BoostingRegressor, case, 0, np.asarray)
    for ours, expected in zip(there, here, strict=True):
        assert ours.device == DEVICE
        if case.get("loss") != "poisson":  # its prediction is the library's exp
            np.testing.assert_array_equal(to_numpy(ours), expected)
