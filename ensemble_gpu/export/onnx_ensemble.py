"""A model as one operator TreeEnsemble (ai.onnx.ml 5).

Its leaves add one number to one output, so that a tree is there once for every output. A table is
a balanced tree below a test x <= inf, which only NaN fails.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ensemble_gpu.export.onnx_graph import ML_DOMAIN, Graph
from ensemble_gpu.export.onnx_trees import encoded
from ensemble_gpu.export.trees import goes_left
from ensemble_gpu.kernels.tree_protocol import LEAF
from ensemble_gpu.model.additive import AdditiveModel, Table
from ensemble_gpu.model.forest import Forest

AT_MOST, MEMBER = 0, 6  # of nodes_modes
SUM = 1  # of aggregate_function


class _Ensemble:
    """The attributes of the operator, node by node."""

    def __init__(self) -> None:
        self.roots: list[int] = []
        self.feature: list[int] = []
        self.threshold: list[float] = []
        self.mode: list[int] = []
        self.missing_left: list[int] = []
        self.children: list[list[tuple[int, bool]]] = []
        self.members: list[float] = []
        self.weight: list[float] = []
        self.target: list[int] = []

    def leaf(self, value: float, output: int) -> tuple[int, bool]:
        self.weight.append(value)
        self.target.append(output)
        return len(self.weight) - 1, True

    def test(self, feature: int, threshold: float, missing_left: bool) -> int:
        """A test whose children follow."""
        self.feature.append(feature)
        self.threshold.append(threshold)
        self.mode.append(AT_MOST)
        self.missing_left.append(int(missing_left))
        self.children.append([])
        return len(self.feature) - 1

    def node(self, graph: Graph, x: str, n_outputs: int) -> str:
        from onnx import numpy_helper

        left, right = (list(side) for side in zip(*self.children, strict=True))
        attributes: dict[str, Any] = {
            "aggregate_function": SUM,
            "n_targets": n_outputs,
            "post_transform": 0,
            "tree_roots": self.roots,
            "nodes_featureids": self.feature,
            "nodes_splits": numpy_helper.from_array(np.array(self.threshold)),
            "nodes_modes": numpy_helper.from_array(np.array(self.mode, dtype=np.uint8)),
            "nodes_missing_value_tracks_true": self.missing_left,
            "nodes_truenodeids": [at for at, _ in left],
            "nodes_trueleafs": [int(is_leaf) for _, is_leaf in left],
            "nodes_falsenodeids": [at for at, _ in right],
            "nodes_falseleafs": [int(is_leaf) for _, is_leaf in right],
            "leaf_targetids": self.target,
            "leaf_weights": numpy_helper.from_array(np.array(self.weight)),
        }
        if self.members:
            attributes["membership_values"] = numpy_helper.from_array(np.array(self.members))
        return graph.node("TreeEnsemble", x, domain=ML_DOMAIN, **attributes)


def ensemble_scores(graph: Graph, x: str, model: AdditiveModel | Forest) -> str:
    """F [n, outputs] of x, float64 [n, features]; the model has a test at least."""
    ensemble = _Ensemble()
    if isinstance(model, AdditiveModel):
        for f, table in model.tables.items():
            for k in range(model.n_outputs):
                _add_table(ensemble, f, table, k)
        total = ensemble.node(graph, x, model.n_outputs)
    else:
        column = np.arange(model.n_features)
        known = np.array(list(model.categories), dtype=np.int64)
        if len(known):
            column[known] = model.n_features + np.arange(len(known))
            x = graph.node("Concat", x, encoded(graph, x, model, known), axis=1)
        for t in range(model.n_trees):
            for k in range(model.n_outputs):
                _add_tree(ensemble, model, t, column, k)
        total = ensemble.node(graph, x, model.n_outputs)
        if model.average:
            total = graph.node("Div", total, np.float64(model.packed.divisor))
    return graph.node("Add", total, model.intercept)


def _add_table(ensemble: _Ensemble, feature: int, table: Table, k: int) -> None:
    root = ensemble.test(feature, np.inf, missing_left=False)
    ensemble.roots.append(root)

    def between(low: int, high: int) -> tuple[int, bool]:
        """The tree over thresholds low ... high - 1."""
        if low == high:
            return ensemble.leaf(float(table.values[low, k]), k)
        middle = (low + high) // 2
        at = ensemble.test(feature, float(table.thresholds[middle]), missing_left=False)
        ensemble.children[at] = [between(low, middle), between(middle + 1, high)]
        return at, False

    present = between(0, len(table.thresholds))
    ensemble.children[root] = [present, ensemble.leaf(float(table.missing[k]), k)]


def _add_tree(ensemble: _Ensemble, forest: Forest, t: int, column: np.ndarray, k: int) -> None:
    nodes, span = forest.nodes, forest.span(t)
    place: dict[int, tuple[int, bool]] = {}
    for i in range(span.start, span.stop):
        if nodes.feature[i] == LEAF:
            place[i] = ensemble.leaf(float(nodes.value[i, k]), k)
            continue
        feature = int(column[nodes.feature[i]])
        at = ensemble.test(feature, float(nodes.threshold[i]), bool(nodes.missing_left[i]))
        if nodes.subset[i] >= 0:
            ensemble.mode[at], ensemble.threshold[at] = MEMBER, 0.0
            ensemble.members += [*map(float, np.flatnonzero(goes_left(forest, i))), np.nan]
        place[i] = at, False
    for i, (at, is_leaf) in place.items():
        if not is_leaf:
            ensemble.children[at] = [place[int(nodes.left[i])], place[int(nodes.right[i])]]
    root = place[span.start]
    if root[1]:  # a tree that tests nothing: both sides of a test are its leaf
        at = ensemble.test(0, 0.0, missing_left=True)
        ensemble.children[at] = [root, root]
        root = at, False
    ensemble.roots.append(root[0])
