"""Workers that are threads of one process."""

from __future__ import annotations

from threading import Barrier, BrokenBarrierError

import numpy as np

from ensemble_gpu.distributed.errors import LostWorker


class _Table:
    """Where the threads lay down their arrays, and meet."""

    def __init__(self, size: int) -> None:
        self.barrier = Barrier(size)
        self.arrays: list[np.ndarray] = [np.zeros(0)] * size

    def meet(self) -> None:
        try:
            self.barrier.wait()
        except BrokenBarrierError:
            raise LostWorker("another thread of the team has failed") from None


class ThreadReduce:
    """One of several threads; `ThreadReduce.team(n)` makes those of a team."""

    def __init__(self, rank: int, size: int, table: _Table) -> None:
        self.rank, self.size, self.table = rank, size, table

    @classmethod
    def team(cls, size: int) -> list[ThreadReduce]:
        table = _Table(size)
        return [cls(rank, size, table) for rank in range(size)]

    def sum(self, array: np.ndarray) -> np.ndarray:
        return np.asarray(np.sum(self._exchanged(array), axis=0, dtype=np.int64))

    def gather(self, array: np.ndarray, to_all: bool = True) -> list[np.ndarray]:
        found = self._exchanged(array)
        return found if to_all or self.rank == 0 else []

    def _exchanged(self, array: np.ndarray) -> list[np.ndarray]:
        self.table.arrays[self.rank] = array.copy()
        self.table.meet()
        found = list(self.table.arrays)
        self.table.meet()  # before anybody lays down the next
        return found

    def leave(self) -> None:
        """Say that this worker has failed: the others are told when they next meet."""
        self.table.barrier.abort()
