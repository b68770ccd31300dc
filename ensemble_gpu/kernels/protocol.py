"""What an engine does: the one door between the algorithms and the compiled loops.

Three engines implement this file: `reference` (array-API calls only, the oracle), `cpu` (numba)
and `cuda` (numba CUDA). They hold weights and histograms as integers, so they agree bit for bit.

The vocabulary:

- code: the bin of a value, 0 ... n_bins[f] - 1; the code `width - 1` means missing.
- plane: one weight per row. Two classes and SAMME have one plane, AdaBoost.MH one per class.
- group: the rows of a plane that share a scale, because a stump multiplies the weights of each
  (leaf, group) by one constant. Weight of row i in plane k = scale[group] * q[k, i].
- leaf: LEFT (code <= bin), RIGHT, ABSTAIN (a missing value that no side has claimed).

What travels through the door besides codes and weights has files of its own: stump_rounds.py,
gradient_pass.py, residuals.py, tables.py; trees have tree_protocol.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np

from ensemble_gpu.arrays.namespace import Where
from ensemble_gpu.kernels.fixedpoint import quantum_bits
from ensemble_gpu.kernels.gradient_pass import GradientPass, LossPass
from ensemble_gpu.kernels.queries import PairWeights
from ensemble_gpu.kernels.residuals import Ruler, Slots
from ensemble_gpu.kernels.stump_rounds import StumpRounds
from ensemble_gpu.kernels.tables import PackedTables
from ensemble_gpu.kernels.team import Team
from ensemble_gpu.kernels.tree_protocol import TreeEngine

LEFT, RIGHT, ABSTAIN = 0, 1, 2
N_LEAVES = 3

# Splits tie when their scores agree to this factor (more than the rounding of 2^25 or more).
TIE = 1.0 + 2.0**-22

# Bins of evenly spaced thresholds.
EVEN_BINS = 255

# Packed gradients: |g| and h below 2^PACK_BITS, g in the upper half of a 64-bit integer.
PACK_BITS = 18

# How a split is scored; boosting/rules.py says which variant uses which.
CONFIDENCE, GENTLE, MAJORITY = 0, 1, 2


@dataclass(frozen=True)
class Layout:
    """Which rows belong to which group.

    Rows are sorted by class, so a class is a range: `starts[c]` to `starts[c + 1]`.
    `group_of[k, c]` is the group of class c in plane k. Where groups come in pairs, 2k holds
    the positive and 2k + 1 the negative rows of plane k. `n_everywhere` are the rows of all workers
    (None: these are all).
    """

    starts: np.ndarray
    group_of: np.ndarray
    n_everywhere: int | None = None

    @property
    def n_rows(self) -> int:
        return int(self.starts[-1])

    @property
    def n_classes(self) -> int:
        return len(self.starts) - 1

    @property
    def quantum_bits(self) -> int:
        """The heaviest row of a group has q near 2^quantum_bits after requantising."""
        return quantum_bits(self.n_rows if self.n_everywhere is None else self.n_everywhere)

    @property
    def n_planes(self) -> int:
        return self.group_of.shape[0]

    @property
    def n_groups(self) -> int:
        return int(self.group_of.max()) + 1


def one_class(n_rows: int) -> Layout:
    """Rows of one class and one group."""
    return Layout(np.array([0, n_rows]), np.zeros((1, 1), dtype=np.int64))


@dataclass(frozen=True)
class Criterion:
    """How to score every split: the formula, the scale of an abstention, the missing side.

    `abstention[g] * sum of q` is what the abstaining rows of group g add to the score.
    With `learn_missing`, missing values go left or right, whichever scores better.
    `n_thresholds[f]` bins of feature f are tried as the last bin of the left leaf.
    """

    kind: int
    abstention: np.ndarray
    learn_missing: bool
    n_thresholds: np.ndarray


class Split(NamedTuple):
    """The best split of a round, with what the host needs to turn it into a stump.

    `sums[g, leaf]` is the integer weight of group g in each leaf, `largest[g]` a bound on its q.
    Of all splits that score within TIE of the lowest score, the first in order of (feature, bin,
    missing left before right) is taken, so that a tie is not decided by the rounding of weights.
    """

    score: float
    feature: int
    bin: int
    missing_leaf: int
    sums: np.ndarray
    largest: np.ndarray


@dataclass(frozen=True)
class WeightRule:
    """How AdaBoost's weights follow stumps; boosting/rules.py and boosting/rescale.py derive it.

    `lightest` is the smallest weight of a row; after `requantise_every` rounds, if not before, all
    weights are requantised. `chance` times the weight is the score of a useless split.
    """

    n_outputs: int
    chance: float
    learning_rate: float
    lightest: float
    requantise_every: int


@dataclass(frozen=True)
class Cut:
    """A feature's codes in three leaves: code <= bin LEFT, missing_code `missing_leaf`."""

    bin: int
    missing_code: int
    missing_leaf: int


@dataclass(frozen=True)
class Codes:
    """A binned matrix in an engine's own layout.

    `counts[c, f, b]` rows of class c have code b in feature f (host array). `columns` is for
    the engine: codes that it has laid out in another way, such as single features side by side.
    """

    data: Any
    n_rows: int
    n_features: int
    width: int
    counts: np.ndarray
    columns: dict[Any, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Answers:
    """Answers -1, 0 and +1 of members for all rows, in an engine's own layout; 0 abstains."""

    data: Any
    n_rows: int
    n_members: int
    abstains: bool


def no_counts(n_features: int, width: int) -> np.ndarray:
    """`Codes.counts` of rows in no classes."""
    return np.zeros((0, n_features, width), dtype=np.int64)


def code_width(edges: list[np.ndarray]) -> int:
    """Codes of the widest feature and one for missing; the same for every feature."""
    return max((len(e) + 1 for e in edges), default=1) + 1


class Histograms(Protocol):
    """The weights of all rows and the sums per (group, feature, code), kept in step."""

    def requantise(
        self, log_tables: np.ndarray, used: np.ndarray, least: np.ndarray | None = None
    ) -> np.ndarray:
        """Set every q from fixed-point log tables [group, feature, code]; rebuild the sums.

        `used` lists the features with a table; the tables of the others hold zeros.
        Returns the exponent E of each group: weight = 2^(E - layout.quantum_bits) q. They are at
        least those given; a group without rows has its own of these, or a very low one.
        """
        ...

    def heaviest(self) -> np.ndarray:
        """A bound on the q of each group: the largest since all were set; 0 without rows."""
        ...

    def add_up(self) -> np.ndarray:
        """The sums [group, feature, code] of the integer weights, int64 on the host.

        Sums of parts of the rows add up to those of all; `choose` (kernels/reference/score.py)
        finds in them what `split` finds.
        """
        ...

    def split(self, scale: np.ndarray, criterion: Criterion) -> Split | None:
        """Score every (feature, threshold, missing side); None where nothing can be split."""
        ...

    def rescale(self, feature: int, leaf_of: np.ndarray, ratio: np.ndarray, kept: int) -> None:
        """q = rint(q * ratio[group, leaf]) for rows outside the leaf `kept`; sums follow.

        `leaf_of[code]` is the leaf of a code of the feature.
        """
        ...

    def rounds(self, criterion: Criterion, rule: WeightRule) -> StumpRounds | None:
        """What runs whole rounds on these weights; None: the engine takes one step at a time."""
        ...


class EvenCodes(Protocol):
    """Codes floor((z - low[f]) / step[f]) of all rows, below EVEN_BINS; NaN has EVEN_BINS.

    z, low and step are such that this is exact: integers and powers of two. The codes' counts may
    be left out.
    """

    def put(self, first: int, Z: Any, low: np.ndarray, step: np.ndarray) -> None:
        """Those of the features `first`, a multiple of 8, and on, from Z float64 [row, feature].

        Threads may put different features side by side. What `codes` gave before is lost.
        """
        ...

    def codes(self) -> Codes:
        """All of them, once all are put."""
        ...

    def histograms(self, codes: Codes, log_weights: Any) -> Histograms:
        """`Engine.histograms` of what `codes` gave; those of before are lost."""
        ...


class Engine(TreeEngine, Protocol):
    """Binning, histograms and evaluation on one kind of device; trees are in tree_protocol.py.

    `where` is the engine's own namespace and device. `n_workers` is how many `single` engines may
    work side by side, each in a thread of the caller. `team` are the workers that have rows of the
    same fit: sums of codes are over the rows of all of them (kernels/teams).
    """

    name: str
    where: Where
    team: Team

    @property
    def n_workers(self) -> int: ...

    def single(self) -> Engine:
        """An engine for one of several threads; it takes the codes that this one has made."""
        ...

    def view(self, array: Any) -> Any:
        """The array as the engine takes it: no copy, read-only where the library allows that."""
        ...

    def adopt(self, array: Any) -> Any:
        """A user's array as one of `where`, the engine's own namespace; no copy."""
        ...

    def gaps(self, X: Any, rows: Any, max_bins: int | None) -> list[np.ndarray]:
        """The values below and above every edge, [2, edges] a feature (host float64 arrays).

        None: an edge between any two values of all rows, which need not be a sample then.
        """
        ...

    def encode(
        self,
        X: Any,
        edges: list[np.ndarray],
        rows: Any,
        layout: Layout | None,
        width: int | None = None,
    ) -> Codes:
        """Codes of the given rows of X, in that order, with their counts per class.

        X may be a sparse matrix (arrays/sparse.py); `gaps` and evaluation take arrays only.
        Without a layout they are for trees, which have no classes of rows and read row by row.
        `width`: that of codes which these will be joined with; None: what the edges need.
        """
        ...

    def take(
        self, codes: Codes, rows: Any, layout: Layout, counts: np.ndarray | None = None
    ) -> Codes:
        """The codes of the rows at the positions given, in that order, with counts per class.

        They are those that `encode` gives; `codes` were made with a layout. Counts that are known
        (None: they are not) need not be counted.
        """
        ...

    def even_codes(self, layout: Layout, n_features: int) -> EvenCodes:
        """Space for codes of evenly spaced thresholds, a row for each of the layout."""
        ...

    def join(self, parts: Sequence[Codes], layout: Layout) -> Codes:
        """Codes of the same rows, features side by side; all parts but the last have 8 k of them.

        They have one width.
        """
        ...

    def pack_answers(self, blocks: Iterable[Any], n_rows: int) -> Answers:
        """Answers of members, some after the others: int8 [row, members] -1, 0 or +1."""
        ...

    def answer_sums(self, given: Answers, q: Any) -> np.ndarray:
        """sums[plane, side, member] of the integers q[plane, row], on the host.

        Over the rows that the member answers with -1 (LEFT) and with +1 (RIGHT); modulo 2^64.
        """
        ...

    def answer(self, given: Answers, member: int) -> Any:
        """The leaf of every row, LEFT for -1, RIGHT for +1, ABSTAIN for 0: a `column` of codes."""
        ...

    def quantised(self, logs: Any, bits: int) -> tuple[Any, int]:
        """(q, E) of fixed-point logarithms L [row]: q = rint(2^(L - E + bits)), int32.

        E = floor(max L) + 1 (kernels/fixedpoint.py).
        """
        ...

    def histograms(self, codes: Codes, layout: Layout, log_weights: Any | None) -> Histograms:
        """Weights at their start: 2^log_weights (fixed point, one per row), or all equal."""
        ...

    def column(self, codes: Codes, feature: int) -> Any:
        """The codes of one feature [rows], an integer array where the codes live."""
        ...

    def sums(self, codes: Codes, q: Any) -> np.ndarray:
        """sums[plane, feature, code] of the int64 q[plane, row]; exact modulo 2^64, on the host."""
        ...

    def pair_sums(self, codes: Codes, packed: Any) -> tuple[np.ndarray, np.ndarray]:
        """(G, H)[plane, feature, code] on the host, of packed[plane, row] = g 2^32 + h.

        |g| and h are at most 2^PACK_BITS, h >= 0.
        """
        ...

    def following_sums(self, codes: Codes) -> Callable[[Any], tuple[np.ndarray, np.ndarray]]:
        """`pair_sums` of one packed array after the other, most rows of which stay as they were."""
        ...

    def pair_counts(self, codes: Codes, feature: int, weights: Any | None) -> np.ndarray:
        """counts[c, f, b] of the rows with code c in `feature` and code b in f, on the host.

        With integer weights their sum (int64), without them the number of rows (int32).
        """
        ...

    def code_sums(
        self, codes: Codes, feature: int, first: int, last: int, weights: Any | None
    ) -> np.ndarray:
        """sums[f, b]: weight of the rows with a code first ... last in `feature` and b in f.

        int64 on the host; without weights every row counts 1.
        """
        ...

    def move(self, F: Any, column: Any, cut: Cut, values: np.ndarray, out: Any = None) -> Any:
        """F[output, row] + values[output, leaf of the row's code].

        An engine may write it into `out`, an array of that shape, and return that.
        """
        ...

    def add_tables(self, F: Any, codes: Codes, used: np.ndarray, tables: np.ndarray) -> Any:
        """F[output, row] + sum over the used features f of tables[output, f, code of the row].

        The tables of other features hold zeros. All are such that sums are exact in any order.
        """
        ...

    def derivatives(self, loss: Any, y: Any, F: Any) -> tuple[Any, Any]:
        """loss.derivatives(y, F), by a kernel with the same bits where there is one."""
        ...

    def gradient_pass(self, work: GradientPass) -> tuple[float, float] | None:
        """The pass in one step: the largest |g| and h, NaN or infinite where one of them is.

        Units in which these have more than PACK_BITS bits leave some rows unpacked. None, and
        nothing is done: the engine has no kernel for it.
        """
        ...

    def loss_pass(self, work: LossPass) -> np.ndarray | None:
        """Parts of the sum, which do not depend on threads; None as of `gradient_pass`."""
        ...

    def ordered_weights(
        self, weights: PairWeights, codes: Codes, has_missing: np.ndarray
    ) -> np.ndarray:
        """[missing right, right or wrong, feature, bin]: integer weights of pairs, on the host.

        Of those that the stump "code > bin" orders right: its answer is 1 for the upper row and 0
        for the lower one; and wrong. Rows of the last code are left of every threshold (0), or
        right of it (1); without missing values of a feature only the latter is filled in. A query's
        weight is rounded to an integer, so that the sum does not depend on the order of queries.
        """
        ...

    def drawn(self, numbers: Any, bounds: Any | None, offset: int, limit: int) -> Any:
        """How many items of each row are drawn: those with mix(number STEP + offset) < limit.

        Row i has the items bounds[i] ... bounds[i + 1] - 1; None: each row is one, and the answer
        is bool. `numbers` are uint64, and so are the products and sums; kernels/host/hashing.py has
        `mix`.
        """
        ...

    def pack(self, g: Any, h: Any, unit_g: float, unit_h: float, out: Any = None) -> Any:
        """rint(g / unit_g) 2^32 + rint(h / unit_h), int64 (units are powers of two).

        An engine may write it into `out`, an array of that shape, and return that.
        """
        ...

    def leaf_sums(self, q: Any, column: Any, cut: Cut) -> np.ndarray:
        """sums[output, leaf] of the int64 q[output, row], on the host."""
        ...

    def ranked(self, slots: Slots, r: Any, weights: Any | None, ranks: np.ndarray) -> np.ndarray:
        """The lowest r_i of every slot such that its rows with r <= r_i weigh at least its rank.

        float64 on the host. Weights are int64 >= 0 (None: ones), 1 <= ranks[slot] <= the weight of
        the slot. A value of the data, so it does not depend on how it is found (0 has no sign).
        """
        ...

    def ruled_sums(self, slots: Slots, r: Any, weights: Any | None, ruler: Ruler) -> np.ndarray:
        """sums[slot, mark] of the weights w and of w k, [.., 2], int64 on the host."""
        ...

    def exp(self, x: Any) -> Any:
        """e^x, the same bits on every engine (kernels/exponential.py)."""
        ...

    def by_block(self, function: Callable[[slice], Any], n_rows: int) -> list[Any]:
        """function(rows) for slices that cover all rows: blocks that fit the cache, or one."""
        ...

    def evaluate(self, X: Any, tables: PackedTables) -> Any:
        """Sum of table values of every row of X: float64 [n, outputs] where X lives."""
        ...

    def contributions(self, X: Any, tables: PackedTables) -> Any:
        """What each feature adds in every row of X: float64 [n, features of X, outputs].

        Those without a table add 0; the intercept belongs to none.
        """
        ...
