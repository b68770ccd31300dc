"""The trees of a forest as exporters take them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ensemble_gpu.kernels.tree_protocol import LEAF
from ensemble_gpu.model.forest import Forest


def goes_left(forest: Forest, node: int) -> np.ndarray:
    """Which categories go left of a test of a categorical feature: bool [categories].

    A test by a threshold compares the category's number.
    """
    nodes = forest.nodes
    values = forest.categories[int(nodes.feature[node])]
    if nodes.subset[node] < 0:
        return np.arange(len(values)) <= nodes.threshold[node]
    octets = forest.subsets[nodes.subset[node]].astype("<u8").view(np.uint8)
    return np.unpackbits(octets, bitorder="little")[: len(values)].astype(bool)


@dataclass(frozen=True)
class Levels:
    """Nodes level by level, roots first, siblings side by side.

    `order` are their positions in the forest, `first` the place of the left child; a leaf is its
    own left child, so that a step beyond it stays there.
    """

    order: np.ndarray
    first: np.ndarray
    is_leaf: np.ndarray


def levels(forest: Forest) -> Levels:
    nodes, parts = forest.nodes, []
    at, end = forest.starts.astype(np.int64), len(forest.starts)
    place, first = np.empty((2, len(nodes)), dtype=np.int64)
    place[at] = np.arange(end)
    while len(at):
        parts.append(at)
        inner = at[nodes.feature[at] != LEAF]
        at = np.stack([nodes.left[inner], nodes.right[inner]], axis=1).reshape(-1)
        place[at] = end + np.arange(len(at))
        first[inner] = place[nodes.left[inner]]
        end += len(at)
    leaf = nodes.feature == LEAF
    first[leaf] = place[leaf]
    order = np.concatenate([np.zeros(0, dtype=np.int64), *parts])
    return Levels(order, first[order], leaf[order])
