"""A fitted estimator as an ONNX model."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from ensemble_gpu.export import onnx_outputs
from ensemble_gpu.export.onnx_ensemble import ensemble_scores
from ensemble_gpu.export.onnx_graph import IR_VERSION, ML_DOMAIN, ML_OPSET, OPSET, Graph
from ensemble_gpu.export.onnx_tables import table_scores
from ensemble_gpu.export.onnx_trees import tree_scores
from ensemble_gpu.export.packages import required
from ensemble_gpu.export.source import Source, source_of
from ensemble_gpu.model.additive import AdditiveModel

DTYPES = ("float32", "float64")


def to_onnx(estimator: Any, exact: bool = True, *, dtype: str = "float64") -> Any:
    """A fitted estimator of stumps or trees as an `onnx.ModelProto`.

    Parameters
    ----------
    estimator : a fitted estimator, or its model_, an AdditiveModel or a Forest
        AdaBoost, boosting and L1 boosting of stumps and trees, rankers, trees, forests and bags of
        decision trees. Bags and AdaBoost of decision trees become a Forest, which has their bits
        for a float64 X (with float32 the estimators round what each tree says).
    exact : bool, default=True
        True: plain operators, which add in the order of the model: `scores` has the bits of
        `model_(X)`. They hold temporary arrays of rows x tables (or trees); give many rows in
        blocks of about a thousand. False: the operator TreeEnsemble of ai.onnx.ml 5, faster for
        deep trees and for single rows (bench/export.py); `scores` may differ by 1e-14 of its size,
        since the order of the sum is the runtime's.
    dtype : "float64" or "float32", default="float64"
        The type of the input X [n, features]. It is compared as float64, so that no row changes
        sides. NaN is missing. A category is the number that it had in training; where it was a
        label, the entry "categories" of the model's metadata has pairs of labels and numbers.

    Returns
    -------
    onnx.ModelProto
        Input `X`; outputs `scores` [n, outputs] (float64); of a classifier `label` [n], as
        `predict` of an X of this type, in the type of classes_, and `probabilities` [n, K]
        (float64, equal to predict_proba of a float64 X to 1e-14); of a regressor or a ranker
        `prediction` (float64) [n], or [n, quantiles].

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from ensemble_gpu import AdaBoostClassifier, to_onnx
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> onx = to_onnx(AdaBoostClassifier(n_estimators=20).fit(X, y))  # doctest: +SKIP
    >>> session = onnxruntime.InferenceSession(onx.SerializeToString())  # doctest: +SKIP
    >>> session.run(["label"], {"X": X})  # doctest: +SKIP
    """
    if not isinstance(exact, bool | np.bool_):
        raise TypeError(f"exact must be True or False; got {exact!r}.")
    if dtype not in DTYPES:
        raise ValueError(f"dtype must be 'float32' or 'float64'; got {dtype!r}.")
    source = source_of(estimator)
    onnx = required("onnx", "to_onnx")
    return _model(onnx, source, bool(exact), np.dtype(dtype))


def _model(onnx: Any, source: Source, exact: bool, dtype: np.dtype) -> Any:
    graph, helper = Graph(), onnx.helper
    x = "X" if dtype == np.float64 else graph.cast("X", np.float64)
    scores = graph.node("Identity", _scores(graph, x, source, exact), output="scores")
    outputs: dict[str, tuple[Any, list]] = {
        "scores": (np.float64, ["n", source.model.n_outputs]),
    }
    if source.classes is not None:
        index = onnx_outputs.class_index(graph, scores, source, dtype)
        onnx_outputs.label(graph, index, source.classes, "label")
        onnx_outputs.probabilities(graph, scores, source, "probabilities")
        kind = source.classes.dtype if source.classes.dtype.kind in "biuf" else np.dtype(object)
        outputs["label"] = kind, ["n"]
        outputs["probabilities"] = np.float64, ["n", source.n_classes]
    elif source.link is not None:
        onnx_outputs.prediction(graph, scores, source, "prediction")
        several = source.link == onnx_outputs.INCREASING
        outputs["prediction"] = np.float64, ["n", source.model.n_outputs] if several else ["n"]

    def value(name: str, kind: Any, shape: list) -> Any:
        of = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
        return helper.make_tensor_value_info(name, of, shape)

    body = helper.make_graph(
        graph.nodes,
        "ensemble_gpu",
        [value("X", dtype, ["n", source.model.n_features])],
        [value(name, *told) for name, told in outputs.items()],
        graph.constants,
    )
    opsets = [helper.make_opsetid("", OPSET)]
    if not exact:
        opsets.append(helper.make_opsetid(ML_DOMAIN, ML_OPSET))
    model = helper.make_model(
        body, opset_imports=opsets, ir_version=IR_VERSION, producer_name="ensemble_gpu"
    )
    helper.set_model_props(model, _metadata(source))
    return model


def _scores(graph: Graph, x: str, source: Source, exact: bool) -> str:
    model = source.model
    if not source.tests:
        row = source.constant_row()[None, :]
        return graph.node("Expand", row, graph.rows(x, model.n_outputs))
    if not exact:
        return ensemble_scores(graph, x, model)
    if isinstance(model, AdditiveModel):
        return table_scores(graph, x, model)
    return tree_scores(graph, x, model)


def _metadata(source: Source) -> dict[str, str]:
    """The fingerprint, the names of features, and the number of every category."""
    found = {"fingerprint": source.model.fingerprint()}
    if source.feature_names is not None:
        found["feature_names"] = json.dumps(source.feature_names)
    if source.categories:
        found["categories"] = json.dumps(source.categories, default=str)
    return found
