"""The rows of a tree as compiled code takes them, and scratch arrays for them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

# Rows of a node that are sorted; beyond it they are added up by code,
SMALL = 96
# unless there are more codes than this: then most do not occur in a node, and all are sorted.
WIDE = 4096
# Features that are added up together, and rows of a block that stays in the cache meanwhile.
FEATURES, ROWS = 8, 1024


class Rows(NamedTuple):
    """Row t of the nodes is row order[t] of `codes` [row, feature], a code is below `width`.

    `label` [t] and `values` [t, statistic] lie in the order of the nodes; no label: moments.
    """

    codes: np.ndarray
    order: np.ndarray
    label: np.ndarray
    values: np.ndarray
    width: int


class Others(NamedTuple):
    """What is moved when a node is split, once more."""

    order: np.ndarray
    label: np.ndarray
    values: np.ndarray


class Tasks(NamedTuple):
    """Rows start[i] ... stop[i] - 1 are to be added up in slot[i], and taken from slot minus[i].

    Nothing is taken away where `minus` is -1.
    """

    start: np.ndarray
    stop: np.ndarray
    slot: np.ndarray
    minus: np.ndarray


class Sorting(NamedTuple):
    """Scratch arrays for the keys of SMALL rows: twice as wide as codes, many fit a register."""

    keys: np.ndarray
    places: np.ndarray
    rank: np.ndarray


def sorting_for(codes: np.ndarray) -> Sorting:
    kinds = {np.dtype(np.uint8): np.uint16, np.dtype(np.uint16): np.uint32}
    kind = np.dtype(kinds.get(codes.dtype, np.uint64))
    return Sorting(np.empty(SMALL, kind), np.empty(SMALL, kind), np.empty(SMALL, np.int16))
