"""How kernels are launched: one function, and the shapes of the launches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple


class Shape(NamedTuple):
    """How a kernel is launched: blocks of the grid, threads of a block, the stream."""

    grid: int | tuple[int, int]
    block: int
    stream: Any


@dataclass(frozen=True)
class LaunchPlan:
    """Threads of a block (powers of two) and blocks of a grid.

    `blocks` is for the kernels that walk over rows: few, because each block ends with a flush of
    its whole histogram. `part_rows` is the fewest rows worth a block.
    `feature_blocks` is for the score, one feature a block at a time.
    `busy_blocks` is for one row a thread, without shared memory. `node_threads` and `node_blocks`
    are for trees, one feature of a node a block at a time.
    """

    threads: int
    blocks: int
    part_rows: int
    feature_threads: int
    feature_blocks: int
    busy_blocks: int = 1024
    node_threads: int = 128
    node_blocks: int = 2048

    def row_blocks(self, n_rows: int) -> int:
        """Blocks for one row a thread."""
        return max(1, min(self.busy_blocks, -(-n_rows // self.threads)))

    def pair_blocks(self, n: int, m: int) -> tuple[int, int]:
        """A grid of two axes for n times m pieces of work, such as nodes and features."""
        second = max(1, min(m, self.node_blocks))
        return max(1, min(n, self.node_blocks // second)), second

    def __post_init__(self) -> None:
        for name, limit in (("threads", 512), ("feature_threads", 256), ("node_threads", 128)):
            value = getattr(self, name)
            if not 1 <= value <= limit or value & (value - 1):
                raise ValueError(f"{name} must be a power of two up to {limit}; got {value}.")


def device_plan(processors: int) -> LaunchPlan:
    """For a GPU with that many multiprocessors.

    The histogram kernels take 32 KB of shared memory and some 50 registers a thread: two blocks of
    512 threads are resident (three on 9.0; bench/cuda_cost.py prints it). Four blocks a
    multiprocessor are then two waves: enough to even out, and each costs a flush of its cells.
    """
    return LaunchPlan(
        threads=512,
        blocks=4 * processors,
        part_rows=2048,
        feature_threads=256,
        feature_blocks=1024,
        busy_blocks=8 * processors,
        node_threads=128,
        node_blocks=32 * processors,
    )


# The simulator starts one operating-system thread per CUDA thread: as few as show every barrier.
SIMULATOR_PLAN = LaunchPlan(
    threads=4, blocks=2, part_rows=64, feature_threads=4, feature_blocks=2, busy_blocks=2,
    node_threads=4, node_blocks=2,
)  # fmt: skip


def launch(kernel: Any, grid: int | tuple[int, int], block: int, stream: Any, *args: Any) -> None:
    """kernel[grid, block, stream](*args): queued, not waited for."""
    kernel[grid, block, stream](*args)
