"""Minimal cost-complexity pruning (Breiman, Friedman, Olshen and Stone 1984).

The risk of a tree is the weighted impurity of its leaves, R(T), and its cost R(T) + alpha |leaves|.
Collapsing the subtree T_t below a node t pays for itself from

    alpha_t = (R(t) - R(T_t)) / (|leaves of T_t| - 1)

on. The weakest link, the node with the smallest alpha_t (the first of equals), is collapsed
again and again: the path of pruned trees.
"""

from __future__ import annotations

import numpy as np

from ensemble_gpu.kernels.host.pruning import collapse
from ensemble_gpu.trees.grow import Grown


def _collapsed(left: np.ndarray, risk: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(strength of every node, alphas, risks) of the path (kernels/host/pruning.py)."""
    strength, alphas, risks = (np.empty(len(left)) for _ in range(3))
    steps = collapse(left, np.ascontiguousarray(risk), strength, alphas, risks)
    return strength, alphas[:steps], risks[:steps]


def strengths(grown: Grown, risk: np.ndarray) -> np.ndarray:
    """The alpha from which on each node is not split any more; inf for leaves."""
    return _collapsed(grown.left, risk)[0]


def pruned(grown: Grown, risk: np.ndarray, ccp_alpha: float) -> Grown:
    """The largest subtree whose links are all stronger than ccp_alpha."""
    return grown.cut(strengths(grown, risk) > ccp_alpha)


def pruning_path(grown: Grown, risk: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(alphas, risks of the trees from those alphas on), from the whole tree to its root."""
    return _collapsed(grown.left, risk)[1:]
