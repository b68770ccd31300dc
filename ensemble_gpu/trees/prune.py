"""Minimal cost-complexity pruning (Breiman, Friedman, Olshen and Stone 1984).

The risk of a tree is the weighted impurity of its leaves, R(T), and its cost R(T) + alpha |leaves|.
Collapsing the subtree T_t below a node t pays for itself from

    alpha_t = (R(t) - R(T_t)) / (|leaves of T_t| - 1)

on. The weakest link, the node with the smallest alpha_t (the first of equals), is collapsed
again and again: the path of pruned trees.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ensemble_gpu.kernels.tree_protocol import LEAF
from ensemble_gpu.trees.grow import Grown


class Pruning:
    """A tree being pruned: risk and leaves below every node."""

    def __init__(self, left: np.ndarray, risk: np.ndarray) -> None:
        self.left, self.risk = left.copy(), risk
        self.parent = np.full(len(left), LEAF, dtype=np.int64)
        self.below, self.leaves = risk.copy(), np.ones(len(left), dtype=np.int64)
        for node in np.flatnonzero(left != LEAF)[::-1]:  # children have higher numbers
            a, b = left[node], left[node] + 1
            self.parent[[a, b]] = node
            self.below[node] = self.below[a] + self.below[b]
            self.leaves[node] = self.leaves[a] + self.leaves[b]
        self.alpha = np.full(len(left), np.inf)
        inner = left != LEAF
        self.alpha[inner] = (risk - self.below)[inner] / (self.leaves[inner] - 1)

    def weakest(self) -> tuple[int, float]:
        """The node that is collapsed next, and its alpha; inf where only the root is left."""
        node = int(np.argmin(self.alpha))
        return node, float(self.alpha[node])

    def collapse(self, node: int) -> None:
        """Make a leaf of a node; what is below it is no longer there."""
        gone = [node]
        while gone:
            at = gone.pop()
            self.alpha[at] = np.inf
            if self.left[at] != LEAF:
                gone += [int(self.left[at]), int(self.left[at]) + 1]
                self.left[at] = LEAF
        lost, gained = self.leaves[node] - 1, self.risk[node] - self.below[node]
        at = node
        while at != LEAF:
            self.leaves[at] -= lost
            self.below[at] += gained
            if at != node:
                self.alpha[at] = (self.risk[at] - self.below[at]) / (self.leaves[at] - 1)
            at = int(self.parent[at])


def pruned(grown: Grown, risk: np.ndarray, ccp_alpha: float) -> Grown:
    """The largest subtree whose links are all stronger than ccp_alpha."""
    pruning = Pruning(grown.left, risk)
    while True:
        node, alpha = pruning.weakest()
        if alpha > ccp_alpha or np.isinf(alpha):
            break
        pruning.collapse(node)
    feature = np.where(pruning.left == LEAF, np.int32(LEAF), grown.feature)
    return replace(grown, left=pruning.left, feature=feature)


def pruning_path(grown: Grown, risk: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(alphas, risks of the trees from those alphas on), from the whole tree to its root."""
    pruning = Pruning(grown.left, risk)
    alphas, risks = [0.0], [float(pruning.below[0])]
    while True:
        node, alpha = pruning.weakest()
        if np.isinf(alpha):
            # ascending but for the rounding of the risks
            return np.maximum.accumulate(alphas), np.array(risks)
        pruning.collapse(node)
        alphas.append(alpha)
        risks.append(float(pruning.below[0]))
