"""The arrays of a model that source code walks through; the same for every language."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ensemble_gpu.export.trees import goes_left
from ensemble_gpu.kernels.tree_protocol import LEAF
from ensemble_gpu.model.additive import AdditiveModel
from ensemble_gpu.model.forest import Forest


@dataclass(frozen=True)
class TableArrays:
    """Table u: thresholds first[u] ... first[u + 1] - 1, values from first[u] + u on."""

    feature: np.ndarray
    first: np.ndarray
    threshold: np.ndarray
    value: np.ndarray
    missing: np.ndarray


def table_arrays(model: AdditiveModel) -> TableArrays:
    tables, K = list(model.tables.values()), model.n_outputs
    return TableArrays(
        np.array(list(model.tables), dtype=np.int64),
        np.cumsum([0, *(len(t.thresholds) for t in tables)]),
        np.concatenate([np.zeros(0), *(t.thresholds for t in tables)]),
        np.concatenate([np.zeros((0, K)), *(t.values for t in tables)]),
        np.array([t.missing for t in tables]).reshape(-1, K),
    )


@dataclass(frozen=True)
class TreeArrays:
    """Nodes in preorder: the left child of node i is i + 1.

    `right` of a leaf (feature -1) is its row of `value`. A set (`subset` >= 0) has a whole number
    with the bits of the categories that go left.
    """

    root: np.ndarray
    feature: np.ndarray
    threshold: np.ndarray
    missing_left: np.ndarray
    right: np.ndarray
    subset: np.ndarray
    sets: list[int]
    value: np.ndarray


def tree_arrays(forest: Forest) -> TreeArrays:
    nodes = forest.nodes
    leaf, is_set = nodes.feature == LEAF, nodes.subset >= 0
    right, subset = nodes.right.astype(np.int64), np.full(len(nodes), LEAF)
    right[leaf] = np.arange(leaf.sum())
    sets: dict[int, int] = {}
    for i in np.flatnonzero(is_set).tolist():
        bits = np.packbits(goes_left(forest, i), bitorder="little").tobytes()
        subset[i] = sets.setdefault(int.from_bytes(bits, "little"), len(sets))
    return TreeArrays(
        forest.starts, nodes.feature, np.where(leaf | is_set, 0.0, nodes.threshold),
        nodes.missing_left, right, subset, list(sets), nodes.value[leaf],
    )  # fmt: skip
