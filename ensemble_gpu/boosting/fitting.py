"""One fit for every boosted estimator: parameters in, a strategy, the loop, a model out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ensemble_gpu.arrays import cupy as gpu
from ensemble_gpu.arrays.namespace import Where, locate
from ensemble_gpu.boosting.checking import CheckedRounds
from ensemble_gpu.boosting.evaluation import (
    PARTS,
    QUERY_PARTS,
    VALIDATION,
    GivenSet,
    given_sets,
)
from ensemble_gpu.boosting.loop import Resumed, Trace, boost
from ensemble_gpu.boosting.rows import hold_out
from ensemble_gpu.boosting.staged import StagedEstimator
from ensemble_gpu.boosting.strategy import Plan
from ensemble_gpu.boosting.validation import Validation, watch_sets
from ensemble_gpu.boosting.warm_start import Run, checksum, parameters_of, state_of
from ensemble_gpu.boosting.watching import History, TrainingLoss, call_callbacks
from ensemble_gpu.boosting.with_estimator import TakesEstimator
from ensemble_gpu.data.rows import Binned, Rows
from ensemble_gpu.estimators.reading import (
    GivenRows,
    Reading,
    TrainingData,
    encoded_by,
    read,
    read_validation,
    training_data,
)
from ensemble_gpu.estimators.shape import Shape
from ensemble_gpu.kernels.edges import MAX_BINS_LIMIT
from ensemble_gpu.kernels.select import engine_for
from ensemble_gpu.learners.protocol import alphas_and_errors


@dataclass(frozen=True)
class Given:
    """What `fit` was given, besides the validation rows of `sets`."""

    X: Any
    y: Any
    sample_weight: Any
    init_score: Any
    stop_on: Any
    qid: Any = None
    sets: Sequence[GivenSet] = ()


class BoostedEstimator(StagedEstimator, CheckedRounds, TakesEstimator):
    """`fit` of a sum, round by round. A subclass says how to read y, and which plan to run."""

    # What a fit with warm_start=True has left for the next one.
    _run: Run | None
    # Which quantile the metric "quantile_loss" is about; None: the median.
    _quantile: float | None = None
    # Whether rows are compared within queries: validation rows have them too.
    _needs_queries = False

    def _read_target(self, y: Any, n_rows: int, w: Any, where: Where) -> tuple[Any, Any]:
        """(target, weights) of the training rows, validated; sets what predictions need."""
        raise NotImplementedError

    def _read_validation_target(self, y: Any, n_rows: int, where: Where, name: str) -> Any:
        raise NotImplementedError

    def _n_outputs(self) -> int:
        """Outputs of the model, once the target has been read."""
        raise NotImplementedError

    def _n_strata(self) -> int:
        """Classes from which validation rows are drawn in equal shares; 1 for a regression."""
        raise NotImplementedError

    def _plan(self, data: TrainingData) -> Plan:
        raise NotImplementedError

    def _calibrate(self, data: TrainingData | None, held_out: Rows | None) -> None:
        """Learn what probabilities need besides the model; `data` is what `_kept_data` has kept.

        `held_out` are rows that the model has not been trained on (None: there are none).
        """

    def _kept_data(self, data: TrainingData) -> TrainingData | None:
        """The training data, where it is needed once the model is there."""
        return None

    def _metric_truth(self, target: Any, where: Where) -> Any:
        """The y that a user's metric takes, in `where`."""
        raise NotImplementedError

    def _prediction(self, F: Any, target: Any, where: Where) -> Any:
        """What metrics take for a prediction of rows with this target, in `where`."""
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
        init_score: Any = None,
        init_score_val: Any = None,
        eval_set: Any = None,
        eval_names: Any = None,
        stop_on: Any = None,
    ) -> Any:
        """Boost on X [n, p] and y [n].

        Parameters
        ----------
        X : array of any array-API library, frame, matrix of scipy.sparse or list; NaN and masked
            cells are missing
        y : for a classifier labels (on a device integers or bool, on the host anything hashable),
            for a regressor numbers
        sample_weight : weights >= 0; a row of weight zero is as if absent
        X_val, y_val, sample_weight_val, init_score_val : a single validation set
        init_score : array [n], for three or more classes [n, K]
            Added to the outputs F of the rows in training, as an offset (an exposure, the
            decision_function of another model). The model holds what is learnt besides, with the
            intercept 0; predictions do not include it.
        eval_set : list of (X, y), (X, y, sample_weight) or (X, y, sample_weight, init_score)
            Validation sets, in place of X_val, y_val
        eval_names : list of their names in `history_.evals`; None: validation_0, validation_1, ...
        stop_on : name of a set, of a metric, or a pair (set, metric)
            What early stopping goes by; None: the first metric of the last set

        Returns
        -------
        self
        """
        short = GivenRows(X_val, y_val, sample_weight_val, init_score_val)
        given = Given(X, y, sample_weight, init_score, stop_on)
        return self._fit_given(given, eval_set, eval_names, short)

    def _fit_given(self, given: Given, eval_set: Any, eval_names: Any, short: GivenRows) -> Any:
        """`fit`, whatever its signature; the validation sets are `eval_set`, or `short`."""
        with self._fitting():
            self._check_parameters()
            parts = QUERY_PARTS if self._needs_queries else PARTS
            sets = given_sets(eval_set, eval_names, short, parts)
            run = self._earlier()
            self._forget()
            with gpu.current(locate(given.X), "boosting"), self._drawing(run) as random_state:
                self._fit(replace(given, sets=sets), run, random_state)
        return self

    def _pairs_only(self, reading: Reading) -> Reading:
        """The rows to learn from: of a ranking those that can be compared with others."""
        return reading

    def _hold_out(self, reading: Reading) -> tuple[Rows, Rows, Any]:
        """Validation rows; all rows, and the mask of those left for training."""
        return hold_out(
            reading.rows, self._n_strata(), self.validation_fraction, self.random_state,
            reading.where,
        )  # fmt: skip

    def _earlier(self) -> Run | None:
        """The run that this fit is to continue."""
        run = getattr(self, "_run", None)
        if not self.warm_start or run is None or not hasattr(self, "model_"):
            return None
        run.check_parameters(self)
        return run

    @contextmanager
    def _drawing(self, run: Run | None) -> Iterator[Any]:
        """While a run is continued, what is drawn is what was drawn when it began.

        Yields the state that a run kept by this fit begins with.
        """
        if run is None:
            yield state_of(self.random_state) if self.warm_start else None
            return
        given, self.random_state = self.random_state, state_of(run.random_state)
        try:
            yield run.random_state
        finally:
            self.random_state = given

    def _reads_codes_alone(self) -> bool:
        """Rows are not drawn, kept for later fits, or held out, and no feature is a category."""
        plain = self.early_stopping is False and not (self.warm_start or self._needs_queries)
        numbers = isinstance(getattr(self, "categorical_features", None), str | None)
        return plain and numbers and getattr(self, "estimator", None) is None

    def _contained(self) -> tuple[str, ...]:
        """Fewer rounds are the first of more, where nothing else follows from their number."""
        plain = self.early_stopping is False and not (self.callbacks or self.warm_start)
        own = getattr(self, "estimator", None) is None and self.learning_rate is not None
        return ("n_estimators",) if plain and own else ()

    def _resolved(self) -> dict[str, Any]:
        """What rounds are made with, of the parameters that may be left to the estimator."""
        return {}

    def _fit(self, given: Given, run: Run | None, random_state: Any) -> None:
        reading = read(self, given.X, given.y, given.sample_weight, given.init_score, given.qid)
        reading = self._pairs_only(reading)
        held_out = {one.name: read_validation(self, one.rows, reading) for one in given.sets}
        engine, home = engine_for(reading.where, self.n_jobs), reading.home
        reading = reading.seen_by(engine)
        where = reading.where
        held_out = {name: rows.seen_by(engine) for name, rows in held_out.items()}
        self._decide_rounds(reading.rows.X.shape[0])
        if self._stops_early and not held_out:
            held_out[VALIDATION], rows, keep = self._hold_out(reading)
            reading = replace(reading, rows=rows, keep=keep)
        data = training_data(reading, engine, self.max_bins)
        del reading  # features that were converted or moved are free again once they are encoded
        self._categories = data.categories
        held_out = {
            name: encoded_by(data.categories, rows, where) for name, rows in held_out.items()
        }
        plan = self._plan(data)
        self.link_ = plan.link
        fresh = self._begun(data, plan, random_state) if self.warm_start else None
        kept = self._kept_data(data)
        del data  # and the encoded ones once they are binned
        if run is not None and fresh is not None:
            run.check_data(fresh.shape, fresh.data)
        patience = self.n_iter_no_change if self._stops_early else None
        validation = watch_sets(self, plan, held_out, given.stop_on, patience, where, home)
        trace, training = self._boost(plan, validation, () if run is None else run.rounds)
        self._keep(trace, plan, training, validation)
        self._run = None if fresh is None else replace(fresh, rounds=trace.rounds)
        last = next(reversed(held_out.values()), None) if self._stops_early else None
        self._calibrate(kept, last)
        self.engine_ = engine.name

    def _decide_rounds(self, n_rows: int) -> None:
        """Whether validation rows end the fit, the rounds at most, and how much each adds."""
        self._stops_early = bool(self.early_stopping)
        self._n_rounds, self._rate = int(self.n_estimators or 0), float(self.learning_rate or 0.0)

    def _begun(self, data: TrainingData, plan: Plan, random_state: Any) -> Run:
        """A run that can be continued, before its first round."""
        return Run(
            (), parameters_of(self), self._resolved(), random_state, Shape.of(self),
            checksum(data, plan),
        )  # fmt: skip

    def _binned(self, data: TrainingData, n_ranges: int | None, keyed: bool = False) -> Binned:
        """The training rows in the layout of a plan (data/rows.py); keys are to draw rows by."""
        return data.binned(self.max_bins or MAX_BINS_LIMIT, n_ranges=n_ranges, keyed=keyed)

    def _boost(
        self, plan: Plan, validation: Validation | None, earlier: Sequence[Any]
    ) -> tuple[Trace, TrainingLoss | None]:
        """The rounds; those of an `earlier` run are the first, and callbacks have seen them."""
        watched = validation is not None or self.callbacks
        training = TrainingLoss(plan.strategy) if plan.cheap_loss or watched else None
        watchers: list[Any] = [watcher for watcher in (training, validation) if watcher]
        if self.callbacks:
            tell = call_callbacks(self.callbacks, self._n_rounds, plan, training, validation)
            watchers.append(lambda n, round_: tell(n, round_) if n > len(earlier) else None)
        strategy = Resumed(plan.strategy, earlier) if earlier else plan.strategy
        try:
            return boost(strategy, self._n_rounds, watchers), training
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
            if self._stops_early:
                n_rounds = validation.best_round
        self.history_ = History(
            np.array(training.history if training else []),
            np.array(validation.history if validation else []),
            np.array([r.weights for r in trace.rounds if r.weights]).reshape(-1, 4),
            {
                name: {metric: np.array(values) for metric, values in of_set.items()}
                for name, of_set in (validation.evals if validation else {}).items()
            },
            validation.decides if validation else None,
            validation.greater_is_better if validation else False,
        )
        rounds = trace.rounds[:n_rounds]
        outcome = plan.learner.outcome(rounds, plan.start, plan.constant)
        self.model_ = outcome.model
        if outcome.importances is not None:
            self.feature_importances_ = outcome.importances
        self.n_estimators_ = n_rounds
        self.alphas_, self.errors_ = alphas_and_errors(rounds)
        self.stop_reason_ = trace.stop_reason
