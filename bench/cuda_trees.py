"""What the tree kernels cost: instructions and bytes of a unit of work (see cuda_cost.py).

Two classes, 256 codes, all features tried, no count of rows. Rows of a node lie anywhere in the
matrix, so every array that is read by row costs a sector; the codes of a row are one. The rows of
small nodes are read once for all features, whose blocks run at about the same time (L2).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from bench.cuda_limits import (
    FEATURES,
    ROWS,
    SECTOR,
    WARP,
    Estimate,
    Gpu,
    estimate,
    instructions,
)
from ensemble_gpu.kernels.cuda.trees.words import MOST_CELLS
from tests.cuda.sass import Compiled, branch_target

CODES, CLASSES = 256, 2
CELLS = CODES * CLASSES  # sums of a feature
NODE_ROWS = 256  # of a small node
SEARCH_STEPS = 10  # halvings in a table of a thousand nodes
TREES, LEVELS = 100, 16
CACHED_LEVELS = 12  # 2^12 nodes of 24 bytes in each of a hundred trees: 10 MB of L2

# The ways a row is read: in turn (the order, node by node) or from anywhere.
ORDER, ROW = 4, SECTOR
FEATURE_PASSES = -(-FEATURES // (MOST_CELLS // CELLS))  # of sum_parts, which reads rows in each
WALK = 2 * SECTOR * (LEVELS - CACHED_LEVELS)  # a node and its threshold

LOAD_32, LOAD_64 = r"LDG\.E(\.SYS|\.CONSTANT)* ", r"LDG\.E\.64"
STORE, SHARED_ADD, GLOBAL_ADD = "STG", "ATOMS", "RED"
READ_SHARED, WRITE_SHARED = "LDS", "STS"


@dataclass(frozen=True)
class Hot:
    """The hot loop of a kernel: the smallest that has `needs` and none of `lacks`.

    A turn does a unit of work for every `per` instructions that match `counted`. With `turns` the
    loop is an inner one, run so often for every unit of the loop around it.
    """

    unit: str
    n_bytes: float
    needs: tuple[str, ...]
    lacks: tuple[str, ...] = ()
    counted: str = ""
    per: int = 1
    turns: int = 0


HOT = {
    "sum_parts": Hot(
        "row-feature", FEATURE_PASSES * (ORDER + 3 * ROW) / FEATURES, (SHARED_ADD, LOAD_32),
        counted=LOAD_32,
    ),
    "sum_direct": Hot("row-feature", ORDER + 3 * ROW, (GLOBAL_ADD, LOAD_32), (), LOAD_64, 2),
    "subtract": Hot("cell", 24, (LOAD_64, STORE), counted=STORE),
    "split_rows": Hot(
        "row-feature", (ORDER + 3 * ROW) / FEATURES, (SHARED_ADD, LOAD_32), (), LOAD_64, 2
    ),
    "split_sums": Hot("cell", 8, (LOAD_64, WRITE_SHARED), counted=LOAD_64),
    "choose_feature": Hot("node-feature", 8, (LOAD_64,), (STORE,), LOAD_64),
    "mark": Hot("row", ORDER + ROW + 8, (LOAD_32,), (STORE,), turns=SEARCH_STEPS),
    "scatter": Hot("row", 16, (STORE,), counted=STORE),
    "restore": Hot("row", 12, (STORE,), counted=STORE),
    "number_rows": Hot("row", ORDER + ROW, (LOAD_32,), (STORE,), turns=SEARCH_STEPS),
    "compare": Hot("row", ORDER + ROW, (LOAD_32,), (STORE,), turns=SEARCH_STEPS),
    "sum_by": Hot("row", 16, (GLOBAL_ADD,), counted=GLOBAL_ADD),
    "leaves": Hot("row", ROW + 8, (LOAD_64,), (STORE,), turns=LEVELS),
    "evaluate_forest": Hot("row-tree", WALK + ROW, (LOAD_32,), (STORE,), turns=LEVELS),
    "apply_forest": Hot("row-tree", WALK + 8, (LOAD_32,), (STORE,), turns=LEVELS),
}  # fmt: skip
HOT |= {f"{name}_large": HOT[name] for name in ("split_rows", "split_sums")}


def loops(sass: tuple[str, ...]) -> list[list[str]]:
    """All loops, from a label to a later branch back to it; the shortest first."""
    at = {line[:-1]: i for i, line in enumerate(sass) if line.startswith(".L")}
    found = []
    for i, line in enumerate(sass):
        target = branch_target(line)
        if target is not None and at.get(target, i) < i:
            found.append(list(sass[at[target] : i + 1]))
    return sorted(found, key=len)


def matches(loop: list[str], pattern: str) -> int:
    return sum(bool(re.search(pattern, line)) for line in loop)


def find(sass: tuple[str, ...], needs: tuple[str, ...], lacks: tuple[str, ...]) -> list[str]:
    for loop in loops(sass):
        if all(matches(loop, p) for p in needs) and not any(matches(loop, p) for p in lacks):
            return loop
    raise ValueError(f"no loop has {needs} and lacks {lacks}")


def around(sass: tuple[str, ...], inner: list[str]) -> list[str]:
    """The smallest loop around another one."""
    return next(o for o in loops(sass) if len(o) > len(inner) and inner[0] in o)


def length(loop: list[str]) -> int:
    """Instructions of a turn without a carry and without a count of rows.

    Other branches are not taken, which is the way of a category in a walk: a little longer than
    that of a threshold.
    """
    skipped = SHARED_ADD if matches(loop, SHARED_ADD) else GLOBAL_ADD
    return instructions(loop, skipped, "LDG")


def per_unit(kernel: Compiled) -> float:
    """Instructions of a unit of work, in the hot loop and around it."""
    hot = HOT[kernel.kernel]
    loop = find(kernel.sass, hot.needs, hot.lacks)
    if not hot.turns:
        return length(loop) * hot.per / matches(loop, hot.counted)
    whole = length(around(kernel.sass, loop))
    return whole + (hot.turns - 1) * length(loop)


def per_cell(kernel: Compiled) -> float:
    """Instructions to scan a cell of shared memory: each is read twice and written once."""
    scan = tuple(find(kernel.sass, ("BAR", READ_SHARED, WRITE_SHARED, r"ATOMS|RED"), ()))
    second = find(scan, (READ_SHARED, WRITE_SHARED), ("BAR",))
    reading = [o for o in loops(scan) if not matches(o, WRITE_SHARED)]
    first = max(reading, key=lambda loop: matches(loop, READ_SHARED))
    return sum(2 * length(loop) / matches(loop, READ_SHARED) for loop in (first, second))


def passes(gpu: Gpu, kernels: dict[str, Compiled]) -> list[tuple[str, Estimate]]:
    """A level of a tree on all rows, its nodes large or small, and the predictions of a forest.

    Of large siblings one is added up. A partition has the array library's running sum between
    its kernels: 8 bytes a row.
    """
    cost = {name: per_unit(kernels[name]) for name in HOT}
    half, every = 0.5 * ROWS * FEATURES, 1.0 * ROWS * FEATURES
    moving = ("mark", "scatter", "restore")
    moved = sum(HOT[name].n_bytes for name in moving) + 8.0
    scan = CELLS / NODE_ROWS * per_cell(kernels["split_rows"])
    walks = 1.0 * ROWS * TREES
    small, large = HOT["split_rows"].n_bytes, HOT["sum_parts"].n_bytes
    predicted = walks * HOT["evaluate_forest"].n_bytes
    return [
        ("level: sums of large nodes",
         estimate(gpu, half / WARP * cost["sum_parts"], half * large, half)),
        ("level: small nodes",
         estimate(gpu, every / WARP * (cost["split_rows"] + scan), every * small, every)),
        ("level: partition",
         estimate(gpu, ROWS / WARP * sum(cost[name] for name in moving), ROWS * moved, 0.0)),
        (f"{TREES} trees of {LEVELS} levels",
         estimate(gpu, walks / WARP * cost["evaluate_forest"], predicted, 0.0)),
    ]  # fmt: skip
