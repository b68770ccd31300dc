"""The parameters that every boosted estimator has, and what they may be."""

from __future__ import annotations

from typing import Any

from ensemble_gpu.arrays.devices import DEVICES, check_device
from ensemble_gpu.boosting.evaluation import watched_metrics
from ensemble_gpu.data.parameters import (
    check_choice,
    check_flag,
    check_integer,
    check_jobs,
    check_real,
)
from ensemble_gpu.data.sampling import check_seed
from ensemble_gpu.estimators.progress import check_callbacks
from ensemble_gpu.kernels.edges import MAX_BINS_LIMIT

MISSING = ("abstain", "learn", "error")


class CheckedRounds:
    """Parameters of the rounds, and of the rows that watch them; a subclass checks its own too."""

    # What n_estimators may be besides a number.
    _other_rounds: tuple[str, ...] = ()

    n_estimators: int | str | None
    learning_rate: float | None
    max_bins: int | None
    early_stopping: bool | str
    validation_fraction: float
    n_iter_no_change: int
    metric: Any
    callbacks: list[Any] | None
    warm_start: bool
    random_state: Any
    _task: str
    missing: str
    device: str | None
    n_jobs: int | None

    def _check_parameters(self) -> None:
        check_choice("missing", self.missing, MISSING)
        check_choice("device", self.device, DEVICES)
        self._check_rounds()
        check_flag("warm_start", self.warm_start)
        check_integer("n_iter_no_change", self.n_iter_no_change, 1)
        check_real("validation_fraction", self.validation_fraction, 0.0, 0.9)
        check_integer("max_bins", self.max_bins, 2, MAX_BINS_LIMIT, others=(None,))
        check_jobs(self.n_jobs)
        check_seed(self.random_state)
        watched_metrics(self.metric, self._task)
        check_callbacks(self.callbacks)
        check_device(self.device)

    def _check_rounds(self) -> None:
        check_flag("early_stopping", self.early_stopping)
        check_integer("n_estimators", self.n_estimators, 1, others=self._other_rounds)
        check_real("learning_rate", self.learning_rate, 0.0)
