"""Fits to rows that several workers have, whoever has started them: `fit`, and ways to meet."""

from ensemble_gpu.distributed.errors import LostWorker
from ensemble_gpu.distributed.fitting import fit
from ensemble_gpu.distributed.mpi import MPIReduce
from ensemble_gpu.distributed.sockets import Door, Keys, SocketReduce
from ensemble_gpu.distributed.threads import ThreadReduce
from ensemble_gpu.kernels.team import Journal, Reduce

__all__ = [
    "Door",
    "Journal",
    "Keys",
    "LostWorker",
    "MPIReduce",
    "Reduce",
    "SocketReduce",
    "ThreadReduce",
    "fit",
]
