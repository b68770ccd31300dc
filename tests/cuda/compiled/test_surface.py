"""The array-API calls that CuPy arrays go through exist in CuPy, keyword for keyword."""

from __future__ import annotations

import ast
import functools
import inspect
from pathlib import Path
from typing import Any

import array_api_strict
import numpy as np
import pytest
from sklearn.base import clone

from ensemble_gpu import (
    AdaBoostClassifier,
    BoostingClassifier,
    BoostingRanker,
    BoostingRegressor,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    L2BoostRegressor,
    LinearClassifier,
    NeighboursClassifier,
    NeighboursRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    RidgeRegressor,
    metrics,
    regularization_path,
)
from ensemble_gpu.arrays.namespace import to_numpy
from ensemble_gpu.kernels import cuda as engine_files
from ensemble_gpu.learners import Neighbours, Ridge
from ensemble_gpu.smoothers import KernelRidge, Linear, Spline
from tests.boosters import plain

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
    {"loss": "truncated_squared", "step": "line_search", "callbacks": [str]},
    {"loss": "hinge", "step": "constant", "stump": "discrete"},
    {"loss": "hinge"},
    {"loss": "exponential", "step": "constant"},
    {"loss": "squared"},
]
REGRESSORS: list[dict[str, Any]] = [
    {},
    {"early_stopping": True, "random_state": 0, "missing": "learn"},
    {"loss": "huber"},
    {"loss": "absolute"},
    {"loss": "quantile", "quantile": 0.3},
    {"loss": "quantile", "quantile": [0.3, 0.6]},
    {"loss": "huber", "step": "line_search"},
    {"loss": "poisson", "step": "newton"},
]
RANKERS: list[dict[str, Any]] = [
    {"early_stopping": True, "metric": ["loss", "ndcg@5", "map", "mrr", "pairwise_error"]},
    {"loss": "logistic"},
    {"loss": "lambda", "callbacks": [str]},
    {"variant": "rankboost"},
]
TREES: list[tuple[Any, dict[str, Any]]] = [
    (DecisionTreeClassifier, {"max_depth": 3, "class_weight": "balanced"}),
    (DecisionTreeClassifier, {"criterion": "entropy", "max_leaf_nodes": 5, "ccp_alpha": 0.001}),
    (DecisionTreeClassifier, {"criterion": "error", "min_samples_leaf": 4}),
    (DecisionTreeClassifier, {"categorical_features": [2], "max_features": 2, "random_state": 0}),
    (DecisionTreeRegressor, {"monotonic_cst": [1, 0, -1]}),
    (DecisionTreeRegressor, {"splitter": "random", "max_depth": 3, "random_state": 0}),
    (DecisionTreeRegressor, {"criterion": "poisson", "min_samples_leaf": 3}),
    (RandomForestClassifier, {"n_estimators": 12, "oob_score": True, "random_state": 0}),
    (RandomForestRegressor, {"n_estimators": 3, "max_samples": 0.5, "random_state": 0}),
    (BoostingClassifier, {"n_estimators": 3, "max_depth": 2}),
    (BoostingClassifier, {"n_estimators": 3, "max_depth": 2, "subsample": 0.5, "random_state": 0}),
    (BoostingRegressor, {"n_estimators": 3, "max_leaf_nodes": 4, "loss": "absolute"}),
    (BoostingRegressor, {"n_estimators": 3, "max_depth": 2, "min_samples_leaf": 3}),
]
# Estimators of the namespace's own calls; boosting and AdaBoost around estimators.
OF_CALLS: list[Any] = [
    LinearClassifier(max_iter=50),
    LinearClassifier(l1=0.5, max_iter=50),
    LinearClassifier("truncated_squared", max_iter=50),
    NeighboursClassifier(3),
    NeighboursRegressor(3, standardise=True),
    RidgeRegressor(),
    L2BoostRegressor(KernelRidge(), n_estimators=5, criterion=None),
    L2BoostRegressor(KernelRidge(rank=10), n_estimators=5, criterion=None),
    L2BoostRegressor(Linear(), componentwise=True, n_estimators=5, criterion=None),
    L2BoostRegressor(Spline(), componentwise=True, n_estimators=5, criterion=None),
    BoostingRegressor("huber", estimator=Ridge(), n_estimators=3),
    BoostingClassifier(estimator=Neighbours(3), n_estimators=3),
    BoostingClassifier(estimator=DecisionTreeRegressor(max_depth=2), n_estimators=3),
    BoostingRegressor(estimator=DecisionTreeClassifier(max_depth=2), n_estimators=3, subsample=0.5),
    *(
        AdaBoostClassifier(
            DecisionTreeClassifier(max_depth=2),
            variant="discrete",
            multiclass=form,
            n_estimators=3,
            random_state=0,
        )
        for form in ("shared", "single", "codes", "ovr")
    ),
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
    model = estimator(**plain(case, n_estimators=4, max_bins=6))
    model.fit(placed[0], placed[1], sample_weight=placed[2])
    return [model.predict(placed[0]), *model.staged_predict(placed[0])]


def tree_work(estimator: Any, case: dict[str, Any], put: Any) -> list[Any]:
    """The leaves that rows reach too, where the estimator shows them."""
    X, y, weights = data(3)
    X[:, 2] = np.arange(60) % 5
    if estimator.__name__.endswith("Regressor"):
        y = np.abs(weights + y)
    placed = [put(a) for a in (X, y, weights)]
    model = estimator(max_bins=6, **case).fit(placed[0], placed[1], sample_weight=placed[2])
    asked = [name for name in ("predict", "predict_proba", "apply") if hasattr(model, name)]
    return [getattr(model, name)(placed[0]) for name in asked]


def estimator_work(estimator: Any, put: Any) -> list[Any]:
    """Rows without missing values, three classes or a number."""
    X, y, weights = data(3)
    X = np.nan_to_num(X)
    number = type(estimator).__name__.endswith("Regressor")
    placed = [put(a) for a in (X, np.abs(weights + y) if number else y)]
    model = clone(estimator).fit(*placed)
    asked = [name for name in ("predict", "predict_proba", "predict_each") if hasattr(model, name)]
    return [getattr(model, name)(placed[0]) for name in asked]


def ranking_work(case: dict[str, Any], put: Any) -> list[Any]:
    """Of queries, and of pairs."""
    X, y, weights = data(3)
    qid = np.arange(60) * 7 % 4
    rows, *rest = (put(a) for a in (X, y, weights))
    model = BoostingRanker(n_estimators=3, max_bins=6, **case).fit(rows, *rest, qid=put(qid))
    found = [model.predict(rows), *model.staged_predict(rows)]
    for name in ("ndcg", "dcg", "average_precision_by_query", "reciprocal_rank", "pairwise_error"):
        getattr(metrics, name)(rest[0], found[0], qid=put(qid))
    if case.keys() <= {"variant"}:
        pairs = np.stack([np.arange(30), np.arange(30, 60)], axis=1)
        found.append(model.fit(rows, pairs=put(pairs)).predict(rows))
    return found


def path_work(dictionary: str, put: Any) -> list[Any]:
    X, y, weights = data(3)
    rows = put(np.nan_to_num(X))
    path = regularization_path(rows, put(weights + y), dictionary=dictionary, max_knots=10)
    return [path.model(alpha=float(path.alphas[-1]))(rows)]


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
            if inspect.isfunction(value) and not name.startswith("_") and "strict" not in name:
                patch.setattr(array_api_strict, name, recording(name, value))
        for case in CASES:
            for n_classes in (2, 3):
                work(case, n_classes, strict)
        for case in CLASSIFIERS:
            for n_classes in (2, 3):
                gradient_work(BoostingClassifier, case, n_classes, strict)
        for case in REGRESSORS:
            gradient_work(BoostingRegressor, case, 0, strict)
        for estimator, case in TREES:
            tree_work(estimator, case, strict)
        for estimator in OF_CALLS:
            estimator_work(estimator, strict)
        for case in RANKERS:
            ranking_work(case, strict)
        for dictionary in ("stumps", "features"):
            path_work(dictionary, strict)
    return noted


def own_calls() -> dict[str, set[str]]:
    """What the files of the CUDA engine take from the namespace `xp`, with their keywords."""
    noted: dict[str, set[str]] = {}

    def name_of(node: ast.AST) -> str | None:
        """`name` of an expression xp.name or where.xp.name."""
        if not isinstance(node, ast.Attribute):
            return None
        of = node.value
        found = of.id if isinstance(of, ast.Name) else getattr(of, "attr", None)
        return node.attr if found == "xp" else None

    for path in Path(engine_files.__path__[0]).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            name = name_of(node.func if isinstance(node, ast.Call) else node)
            if name is not None:
                keywords = node.keywords if isinstance(node, ast.Call) else []
                noted.setdefault(name, set()).update(str(k.arg) for k in keywords)
    return noted


def check_cupy_has(calls: dict[str, set[str]]) -> None:
    cupy_namespace = pytest.importorskip("array_api_compat.cupy")
    for name, keywords in calls.items():
        function = getattr(cupy_namespace, name)
        if not keywords:
            continue
        parameters = inspect.signature(function).parameters
        open_ended = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
        assert open_ended or keywords <= set(parameters), name


def test_every_call_exists_in_cupy_with_its_keywords(calls: dict[str, set[str]]) -> None:
    assert {"take", "sort", "searchsorted", "cumulative_sum", "argsort"} <= set(calls)
    check_cupy_has(calls)


def test_what_the_engine_calls_itself_exists_in_cupy() -> None:
    """Strict arrays never reach its files: the names are read from them."""
    noted = own_calls()
    assert "dtype" in noted["cumulative_sum"]  # the rows of a tree's nodes
    assert {"stable"} == noted["argsort"]  # pairs of codes
    check_cupy_has(noted)


def test_decompositions_and_partitions_exist_in_cupy() -> None:
    """They are no functions of the standard's main namespace."""
    cupy_namespace = pytest.importorskip("array_api_compat.cupy")
    assert "full_matrices" in inspect.signature(cupy_namespace.linalg.svd).parameters
    assert {"solve", "eigh", "trace"} <= set(dir(cupy_namespace.linalg))
    assert {"kth", "axis"} <= set(inspect.signature(cupy_namespace.partition).parameters)


@pytest.mark.parametrize("estimator", OF_CALLS, ids=lambda one: " ".join(repr(one).split()))
def test_no_row_of_the_other_estimators_moves(estimator: Any) -> None:
    there, here = estimator_work(estimator, strict), estimator_work(estimator, np.asarray)
    for ours, expected in zip(there, here, strict=True):
        assert ours.device == DEVICE
        np.testing.assert_allclose(to_numpy(ours), expected, rtol=1e-5, atol=1e-6)


def test_a_missing_keyword_would_be_noticed() -> None:
    cupy_namespace = pytest.importorskip("array_api_compat.cupy")
    assert "no_such_keyword" not in inspect.signature(cupy_namespace.argsort).parameters
    assert not hasattr(cupy_namespace, "no_such_function")


def test_cupy_arrays_have_the_methods_that_the_engine_uses() -> None:
    cupy = pytest.importorskip("cupy")
    for method in (
        "get", "view", "T", "nbytes", "shape", "__getitem__", "__setitem__", "__isub__",
        "__rshift__", "__cuda_array_interface__", "__dlpack__",
    ):  # fmt: skip
        assert hasattr(cupy.ndarray, method), method
    for name in ("from_dlpack", "asarray", "ascontiguousarray", "empty", "get_default_memory_pool"):
        assert hasattr(cupy, name), name
    for name in ("get_current_stream", "Device", "is_available"):
        assert hasattr(cupy.cuda, name), name
    assert issubclass(cupy.cuda.memory.OutOfMemoryError, MemoryError)
    assert "mem_info" in dir(cupy.cuda.Device)
    assert {"deviceGetAttribute", "cudaDevAttrMultiProcessorCount", "getDeviceCount"} <= set(
        dir(cupy.cuda.runtime)
    )


def test_cupy_s_streams_are_found_by_gpu_and_entered() -> None:
    """The signatures are in the docstrings of compiled functions."""
    cupy = pytest.importorskip("cupy")
    assert "get_current_stream(int device_id=-1)" in cupy.cuda.get_current_stream.__doc__
    assert "deviceGetAttribute(int attrib, int device)" in (
        cupy.cuda.runtime.deviceGetAttribute.__doc__
    )
    assert {"__enter__", "__exit__"} <= set(dir(cupy.cuda.Stream))
    assert "dtype" in inspect.signature(cupy.asarray).parameters


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


@pytest.mark.parametrize(("estimator", "case"), TREES)
def test_no_tree_moves(estimator: Any, case: dict[str, Any]) -> None:
    there, here = tree_work(estimator, case, strict), tree_work(estimator, case, np.asarray)
    for ours, expected in zip(there, here, strict=True):
        assert ours.device == DEVICE
        np.testing.assert_array_equal(to_numpy(ours), expected)


def test_numba_has_what_the_engine_uses() -> None:
    from numba import cuda

    assert "sync" in inspect.signature(cuda.as_cuda_array).parameters
    assert {"external_stream", "gpus", "libdevice"} <= set(dir(cuda))
    assert callable(cuda.libdevice.dmul_rn)


@pytest.mark.parametrize("case", RANKERS, ids=str)
def test_no_row_of_a_ranking_moves(case: dict[str, Any]) -> None:
    there, here = ranking_work(case, strict), ranking_work(case, np.asarray)
    for ours, expected in zip(there, here, strict=True):
        assert ours.device == DEVICE
        np.testing.assert_array_equal(to_numpy(ours), expected)
