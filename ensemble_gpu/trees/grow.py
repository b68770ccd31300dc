"""How a tree grows: level by level, or the best leaf first.

Every open node has its best split. Without a limit on the leaves all of them are taken at once.
With one, those are taken that growing the best leaf first would take as far as is known, and the
tree is cut back in the end: what a node becomes depends on its rows, not on its turn, so that the
leaves are the same as one by one, in a few steps.

What is random about a node hangs on its place in the tree as well: the key of a child is a hash of
its parent's.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ensemble_gpu.data.interactions import Interactions
from ensemble_gpu.kernels.host.criteria import Scoring, gains, pair_gains, scoring_of
from ensemble_gpu.kernels.host.nodes import (
    NodeArrays,
    best_first,
    draw_features,
    fork,
    open_nodes,
)
from ensemble_gpu.kernels.host.records import record_of
from ensemble_gpu.kernels.tree_protocol import (
    GINI,
    LEAF,
    NEVER,
    VARIANCE,
    CodeTree,
    Frontier,
    Grower,
    SplitRule,
    Splits,
    WholeTreeGrower,
)

UNBOUNDED = np.array([[-np.inf, np.inf]])
# A gain of this share of a node's score is rounding.
ROUNDING = 2.0**-50


@dataclass(frozen=True)
class Limits:
    """When to stop. `least_gain` is in units of the score; None: no limit.

    `interactions` says which features may be tested on the way to a leaf (None: all).
    """

    max_depth: int | None
    max_leaves: int | None
    min_rows_split: int
    least_gain: float
    n_features: int
    interactions: Interactions | None = None


def longer(array: np.ndarray, n: int) -> np.ndarray:
    """A copy with room for n entries."""
    out = np.empty((n, *array.shape[1:]), dtype=array.dtype)
    out[: len(array)] = array
    return out


@dataclass
class Grown:
    """A tree in the order of growth: one entry a node, root first; leaves have feature LEAF.

    The right child follows the left one. `gain` is what the node's split adds to the score,
    `bounds` [node, 2] what monotone constraints leave ([node, 0] without any). Nodes that were cut
    off again are still there; `owner` names the leaf in which each is.
    """

    feature: np.ndarray
    bin: np.ndarray
    above: np.ndarray
    missing_left: np.ndarray
    subset: np.ndarray
    left: np.ndarray
    sums: np.ndarray
    n_rows: np.ndarray
    depth: np.ndarray
    gain: np.ndarray
    bounds: np.ndarray
    key: np.ndarray
    owner: np.ndarray | None = None

    @classmethod
    def root(cls, sums: np.ndarray, n_rows: int, key: Any, words: int, monotone: bool) -> Grown:
        """A single node, not split yet."""

        def one(value: int) -> np.ndarray:
            return np.array([value], dtype=np.int32)

        return cls(
            one(LEAF), one(-1), one(0), np.zeros(1, dtype=bool),
            np.zeros((1, words), dtype=np.uint64), one(LEAF),
            np.array(sums, dtype=np.int64)[None, :], one(n_rows), one(0), np.zeros(1),
            UNBOUNDED[:, : 2 * monotone].copy(), np.array([key], dtype=np.uint64),
        )  # fmt: skip

    @property
    def arrays(self) -> NodeArrays:
        """What has an entry a node while the tree grows."""
        return NodeArrays(*(getattr(self, name) for name in NodeArrays._fields))

    def first(self, n: int) -> Grown:
        """Views of the first n entries."""
        return Grown(*(a[:n] for a in self.arrays))

    def with_room(self, n: int) -> Grown:
        """The same with room for n nodes at least: itself, or longer copies."""
        room = len(self.feature)
        if n <= room:
            return self
        return Grown(*(longer(a, max(n, 4 * room, 1024)) for a in self.arrays))

    @property
    def right(self) -> np.ndarray:
        return np.where(self.left == LEAF, np.int32(LEAF), self.left + np.int32(1))

    @property
    def is_leaf(self) -> np.ndarray:
        """Nodes in which rows end."""
        leaf = self.feature == LEAF
        return leaf if self.owner is None else leaf & (self.owner == np.arange(len(leaf)))

    def cut(self, split: np.ndarray) -> Grown:
        """The tree with leaves in place of the nodes that are not split: a bool a node."""
        feature = np.where(split, self.feature, np.int32(LEAF))
        return replace(self, feature=feature, left=np.where(split, self.left, np.int32(LEAF)))

    def code_tree(self) -> CodeTree:
        return CodeTree(
            self.feature, self.bin, self.missing_left, self.left, self.right, self.subset
        )


class _Growth:
    """One tree being grown."""

    def __init__(
        self, grower: Grower, rule: SplitRule, limits: Limits, tree: Grown, labelled: bool
    ):
        self.grower, self.rule, self.limits = grower, rule, limits
        self.store = self.tree = tree
        self.labelled = labelled
        self.scoring: Scoring = scoring_of(rule, tree.sums.shape[1])
        self.tested: list[frozenset[int]] = [frozenset()]  # on the way to each node

    def open_nodes(self, first: int, stop: int) -> np.ndarray:
        """Those of nodes first ... stop - 1 that may be split: large, not too deep, not pure."""
        tree, limits = self.tree, self.limits
        least = max(limits.min_rows_split, 2 * self.rule.min_rows, 2)
        depth = -1 if limits.max_depth is None else limits.max_depth
        out = np.empty(stop - first, dtype=np.int64)
        m = open_nodes(first, stop, tree.arrays, least, depth, self.labelled, out)
        return out[:m] if self.labelled else out[:m][~self.grower.pure(out[:m])]

    def best_splits(self, nodes: np.ndarray) -> Splits:
        """Best split of every node, among the features that it may test."""
        interactions, p = self.limits.interactions, len(self.rule.signs)
        if interactions is None:
            return self._splits_among(nodes, None)
        allowed = [interactions.allowed(self.tested[node]) for node in nodes.tolist()]
        sizes = np.array([p if own is None else len(own) for own in allowed])
        found = Splits.none(len(nodes), self.tree.sums.shape[1], self.tree.subset.shape[1])
        # nodes with as many features in one step; those with all of them, which may have sums of
        # their parents, before the others, which would drop these
        for size in np.unique(sizes)[::-1].tolist():
            at = np.flatnonzero(sizes == size)
            features = None if size == p else np.array([allowed[i] for i in at.tolist()])
            found.replace(at, self._splits_among(nodes[at], features))
        return found

    def _splits_among(self, nodes: np.ndarray, allowed: np.ndarray | None) -> Splits:
        """Best splits on the features `allowed` [node, feature] (None: all).

        Of a few that are drawn for each node or, without success, of more.
        """
        p = len(self.rule.signs) if allowed is None else allowed.shape[1]
        k = self.limits.n_features
        if k >= p:
            return self.grower.split(self._frontier(nodes, allowed))
        found = self._drawn_splits(nodes, allowed, 0, k)
        for start in range(k, p, k):
            pending = np.flatnonzero(found.score == NEVER)
            if not len(pending):
                break
            own = None if allowed is None else allowed[pending]
            more = self._drawn_splits(nodes[pending], own, start, min(k, p - start))
            found.replace(pending, more)
        return found

    def _drawn_splits(
        self, nodes: np.ndarray, allowed: np.ndarray | None, start: int, k: int
    ) -> Splits:
        p = len(self.rule.signs) if allowed is None else allowed.shape[1]
        features = np.empty((len(nodes), k), dtype=np.int64)
        draw_features(self.tree.key[nodes], p, start, features)
        if allowed is not None:
            features = np.take_along_axis(allowed, features, axis=1)
        return self.grower.split(self._frontier(nodes, features))

    def _frontier(self, nodes: np.ndarray, features: np.ndarray | None) -> Frontier:
        tree = self.tree
        bounds = tree.bounds[nodes] if self.rule.monotone else np.repeat(UNBOUNDED, len(nodes), 0)
        return Frontier(nodes, tree.sums[nodes], features, bounds, tree.key[nodes])

    def gains(self, nodes: np.ndarray, splits: Splits) -> np.ndarray:
        """What each split adds to the score of its node; 0 where rounding alone would say more."""
        gain = np.empty(len(nodes))
        scored = self.tree.sums, nodes, splits.score, ROUNDING, gain
        if self.scoring.n_stats == 2 and self.scoring.kind in (GINI, VARIANCE):
            pair_gains(self.scoring.kind, self.scoring.l2, *scored)
        else:
            gains(self.scoring, *scored)
        return gain

    def divide(self, nodes: np.ndarray, splits: Splits, gain: np.ndarray) -> None:
        """Split the nodes; their children are the last nodes of the tree."""
        first = len(self.tree.feature)
        last = first + 2 * len(nodes)
        n_left = self.grower.partition(nodes, splits)
        self.store = self.store.with_room(last)
        fork(
            nodes, record_of(splits), splits.subset, splits.left, n_left, gain,
            self.rule.criterion, self.rule.l2, self.rule.signs, first, self.store.arrays,
        )  # fmt: skip
        self.tree = self.store.first(last)
        if self.limits.interactions is not None:
            for node, feature in zip(nodes.tolist(), splits.feature.tolist(), strict=True):
                self.tested += [self.tested[node] | {feature}] * 2


@dataclass(frozen=True)
class Waiting:
    """Nodes that could be split, and how."""

    nodes: np.ndarray
    splits: Splits

    def __getitem__(self, chosen: np.ndarray) -> Waiting:
        return self if chosen.all() else Waiting(self.nodes[chosen], self.splits[chosen])

    def joined(self, more: Waiting) -> Waiting:
        if not len(self.nodes):
            return more
        nodes = np.concatenate([self.nodes, more.nodes])
        return Waiting(nodes, self.splits.extended(more.splits))


def grow(
    grower: Grower, rule: SplitRule, limits: Limits, root: Any, n_rows: int, key: Any, words: int,
    labelled: bool,
) -> Grown:  # fmt: skip
    """Grow a tree from a root with sums `root` [statistic] of n_rows rows."""
    start = Grown.root(root, n_rows, key, words, rule.monotone)
    if isinstance(grower, WholeTreeGrower) and grower.grows_whole(limits):
        whole = grower.grow_whole(limits, ROUNDING, start.arrays)
        if whole is not None:
            arrays, split = whole
            return Grown(*arrays) if split is None else _cut(Grown(*arrays), split)
    growth = _Growth(grower, rule, limits, start, labelled)
    most = limits.max_leaves
    waiting = Waiting(np.zeros(0, dtype=np.int64), Splits.none(0, len(root), words))
    potential = np.full(1, NEVER)  # what the best split of a node would add to the score
    n_known = 0  # nodes that were looked at
    while True:
        new = growth.open_nodes(n_known, len(growth.tree.feature))
        if len(new):
            found = growth.best_splits(new)
            gained = growth.gains(new, found)
            good = (found.score > NEVER) & (gained >= limits.least_gain)
            potential[new[good]] = gained[good]
            waiting = waiting.joined(Waiting(new, found)[good])
        tree, n_known = growth.tree, len(growth.tree.feature)
        chosen = np.ones(len(waiting.nodes), dtype=bool)
        if most is not None:
            split = np.zeros(len(tree.feature), dtype=bool)
            best_first(tree.left, tree.key, potential, most, split)
            chosen = split[waiting.nodes]
        if not chosen.any():
            return tree if most is None else _cut(tree, split)
        taken = waiting[chosen]
        growth.divide(taken.nodes, taken.splits, potential[taken.nodes])
        potential = np.concatenate([potential, np.full(2 * len(taken.nodes), NEVER)])
        waiting = waiting[~chosen]


def _cut(tree: Grown, split: np.ndarray) -> Grown:
    """The tree with leaves in place of the nodes that are not split; `owner` finds them."""
    owner = list(range(len(split)))
    pairs = zip(tree.left.tolist(), split.tolist(), strict=True)
    for node, (left, is_split) in enumerate(pairs):  # parents before children
        if left != LEAF and not (is_split and owner[node] == node):
            owner[left] = owner[left + 1] = owner[node]
    return replace(tree.cut(split), owner=np.array(owner))
