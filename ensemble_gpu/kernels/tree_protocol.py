"""How a tree grows: the part of the engines' contract that trees use.

Every row carries integers, a node's statistics are their sums, and the best split of a node is
found from the sums per (feature, code). Integers make the sums, and with them the tree, the same on
every engine, whatever the order of rows and nodes; kernels/host/criteria.py has the scores.

Two kinds of statistics:

- classes: a row has a label and a weight; sums[k] is the weight of class k in the node.
- moments: a row has 2 K numbers; sums = (H_1 ... H_K, G_1 ... G_K), H weights (or second
  derivatives), G weights times target (or minus gradients). A regression has K = 1.

Nodes are numbered in the order in which they come to be: the root is 0, and `partition` gives the
children of its nodes the next numbers, left before right.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

if TYPE_CHECKING:
    from ensemble_gpu.kernels.path_shares import PathShares

GINI, ENTROPY, ERROR, VARIANCE, POISSON = range(5)
# Below this weight the squares of a node's sums add up exactly in 64 bits.
EXACT_WEIGHT = 1 << 31
# Categories are numbered below this.
MOST_CATEGORIES = 1 << 16
LEAF = -1  # in place of a feature, a child, a subset
NEVER = -np.inf  # the score of a node that cannot be split


@dataclass(frozen=True)
class Sample:
    """The rows that a tree grows from, and what is added up over them.

    `rows` are their positions in the matrix, ascending (None: all of it). With `label` [rows of the
    matrix] statistics are classes and `values` [rows of the matrix, 1] the weights; without it they
    are the moments `values` [rows of the matrix, n_stats]. A node is pure where `target` [rows of
    the matrix] is the same for all its rows (None: nobody asks, or labels tell). All in the
    engine's namespace, int64.
    """

    rows: Any | None
    label: Any | None
    values: Any
    n_stats: int
    target: Any | None = None


@dataclass(frozen=True)
class SplitRule:
    """Which splits are allowed, and how they are scored.

    `signs[f]` = +1 (-1): the right child's value may not be below (above) the left one's.
    `categorical[f]`: codes are categories; a split is a set of them, or with `one_category` a
    single one. `random`: one threshold drawn per feature instead of the best. Each child keeps
    `min_rows` rows and the weight `min_weight` (of moments the sum of all H_k). `l2` is added to
    H_k where it divides: in the units of H.
    """

    criterion: int
    min_rows: int
    signs: np.ndarray
    categorical: np.ndarray
    one_category: bool
    random: bool
    min_weight: int = 0
    l2: float = 0.0

    @property
    def monotone(self) -> bool:
        return bool(self.signs.any())


@dataclass(frozen=True)
class Frontier:
    """Nodes that look for a split; host arrays, one entry a node.

    `sums` are their statistics, `features[i]` the features to try (ascending; None: all), `bounds`
    what monotone ancestors allow for their children's values, `keys` what is random about them.
    """

    nodes: np.ndarray
    sums: np.ndarray
    features: np.ndarray | None
    bounds: np.ndarray
    keys: np.ndarray

    def __getitem__(self, part: slice | np.ndarray) -> Frontier:
        features = None if self.features is None else self.features[part]
        return Frontier(
            self.nodes[part], self.sums[part], features, self.bounds[part], self.keys[part]
        )


@dataclass(frozen=True)
class Splits:
    """The best split of every node of a frontier; host arrays.

    A code <= `bin` goes left; the next code that occurs in the node is `above` (the number of codes
    where none does: everything present goes left). A categorical split has the codes that go left
    as bits of `subset` [node, words], and `bin` -1. Missing values go left where
    `missing_left`; `has_missing` says whether the node had any to learn that from. `score` is
    NEVER, `feature` LEAF where no split is allowed. `left` are the left child's sums.
    """

    score: np.ndarray
    feature: np.ndarray
    bin: np.ndarray
    above: np.ndarray
    missing_left: np.ndarray
    has_missing: np.ndarray
    subset: np.ndarray
    left: np.ndarray

    def __getitem__(self, chosen: Any) -> Splits:
        return Splits(*(a[chosen] for a in vars(self).values()))

    def extended(self, more: Splits) -> Splits:
        pairs = zip(vars(self).values(), vars(more).values(), strict=True)
        return Splits(*(np.concatenate(pair) for pair in pairs))

    def replace(self, at: np.ndarray, by: Splits) -> None:
        """Write other splits for the nodes `at`."""
        for old, new in zip(vars(self).values(), vars(by).values(), strict=True):
            old[at] = new

    @classmethod
    def none(cls, n: int, n_stats: int, words: int) -> Splits:
        """No split for any of n nodes."""
        return cls(
            np.full(n, NEVER),
            np.full(n, LEAF, dtype=np.int64),
            np.full(n, -1, dtype=np.int64),
            np.zeros(n, dtype=np.int64),
            np.zeros(n, dtype=bool),
            np.zeros(n, dtype=bool),
            np.zeros((n, words), dtype=np.uint64),
            np.zeros((n, n_stats), dtype=np.int64),
        )


def subset_words(categorical: np.ndarray, width: int) -> int:
    """64-bit words that hold a subset of categories; 0 where no feature is categorical."""
    return -(-min(width, MOST_CATEGORIES) // 64) if categorical.any() else 0


def unpacked(bits: np.ndarray) -> np.ndarray:
    """Subsets [node, words] as bool [node, category]."""
    places = np.arange(64, dtype=np.uint64)
    every = (bits[:, :, None] >> places) & np.uint64(1) != 0
    return every.reshape(len(bits), 64 * bits.shape[1])


@dataclass(frozen=True)
class CodeTree:
    """A grown tree on codes: what sends the rows of a binned matrix to their leaves.

    Node i sends code <= bin[i] of feature[i] left or, where bin[i] is -1, the codes whose bits are
    set in subset[i]. feature = LEAF marks a leaf. Children are node numbers.
    """

    feature: np.ndarray
    bin: np.ndarray
    missing_left: np.ndarray
    left: np.ndarray
    right: np.ndarray
    subset: np.ndarray


@dataclass(frozen=True)
class PackedForest:
    """The trees of a model in one piece; children are positions in these arrays.

    x[feature] <= threshold goes left; `subset` >= 0: the bits of that row of `subsets` do, x being
    a category's number. NaN goes left where `missing_left`. The `values` of the leaf reached in
    each tree are added, tree after tree from `roots`; the sum is divided by `divisor`, and the
    intercept is added last. `layouts` is for the engine: the nodes laid out in other ways.
    """

    roots: np.ndarray
    feature: np.ndarray
    threshold: np.ndarray
    missing_left: np.ndarray
    left: np.ndarray
    right: np.ndarray
    subset: np.ndarray
    subsets: np.ndarray
    values: np.ndarray
    divisor: float
    intercept: np.ndarray
    layouts: dict[Any, Any] = field(default_factory=dict, compare=False, repr=False)


class Grower(Protocol):
    """The rows of one tree, node by node."""

    def total(self) -> np.ndarray:
        """Sums [statistic] of all rows of the sample."""
        ...

    def n_sampled(self) -> int:
        """How many rows the sample has; in a team, everybody's."""
        ...

    def sums(self, frontier: Frontier) -> np.ndarray:
        """int64 [node, tried feature, code, column] on the host; the last code is the missing one.

        Columns are the statistics and, where `min_rows` asks for it, the number of rows. Sums of
        the same nodes over disjoint parts of a sample add up to those of the whole.
        """
        ...

    def split(self, frontier: Frontier) -> Splits:
        """The best split of every node: `choose` (kernels/host/search.py) from `sums`, but fast."""
        ...

    def partition(self, nodes: np.ndarray, splits: Splits) -> np.ndarray:
        """Send the rows of each node to its two new children; how many went left."""
        ...

    def nodes(self) -> Any:
        """The node of every row of the sample, in its order: int64, where the codes are."""
        ...

    def pure(self, nodes: np.ndarray) -> np.ndarray:
        """Whether all rows of a node have the same `target`; bool, one a node."""
        ...


@runtime_checkable
class WholeTreeGrower(Protocol):
    """What a Grower may be as well: one that grows a tree by itself."""

    def grows_whole(self, limits: Any) -> bool:
        """Whether it can, within these limits."""
        ...

    def grow_whole(self, limits: Any, rounding: float, root: Any) -> Any:
        """From the arrays of a root (kernels/host/nodes.py, NodeArrays) those of the whole tree.

        And which of the nodes are split in the end, where leaves are limited (else None). `limits`
        and `rounding` as in trees/grow.py, which would grow the same tree. None: not yet, as the
        program for it is being compiled.
        """
        ...


class TreeEngine(Protocol):
    """What an engine does for trees."""

    def grower(self, codes: Any, sample: Sample, rule: SplitRule) -> Grower: ...

    def moments(self, packed: Any) -> Any:
        """`Sample.values` for packed gradients [output, row] = s 2^32 + h, s = -g: h and s.

        An engine that adds both at once may keep them packed, [rows, 1].
        """
        ...

    def leaves(self, codes: Any, tree: CodeTree) -> Any:
        """The number of the leaf of every row of the matrix: int64 [rows], where the codes are."""
        ...

    def sums_by(self, index: Any, values: Any, n: int) -> np.ndarray:
        """sums[i, s] of the int64 values[row, s] of the rows with that index, on the host."""
        ...

    def evaluate_forest(self, X: Any, forest: PackedForest) -> Any:
        """float64 [n, outputs] where X lives."""
        ...

    def apply_forest(self, X: Any, forest: PackedForest) -> Any:
        """The leaf of every row in every tree: int64 [n, trees], a position in the arrays."""
        ...

    def shapley_values(self, X: Any, forest: PackedForest, shares: PathShares) -> Any:
        """phi of every row of X: float64 [n, features of X, outputs] where X lives.

        kernels/path_shares.py has the formula. Of the sum of the trees: divisor and intercept are
        not applied. Engines agree but for the rounding of the last digits.
        """
        ...
