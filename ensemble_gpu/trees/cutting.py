"""Trees of several capacities, all in one that was grown to the largest.

A node of the large tree is split in the tree of a smaller capacity as well if that is enough for
it, and what it becomes depends on its rows alone. So the trees are told by one number a node:

    max_depth d        the node is split where d >= its depth + 1
    max_leaf_nodes L   where L >= the number of leaves once it is split, the best leaf first
    ccp_alpha a        where a < the alpha at which it, or a link above it, is collapsed (or a = 0)

No node needs more of these than a node below it. `Grid.places` says from which capacity on.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ensemble_gpu.kernels.host.nodes import best_first
from ensemble_gpu.kernels.tree_protocol import LEAF, NEVER
from ensemble_gpu.trees.build import TreeParameters
from ensemble_gpu.trees.grow import Grown
from ensemble_gpu.trees.prune import strengths

DEPTH, LEAVES, ALPHA = CAPACITIES = ("max_depth", "max_leaf_nodes", "ccp_alpha")
_FIELDS = {DEPTH: "max_depth", LEAVES: "max_leaves", ALPHA: "ccp_alpha"}
# Above 0, which is for trees that are not pruned at all.
_LEAST_ALPHA = np.nextafter(0.0, 1.0)


@dataclass(frozen=True)
class Grid:
    """Capacities of one kind, from the smallest tree to the largest; None is without limit."""

    capacity: str
    values: tuple[Any, ...]

    @classmethod
    def of(cls, capacity: str, values: Any) -> Grid:
        """Values in any order, each once."""

        def size(value: Any) -> float:
            return math.inf if value is None else -value if capacity == ALPHA else value

        return cls(capacity, tuple(sorted(set(values), key=size)))

    def __len__(self) -> int:
        return len(self.values)

    def limited(self, parameters: TreeParameters, place: int) -> TreeParameters:
        """Parameters of trees of one of the capacities."""
        return replace(parameters, **{_FIELDS[self.capacity]: self.values[place]})

    def growth(self, parameters: TreeParameters) -> TreeParameters:
        """Parameters of the tree in which all others are; it is pruned afterwards."""
        return parameters if self.capacity == ALPHA else self.limited(parameters, len(self) - 1)

    def places(self, grown: Grown, risk: np.ndarray) -> np.ndarray:
        """The first of the capacities with which each node is split: int [node].

        The number of capacities where none is enough, and for leaves.
        """
        if self.capacity == ALPHA:
            alpha = np.maximum(strengths(grown, risk), _LEAST_ALPHA)
            place = np.searchsorted(-np.array(self.values, dtype=np.float64), -alpha, side="right")
        else:
            needed = grown.depth + 1 if self.capacity == DEPTH else _leaves_needed(grown)
            limits = [math.inf if value is None else float(value) for value in self.values]
            place = np.searchsorted(limits, needed)
        return np.where(grown.left == LEAF, len(self), place)


def _leaves_needed(grown: Grown) -> np.ndarray:
    """The number of leaves once each node is split, the best leaf first; 0 for leaves."""
    needed = np.zeros(len(grown.left), dtype=np.int64)
    worth = np.where(grown.left == LEAF, NEVER, grown.gain)
    best_first(grown.left, grown.key, worth, len(needed), needed)
    return needed
