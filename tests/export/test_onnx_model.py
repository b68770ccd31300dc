"""ONNX models in onnxruntime: the same bits, labels and probabilities."""

from __future__ import annotations

import json
from datetime import date
from functools import cache

import numpy as np
import pytest

from ensemble_gpu import AdaBoostClassifier, DecisionTreeClassifier, to_onnx
from ensemble_gpu.export.source import source_of
from tests.export.fits import ESTIMATORS, classes, fitted, rows, taken
from tests.export.rows import edge_rows

pytestmark = pytest.mark.interop
NAMES = list(ESTIMATORS)
BOTH = pytest.mark.parametrize("dtype", [np.float64, np.float32])


def run(model, X: np.ndarray, threads: int = 1) -> dict[str, np.ndarray]:
    import onnx
    import onnxruntime

    onnx.checker.check_model(model, full_check=True)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, {"X": X}), strict=True))


@cache
def case(name: str, dtype) -> tuple:
    """An estimator, rows near its thresholds and their scores, and rows that it takes."""
    model = source_of(fitted(name)).model
    X = edge_rows(model, rows(), dtype)
    return fitted(name), X, model(X), taken(name, X)


@BOTH
@pytest.mark.parametrize("name", NAMES)
def test_plain_operators_have_the_bits_of_the_model(name, dtype):
    estimator, X, scores, own = case(name, dtype)
    found = run(to_onnx(estimator, dtype=np.dtype(dtype).name), X)
    np.testing.assert_array_equal(found["scores"], scores)
    assert found["scores"].dtype == np.float64
    check_meaning(estimator, found, X, own)


@BOTH
@pytest.mark.parametrize("name", NAMES)
def test_tree_ensemble_differs_by_rounding_alone(name, dtype):
    estimator, X, scores, _ = case(name, dtype)
    found = run(to_onnx(estimator, exact=False, dtype=np.dtype(dtype).name), X)
    largest = max(1.0, float(np.abs(scores).max()))
    np.testing.assert_allclose(found["scores"], scores, rtol=0.0, atol=1e-14 * largest)


def check_meaning(estimator, found, X, own) -> None:
    """Labels as `predict` gives them, probabilities and predictions of the float64 copy."""
    X, wide = X[own], X[own].astype(np.float64)
    if not hasattr(estimator, "classes_"):
        assert list(found) == ["scores", "prediction"]
        predicted = estimator.predict(wide)
        np.testing.assert_allclose(found["prediction"][own], predicted, rtol=1e-14, atol=0.0)
        return
    assert list(found) == ["scores", "label", "probabilities"]
    np.testing.assert_array_equal(found["label"][own], estimator.predict(X))
    kind = estimator.classes_.dtype
    assert found["label"].dtype == (kind if kind.kind in "biuf" else object)
    P = estimator.predict_proba(wide)
    np.testing.assert_allclose(found["probabilities"][own], P, rtol=0.0, atol=1e-14)


@pytest.mark.parametrize("name", ["adaboost, 3 classes", "forest", "logistic stumps"])
def test_bits_do_not_depend_on_threads_or_on_the_number_of_rows(name):
    estimator, X, scores, _ = case(name, np.float64)
    model = to_onnx(estimator)
    many = np.tile(X, (50, 1))
    np.testing.assert_array_equal(run(model, many, threads=2)["scores"], np.tile(scores, (50, 1)))
    np.testing.assert_array_equal(run(model, X[:1])["scores"], scores[:1])
    np.testing.assert_array_equal(run(model, X[:0])["scores"], scores[:0])


@pytest.mark.parametrize("name", ["adaboost, 3 classes", "adaboost, categories", "forest"])
def test_another_runtime_finds_the_same_bits(name):
    from onnx.reference import ReferenceEvaluator
    from onnx.reference.op_run import OpRun

    class GatherElements(OpRun):
        """That of the package takes at most 64 entries."""

        def _run(self, data, indices, axis=0):
            return (np.take_along_axis(data, indices.astype(np.int64), axis),)

    estimator, X, scores, _ = case(name, np.float64)
    runtime = ReferenceEvaluator(to_onnx(estimator), new_ops=[GatherElements])
    (found,) = runtime.run(["scores"], {"X": X})
    np.testing.assert_array_equal(found, scores)


def test_plain_operators_are_of_the_standard_set():
    model = to_onnx(fitted("logistic trees, 3 classes, categories"))
    assert [opset.domain for opset in model.opset_import] == [""]
    assert {node.domain for node in model.graph.node} == {""}
    ensemble = to_onnx(fitted("logistic trees, 3 classes, categories"), exact=False)
    assert "TreeEnsemble" in {node.op_type for node in ensemble.graph.node}


def test_a_model_alone_has_scores_only():
    model = fitted("forest").model_
    found = run(to_onnx(model), rows())
    assert list(found) == ["scores"]
    np.testing.assert_array_equal(found["scores"], model(rows()))


def test_metadata_have_the_names_and_the_numbers_of_categories():
    import pandas as pd

    frame = pd.DataFrame(rows(), columns=list("abcdef"))
    colour = np.array(["red", "blue", "green"])[np.arange(len(frame)) % 3]
    frame["e"] = pd.Categorical(colour)
    y = (colour == "red") ^ (np.nan_to_num(rows()[:, 0]) > 1.0)
    tree = DecisionTreeClassifier().fit(frame, y)
    model = to_onnx(tree)
    told = {entry.key: entry.value for entry in model.metadata_props}
    assert told["fingerprint"] == tree.model_.fingerprint()
    assert json.loads(told["feature_names"]) == list("abcdef")
    number = dict(json.loads(told["categories"])["4"])
    X = rows().copy()
    X[:, 4] = [number[name] for name in colour]
    np.testing.assert_array_equal(run(model, X)["label"], tree.predict(frame))


def test_labels_that_no_tensor_can_hold_are_refused():
    days = np.array([date(2024, 2, 29), date(2025, 1, 1)], dtype=object)
    dated = AdaBoostClassifier(n_estimators=2).fit(rows(), days[np.arange(len(rows())) % 2])
    with pytest.raises(TypeError, match="classes_ that are all numbers or all strings"):
        to_onnx(dated)


@pytest.mark.parametrize("kind", [np.int8, np.uint16, np.int64, np.float32, np.bool_])
def test_labels_keep_their_type(kind):
    y = classes([0, 1]).astype(kind)
    found = run(to_onnx(AdaBoostClassifier(n_estimators=3).fit(rows(), y)), rows())["label"]
    assert found.dtype == kind
