"""Workers that are the processes of an MPI program (package mpi4py)."""

from __future__ import annotations

from typing import Any

import numpy as np


class MPIReduce:
    """The processes of a communicator of mpi4py."""

    def __init__(self, comm: Any) -> None:
        self.comm, self.rank, self.size = comm, comm.Get_rank(), comm.Get_size()

    def sum(self, array: np.ndarray) -> np.ndarray:
        own = np.ascontiguousarray(array, dtype=np.int64)
        total = np.empty_like(own)
        self.comm.Allreduce(own, total)
        return total

    def gather(self, array: np.ndarray, to_all: bool = True) -> list[np.ndarray]:
        lengths = np.zeros(self.size, dtype=np.int64)
        lengths[self.rank] = len(array)
        sizes = self.sum(lengths)
        own = np.ascontiguousarray(array)
        row = own.dtype.itemsize * int(np.prod(own.shape[1:]))
        found = []
        for rank, length in enumerate(sizes.tolist()):  # one at a time: no count beyond 2^31
            part = own if rank == self.rank else np.empty((length, *own.shape[1:]), own.dtype)
            if length * row:
                self._broadcast(part, rank, to_all)
            found.append(part)
        return found if to_all or self.rank == 0 else []

    def _broadcast(self, part: np.ndarray, rank: int, to_all: bool) -> None:
        flat, step = part.reshape(-1).view(np.uint8), 1 << 30
        for start in range(0, len(flat), step):
            piece = flat[start : start + step]
            if to_all:
                self.comm.Bcast(piece, root=rank)
            elif rank != 0 and self.rank == rank:
                self.comm.Send(piece, dest=0)
            elif rank != 0 and self.rank == 0:
                self.comm.Recv(piece, source=rank)
