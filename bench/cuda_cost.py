"""What a round costs on a GPU, counted from the compiled kernels: `python -m bench.cuda_cost`.

No GPU is needed: kernels are compiled to SASS (ensemble_gpu/kernels/cuda/sass.py), the instructions
of the hot loops are counted, and three limits follow from stated assumptions:

    issue    warp instructions / (multiprocessors * 4 a clock)
    memory   bytes / bandwidth
    atomics  shared-memory adds / (multiprocessors * ADDS_PER_CLOCK)

The largest is the estimate. The sheet says how the design compares with its limits; it is not a
measurement.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from ensemble_gpu.kernels.cuda.histogram import PASS_TILES, TILE_LANES
from ensemble_gpu.kernels.cuda.launch import device_plan
from ensemble_gpu.kernels.cuda.sass import Compiled, branch_target, compiled, loop_around

ROWS, FEATURES = 11_000_000, 28
TOUCHED = 0.21  # share of the rows outside the kept leaf, from the prototype of the strategy
WARP, SECTOR = 32, 32
SCHEDULERS = 4
# A bank serves one access a clock and an atomic takes two (read, write); 32 random cells fall on
# 32 banks with 3.5 on the fullest: 32 / (2 * 3.5) adds a clock and multiprocessor.
ADDS_PER_CLOCK = 4.6
LAUNCH_US, LAUNCHES, COPIES = 10.0, 3, 3
REGISTERS = 65_536


@dataclass(frozen=True)
class Gpu:
    """Data-sheet numbers: multiprocessors, boost clock (GHz), bandwidth (GB/s), limits of one."""

    name: str
    capability: str
    processors: int
    clock: float
    bandwidth: float
    threads: int
    shared_kb: int
    reserved_kb: int


GPUS = (
    Gpu("T4", "75", 40, 1.59, 320, 1024, 64, 0),
    Gpu("A100 80 GB", "80", 108, 1.41, 2039, 2048, 164, 1),
    Gpu("RTX 4090, 8.9", "86", 128, 2.52, 1008, 1536, 100, 1),
    Gpu("H100 SXM", "90", 132, 1.83, 3350, 2048, 228, 1),
)


def instructions(loop: list[str], skipped: str, kept: str) -> int:
    """Instructions of one turn of a loop.

    A forward branch is taken where what it jumps over has `skipped` and not `kept`.
    """
    at = {line[:-1]: i for i, line in enumerate(loop) if line.startswith(".L")}
    count, i = 0, 0
    while i < len(loop):
        line = loop[i]
        count += not line.startswith(".L")
        target = branch_target(line)
        if target is not None and at.get(target, -1) > i:
            over = loop[i : at[target]]
            has = any(skipped in s for s in over) and not any(kept in s for s in over)
            if has or not line.startswith("@"):
                i = at[target]
                continue
        i += 1
    return count


def turn(kernel: Compiled) -> int:
    """Instructions for one row whose codes are all added, without a wrap-around."""
    return instructions(loop_around(kernel.sass, "ATOMS.ADD"), "RED", "ATOMS.ADD")


def idle_turn(kernel: Compiled) -> int:
    """Instructions for one row of the kept leaf."""
    return instructions(loop_around(kernel.sass, "ATOMS.ADD"), "ATOMS.ADD", "nothing")


def occupancy(kernel: Compiled, gpu: Gpu, block: int) -> float:
    """Resident threads over the most a multiprocessor can hold."""
    registers = -(-kernel.registers // 8) * 8
    limits = [gpu.threads // block, REGISTERS // (registers * block)]
    if kernel.shared_bytes:
        limits.append(int(gpu.shared_kb / (kernel.shared_bytes / 1024 + gpu.reserved_kb)))
    return min(limits) * block / gpu.threads


@dataclass(frozen=True)
class Estimate:
    """Milliseconds of a pass over all rows, by limit."""

    issue: float
    memory: float
    atomics: float

    @property
    def total(self) -> float:
        return max(self.issue, self.memory, self.atomics)

    @property
    def limit(self) -> str:
        return max(("issue", "memory", "atomics"), key=lambda name: getattr(self, name))

    @property
    def ratio(self) -> float:
        """Issue time over the limit that no other code could escape."""
        return self.issue / max(self.memory, self.atomics)


def estimate(gpu: Gpu, warp_instructions: float, n_bytes: float, adds: float) -> Estimate:
    clocks = gpu.processors * gpu.clock * 1e9
    return Estimate(
        1e3 * warp_instructions / (SCHEDULERS * clocks),
        1e3 * n_bytes / (gpu.bandwidth * 1e9),
        1e3 * adds / (ADDS_PER_CLOCK * clocks),
    )


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


def print_kernels(gpu: Gpu, kernels: dict[str, Compiled]) -> None:
    plan = device_plan(gpu.processors)
    for name, kernel in kernels.items():
        block = plan.feature_threads if name in ("score", "choose") else plan.threads
        loop, per_cell = "", ""
        if name in ("build", "update"):
            cells = PASS_TILES * TILE_LANES
            loop = f"{turn(kernel) / cells:.1f}"
            n_bytes = full_bytes() if name == "build" else update_bytes() / TOUCHED
            per_cell = f"{n_bytes / FEATURES:.1f}"
        print(
            f"| {name} | sm_{gpu.capability} ({gpu.name}) | {loop} | {per_cell} | "
            f"{kernel.registers} | {kernel.shared_bytes / 1024:.0f} | "
            f"{occupancy(kernel, gpu, block):.0%} |"
        )


def print_times(rows: list[tuple[Gpu, Estimate, Estimate]]) -> None:
    overhead = LAUNCH_US * (LAUNCHES + COPIES) / 1e3
    print(f"\n{ROWS:,} x {FEATURES}, {TOUCHED:.0%} of the rows touched; milliseconds\n")
    print("| GPU | pass | issue | memory | atomics | estimate | limited by | issue / limit |")
    print("|---|---|---|---|---|---|---|---|")
    for gpu, full, update in rows:
        for name, e in (("full histogram", full), ("round: update", update)):
            print(
                f"| {gpu.name} | {name} | {e.issue:.3f} | {e.memory:.3f} | {e.atomics:.3f} | "
                f"{e.total:.3f} | {e.limit} | {e.ratio:.2f} |"
            )
    print(
        f"\nA round adds about {overhead:.2f} ms of host time, where the GPU does not hide it: "
        f"{LAUNCHES} launches and {COPIES} small copies at {LAUNCH_US:.0f} us each."
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
  (one block a feature, microseconds).
"""


def main() -> None:
    print("| kernel | target | instructions / row-feature | bytes / row-feature | registers | "
          "shared KB | occupancy |")  # fmt: skip
    print("|---|---|---|---|---|---|---|")
    times = []
    for gpu in GPUS:
        with tempfile.TemporaryDirectory() as folder:
            found = compiled(gpu.capability, Path(folder))
        kernels = {k.kernel: k for k in found if k.signature == 0}
        print_kernels(gpu, kernels)
        times.append((gpu, full_pass(gpu, kernels["build"]), round_(gpu, kernels["update"])))
    print_times(times)
    print(UNKNOWN)


if __name__ == "__main__":
    main()
