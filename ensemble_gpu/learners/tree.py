"""Trees as the weak learner of gradient boosting.

A tree is grown on the sums of second derivatives H and of minus gradients G: a split is worth
G_L^2 / H_L + G_R^2 / H_R - G^2 / H, the fall of the loss's quadratic model (twice), and a leaf
fits -gradient by G / H. For several outputs the gains add up, and a leaf has a value for each.
Categories are put in order of G / H, and the first of them go left: for one output no other subset
is better.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ensemble_gpu.arrays.namespace import Where
from ensemble_gpu.boosting.gradients import Gradients, TreeLeaves
from ensemble_gpu.boosting.rebuild import Candidate, Rebuild
from ensemble_gpu.boosting.strategy import Outcome, Plan, shares
from ensemble_gpu.data.categories import Categories
from ensemble_gpu.data.matrix import BinnedMatrix
from ensemble_gpu.kernels.host.nodes import root_key
from ensemble_gpu.kernels.tree_protocol import LEAF, VARIANCE, Sample, SplitRule, subset_words
from ensemble_gpu.learners.stump import SplitConstraints
from ensemble_gpu.model.forest import Forest
from ensemble_gpu.model.nodes import Gathered, Nodes
from ensemble_gpu.trees.build import in_preorder, subset_rows
from ensemble_gpu.trees.grow import Grown, Limits, grow

# Any fall of the loss is worth a split.
LEAST_GAIN = float(np.finfo(np.float64).smallest_subnormal)


@dataclass(frozen=True)
class Size:
    """How large a tree may become."""

    max_depth: int | None
    max_leaf_nodes: int | None
    min_samples_leaf: int

    @property
    def depth(self) -> int | None:
        """Tests on the way to a leaf: one, where nothing asks for more."""
        unlimited = self.max_depth is None and self.max_leaf_nodes is None
        return 1 if unlimited else self.max_depth

    @property
    def stump(self) -> bool:
        """A single split, which has a strategy of its own."""
        lone = self.depth == 1 or self.max_leaf_nodes == 2
        return lone and self.min_samples_leaf == 1


@dataclass(frozen=True)
class TreeRound:
    """A round: a grown tree; `values[output, node]` is what the model adds in its leaves."""

    name: ClassVar[str] = "tree"

    grown: Grown
    values: np.ndarray
    alpha: float
    error: float
    perfect: bool = False


class Trees:
    """Trees from the gradients of a round; features are drawn anew for every node."""

    name = "tree"

    def __init__(
        self, matrix: BinnedMatrix, size: Size, constraints: SplitConstraints, seed: int
    ) -> None:
        self.matrix, self.seed = matrix, seed
        self.rule = SplitRule(
            VARIANCE, size.min_samples_leaf, constraints.signs, constraints.categorical,
            constraints.one_category, False,
        )  # fmt: skip
        self.limits = Limits(size.depth, size.max_leaf_nodes, 2, LEAST_GAIN, constraints.n_features)
        self.words = subset_words(constraints.categorical, matrix.codes.width)

    def seek(self, gradients: Gradients) -> bool:
        rows = gradients.drawn()
        n_stats = 2 * len(gradients.intercept)
        values = gradients.format.moments(gradients.packed)
        self.gradients, self.sample = gradients, Sample(rows, None, values, n_stats)
        self.grower = gradients.engine.grower(self.matrix.codes, self.sample, self.rule)
        self.root = self.grower.total()
        self.n_rows = gradients.n_rows if rows is None else rows.shape[0]
        return self.n_rows > 0 and bool((self.root[: n_stats // 2] > 0).any())

    def best(self, barred: list[int]) -> Candidate | None:
        gradients, codes = self.gradients, self.matrix.codes
        engine, half = gradients.engine, self.sample.n_stats // 2
        key = root_key(self.seed, gradients.round)
        grown = grow(
            self.grower, self.rule, self.limits, self.root, self.n_rows, key, self.words, False
        )
        if len(grown.feature) == 1:
            return None
        H, S = grown.sums[:, :half].T, grown.sums[:, half:].T
        leaf = grown.is_leaf
        c = np.where(leaf & (H > 0), S / np.maximum(H, 1), 0.0)
        if self.rule.monotone:
            c = np.where(leaf, np.clip(c, grown.bounds[:, 0], grown.bounds[:, 1]), 0.0)
        every = self.sample.rows is None
        node = self.grower.nodes() if every else engine.leaves(codes, grown.code_tree())
        if every and grown.owner is not None:
            node = engine.where.xp.take(engine.where.put(grown.owner), node)
        leaves = TreeLeaves(engine, node, len(leaf))
        gain = float(grown.gain[grown.feature != LEAF].sum())

        def made(values: np.ndarray, alpha: float, error: float) -> TreeRound:
            return TreeRound(grown, values, alpha, error)

        return Candidate(c, S * leaf, gain, leaves, made, [])


@dataclass(frozen=True)
class TreePlan(Plan):
    """Rounds of trees: their sum is a Forest."""

    strategy: Rebuild
    matrix: BinnedMatrix
    categories: Categories
    start: np.ndarray
    link: str
    loss: Callable[[Any, Any, Any], float]
    cheap_loss: bool = False

    def added(self, round_: TreeRound, X: Any, where: Where) -> Any:
        tree = self._forest([round_], np.zeros_like(self.start))
        return self.strategy.gradients.engine.evaluate_forest(X, tree.packed)

    def round_info(self, round_: TreeRound) -> dict[str, Any]:
        grown = round_.grown
        feature, last_bin = int(grown.feature[0]), int(grown.bin[0])
        root = {"feature": feature, "threshold": np.nan, "values": round_.values.copy()}
        if last_bin >= 0:
            return root | {"threshold": self.matrix.threshold(feature, last_bin)}
        words = grown.subset[0].tolist()
        names = enumerate(self.categories.names(feature))
        return root | {"categories": [n for code, n in names if words[code // 64] >> code % 64 & 1]}

    def outcome(self, rounds: Sequence[TreeRound], n_features: int) -> Outcome:
        gains = np.zeros(n_features)
        for round_ in rounds:
            inner = round_.grown.feature != LEAF
            gains += np.bincount(
                round_.grown.feature[inner], round_.grown.gain[inner], minlength=n_features
            )
        return Outcome(self._forest(rounds, self.start), shares(gains))

    def _forest(self, rounds: Sequence[TreeRound], intercept: np.ndarray) -> Forest:
        """The sum of the rounds' trees."""
        gathered, n_subsets = Gathered(len(rounds)), 0
        starts, subsets = [], []
        for round_ in rounds:
            nodes, own = self._nodes(round_.grown, round_.values)
            starts.append(gathered.n)
            gathered.add(nodes, n_subsets)
            subsets.append(own)
            n_subsets += len(own)
        return Forest(
            gathered.nodes() if rounds else self._no_nodes(),
            np.array(starts, dtype=np.int64),
            len(self.matrix.edges),
            subsets=np.concatenate(subsets) if rounds else None,
            categories=self.categories.values,
            intercept=intercept,
            average=False,
        )

    def _no_nodes(self) -> Nodes:
        none, values = np.zeros(0), np.zeros((0, len(self.start)))
        return Nodes(none, none, none, none, none, none, values, none, none, none)

    def _nodes(self, grown: Grown, values: np.ndarray) -> tuple[Nodes, np.ndarray]:
        """The nodes in preorder, and the subsets of those that test a categorical feature."""
        order, left, right = in_preorder(grown)
        feature, last_bin = grown.feature[order], grown.bin[order]
        inner = feature != LEAF
        tested = inner & (last_bin < 0)
        cut = inner & ~tested
        threshold = np.full(len(order), np.nan)
        threshold[cut] = [
            self.matrix.threshold(f, b)
            for f, b in zip(feature[cut].tolist(), last_bin[cut].tolist(), strict=True)
        ]
        half = values.shape[0]
        nodes = Nodes(
            feature,
            threshold,
            grown.missing_left[order] & inner,
            left,
            right,
            subset_rows(tested),
            values.T[order],
            np.zeros(len(order)),
            grown.n_rows[order],
            grown.sums[order, :half].sum(axis=1).astype(np.float64),
        )
        return nodes, grown.subset[order[tested]]
