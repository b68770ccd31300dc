"""What scores mean, as ONNX operators: the labels, probabilities and predictions of estimators.

The formulas are those of model/link.py, in float64.
"""

from __future__ import annotations

import numpy as np

from ensemble_gpu.arrays.exponentials import LARGEST_EXPONENT
from ensemble_gpu.export.onnx_graph import Graph
from ensemble_gpu.export.source import SHARES, Source
from ensemble_gpu.model.link import INCREASING, LINEAR, LOG, LOGISTIC, VOTES

EPS = float(np.finfo(np.float64).eps)
BELOW_ONE = np.float64(1.0 - 4.0 * EPS)
ZERO, HALF, ONE = np.float64(0.0), np.float64(0.5), np.float64(1.0)
LAST_AXIS = np.array([1], dtype=np.int64)


def class_index(graph: Graph, scores: str, source: Source, dtype: np.dtype) -> str:
    """The most probable class of every row [n], judged by scores in the type of the input."""
    scores = graph.cast(scores, dtype)
    if source.link == LOGISTIC:
        scores = graph.node("Mul", scores, dtype.type(0.5))
    if source.model.n_outputs > 1 or source.link == SHARES:
        return graph.node("ArgMax", scores, axis=1, keepdims=0)
    positive = graph.node("Greater", scores, dtype.type(0.0))
    return graph.cast(graph.node("Squeeze", positive, LAST_AXIS), np.int64)


def label(graph: Graph, index: str, classes: np.ndarray, output: str) -> str:
    """The label of every row, in the type of the classes."""
    names = classes
    if classes.dtype.kind not in "biuf":
        if not all(isinstance(name, str) for name in classes.tolist()):
            raise TypeError(
                "estimator must have classes_ that are all numbers or all strings, which are the "
                f"types of an ONNX tensor; got {classes.tolist()!r}."
            )
        names = classes.astype(object)
    return graph.node("Gather", names, index, axis=0, output=output)


def probabilities(graph: Graph, scores: str, source: Source, output: str) -> str:
    """P [n, K]."""
    if source.link == SHARES:
        return graph.node("Identity", scores, output=output)
    if source.link == LINEAR:
        return _of_lines(graph, scores, source, output)
    if source.link == LOGISTIC:
        scores = graph.node("Mul", scores, HALF)
    if source.model.n_outputs == 1:
        return _of_two(graph, scores, source.scale, output)
    logs = graph.node("Mul", scores, np.float64(source.scale))
    if source.link != VOTES:
        logs = _log_sigmoid(graph, graph.node("Mul", scores, np.float64(2.0 * source.scale)))
    top = graph.node("ReduceMax", scores, LAST_AXIS)
    highest = graph.node("ReduceMax", logs, LAST_AXIS)
    p = graph.node("Exp", graph.node("Sub", logs, highest))
    behind = graph.node("Less", scores, top)
    p = graph.node("Where", behind, graph.node("Min", p, BELOW_ONE), p)
    return _normalised(graph, p, output)


def _log_sigmoid(graph: Graph, v: str) -> str:
    e = graph.node("Exp", graph.node("Neg", graph.node("Abs", v)))
    return graph.node(
        "Sub", graph.node("Min", v, ZERO), graph.node("Log", graph.node("Add", e, ONE))
    )


def _of_two(graph: Graph, F: str, scale: float, output: str) -> str:
    size = graph.node("Mul", graph.node("Abs", F), np.float64(-2.0 * scale))
    ratio = graph.node("Min", graph.node("Exp", size), BELOW_ONE)
    sides = [graph.node(kind, F, ZERO) for kind in ("LessOrEqual", "GreaterOrEqual")]
    p = graph.node("Concat", *(graph.cast(side, np.float64) for side in sides), axis=1)
    return _normalised(graph, graph.node("Max", p, ratio), output)


def _of_lines(graph: Graph, F: str, source: Source, output: str) -> str:
    if source.model.n_outputs == 1:
        F = graph.node("Concat", graph.node("Neg", F), F, axis=1)
    half = graph.node("Mul", graph.node("Mul", F, np.float64(source.scale)), HALF)
    p = graph.node("Clip", graph.node("Add", half, HALF), np.float64(EPS), ONE)
    highest = graph.node("ReduceMax", p, LAST_AXIS)
    behind = graph.node("Less", F, graph.node("ReduceMax", F, LAST_AXIS))
    most = graph.node("Min", p, graph.node("Mul", highest, BELOW_ONE))
    return _normalised(graph, graph.node("Where", behind, most, p), output)


def _normalised(graph: Graph, p: str, output: str) -> str:
    return graph.node("Div", p, graph.node("ReduceSum", p, LAST_AXIS), output=output)


def prediction(graph: Graph, scores: str, source: Source, output: str) -> str:
    """The mean of y [n]; of several quantiles [n, K], ascending."""
    if source.link == INCREASING:
        from onnx import helper

        k = graph.constant(np.array([source.model.n_outputs], dtype=np.int64))
        ascending = helper.make_node("TopK", [scores, k], [output, "order"], axis=1, largest=0)
        graph.nodes.append(ascending)
        return output
    if source.link == LOG:
        scores = graph.node("Exp", graph.node("Min", scores, np.float64(LARGEST_EXPONENT)))
    return graph.node("Squeeze", scores, LAST_AXIS, output=output)
