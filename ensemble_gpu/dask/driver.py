"""A fit on a Dask cluster: places the rows, starts a rank a worker, and replaces what is lost.

Dask holds the partitions, and recomputes those that are lost with a worker. A fit is one long task
a worker that has rows; the ranks meet by sockets of their own (distributed/sockets.py). Where one
is lost the others end with the rounds that they have, and the next epoch begins with these: rows
follow them without a search, so that the model is that of a fit that nothing happened to.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from distributed import CancelledError, Client, Future, wait
from distributed.scheduler import KilledWorker

from ensemble_gpu.dask.worker import Epoch, Outcome, open_door, rows_of, run_rank

# Rows of weight that a rank has at least: a worker with fewer gives its partitions to another.
FEWEST_ROWS = 64
# Seconds between looks at the tasks, at the workers, and until survivors of an epoch are given up.
LOOK, LOOK_AT_WORKERS, GRACE = 0.1, 1.0, 60.0
# What Dask says of a task that was lost with a worker.
GONE = CancelledError
# Seconds without any worker after which a fit gives up.
NO_WORKERS = 120.0


class WorkersLost(RuntimeError):
    """A fit that has lost workers more often than it may."""


@dataclass(frozen=True)
class Rank:
    """A worker of the team: its address, and the numbers of its partitions, ascending."""

    address: str
    numbers: tuple[int, ...]


class Driver:
    """Runs the fit of an estimator to partitions that are futures of a client."""

    def __init__(
        self, client: Client, estimator: Any, parts: Sequence[Future], retries: int
    ) -> None:
        self.client, self.estimator, self.parts = client, estimator, list(parts)
        self.retries = retries
        self.name = f"ensemble_gpu-{secrets.token_hex(8)}"
        self.rows: list[tuple[int, int]] = []
        self.events: list[str] = []
        self._peeked: dict[Future, Any] = {}

    def __call__(self, first: dict[str, Any], others: dict[str, Any]) -> Any:
        """The fitted estimator. What `fit` takes besides: for the first rank, and for others."""
        found: tuple[Any, ...] = ()
        for number in range(self.retries + 1):
            ranks = self._place()
            outcome = self._run(number, ranks, found, first, others)
            if outcome.estimator is not None:
                return outcome.estimator
            found = max(found, outcome.found, key=len)
            self.events.append(outcome.lost)
        raise WorkersLost(
            f"The fit has lost workers {self.retries + 1} times, and retries={self.retries}: "
            f"{'; '.join(self.events)}. It had come to round {len(found)}."
        )

    def _place(self) -> list[Rank]:
        """Who has which partitions, once all are there; Dask recomputes those that were lost."""
        self._wait_for_parts()
        while not self.rows:
            try:
                self.rows = self.client.gather(self.client.map(rows_of, self.parts, pure=False))
            except (KilledWorker, GONE):
                self._wait_for_parts()
        if not any(weighted for _, weighted in self.rows):
            n = sum(rows for rows, _ in self.rows)
            reason = "sample_weight is zero for every row" if n else "X has no rows"
            raise ValueError(f"{reason}; at least one row must have weight.")
        owned: dict[str, list[int]] = {}
        heavy: dict[str, int] = {}
        for number, holders in enumerate(self._holders()):
            if self.rows[number][0]:
                owner = min(holders, key=lambda a: (heavy.get(a, 0), a))
                owned.setdefault(owner, []).append(number)
                heavy[owner] = heavy.get(owner, 0) + self.rows[number][1]
        while len(owned) > 1 and min(heavy.values()) < FEWEST_ROWS:
            least, most = (f(heavy, key=lambda a: (heavy[a], a)) for f in (min, max))
            owned[most] += owned.pop(least)
            heavy[most] += heavy.pop(least)
        return [Rank(address, tuple(sorted(owned[address]))) for address in sorted(owned)]

    def _holders(self) -> list[list[str]]:
        """The workers that have each partition, one at least."""
        while True:
            where = self.client.who_has(self.parts)
            found = [sorted(where.get(part.key) or ()) for part in self.parts]
            if all(found):
                return found
            time.sleep(LOOK)  # lost between two looks
            self._wait_for_parts()

    def _wait_for_parts(self) -> None:
        """Until all partitions are there; an error of one of them is raised."""
        since = time.monotonic()
        while not all(part.status == "finished" for part in self.parts):
            for number, part in enumerate(self.parts):
                self._check(number, part)
            if self._workers():
                since = time.monotonic()
            elif time.monotonic() - since > NO_WORKERS:
                raise WorkersLost(f"The cluster has had no worker for {NO_WORKERS:.0f} seconds.")
            with suppress(TimeoutError, GONE):
                wait(self.parts, timeout=LOOK_AT_WORKERS)

    def _check(self, number: int, part: Future) -> None:
        if part.status == "error":
            error = part.exception()
            if isinstance(error, KilledWorker):
                raise WorkersLost(f"Workers die when they compute partition {number}: {error}")
            if not isinstance(error, GONE):
                raise error
        if part.status in ("error", "cancelled"):
            raise WorkersLost(
                f"Partition {number} was lost with its worker, and cannot be computed again. Data "
                "that was given by client.scatter is of that kind: make collections that Dask can "
                "compute anew, or scatter with broadcast=True."
            )

    def _workers(self) -> set[str]:
        return set(self.client.scheduler_info(n_workers=-1)["workers"])

    def _run(
        self, number: int, ranks: list[Rank], found: tuple[Any, ...], first: Any, others: Any
    ) -> Outcome:
        """One epoch: the outcome of the first rank, or why there is none."""
        name = f"{self.name}-{number}"
        futures: list[Future] = []
        try:
            doors = [self._submit(rank, f"{name}-door-{k}", open_door, name)
                     for k, rank in enumerate(ranks)]  # fmt: skip
            futures += doors
            lost = self._watch(doors, ranks)
            if lost:
                return Outcome(lost=lost, found=found)
            addresses = [self._peek(door) for door in doors]
            if any(isinstance(one, Outcome) for one in addresses):
                return Outcome(lost="a worker was lost before the fit began", found=found)
            epoch = Epoch(name, secrets.token_bytes(32), tuple(addresses), found)
            runs = [
                self._submit(
                    rank, f"{name}-rank-{k}", run_rank, self.estimator, epoch, k,
                    list(rank.numbers), [self.parts[i] for i in rank.numbers],
                    others if k else first,
                )
                for k, rank in enumerate(ranks)
            ]  # fmt: skip
            futures += runs
            lost = self._watch(runs, ranks)
            return self._outcome(runs, lost, found)
        finally:
            self.client.cancel(futures)

    def _submit(self, rank: Rank, key: str, task: Any, *arguments: Any) -> Future:
        return self.client.submit(
            task, *arguments, key=key, workers=[rank.address], allow_other_workers=False,
            pure=False, retries=0,
        )  # fmt: skip

    def _watch(self, futures: list[Future], ranks: list[Rank]) -> str:
        """Wait for all; returns early, saying why, where a worker is gone or a rank has lost one.

        An error of a rank that is none of the connection is raised.
        """
        looked, deadline, lost = time.monotonic(), None, ""
        while True:
            pending = [f for f in futures if not f.done()]
            for future in futures:
                if future.status == "error":
                    self._raise(future)
                    lost = lost or "a worker was killed"
                elif future.status in ("cancelled", "lost"):
                    lost = lost or "a worker was lost"
                elif future.done() and isinstance(self._peek(future), Outcome):
                    lost = lost or self._peek(future).lost
            if not pending:
                return lost
            if time.monotonic() - looked > LOOK_AT_WORKERS or lost:
                looked, here = time.monotonic(), self._workers()
                busy = {f: rank.address for f, rank in zip(futures, ranks, strict=True)
                        if f in pending}  # fmt: skip
                gone = [address for address in busy.values() if address not in here]
                lost = lost or (f"worker {gone[0]} is gone" if gone else "")
                pending = [f for f, address in busy.items() if address in here]
            if lost:
                if not pending:
                    return lost
                deadline = deadline or time.monotonic() + GRACE
                if time.monotonic() > deadline:
                    return lost
            try:
                wait(pending, timeout=LOOK, return_when="FIRST_COMPLETED")
            except (TimeoutError, GONE):
                continue

    def _peek(self, future: Future) -> Any:
        """The result of a finished task; a worker may be lost that had it."""
        if future not in self._peeked:
            try:
                self._peeked[future] = future.result(timeout=GRACE)
            except (KilledWorker, TimeoutError, GONE):
                self._peeked[future] = Outcome(lost="a worker was lost with its result")
        return self._peeked[future]

    def _raise(self, future: Future) -> None:
        error = future.exception()
        if not isinstance(error, (KilledWorker, GONE)):
            raise error

    def _outcome(self, runs: list[Future], lost: str, found: tuple[Any, ...]) -> Outcome:
        outcomes = [self._peek(run) for run in runs if run.status == "finished"]
        fitted = [one for one in outcomes if one.estimator is not None]
        if fitted:
            return fitted[0]
        longest = max([found, *(one.found for one in outcomes)], key=len)
        return Outcome(lost=lost or "the first rank was lost", found=longest)
