"""The weakest links of a tree, against looking at all nodes for every one of them."""

from __future__ import annotations

import numpy as np
import pytest

from ensemble_gpu.kernels.host.pruning import collapse
from ensemble_gpu.kernels.tree_protocol import LEAF


def random_tree(rng: np.random.Generator, n_inner: int, whole: bool) -> tuple[np.ndarray, ...]:
    """Left children, and risks of which some are equal."""
    left, leaves = np.full(2 * n_inner + 1, LEAF, dtype=np.int32), [0]
    for i in range(n_inner):
        node = leaves.pop(int(rng.integers(len(leaves))))
        left[node] = 2 * i + 1
        leaves += [2 * i + 1, 2 * i + 2]
    size = len(left)
    return left, rng.integers(0, 9, size).astype(float) if whole else rng.random(size)


def by_looking(left: np.ndarray, risk: np.ndarray) -> tuple[np.ndarray, list[float], list[float]]:
    """Strengths, alphas and risks."""
    left = left.copy()
    below, leaves = risk.copy(), np.ones(len(left))
    parent = {int(a) + side: node for node, a in enumerate(left) if a != LEAF for side in (0, 1)}
    for node in np.flatnonzero(left != LEAF)[::-1]:
        below[node] = below[left[node]] + below[left[node] + 1]
        leaves[node] = leaves[left[node]] + leaves[left[node] + 1]
    strength = np.full(len(left), np.inf)
    alphas, risks = [0.0], [below[0]]
    while (inner := np.flatnonzero(left != LEAF)).size:
        alpha = (risk[inner] - below[inner]) / (leaves[inner] - 1)
        node = int(inner[np.argmin(alpha)])
        alphas.append(max(alphas[-1], alpha.min()))
        gone = [node]
        while gone:
            at = gone.pop()
            if left[at] != LEAF:
                strength[at] = alphas[-1]
                gone += [left[at], left[at] + 1]
                left[at] = LEAF
        lost, gained, up = leaves[node] - 1, risk[node] - below[node], node
        while up is not None:
            leaves[up] -= lost
            below[up] += gained
            up = parent.get(up)
        risks.append(below[0])
    return strength, alphas, risks


@pytest.mark.parametrize("whole", [True, False], ids=["equal risks", "risks"])
@pytest.mark.parametrize("n_inner", [0, 1, 7, 60])
def test_links_are_collapsed_in_the_order_of_their_alphas(n_inner, whole):
    rng = np.random.default_rng(n_inner)
    for _ in range(10):
        left, risk = random_tree(rng, n_inner, whole)
        found = [np.empty(len(left)) for _ in range(3)]
        n = collapse(left, risk, *found)
        strength, alphas, risks = by_looking(left, risk)
        assert n == len(alphas)
        np.testing.assert_array_equal(found[0], strength)
        np.testing.assert_array_equal(found[1][:n], alphas)
        np.testing.assert_array_equal(found[2][:n], risks)
