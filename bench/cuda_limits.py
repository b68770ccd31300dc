"""GPUs by their data sheets, and the three limits that counted instructions and bytes run into.

    issue    warp instructions / (multiprocessors * 4 a clock)
    memory   bytes / bandwidth
    atomics  shared-memory adds / (multiprocessors * ADDS_PER_CLOCK)

The largest is the estimate.
"""

from __future__ import annotations

from dataclasses import dataclass

from ensemble_gpu.kernels.cuda.launch import LaunchPlan
from tests.cuda.sass import Compiled, branch_target

ROWS, FEATURES = 11_000_000, 28  # of the passes that are estimated
WARP, SECTOR = 32, 32
SCHEDULERS = 4
# A bank serves one access a clock and an atomic takes two (read, write); 32 random cells fall on
# 32 banks with 3.5 on the fullest: 32 / (2 * 3.5) adds a clock and multiprocessor.
ADDS_PER_CLOCK = 4.6
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


def block_of(kernel: str, plan: LaunchPlan) -> int:
    """Threads of a block."""
    if kernel in ("score", "choose"):
        return plan.feature_threads
    return plan.node_threads if kernel.startswith("split_") else plan.threads


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
