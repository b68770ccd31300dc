"""What the growth of a whole tree (whole.py) is told, and the arrays that it works in."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ensemble_gpu.kernels.cpu.memory import scratch_array
from ensemble_gpu.kernels.cpu.trees.partition import PIECE
from ensemble_gpu.kernels.host.records import RECORD, FoundArrays, NodeBatch
from ensemble_gpu.kernels.tree_protocol import NEVER

# Nodes that are split at once: what is known of them for a while stays small. Even, so that
# siblings stay together.
BLOCK = 4096
# Rows of a node that one worker sorts at once.
PIECE_ROWS = 8192


class Growth(NamedTuple):
    """How the tree grows: k of p features drawn for a node; when to stop (-1: no limit).

    `by_class`: rows are classes without conditions, which have a search of their own.

    A gain of the share `rounding` of a node's score counts as 0. Every `tidy` levels codes are laid
    out anew.
    """

    p: int
    k: int
    by_class: bool
    least_rows: int
    max_depth: int
    max_leaves: int
    least_gain: float
    rounding: float
    tidy: int


class Layout(NamedTuple):
    """Codes and targets in the order of the nodes: row t of `laid` is row place[t] of the matrix.

    Before that, row r of the codes as they are is row place[r] of the matrix.

    `words` are the codes as they are first, `matrix_words` and `laid_words` those of the matrix and
    laid out, all eight bytes at once. `target` belongs to
    the rows as they are first, `targets` to the matrix, `laid_target` to the rows laid out anew;
    so do `cells` and `laid_cells`, all codes in one dimension; `steps` and `laid_steps` are between
    rows and codes.
    """

    words: np.ndarray
    matrix_words: np.ndarray
    laid_words: np.ndarray
    laid: np.ndarray
    place: np.ndarray
    target: np.ndarray
    targets: np.ndarray
    laid_target: np.ndarray
    cells: np.ndarray
    laid_cells: np.ndarray
    steps: tuple[int, int]
    laid_steps: tuple[int, int]


class Block(NamedTuple):
    """Scratch arrays for the nodes of a block, and the pieces that rows are moved in.

    `features` has room for those that the nodes draw.
    """

    nodes: np.ndarray
    pending: np.ndarray
    which: np.ndarray
    features: np.ndarray
    keys: np.ndarray
    worth: np.ndarray
    n_left: np.ndarray
    batch: NodeBatch
    found: FoundArrays
    pieces: np.ndarray


def found_for(n: int, columns: int, words: int) -> FoundArrays:
    return FoundArrays(
        np.full(n, NEVER), np.full((n, RECORD), -1), scratch_array((n, columns), np.int64),
        np.zeros((n, words), dtype=np.uint64),
    )  # fmt: skip


def block_of(n: int, n_rows: int, columns: int, words: int, n_features: int) -> Block:
    kind = np.int64
    batch = NodeBatch(
        np.empty(n, kind), np.empty(n, kind), np.zeros((0, 0), dtype=kind),
        np.empty((n, columns), kind), np.empty((n, 2)), np.empty(n, np.uint64),
    )  # fmt: skip
    return Block(
        np.empty(n, kind), np.empty(n, kind), np.empty(n, kind),
        scratch_array((n_features,), kind), np.empty(n, np.uint64), np.empty(n),
        np.empty(n, kind), batch, found_for(n, columns, words),
        np.empty((n + n_rows // PIECE_ROWS + 1, PIECE), kind),
    )  # fmt: skip


class Waiting(NamedTuple):
    """Of nodes that may be split later, the best first: what a split adds, and the split.

    `marked` are those that are split in the tree, `chosen` is for nodes to divide.
    """

    worth: np.ndarray
    marked: np.ndarray
    chosen: np.ndarray
    found: FoundArrays


def waiting_for(n: int, columns: int, words: int) -> Waiting:
    """For up to n nodes."""
    return Waiting(
        scratch_array((n,), np.float64), scratch_array((n,), np.bool_),
        scratch_array((n,), np.int64),
        FoundArrays(
            scratch_array((n,), np.float64), scratch_array((n, RECORD), np.int64),
            scratch_array((n, columns), np.int64), scratch_array((n, words), np.uint64),
        ),
    )  # fmt: skip


class Meetings(NamedTuple):
    """Which features may meet on a path (data/interactions.py), as bits of 64-bit words.

    `sets` [set, word], or none: any set of at most `most` features (0: no limit). `tested`
    [node, word] are the features tested on the way to a node; without words nothing is limited.
    `union` and `features` are scratch arrays for the features that a node may test.
    """

    sets: np.ndarray
    most: int
    tested: np.ndarray
    union: np.ndarray
    features: np.ndarray


def meetings_of(sets: np.ndarray, most: int, n_nodes: int, p: int) -> Meetings:
    """For up to n nodes; a root has tested nothing."""
    words = sets.shape[1]
    tested = scratch_array((n_nodes, words), np.uint64)
    tested[:1] = 0
    return Meetings(sets, most, tested, np.empty(words, np.uint64), np.empty(p, np.int64))
