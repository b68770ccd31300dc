"""What rounds, trees and predictions cost on a GPU: `python -m bench.cuda_cost`.

No GPU is needed: kernels are compiled to SASS (tests/cuda/sass.py), the instructions
of the hot loops are counted, and limits follow from stated assumptions (cuda_limits.py). The sheet
says how the design compares with its limits; it is not a measurement. Stumps are here, trees in
cuda_trees.py.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from bench import cuda_trees
from bench.cuda_limits import (
    ADDS_PER_CLOCK,
    FEATURES,
    GPUS,
    ROWS,
    SECTOR,
    WARP,
    Estimate,
    Gpu,
    block_of,
    estimate,
    instructions,
    occupancy,
)
from ensemble_gpu.kernels.cuda.histogram import PASS_TILES, TILE_LANES
from ensemble_gpu.kernels.cuda.launch import device_plan
from tests.cuda.sass import Compiled, compiled, loop_around

TOUCHED = 0.21  # share of the rows outside the kept leaf, from the prototype of the strategy
LAUNCH_US = 10.0
# Fits that could share launches, and their rows.
PLANES, FEW_ROWS = 20, (10_000, 100_000, 1_000_000)
# Launches and small copies of a round, and of a level with large and small nodes (engine.py).
ROUND_CALLS, LEVEL_CALLS = 3 + 3, 13 + 10


def turn(kernel: Compiled) -> int:
    """Instructions for one row whose codes are all added, without a wrap-around."""
    return instructions(loop_around(kernel.sass, "ATOMS.ADD"), "RED", "ATOMS.ADD")


def idle_turn(kernel: Compiled) -> int:
    """Instructions for one row of the kept leaf."""
    return instructions(loop_around(kernel.sass, "ATOMS.ADD"), "ATOMS.ADD", "nothing")


def tiles() -> int:
    return -(-FEATURES // TILE_LANES)


def full_bytes() -> float:
    """A row of a full pass: its words and q."""
    return 8.0 * tiles() + 4.0


def update_bytes() -> float:
    """A row of an update: the chosen feature's word; q (in, out) and the other words by sectors."""
    some_of_8 = 1.0 - (1.0 - TOUCHED) ** (SECTOR / 4)
    some_of_4 = 1.0 - (1.0 - TOUCHED) ** (SECTOR / 8)
    return 8.0 + 2 * 4.0 * some_of_8 + 8.0 * (tiles() - 1) * some_of_4


def full_pass(gpu: Gpu, build: Compiled) -> Estimate:
    turns = ROWS / WARP
    return estimate(gpu, turns * turn(build), ROWS * full_bytes(), ROWS * tiles() * TILE_LANES)


def round_(gpu: Gpu, update: Compiled) -> Estimate:
    """A warp takes the long way where any of its rows is touched."""
    any_touched = 1.0 - (1.0 - TOUCHED) ** WARP
    per_turn = any_touched * turn(update) + (1.0 - any_touched) * idle_turn(update)
    adds = TOUCHED * ROWS * tiles() * TILE_LANES
    return estimate(gpu, ROWS / WARP * per_turn, ROWS * update_bytes(), adds)


def work_of(kernel: Compiled) -> tuple[str, str, str]:
    """Unit of work, instructions and bytes of one; empty where nothing is counted."""
    if kernel.kernel in cuda_trees.HOT:
        hot = cuda_trees.HOT[kernel.kernel]
        return hot.unit, f"{cuda_trees.per_unit(kernel):.1f}", f"{hot.n_bytes:.1f}"
    if kernel.kernel not in ("build", "update"):
        return "", "", ""
    n_bytes = full_bytes() if kernel.kernel == "build" else update_bytes() / TOUCHED
    return (
        "row-feature",
        f"{turn(kernel) / (PASS_TILES * TILE_LANES):.1f}",
        f"{n_bytes / FEATURES:.1f}",
    )


def print_kernels(gpu: Gpu, kernels: dict[str, Compiled]) -> None:
    plan = device_plan(gpu.processors)
    for name, kernel in kernels.items():
        unit, count, n_bytes = work_of(kernel)
        print(
            f"| {name} | sm_{gpu.capability} ({gpu.name}) | {unit} | {count} | {n_bytes} | "
            f"{kernel.registers} | {kernel.shared_bytes / 1024:.0f} | "
            f"{occupancy(kernel, gpu, block_of(name, plan)):.0%} |"
        )


def print_times(rows: list[tuple[Gpu, list[tuple[str, Estimate]]]]) -> None:
    print(f"\n{ROWS:,} x {FEATURES}, {TOUCHED:.0%} of the rows touched; milliseconds\n")
    print("| GPU | pass | issue | memory | atomics | estimate | limited by | issue / limit |")
    print("|---|---|---|---|---|---|---|---|")
    for gpu, passes in rows:
        for name, e in passes:
            print(
                f"| {gpu.name} | {name} | {e.issue:.3f} | {e.memory:.3f} | {e.atomics:.3f} | "
                f"{e.total:.3f} | {e.limit} | {e.ratio:.2f} |"
            )
    for name, calls in (("round", ROUND_CALLS), ("level of a tree", LEVEL_CALLS)):
        print(
            f"\nA {name} adds about {LAUNCH_US * calls / 1e3:.2f} ms of host time, where the GPU "
            f"does not hide it: {calls} launches and small copies at {LAUNCH_US:.0f} us each."
        )


def print_folds(rows: list[tuple[Gpu, Estimate]]) -> None:
    """What fits of few rows would gain from sharing launches, a plane of weights each."""
    host = LAUNCH_US * ROUND_CALLS
    print(f"\n{PLANES} fits of few rows (4 rates, 5 folds), microseconds a round of all of them\n")
    print("| GPU | rows of a fit | update of one | one after the other | as a grid axis | ratio |")
    print("|---|---|---|---|---|---|")
    for gpu, e in rows:
        for n in FEW_ROWS:
            update = 1e3 * e.total * n / ROWS
            apart, together = PLANES * max(host, update), max(host, PLANES * update)
            print(
                f"| {gpu.name} | {n:,} | {update:.1f} | {apart:.0f} | {together:.0f} | "
                f"{apart / together:.1f} |"
            )


UNKNOWN = f"""
What the sheet cannot know:
- bank conflicts of real codes (assumed: random, {ADDS_PER_CLOCK} adds a clock and
  multiprocessor; a column with one dominant code serialises its adds) and the real throughput of
  shared atomics;
- how well latency is hidden at the occupancy shown; what the caches save;
- the flush: one 64-bit atomic in global memory per used cell, block and pass
  ({8192 * 4:,} a multiprocessor and round), and the wrap-arounds, about as many;
- clocks under load, launch overhead of the installed driver, the score kernel's latency
  (one block a feature, microseconds);
- trees: the scores of a node's candidates (as many as codes that occur in it) are not counted, its
  scan of all codes is; whether L2 keeps the rows of small nodes from feature to feature, and the
  upper levels of a forest from row to row, as assumed.
"""


def main() -> None:
    print("| kernel | target | unit of work | instructions / unit | bytes / unit | registers | "
          "shared KB | occupancy |")  # fmt: skip
    print("|---|---|---|---|---|---|---|---|")
    times = []
    for gpu in GPUS:
        with tempfile.TemporaryDirectory() as folder:
            found = compiled(gpu.capability, Path(folder))
        kernels = {k.kernel: k for k in found if k.signature == 0}
        print_kernels(gpu, kernels)
        stumps = [
            ("full histogram", full_pass(gpu, kernels["build"])),
            ("round: update", round_(gpu, kernels["update"])),
        ]
        times.append((gpu, [*stumps, *cuda_trees.passes(gpu, kernels)]))
    print_times(times)
    print_folds([(gpu, dict(passes)["round: update"]) for gpu, passes in times])
    print(UNKNOWN)


if __name__ == "__main__":
    main()
