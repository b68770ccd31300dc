"""A forest as plain ONNX operators: all trees are walked together, a level at a time.

A row's cells are there twice, the second time with -inf in place of NaN: a test x <= threshold of
the first copy sends what is missing to the right, one of the second to the left. A category is
its number; for a set of categories there is a table of those that go left, entry 0 for missing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ensemble_gpu.export.onnx_graph import Columns, Graph
from ensemble_gpu.export.trees import goes_left, levels
from ensemble_gpu.model.forest import Forest


def encoded(graph: Graph, x: str, forest: Forest, features: np.ndarray) -> str:
    """Numbers of categories in some columns of x: float64 [n, features].

    NaN where the category is missing or unknown (arrays/positions.py).
    """
    x = graph.columns(x, features, forest.n_features)
    columns = Columns([forest.categories[f] for f in features.tolist()], room=1)
    place = columns.search(graph, x)
    found = graph.look_up(columns.numbers, place, len(features))
    known = graph.node("Equal", found, x)
    number = graph.node("Sub", place, columns.first[None, :])
    return graph.node("Where", known, graph.cast(number, np.float64), np.float64(np.nan))


@dataclass(frozen=True)
class _Cells:
    """Which column of the graph's cells belongs to a feature: numbers first, then categories."""

    numeric: np.ndarray
    categorical: np.ndarray

    @classmethod
    def of(cls, forest: Forest) -> _Cells:
        used = np.unique(forest.nodes.feature[forest.nodes.feature >= 0]).astype(np.int64)
        known = np.isin(used, list(forest.categories))
        return cls(used[~known], used[known])

    @property
    def width(self) -> int:
        return len(self.numeric) + len(self.categorical)

    def column(self, feature: np.ndarray) -> np.ndarray:
        every = np.concatenate([self.numeric, self.categorical])
        order = np.argsort(every)
        return order[np.searchsorted(every[order], feature)]


class _Sets:
    """For every node where in `table` the entries of its set begin; 0 where it has none."""

    def __init__(self, forest: Forest, order: np.ndarray) -> None:
        nodes = forest.nodes
        most = max((len(values) for values in forest.categories.values()), default=0)
        parts, end, known = [np.zeros(most + 1, dtype=bool)], most + 1, {}
        self.first = np.zeros(len(order), dtype=np.int32)
        for place in np.flatnonzero(nodes.subset[order] >= 0).tolist():
            i = int(order[place])
            part = np.append(nodes.missing_left[i], goes_left(forest, i))
            key = part.tobytes()
            if key not in known:
                known[key] = end
                parts.append(part)
                end += len(part)
            self.first[place] = known[key]
        self.table = np.concatenate(parts)


def tree_scores(graph: Graph, x: str, forest: Forest) -> str:
    """F [n, outputs] of x, float64 [n, features]; the forest has a test at least."""
    nodes, layout, cells = forest.nodes, levels(forest), _Cells.of(forest)
    order, leaf = layout.order, layout.is_leaf
    parts = [graph.columns(x, cells.numeric, forest.n_features)] if len(cells.numeric) else []
    numbers = None
    if len(cells.categorical):
        numbers = encoded(graph, x, forest, cells.categorical)
        parts.append(numbers)
    once = graph.node("Concat", *parts, axis=1)
    low = graph.node("Where", graph.node("IsNaN", once), np.float64(-np.inf), once)
    twice = graph.node("Concat", once, low, axis=1)

    # a leaf asks -inf or a number <= inf, which sends every row to its left child, itself
    feature = cells.column(np.where(leaf, 0, nodes.feature[order]))
    column = np.where(leaf, cells.width, feature + cells.width * nodes.missing_left[order])
    threshold = np.where(leaf, np.inf, nodes.threshold[order])
    walk = _Walk(graph, twice)
    walk.add_nodes(column.astype(np.int32), threshold, (layout.first + 1).astype(np.int32))
    if numbers is not None and (nodes.subset >= 0).any():
        sets = _Sets(forest, order)
        walk.add_sets(sets.first, sets.table, _places(graph, x, numbers, cells))
    place = walk.leaves(forest.n_trees, int(forest.depths.max()))
    each = graph.rows_at(nodes.value[order], place, forest.n_trees)
    total = graph.sum_in_order(each, forest.n_trees)
    if forest.average:
        total = graph.node("Div", total, np.float64(forest.packed.divisor))
    return graph.node("Add", total, forest.intercept)


def _places(graph: Graph, x: str, numbers: str, cells: _Cells) -> str:
    """Entries in a set's table, 0 for missing: int32 [n, 2 cells]; 0 for features that are none."""
    present = graph.node("Add", numbers, np.float64(1.0))
    entry = graph.node("Where", graph.node("IsNaN", numbers), np.float64(0.0), present)
    entry = graph.cast(entry, np.int32)
    zeros = graph.node("Expand", np.zeros((1, 1), np.int32), graph.rows(x, len(cells.numeric)))
    return graph.node("Concat", zeros, entry, zeros, entry, axis=1)


class _Walk:
    """Steps from roots to leaves: next = first child + 1 - (x <= threshold)."""

    def __init__(self, graph: Graph, cells: str) -> None:
        self.graph, self.cells = graph, cells
        self.arrays: dict[str, np.ndarray] = {}
        self.table = self.entries = ""

    def add_nodes(self, column: np.ndarray, threshold: np.ndarray, right: np.ndarray) -> None:
        self.arrays |= {"column": column, "threshold": threshold, "right": right}

    def add_sets(self, first: np.ndarray, table: np.ndarray, entries: str) -> None:
        self.arrays["set"] = first
        self.table, self.entries = self.graph.constant(table), entries

    def leaves(self, n_trees: int, depth: int) -> str:
        """The leaf of every row in every tree: int32 [n, trees]."""
        graph = self.graph
        roots = {name: graph.constant(a[None, :n_trees]) for name, a in self.arrays.items()}
        roots["column"] = graph.node("Expand", roots["column"], graph.rows(self.cells, n_trees))
        place = self._step(roots, n_trees)
        names = {name: graph.constant(a) for name, a in self.arrays.items()} if depth > 1 else {}
        for _ in range(depth - 1):
            here = {name: graph.look_up(table, place, n_trees) for name, table in names.items()}
            place = self._step(here, n_trees)
        return place

    def _step(self, here: dict[str, str], n_trees: int) -> str:
        """The next places from what is known of the nodes where the rows are."""
        graph = self.graph
        x = graph.node("GatherElements", self.cells, here["column"], axis=1)
        left = graph.node("LessOrEqual", x, here["threshold"])
        if self.table:
            entry = graph.node("GatherElements", self.entries, here["column"], axis=1)
            at = graph.node("Add", here["set"], entry)
            left = graph.node("Or", left, graph.look_up(self.table, at, n_trees))
        return graph.node("Sub", here["right"], graph.cast(left, np.int32))
