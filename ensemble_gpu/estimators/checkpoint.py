"""Checkpoints: when a fit that is under way is written to a file."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ensemble_gpu.data.parameters import check_integer, check_real

SUFFIX = ".safetensors"


@dataclass(frozen=True)
class Checkpoint:
    """A callback that writes the fit to a file from time to time, so that it can be resumed.

    `fit(X, y, resume=path)` goes on where the file ends, on any engine and number of threads, and
    gives the model that the fit would have given without a break, to the last bit; a file that does
    not exist begins anew. Data and parameters must be the same, but for n_estimators, n_jobs,
    device and callbacks; else the error names what differs.

    The file is a model file: `ensemble_gpu.load(path)` predicts with the rounds so far (with early
    stopping up to the best of them; probabilities of AdaBoost are calibrated when the fit ends). It
    holds the rounds, not the rows, and is replaced whole: there is never half a file. It is written
    once more when the fit ends, and where Ctrl-C ends it. A learner that is not of this package
    cannot be stored as data: its rounds are fitted again when the fit is resumed, and must come
    out the same.

    Parameters
    ----------
    path : str or path
        A name that ends with .safetensors.
    every : int or None, default=100
        Rounds (of a forest: trees) after which the file is written.
    seconds : float or None, default=60
        Time after which it is written, however few rounds there were.
    share : float in (0, 1] or None, default=0.01
        Writing takes at most this share of the fit's time: where rounds are fast it is done less
        often than `every` says. None: no limit.
    """

    path: str | os.PathLike[str]
    every: int | None = 100
    seconds: float | None = 60.0
    share: float | None = 0.01

    def __post_init__(self) -> None:
        if not isinstance(self.path, str | os.PathLike) or Path(self.path).suffix != SUFFIX:
            raise ValueError(f"path must be a name that ends with {SUFFIX}; got {self.path!r}.")
        check_integer("every", self.every, 1, others=(None,))
        check_real("seconds", self.seconds, 0.0, others=(None,))
        check_real("share", self.share, 0.0, 1.0, others=(None,))

    def __call__(self, info: Any) -> None:
        """Nothing: the fit itself writes, as it has what goes into the file."""

    def check_folder(self) -> None:
        """Raise where the file could not be written."""
        folder = Path(self.path).absolute().parent
        if not folder.is_dir():
            raise FileNotFoundError(f"path {str(self.path)!r} is in a folder that does not exist.")


def checkpoints_of(callbacks: Sequence[Any] | None) -> list[Checkpoint]:
    return [callback for callback in callbacks or [] if isinstance(callback, Checkpoint)]


def others_of(callbacks: Sequence[Any] | None) -> list[Any]:
    """The callbacks that are told of rounds."""
    return [callback for callback in callbacks or [] if not isinstance(callback, Checkpoint)]


# Writes the state after so many rounds to a file.
Write = Callable[[Path, int], None]


class Checkpoints:
    """The checkpoints of one fit: asked after every round, they write when it is time."""

    def __init__(self, checkpoints: Sequence[Checkpoint], write: Write) -> None:
        for checkpoint in checkpoints:
            checkpoint.check_folder()
        self.schedules = [_Schedule(checkpoint) for checkpoint in checkpoints]
        self.write = write
        self.seen = 0

    def begin(self, n_rounds: int) -> None:
        """Rounds of an earlier run are in a file already."""
        for schedule in self.schedules:
            schedule.rounds = n_rounds

    def __call__(self, n_rounds: int) -> None:
        """After a round that all others have seen."""
        self.seen = n_rounds
        for schedule in self.schedules:
            if schedule.due(n_rounds):
                schedule.run(self.write, n_rounds)

    def interrupted(self) -> None:
        """Write what there is: the rounds that all have seen."""
        for schedule in self.schedules:
            if self.seen > schedule.rounds:
                schedule.run(self.write, self.seen)

    @contextmanager
    def watching(self, callbacks: Sequence[Any]) -> Iterator[None]:
        """While rounds run: Ctrl-C writes what there is, and callbacks are closed at the end."""
        try:
            yield
        except KeyboardInterrupt:
            self.interrupted()
            raise
        finally:
            for callback in callbacks:
                getattr(callback, "close", lambda: None)()

    def end(self, n_rounds: int) -> None:
        """The fit has ended, or comes to something that takes long."""
        for schedule in self.schedules:
            schedule.run(self.write, n_rounds)


class _Schedule:
    def __init__(self, checkpoint: Checkpoint) -> None:
        self.checkpoint = checkpoint
        self.begun = self.last = time.perf_counter()
        # Rounds in the file; seconds that all writing has taken, and the last time.
        self.rounds, self.spent, self.cost = 0, 0.0, 0.0

    def due(self, n_rounds: int) -> bool:
        every, seconds, share = (
            self.checkpoint.every, self.checkpoint.seconds, self.checkpoint.share,
        )  # fmt: skip
        enough = every is not None and n_rounds - self.rounds >= every
        if not enough and seconds is None:
            return False
        now = time.perf_counter()
        if not enough and now - self.last < (seconds or 0.0):
            return False
        return share is None or share * (now - self.begun) >= self.spent + self.cost

    def run(self, write: Write, n_rounds: int) -> None:
        start = time.perf_counter()
        write(Path(self.checkpoint.path), n_rounds)
        self.last = time.perf_counter()
        self.cost = self.last - start
        self.spent += self.cost
        self.rounds = n_rounds
