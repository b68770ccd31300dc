"""What Shapley values need of the ways to the nodes of trees (kernels/path_shares.py)."""

from __future__ import annotations

import numpy as np

from ensemble_gpu.kernels.jit import inner, kernel
from ensemble_gpu.kernels.path_shares import PathShares
from ensemble_gpu.kernels.tree_protocol import LEAF, PackedForest


@inner
def _twin(node, feature, parent):
    """The nearest node above whose edge has the feature of this node's edge; -1: none."""
    above = parent[node]
    own = feature[above]
    while parent[above] >= 0:
        if feature[parent[above]] == own:
            return above
        above = parent[above]
    return np.int32(-1)


@inner
def _part(node, left, right, weight, n_samples):
    """Share of a child in the weight of both, in their rows where they have none."""
    total = weight[left] + weight[right]
    if total > 0.0:
        return weight[node] / total
    rows = n_samples[left] + n_samples[right]
    return n_samples[node] / rows if rows > 0 else 0.5


@kernel
def _survey(roots, feature, left, right, weight, n_samples, out):
    """Fill in the arrays of `PathShares`; trees are in preorder, one after the other."""
    parent, depth, twin, share, reach, points = out
    n = feature.shape[0]
    features = np.zeros(n, dtype=np.int32)  # on the way to each node
    for t in range(roots.shape[0]):
        start, end = roots[t], roots[t + 1] if t + 1 < roots.shape[0] else n
        depth[start], most = 0, np.int32(1)
        for node in range(start, end):
            if node > start:
                above = parent[node]
                part = _part(node, left[above], right[above], weight, n_samples)
                same = _twin(node, feature, parent)
                twin[node], depth[node] = same, depth[above] + 1
                share[node] = part if same < 0 else part * share[same]
                reach[node] = part * reach[above]
                features[node] = features[above] + np.int32(same < 0)
                most = max(most, features[node])
            if feature[node] != LEAF:
                parent[left[node]] = parent[right[node]] = node
        points[t] = (most + 1) // 2


def path_shares(forest: PackedForest, weight: np.ndarray, n_samples: np.ndarray) -> PathShares:
    """Of trees whose nodes had these weights and rows in training."""
    n = len(forest.feature)
    parent, depth, twin = (np.full(n, -1, dtype=np.int32) for _ in range(3))
    share, reach = np.ones((2, n))
    points = np.ones(len(forest.roots), dtype=np.int64)
    _survey(
        forest.roots, forest.feature, forest.left, forest.right, weight, n_samples,
        (parent, depth, twin, share, reach, points),
    )  # fmt: skip
    return PathShares(parent, depth, twin, share, reach, points)
