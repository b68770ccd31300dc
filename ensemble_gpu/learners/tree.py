"""Trees as the weak learner of gradient boosting.

A tree is grown on the sums of second derivatives H and of minus gradients G: a split is worth
G_L^2 / (H_L + l2) + G_R^2 / (H_R + l2) - G^2 / (H + l2), the fall of the loss's quadratic model
with the penalty l2 c^2 / 2 on the value c of a leaf (twice), and a leaf has c = G / (H + l2). For
several outputs the gains add up, and a leaf has a value for each. Categories are put in order of
G / H, and the first of them go left: for one output no other subset is better. A sum of trees is a
Forest.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from ensemble_gpu.arrays.namespace import Where
from ensemble_gpu.data.categories import Categories
from ensemble_gpu.data.matrix import BinnedMatrix
from ensemble_gpu.kernels.host.nodes import root_key
from ensemble_gpu.kernels.protocol import Engine
from ensemble_gpu.kernels.residuals import Slots
from ensemble_gpu.kernels.sparse import evaluate_forest
from ensemble_gpu.kernels.tree_protocol import LEAF, VARIANCE, Sample, SplitRule, subset_words
from ensemble_gpu.learners.protocol import Candidate, Outcome, RoundWeights, numbered, shares
from ensemble_gpu.learners.stump import SplitConstraints
from ensemble_gpu.model.forest import Forest
from ensemble_gpu.model.nodes import Gathered, Nodes
from ensemble_gpu.trees.build import to_nodes
from ensemble_gpu.trees.grow import Grown, Limits, grow

# More than the weight of any node.
MOST_WEIGHT = 2.0**62
# Any fall of the loss is worth a split.
LEAST_GAIN = float(np.finfo(np.float64).smallest_subnormal)


def splits_once(max_depth: int | None, max_leaf_nodes: int | None) -> bool:
    """Whether a tree of this size is a single split."""
    return max_depth == 1 or max_leaf_nodes == 2


@dataclass(frozen=True)
class Size:
    """How large a tree may become (None: no limit), and what holds its leaves back.

    Each leaf keeps `min_samples_leaf` rows and the sum `min_hessian` of second derivatives.
    """

    max_depth: int | None
    max_leaf_nodes: int | None
    min_samples_leaf: int
    min_hessian: float = 0.0
    l2: float = 0.0

    @property
    def stump(self) -> bool:
        """A single split without conditions, which has strategies of its own."""
        free = self.min_samples_leaf == 1 and self.min_hessian == self.l2 == 0.0
        return free and splits_once(self.max_depth, self.max_leaf_nodes)


@dataclass(frozen=True)
class TreeRound:
    """A round: a grown tree; `values[output, node]` is what the model adds in its leaves."""

    name: ClassVar[str] = "tree"

    grown: Grown
    values: np.ndarray
    alpha: float
    error: float
    perfect: bool = False
    weights: RoundWeights | None = None
    trail: Any = None

    def with_values(self, values: np.ndarray, alpha: float) -> TreeRound:
        return replace(self, values=values, alpha=alpha)


@dataclass(frozen=True)
class TreeLeaves:
    """The leaves of a tree: the node that every row has come to, one of n.

    `owner`: node i has been cut off, and its rows belong to the leaf owner[i].
    """

    engine: Engine
    node: Any
    n: int
    owner: np.ndarray | None = None

    def moved(self, F: Any, rows: slice, values: np.ndarray, out: Any = None) -> Any:
        where = self.engine.where
        xp, node, (_, table) = where.xp, self.node[rows], self.lookup(values)
        planes = [F[k, :] + xp.take(where.put(table[k]), node) for k in range(F.shape[0])]
        return xp.stack(planes)

    def sums(self, q: Any, rows: slice) -> np.ndarray:
        q = self.engine.where.xp.permute_dims(q, (1, 0))
        sums = self.engine.sums_by(self.node[rows], q, self.n)
        if self.owner is not None:
            found, sums = sums, np.zeros_like(sums)
            np.add.at(sums, self.owner, found)
        return sums.T

    def lookup(self, values: np.ndarray) -> tuple[Any, np.ndarray]:
        return self.node, values if self.owner is None else np.take(values, self.owner, axis=1)

    def slots(self, chosen: np.ndarray) -> Slots:
        table = numbered(chosen)
        return Slots(self.node, table if self.owner is None else table[self.owner])


class Trees:
    """Trees from the gradients of a round; features are drawn anew for every node.

    What is drawn is a hash of the seed, the round and the place of the node.
    """

    name, by_feature = "tree", False

    def __init__(
        self,
        engine: Engine,
        matrix: BinnedMatrix,
        size: Size,
        constraints: SplitConstraints,
        categories: Categories,
    ) -> None:
        self.engine, self.matrix, self.categories = engine, matrix, categories
        self.seed = constraints.seed
        self.rule = SplitRule(
            VARIANCE, size.min_samples_leaf, constraints.signs, constraints.categorical,
            constraints.one_category, False,
        )  # fmt: skip
        self.size = size
        self.limits = Limits(
            size.max_depth, size.max_leaf_nodes, 2, LEAST_GAIN, constraints.n_features,
            constraints.interactions,
        )  # fmt: skip
        self.words = subset_words(constraints.categorical, matrix.codes.width)

    def seek(self, gradients: Any) -> bool:
        rows = gradients.drawn()
        n_stats = 2 * len(gradients.intercept)
        values = gradients.format.moments(gradients.packed)
        self.number, self.sample = gradients.round, Sample(rows, None, values, n_stats)
        scale = 1.0  # conditions are those of losses with halved squares, as they mostly are
        if gradients.step == "newton" and not gradients.flat:
            scale = gradients.problem.loss.times_half
        unit = gradients.units[1], gradients.format.weight_unit
        least, l2 = (_in_units(scale * a, *unit) for a in (self.size.min_hessian, self.size.l2))
        least = math.ceil(min(least, MOST_WEIGHT))
        self.rule = replace(self.rule, min_weight=least, l2=l2)
        self.grower = self.engine.grower(self.matrix.codes, self.sample, self.rule)
        self.root = self.grower.total()
        self.n_rows = self.grower.n_sampled()
        return self.n_rows > 0 and bool((self.root[: n_stats // 2] > 0).any())

    def best(self, barred: list[int]) -> Candidate | None:
        half = self.sample.n_stats // 2
        grown = grow(
            self.grower, self.rule, self.limits, self.root, self.n_rows,
            root_key(self.seed, self.number), self.words, False,
        )  # fmt: skip
        if len(grown.feature) == 1:
            return None
        H, S = grown.sums[:, :half].T, grown.sums[:, half:].T
        leaf = grown.is_leaf
        c = np.where(leaf & (H > 0), S / (np.maximum(H, 1) + self.rule.l2), 0.0)
        if self.rule.monotone:
            c = np.where(leaf, np.clip(c, grown.bounds[:, 0], grown.bounds[:, 1]), 0.0)
        gain = float(grown.gain[grown.feature != LEAF].sum())

        def made(values: np.ndarray, alpha: float, error: float, trail: Any) -> TreeRound:
            return TreeRound(grown, values, alpha, error, trail=trail)

        kept = np.where(leaf & (H > 0), H / (np.maximum(H, 1) + self.rule.l2), 0.0)

        def allowed(steps: np.ndarray) -> np.ndarray:
            """Shrunk as c is, and in the order of monotone features."""
            steps = kept * steps
            return self._ordered(grown, steps) if self.rule.monotone else steps

        return Candidate(c, S * leaf, gain, self._grown_leaves(grown), made, [], allowed)

    def _ordered(self, grown: Grown, steps: np.ndarray) -> np.ndarray:
        """Steps of leaves that keep the order of monotone features.

        From the last split up: leaves on the two sides that are in the wrong order are cut at the
        step nearest to 0 that parts them. Cutting a side keeps the order within it.
        """
        steps, inner = steps.copy(), np.flatnonzero(grown.feature != LEAF)
        below = {node: np.array([node]) for node in np.flatnonzero(grown.is_leaf).tolist()}
        for node in inner[::-1].tolist():
            child = int(grown.left[node])
            sides = below[child], below[child + 1]
            below[node] = np.concatenate(sides)
            sign = int(self.rule.signs[grown.feature[node]])
            for own in steps if sign else ():
                lower, upper = sides[::sign]
                least, most = own[upper].min(), own[lower].max()
                if most > least:
                    cut = float(np.median([most, 0.0, least]))
                    own[lower] = np.minimum(own[lower], cut)
                    own[upper] = np.maximum(own[upper], cut)
        return steps

    def _grown_leaves(self, grown: Grown) -> TreeLeaves:
        """Where the grower has left the rows, if it had all of them."""
        if self.sample.rows is not None:
            return self._leaves_of(grown)
        return TreeLeaves(self.engine, self.grower.nodes(), len(grown.feature), grown.owner)

    def _leaves_of(self, grown: Grown) -> TreeLeaves:
        node = self.engine.leaves(self.matrix.codes, grown.code_tree())
        return TreeLeaves(self.engine, node, len(grown.feature))

    def leaves(self, round_: TreeRound) -> TreeLeaves:
        return self._leaves_of(round_.grown)

    def random_state(self) -> None:
        return None

    def restore(self, random_state: Any) -> None:
        pass

    def added(self, round_: TreeRound, X: Any, where: Where) -> Any:
        return self.added_together([round_], X)

    def added_together(self, rounds: Sequence[TreeRound], X: Any) -> Any:
        """What several rounds add to the outputs of rows X: [n, outputs]."""
        forest = self._forest(rounds, np.zeros(rounds[0].values.shape[0]))
        return evaluate_forest(self.engine, X, forest.packed)

    def round_info(self, round_: TreeRound) -> dict[str, Any]:
        grown = round_.grown
        feature, last_bin = int(grown.feature[0]), int(grown.bin[0])
        root = {"feature": feature, "threshold": np.nan, "values": round_.values.copy()}
        if last_bin >= 0:
            return root | {"threshold": self.matrix.threshold(feature, last_bin)}
        words = grown.subset[0].tolist()
        names = enumerate(self.categories.names(feature))
        return root | {"categories": [n for code, n in names if words[code // 64] >> code % 64 & 1]}

    def outcome(
        self, rounds: Sequence[TreeRound], start: np.ndarray, constant: np.ndarray
    ) -> Outcome:
        p = len(self.matrix.edges)
        gains = np.zeros(p)
        for round_ in rounds:
            inner = round_.grown.feature != LEAF
            feature, gain = round_.grown.feature[inner], round_.grown.gain[inner]
            gains += np.bincount(feature, gain, minlength=p)
        return Outcome(self._forest(rounds, start), shares(gains))

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
            gathered.nodes() if rounds else _no_nodes(len(intercept)),
            np.array(starts, dtype=np.int64),
            len(self.matrix.edges),
            subsets=np.concatenate(subsets) if rounds else None,
            categories=self.categories.values,
            intercept=intercept,
            average=False,
        )

    def _nodes(self, grown: Grown, values: np.ndarray) -> tuple[Nodes, np.ndarray]:
        def thresholds(at: np.ndarray) -> list[float]:
            pairs = zip(grown.feature[at].tolist(), grown.bin[at].tolist(), strict=True)
            return [self.matrix.threshold(f, b) for f, b in pairs]

        half = grown.sums.shape[1] // 2
        weight = grown.sums[:, :half].sum(axis=1).astype(np.float64)
        return to_nodes(grown, thresholds, values.T, np.zeros(len(weight)), weight)


def _in_units(amount: float, unit: float, weight: float) -> float:
    """An amount of second derivatives in units of the round; weights may be as small as nothing."""
    if amount == 0.0:
        return 0.0
    return amount / unit / weight if weight > 0.0 else math.inf


def _no_nodes(n_outputs: int) -> Nodes:
    none, values = np.zeros(0), np.zeros((0, n_outputs))
    return Nodes(none, none, none, none, none, none, values, none, none, none)
