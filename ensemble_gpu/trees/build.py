"""From binned rows to a tree of the model: grow, read the sums, put the nodes in preorder."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ensemble_gpu.data.bags import draw_features
from ensemble_gpu.data.interactions import Interactions
from ensemble_gpu.data.matrix import BinnedMatrix
from ensemble_gpu.kernels.host.nodes import add_children, root_key, write_preorder
from ensemble_gpu.kernels.protocol import Engine
from ensemble_gpu.kernels.tree_protocol import LEAF, NEVER, SplitRule, subset_words
from ensemble_gpu.model.forest import Forest
from ensemble_gpu.model.nodes import Nodes, no_subset
from ensemble_gpu.trees.grow import Grown, Limits, grow
from ensemble_gpu.trees.prune import pruned
from ensemble_gpu.trees.statistics import Statistics


@dataclass(frozen=True)
class TreeParameters:
    """How the trees of an estimator grow; parameters, resolved.

    `min_weight` is the share of a tree's weight that its leaves keep. `subspace` features are drawn
    for a tree as a whole (None: all).
    """

    rule: SplitRule
    max_depth: int | None
    max_leaves: int | None
    min_rows_split: int
    min_impurity_decrease: float
    n_features: int
    ccp_alpha: float
    seed: int
    min_weight: float
    subspace: int | None = None

    def features_of(self, number: int, n_features: int) -> Interactions | None:
        """The features that tree `number` may test; None: all."""
        if self.subspace is None or self.subspace >= n_features:
            return None
        drawn = draw_features(self.seed, number, n_features, self.subspace, replace=False)
        return Interactions(n_features, (frozenset(drawn.tolist()),))


@dataclass(frozen=True)
class Described:
    """What is known of the nodes of a grown tree besides their sums: one entry a node.

    `rest` belongs to the mean of y (None: nothing does). `risk` is the impurity times the node's
    share of the weight, which pruning goes by.
    """

    impurity: np.ndarray
    rest: np.ndarray | None
    risk: np.ndarray


def preorder(left: np.ndarray) -> np.ndarray:
    """The nodes that can be reached from the root, in preorder."""
    out = np.empty(len(left), dtype=np.int32)
    return out[: write_preorder(left, out)]


def in_preorder(grown: Grown) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(nodes in preorder, the places of their left and of their right children)."""
    order = preorder(grown.left)
    place = np.empty(len(grown.left), dtype=np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    left = grown.left[order]
    inner = left != LEAF
    right = np.full_like(left, LEAF)
    right[inner] = place[left[inner] + 1]
    left[inner] = place[left[inner]]
    return order, left, right


def subset_rows(tested: np.ndarray) -> np.ndarray:
    """Which subset every node has, those that are tested by one in their order; LEAF elsewhere."""
    return np.where(tested, np.cumsum(tested) - 1, LEAF) if tested.any() else no_subset(len(tested))


def grow_tree(
    engine: Engine, matrix: BinnedMatrix, statistics: Statistics, parameters: TreeParameters,
    number: int, rows: Any | None = None, counts: Any | None = None,
) -> tuple[Grown, Described]:  # fmt: skip
    """Tree `number` from the rows that counts says, and what is known of its nodes."""
    sample = statistics.sample(rows, counts, engine.where.xp)
    total = float(engine.where.xp.sum(sample.values[:, 0]))  # the weight; 0 of rows not drawn
    least = statistics.in_scores(parameters.min_impurity_decrease * total)
    limits = Limits(
        parameters.max_depth, parameters.max_leaves, parameters.min_rows_split,
        NEVER if least == 0.0 else least * (1.0 - 2.0**-40), parameters.n_features,
        parameters.features_of(number, len(matrix.edges)),
    )  # fmt: skip
    rule = replace(parameters.rule, min_weight=math.ceil(parameters.min_weight * total))
    n_rows = matrix.codes.n_rows if rows is None else rows.shape[0]
    words = subset_words(rule.categorical, matrix.codes.width)
    grower = engine.grower(matrix.codes, sample, rule)
    del sample  # the grower has what it needs, and is gone itself once the tree is there
    grown = grow(
        grower, rule, limits, grower.total(), n_rows, root_key(parameters.seed, number), words,
        statistics.labelled,
    )  # fmt: skip
    del grower
    second = rest = None
    if statistics.second is not None:
        more = _more_sums(engine, matrix, statistics, grown, rows, counts)
        second, rest = more[:, 0], statistics.rest(grown.sums, more[:, 1:])
    impurity = statistics.impurities(grown.sums, second)
    risk = impurity * statistics.weight(grown.sums) / total
    if parameters.ccp_alpha > 0.0:
        grown = pruned(grown, risk, parameters.ccp_alpha)
    return grown, Described(impurity, rest, risk)


def _more_sums(
    engine: Engine, matrix: BinnedMatrix, statistics: Statistics, grown: Grown, rows: Any,
    counts: Any,
) -> np.ndarray:  # fmt: skip
    """Sums of w times `second`, then of w times each digit, of every node."""
    xp = engine.where.xp
    weights = statistics.weights if counts is None else statistics.weights * counts
    leaf = engine.leaves(matrix.codes, grown.code_tree())
    values = xp.stack([weights * x for x in (statistics.second, *statistics.digits)], axis=1)
    if rows is not None:
        leaf, values = xp.take(leaf, rows), xp.take(values, rows, axis=0)
    sums = engine.sums_by(leaf, values, len(grown.feature))
    add_children(grown.feature, grown.left, sums)
    return sums


def to_nodes(
    grown: Grown, thresholds: Callable[[np.ndarray], Any], values: np.ndarray,
    impurity: np.ndarray, weight: np.ndarray,
) -> tuple[Nodes, np.ndarray]:  # fmt: skip
    """The nodes in preorder, and the subsets of those that test a categorical feature.

    `thresholds(nodes)` are those of nodes that have one; values, impurity and weight have an entry
    for each node of the grown tree.
    """
    order, left, right = in_preorder(grown)
    feature = grown.feature[order]
    inner = feature != LEAF
    tested = inner & (grown.bin[order] < 0)
    threshold, cut = np.full(len(order), np.nan), inner & ~tested
    threshold[cut] = thresholds(order[cut])
    nodes = Nodes(
        feature, threshold, grown.missing_left[order] & inner, left, right, subset_rows(tested),
        values[order], impurity[order], grown.n_rows[order], weight[order],
    )  # fmt: skip
    return nodes, grown.subset[order[tested]]


def to_forest(
    grown: Grown, described: Described, matrix: BinnedMatrix, statistics: Statistics,
    categories: dict[int, np.ndarray],
) -> Forest:  # fmt: skip
    """The grown tree as a model: thresholds instead of bins, values instead of sums."""

    def thresholds(at: np.ndarray) -> np.ndarray:
        return matrix.middles(grown.feature[at], grown.bin[at], grown.above[at])

    values = statistics.values(grown.sums, described.rest)
    if grown.bounds.shape[1]:
        values = _clipped(values, grown.bounds, statistics)
    weight = statistics.weight(grown.sums) * statistics.weight_unit
    nodes, subsets = to_nodes(grown, thresholds, values, described.impurity, weight)
    root = np.zeros(1, dtype=np.int64)
    return Forest(nodes, root, len(matrix.edges), subsets=subsets, categories=categories)


def _clipped(values: np.ndarray, bounds: np.ndarray, statistics: Statistics) -> np.ndarray:
    """Values within what monotone ancestors allow."""
    if not statistics.labelled:
        low, high = statistics.shift + statistics.unit * bounds.T
        return np.clip(values, low[:, None], high[:, None])
    positive = np.clip(values[:, 1], bounds[:, 0], bounds[:, 1])
    return np.stack([1.0 - positive, positive], axis=1)
