"""From binned rows to a tree of the model: grow, read the sums, put the nodes in preorder."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numba import njit

from ensemble_gpu.data.matrix import BinnedMatrix
from ensemble_gpu.kernels.growing import LEAF, NEVER, Rule, subset_words
from ensemble_gpu.kernels.protocol import Engine
from ensemble_gpu.model.forest import Forest
from ensemble_gpu.model.nodes import Nodes
from ensemble_gpu.trees.grow import Grown, Limits, grow, root_key
from ensemble_gpu.trees.prune import pruned
from ensemble_gpu.trees.statistics import Statistics


@dataclass(frozen=True)
class Plan:
    """How the trees of an estimator grow; parameters, resolved.

    `min_weight` is the share of a tree's weight that its leaves keep.
    """

    rule: Rule
    max_depth: int | None
    max_leaves: int | None
    min_rows_split: int
    min_impurity_decrease: float
    n_features: int
    ccp_alpha: float
    seed: int
    min_weight: float


@njit(cache=True, nogil=True)
def _preorder(left, right, out):
    """out[i] = node at position i when every node comes before its left, then its right subtree."""
    stack = np.empty(left.shape[0], dtype=np.int64)
    stack[0], height, n = 0, 1, 0
    while height > 0:
        height -= 1
        node = stack[height]
        out[n] = node
        n += 1
        if left[node] >= 0:
            stack[height] = right[node]
            stack[height + 1] = left[node]
            height += 2
    return n


def preorder(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """The nodes that can be reached from the root, in preorder."""
    out = np.empty(len(left), dtype=np.int64)
    return out[: _preorder(left, right, out)]


def in_preorder(grown: Grown) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(nodes in preorder, the places of their left and of their right children)."""
    order = preorder(grown.left, grown.right)
    inner = grown.feature[order] != LEAF
    place = np.full(len(grown.feature), LEAF, dtype=np.int64)
    place[order] = np.arange(len(order))
    left, right = (np.where(inner, place[a[order]], LEAF) for a in (grown.left, grown.right))
    return order, left, right


def grow_tree(
    engine: Engine, matrix: BinnedMatrix, statistics: Statistics, plan: Plan, number: int,
    rows: Any | None = None, counts: Any | None = None,
) -> tuple[Grown, np.ndarray]:  # fmt: skip
    """Tree `number` from the rows that counts says, and its impurities."""
    sample = statistics.sample(rows, counts, engine.where.xp)
    root = statistics.totals(sample, engine)
    total = float(statistics.weight(root[None, :])[0])
    least = statistics.in_scores(plan.min_impurity_decrease * total)
    limits = Limits(
        plan.max_depth, plan.max_leaves, plan.min_rows_split,
        NEVER if least == 0.0 else least * (1.0 - 2.0**-40), plan.n_features,
    )  # fmt: skip
    rule = replace(plan.rule, min_weight=math.ceil(plan.min_weight * total))
    n_rows = matrix.codes.n_rows if rows is None else rows.shape[0]
    words = subset_words(rule.categorical, matrix.codes.width)
    grower = engine.grower(matrix.codes, sample, rule)
    grown = grow(
        grower, rule, limits, root, n_rows, root_key(plan.seed, number), words,
        statistics.labelled,
    )  # fmt: skip
    second = None
    if statistics.second is not None:
        second = _second_sums(engine, matrix, statistics, grown, rows, counts)
    impurity = statistics.impurities(grown.sums, second)
    if plan.ccp_alpha > 0.0:
        risk = impurity * statistics.weight(grown.sums) / total
        grown = pruned(grown, risk, plan.ccp_alpha)
    return grown, impurity


def _second_sums(
    engine: Engine, matrix: BinnedMatrix, statistics: Statistics, grown: Grown, rows: Any,
    counts: Any,
) -> np.ndarray:  # fmt: skip
    """Sums of w times `second` of every node: of the leaves, then of their parents."""
    xp = engine.where.xp
    weights = statistics.weights if counts is None else statistics.weights * counts
    leaf = engine.leaves(matrix.codes, grown.code_tree())
    values = (weights * statistics.second)[:, None]
    if rows is not None:
        leaf, values = xp.take(leaf, rows), xp.take(values, rows, axis=0)
    sums = engine.sums_by(leaf, values, len(grown.feature))[:, 0]
    for node in np.flatnonzero(grown.feature != LEAF)[::-1]:
        sums[node] = sums[grown.left[node]] + sums[grown.right[node]]
    return sums


def to_forest(
    grown: Grown, impurity: np.ndarray, matrix: BinnedMatrix, statistics: Statistics,
    categories: dict[int, np.ndarray],
) -> Forest:  # fmt: skip
    """The grown tree as a model: thresholds instead of bins, values instead of sums."""
    order, left, right = in_preorder(grown)
    feature, sums = grown.feature[order], grown.sums[order]
    inner = feature != LEAF
    tested = inner & (grown.bin[order] < 0)
    threshold = np.full(len(order), np.nan)
    by_value = inner & ~tested
    nodes_by_value = order[by_value]
    threshold[by_value] = matrix.middles(
        feature[by_value], grown.bin[nodes_by_value], grown.above[nodes_by_value]
    )
    subset = np.full(len(order), LEAF, dtype=np.int64)
    subset[tested] = np.arange(np.count_nonzero(tested))
    values = statistics.values(sums)
    bounds = grown.bounds[order]
    if np.isfinite(bounds).any():
        values = _clipped(values, bounds, statistics)
    nodes = Nodes(
        feature,
        threshold,
        grown.missing_left[order] & inner,
        left,
        right,
        subset,
        values,
        impurity[order],
        grown.n_rows[order],
        statistics.weight(sums) * statistics.weight_unit,
    )
    return Forest(
        nodes,
        np.zeros(1, dtype=np.int64),
        len(matrix.edges),
        subsets=grown.subset[order[tested]],
        categories=categories,
    )


def _clipped(values: np.ndarray, bounds: np.ndarray, statistics: Statistics) -> np.ndarray:
    """Values within what monotone ancestors allow."""
    if not statistics.labelled:
        low, high = statistics.shift + statistics.unit * bounds.T
        return np.clip(values, low[:, None], high[:, None])
    positive = np.clip(values[:, 1], bounds[:, 0], bounds[:, 1])
    return np.stack([1.0 - positive, positive], axis=1)
