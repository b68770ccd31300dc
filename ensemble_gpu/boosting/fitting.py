"""One fit for every boosted estimator: parameters in, a strategy, the loop, a model out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ensemble_gpu.arrays import cupy as gpu
from ensemble_gpu.arrays.devices import DEVICES, check_device
from ensemble_gpu.arrays.namespace import Where, locate
from ensemble_gpu.boosting.loop import Trace, boost
from ensemble_gpu.boosting.rows import hold_out
from ensemble_gpu.boosting.staged import StagedEstimator
from ensemble_gpu.boosting.strategy import Plan
from ensemble_gpu.boosting.watching import (
    History,
    TrainingLoss,
    Validation,
    call_callbacks,
    metric_value,
)
from ensemble_gpu.data.parameters import (
    check_choice,
    check_flag,
    check_integer,
    check_jobs,
    check_real,
)
from ensemble_gpu.data.rows import Binned, Rows
from ensemble_gpu.data.sampling import check_seed
from ensemble_gpu.estimators.categorical import CategoricalEstimator
from ensemble_gpu.estimators.reading import (
    TrainingData,
    encoded_by,
    read,
    read_validation,
    training_data,
)
from ensemble_gpu.kernels.edges import MAX_BINS_LIMIT
from ensemble_gpu.kernels.select import engine_for
from ensemble_gpu.learners.protocol import alphas_and_errors

MISSING = ("abstain", "learn", "error")


class BoostedEstimator(StagedEstimator, CategoricalEstimator):
    """`fit` of a sum, round by round. A subclass says how to read y, and which plan to run."""

    n_estimators: int
    learning_rate: float
    max_bins: int | None
    early_stopping: bool
    validation_fraction: float
    n_iter_no_change: int
    metric: Callable[..., float] | None
    callbacks: list[Any] | None
    random_state: Any

    def _read_target(self, y: Any, n_rows: int, w: Any, where: Where) -> tuple[Any, Any]:
        """(target, weights) of the training rows, validated; sets what predictions need."""
        raise NotImplementedError

    def _read_validation_target(self, y: Any, n_rows: int, where: Where) -> Any:
        raise NotImplementedError

    def _n_strata(self) -> int:
        """Classes from which validation rows are drawn in equal shares; 1 for a regression."""
        raise NotImplementedError

    def _plan(self, data: TrainingData) -> Plan:
        raise NotImplementedError

    def _metric_arguments(self, F: Any, target: Any, where: Where) -> tuple[Any, Any]:
        """(y, prediction) as a user's metric takes them, in `where`."""
        raise NotImplementedError

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        X_val: Any = None,
        y_val: Any = None,
        sample_weight_val: Any = None,
    ) -> Any:
        """Boost on X [n, p] and y [n].

        Parameters
        ----------
        X : array of any array-API library, frame, matrix of scipy.sparse or list; NaN and masked
            cells are missing
        y : for a classifier labels (on a device integers or bool, on the host anything hashable),
            for a regressor numbers
        sample_weight : weights >= 0; a row of weight zero is as if absent
        X_val, y_val, sample_weight_val : rows for the validation loss

        Returns
        -------
        self
        """
        with self._fitting():
            self._check_parameters()
            self._forget()
            with gpu.current(locate(X), "boosting"):
                self._fit(X, y, sample_weight, X_val, y_val, sample_weight_val)
        return self

    def _check_parameters(self) -> None:
        check_choice("missing", self.missing, MISSING)
        check_choice("device", self.device, DEVICES)
        check_flag("early_stopping", self.early_stopping)
        check_integer("n_estimators", self.n_estimators, 1)
        check_integer("n_iter_no_change", self.n_iter_no_change, 1)
        check_real("learning_rate", self.learning_rate, 0.0)
        check_real("validation_fraction", self.validation_fraction, 0.0, 0.9)
        check_integer("max_bins", self.max_bins, 2, MAX_BINS_LIMIT, others=(None,))
        check_jobs(self.n_jobs)
        check_seed(self.random_state)
        if self.metric is not None and not callable(self.metric):
            raise TypeError(
                "metric must be None (the loss) or a callable metric(y, prediction) -> float; got "
                f"{self.metric!r}."
            )
        callbacks = [] if self.callbacks is None else self.callbacks
        listed = isinstance(callbacks, list | tuple)
        for wrong in [c for c in callbacks if not callable(c)] if listed else [callbacks]:
            raise TypeError(f"callbacks must be None or a list of callables; got {wrong!r}.")
        check_device(self.device)

    def _fit(self, X: Any, y: Any, w: Any, X_val: Any, y_val: Any, w_val: Any) -> None:
        reading = read(self, X, y, w)
        held_out = read_validation(self, X_val, y_val, w_val, reading)
        engine, home = engine_for(reading.where, self.n_jobs), reading.home
        reading = reading.seen_by(engine)
        where = reading.where
        if held_out is not None:
            held_out = held_out.seen_by(engine)
        elif self.early_stopping:
            held_out, keep = hold_out(
                reading.rows, reading.keep, self._n_strata(), self.validation_fraction,
                self.random_state, where,
            )  # fmt: skip
            reading = replace(reading, keep=keep)
        data = training_data(reading, engine, self.max_bins)
        del reading  # features that were converted or moved are free again once they are encoded
        self._categories = data.categories
        if held_out is not None:
            held_out = encoded_by(data.categories, held_out, where)
        plan = self._plan(data)
        self.link_ = plan.link
        del data  # and the encoded ones once they are binned
        validation = self._validation(plan, held_out, where, home)
        trace, training = self._boost(plan, validation)
        self._keep(trace, plan, training, validation)
        self.engine_ = engine.name

    def _binned(self, data: TrainingData, n_ranges: int | None) -> Binned:
        """The training rows in the layout of a plan (data/rows.py)."""
        return data.binned(self.max_bins or MAX_BINS_LIMIT, n_ranges=n_ranges)

    def _validation(
        self, plan: Plan, held_out: Rows | None, where: Where, home: Where
    ) -> Validation | None:
        if held_out is None:
            return None
        target, weights = held_out.target, held_out.weights

        # copies: the user's function may keep or change them, and torch warns of read-only views
        more = {} if weights is None else {"sample_weight": home.hand_over(_copy(weights))}

        def evaluate(F: Any) -> float:
            if self.metric is None:
                return plan.loss(F, target, weights)
            truth, prediction = self._metric_arguments(F, target, where)
            answer = self.metric(home.hand_over(_copy(truth)), home.hand_over(prediction), **more)
            return metric_value(answer)

        patience = self.n_iter_no_change if self.early_stopping else None
        return Validation(plan, held_out.X, evaluate, where, patience)

    def _boost(
        self, plan: Plan, validation: Validation | None
    ) -> tuple[Trace, TrainingLoss | None]:
        watched = validation is not None or self.callbacks
        training = TrainingLoss(plan.strategy) if plan.cheap_loss or watched else None
        watchers: list[Any] = [watcher for watcher in (training, validation) if watcher]
        if self.callbacks:
            watchers.append(
                call_callbacks(self.callbacks, self.n_estimators, plan, training, validation)
            )
        try:
            return boost(plan.strategy, self.n_estimators, watchers), training
        finally:
            for callback in self.callbacks or []:
                getattr(callback, "close", lambda: None)()

    def _keep(
        self,
        trace: Trace,
        plan: Plan,
        training: TrainingLoss | None,
        validation: Validation | None,
    ) -> None:
        """Fitted attributes from the trace; early stopping keeps the best round."""
        n_rounds = trace.n_rounds
        if validation is not None and validation.history:
            self.validation_loss_ = np.array(validation.history)
            if self.early_stopping:
                n_rounds = validation.best_round
        self.history_ = History(
            np.array(training.history if training else []),
            np.array(validation.history if validation else []),
            np.array([r.weights for r in trace.rounds if r.weights]).reshape(-1, 4),
        )
        rounds = trace.rounds[:n_rounds]
        outcome = plan.learner.outcome(rounds, plan.start, plan.constant)
        self.model_ = outcome.model
        if outcome.importances is not None:
            self.feature_importances_ = outcome.importances
        self.n_estimators_ = n_rounds
        self.alphas_, self.errors_ = alphas_and_errors(rounds)
        self.stop_reason_ = trace.stop_reason


def _copy(array: Any) -> Any:
    return array.copy() if isinstance(array, np.ndarray) else array
