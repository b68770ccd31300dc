"""What runs on the workers of a Dask cluster: a door for the others, then a rank of the fit."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from typing import Any, NamedTuple

from distributed import get_worker
from distributed.comm.addressing import get_address_host
from distributed.worker import secede, thread_state

from ensemble_gpu.arrays.namespace import locate
from ensemble_gpu.arrays.sparse import check_dense
from ensemble_gpu.distributed.errors import LostWorker
from ensemble_gpu.distributed.fitting import fit
from ensemble_gpu.distributed.sockets import Door, Keys, SocketReduce
from ensemble_gpu.kernels.team import Journal

# Doors of fits whose ranks have not begun, and the seconds after which nobody is expected any more.
_DOORS: dict[tuple[str, str], tuple[Door, threading.Timer]] = {}
DOOR_SECONDS = 900.0


class Part(NamedTuple):
    """A partition: rows of X, y, sample_weight and init_score (None: not given)."""

    X: Any
    y: Any
    sample_weight: Any = None
    init_score: Any = None


@dataclass(frozen=True)
class Epoch:
    """One attempt at a fit: a team of workers, each with its parts of the rows."""

    name: str
    token: bytes
    addresses: tuple[tuple[str, int], ...]
    earlier: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Outcome:
    """How a rank has ended: `estimator` is fitted (the first rank's), or `lost` says why not."""

    estimator: Any = None
    lost: str = ""
    found: tuple[Any, ...] = ()


def bundle(number: int, X: Any, y: Any, sample_weight: Any, init_score: Any) -> Part:
    """The parts of one partition, which must have the same number of rows."""
    check_dense(X, "an estimator on a Dask cluster")
    n = len(X)
    for name, given in (("y", y), ("sample_weight", sample_weight), ("init_score", init_score)):
        if given is not None and len(given) != n:
            raise ValueError(
                f"Found partitions with inconsistent numbers of samples: partition {number} of X "
                f"has {n} rows, that of {name} has {len(given)}. They must be partitioned alike."
            )
    return Part(X, y, sample_weight, init_score)


def rows_of(part: Part) -> tuple[int, int]:
    """How many rows a partition has, and how many of them have weight."""
    n = len(part.X)
    if part.sample_weight is None:
        return n, n
    return n, int((part.sample_weight != 0).sum())  # of others than these the fit itself will say


def open_door(name: str) -> tuple[str, int]:
    """The address where the rank of this worker will answer; it is the worker's own host."""
    worker = get_worker()
    host = "127.0.0.1"
    if not worker.address.startswith("inproc"):
        host = get_address_host(worker.contact_address or worker.address)
    try:
        door = Door(host)
    except OSError:  # an address by which others know this machine, and not one of its own
        wide = ":" in str(socket.getaddrinfo(host, None)[0][4][0])
        door = Door("::" if wide else "0.0.0.0")
    timer = threading.Timer(DOOR_SECONDS, _shut, (name, worker.address))
    timer.daemon = True
    timer.start()
    _DOORS[name, worker.address] = door, timer
    return host, door.address[1]


def _shut(name: str, address: str) -> None:
    """Nobody is expected at the door any more."""
    if (name, address) in _DOORS:
        door, _ = _DOORS.pop((name, address))
        door.close()


def run_rank(
    estimator: Any, epoch: Epoch, rank: int, numbers: list[int], parts: list[Part], more: Any
) -> Outcome:
    """The fit of one rank; a team that has fallen apart is no error, but an outcome."""
    worker = get_worker()
    secede()  # a long task: others of this worker, of another fit perhaps, must not wait for it
    if (epoch.name, worker.address) not in _DOORS:
        return Outcome(lost="a worker began anew before the fit did", found=epoch.earlier)
    door, timer = _DOORS.pop((epoch.name, worker.address))
    timer.cancel()
    estimator = copy(estimator)  # threads of one process may have been given the same
    if estimator.n_jobs is None:
        estimator.n_jobs = worker.state.nthreads
    journal = Journal(epoch.earlier)
    try:
        reduce = SocketReduce(
            rank, door, epoch.addresses, _keys(worker, epoch.token), _wanted(worker)
        )
    except LostWorker as error:
        return Outcome(lost=str(error), found=epoch.earlier)
    try:
        one = joined_parts(parts)
        sizes = [len(part.X) for part in parts]
        given = {} if one.init_score is None else {"init_score": one.init_score}
        fitted = fit(
            estimator, one.X, one.y, one.sample_weight, reduce=reduce, numbers=numbers, sizes=sizes,
            journal=journal, **given, **more,
        )  # fmt: skip
        # should the first be lost before its result is fetched, the second has the rounds
        if rank == 0:
            return Outcome(fitted)
        return Outcome(found=tuple(journal.found) if rank == 1 else ())
    except LostWorker as error:
        known = max(journal.found, list(epoch.earlier), key=len)
        return Outcome(lost=str(error), found=tuple(known))
    finally:
        reduce.close()


def _keys(worker: Any, token: bytes) -> Keys:
    security = worker.security
    return Keys(
        token,
        security.get_listen_args("worker")["ssl_context"],
        security.get_connection_args("worker")["ssl_context"],
    )


def _wanted(worker: Any) -> Callable[[], bool]:
    """Whether the scheduler still wants the task of this thread."""
    key = thread_state.key

    def wanted() -> bool:
        task = worker.state.tasks.get(key)
        return task is not None and task.state not in ("cancelled", "released", "forgotten")

    return wanted


def joined_parts(parts: list[Part]) -> Part:
    """The rows of several partitions, one after the other; of a single one, itself."""
    if len(parts) == 1:
        return parts[0]
    return Part(*(_concatenated(list(column)) for column in zip(*parts, strict=True)))


def _concatenated(pieces: list[Any]) -> Any:
    first = pieces[0]
    if first is None:
        return None
    if hasattr(first, "iloc"):
        from dask.dataframe.dispatch import concat

        return concat(pieces)
    return locate(first).xp.concat(pieces, axis=0)
