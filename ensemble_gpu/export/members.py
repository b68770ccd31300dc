"""A tree of an ensemble in terms of the features and categories of the whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ensemble_gpu.export.trees import goes_left
from ensemble_gpu.kernels.tree_protocol import LEAF
from ensemble_gpu.model.forest import Forest


def renumbered(
    forest: Forest,
    features: np.ndarray,
    n_features: int,
    seen: Mapping[int, np.ndarray],
    categories: Mapping[int, np.ndarray],
    **options: Any,
) -> Forest:
    """The same tests on all features, of which the tree's own columns are `features`.

    `seen[f]` are all categories as the tree was given them, `categories[f]` as X has them.
    Categories that the tree does not know are missing to it.
    """
    nodes = forest.nodes
    inner = nodes.feature != LEAF
    feature = np.where(inner, features[np.where(inner, nodes.feature, 0)], LEAF)
    rows: list[np.ndarray] = []
    subset, threshold = np.full(len(nodes), LEAF), nodes.threshold.copy()
    words = -(-max((len(values) for values in seen.values()), default=0) // 64)
    for i in np.flatnonzero(np.isin(feature, list(seen)) & inner).tolist():
        known = np.searchsorted(seen[int(feature[i])], forest.categories[int(nodes.feature[i])])
        left = np.full(64 * words, bool(nodes.missing_left[i]))
        left[known] = goes_left(forest, i)
        subset[i], threshold[i] = len(rows), np.nan
        rows.append(np.packbits(left, bitorder="little").view("<u8").astype(np.uint64))
    return Forest(
        replace(nodes, feature=feature, subset=subset, threshold=threshold),
        forest.starts,
        n_features,
        subsets=np.array(rows) if rows else None,
        categories=categories,
        **options,
    )
