"""One fit for every boosted estimator: parameters in, a strategy, the loop, a model out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ensemble_gpu.arrays import cupy as gpu
from ensemble_gpu.arrays.namespace import Where, locate
from ensemble_gpu.arrays.streamed import is_streamed
from ensemble_gpu.boosting.checking import CheckedRounds
from ensemble_gpu.boosting.evaluation import (
    PARTS,
    QUERY_PARTS,
    VALIDATION,
    GivenSet,
    given_sets,
)
from ensemble_gpu.boosting.loop import Trace
from ensemble_gpu.boosting.rows import hold_out
from ensemble_gpu.boosting.running import Running, SavedRun, read_saved
from ensemble_gpu.boosting.staged import StagedEstimator
from ensemble_gpu.boosting.strategy import Plan
from ensemble_gpu.boosting.validation import Validation, watch_sets
from ensemble_gpu.boosting.warm_start import Run, contents, parameters_of, state_of
from ensemble_gpu.boosting.watching import History, TrainingLoss
from ensemble_gpu.boosting.with_estimator import TakesEstimator
from ensemble_gpu.data.rows import Binned, Rows
from ensemble_gpu.estimators.checkpoint import checkpoints_of
from ensemble_gpu.estimators.contents import Contents, set_digest
from ensemble_gpu.estimators.reading import (
    GivenRows,
    Reading,
    TrainingData,
    encoded_by,
    read,
    read_validation,
    training_data,
)
from ensemble_gpu.estimators.resuming import Origin, origin_of
from ensemble_gpu.estimators.shape import Shape
from ensemble_gpu.explaining.background import Background
from ensemble_gpu.kernels.edges import MAX_BINS_LIMIT
from ensemble_gpu.kernels.select import engine_for
from ensemble_gpu.learners.protocol import alphas_and_errors
from ensemble_gpu.model.additive import AdditiveModel


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
    resume: Any = None


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

    def _calibrate(self, data: Any, held_out: Rows | None) -> None:
        """Learn what probabilities need besides the model; `data` is what `_kept_data` has kept.

        `held_out` are rows that the model has not been trained on (None: there are none).
        """

    def _kept_data(self, data: TrainingData) -> Any:
        """What is needed of the training data once the model is there; asked before they are
        binned. None: nothing.
        """
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
        y: Any = None,
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
        resume: Any = None,
    ) -> Any:
        """Boost on X [n, p] and y [n].

        Parameters
        ----------
        X : array of any array-API library, frame, matrix of scipy.sparse or list; NaN and masked
            cells are missing. Or `Batches`, which have y and weights
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
        resume : path of a `Checkpoint` to go on from; one that does not exist begins anew

        Returns
        -------
        self
        """
        short = GivenRows(X_val, y_val, sample_weight_val, init_score_val)
        given = Given(X, y, sample_weight, init_score, stop_on, resume=resume)
        return self._fit_given(given, eval_set, eval_names, short)

    def _fit_given(self, given: Given, eval_set: Any, eval_names: Any, short: GivenRows) -> Any:
        """`fit`, whatever its signature; the validation sets are `eval_set`, or `short`."""
        with self._fitting():
            self._check_parameters()
            parts = QUERY_PARTS if self._needs_queries else PARTS
            sets = given_sets(eval_set, eval_names, short, parts)
            run: Run | SavedRun | None = self._saved(given.resume)
            run = self._earlier() if run is None else run
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

    def _saved(self, path: Any) -> SavedRun | None:
        """The run of a checkpoint that this fit is to continue."""
        run = None if path is None else read_saved(path)
        if run is not None:
            run.origin.check_parameters(self, run.path)
        return run

    @contextmanager
    def _drawing(self, run: Run | SavedRun | None) -> Iterator[Any]:
        """While a run is continued, what is drawn is what was drawn when it began.

        Yields the state that a run kept by this fit begins with.
        """
        if run is None:
            yield state_of(self.random_state) if self._keeps_run else None
            return
        given, self.random_state = self.random_state, state_of(run.random_state)
        try:
            yield run.random_state
        finally:
            self.random_state = given

    @property
    def _keeps_run(self) -> bool:
        """Whether a later fit may go on from this one."""
        return self.warm_start or bool(checkpoints_of(self.callbacks))

    def _reads_codes_alone(self) -> bool:
        """Rows are not drawn, kept for later fits, or held out, and no feature is a category."""
        plain = self.early_stopping is False and not (self._keeps_run or self._needs_queries)
        numbers = isinstance(getattr(self, "categorical_features", None), str | None)
        return plain and numbers and getattr(self, "estimator", None) is None

    def _contained(self) -> tuple[str, ...]:
        """Fewer rounds are the first of more, where nothing else follows from their number."""
        plain = self.early_stopping is False and not (self.callbacks or self.warm_start)
        own = getattr(self, "estimator", None) is None and self.learning_rate is not None
        return ("n_estimators",) if plain and own else ()

    def _why_no_batches(self) -> str | None:
        if self._needs_queries:
            return f"{type(self).__name__} compares rows within queries"
        learner = getattr(self, "estimator", None)
        if learner is not None:
            return f"estimator={learner!r} looks at values of X; stumps and trees see bins"
        return None

    def _resolved(self) -> dict[str, Any]:
        """What rounds are made with, of the parameters that may be left to the estimator."""
        return {}

    def _fit(self, given: Given, run: Run | SavedRun | None, random_state: Any) -> None:
        reading = read(self, given.X, given.y, given.sample_weight, given.init_score, given.qid)
        reading = self._pairs_only(reading)
        held_out = {one.name: read_validation(self, one.rows, reading) for one in given.sets}
        engine, home = engine_for(reading.where, self.n_jobs), reading.home
        reading = reading.seen_by(engine)
        where = reading.where
        held_out = {name: rows.seen_by(engine) for name, rows in held_out.items()}
        self._decide_rounds(reading)
        if self._stops_early and not held_out:
            held_out[VALIDATION], rows, keep = self._hold_out(reading)
            reading = replace(reading, rows=rows, keep=keep)
        data = training_data(reading, engine, self.max_bins)
        del reading  # features that were converted or moved are free again once they are encoded
        self._categories = data.categories
        held_out = {
            name: encoded_by(data.categories, rows, where) for name, rows in held_out.items()
        }
        kept = self._kept_data(data)
        plan = self._plan(data)
        self.link_, self.engine_ = plan.link, engine.name
        fresh = self._begun(data, plan, random_state) if self._keeps_run or run else None
        del data  # and the encoded ones once they are binned
        origin = None
        if fresh is not None and (checkpoints_of(self.callbacks) or isinstance(run, SavedRun)):
            origin = self._origin(
                fresh, {one.name: held_out[one.name] for one in given.sets}, where
            )
        if isinstance(run, SavedRun) and origin is not None:
            run.origin.check_data(origin, getattr(self, "feature_names_in_", None), run.path)
            run.check_rounds(plan)
        elif isinstance(run, Run) and fresh is not None:
            run.check_data(fresh)
        patience = self.n_iter_no_change if self._stops_early else None
        validation = watch_sets(self, plan, held_out, given.stop_on, patience, where, home)
        running = Running(self, plan, validation, run, origin)
        trace = running(self._n_rounds)
        self._keep(trace, plan, running.training, validation)
        if isinstance(self.model_, AdditiveModel) and plan.binned is not None:
            self.background_ = Background.of(
                self.model_, plan.binned.matrix, plan.binned.weights, engine
            )
        self._run = None
        if self.warm_start and fresh is not None:
            self._run = replace(fresh, rounds=trace.rounds)
        last = next(reversed(held_out.values()), None) if self._stops_early else None
        if kept is not None:  # calibrating takes long, and memory of its own
            self._calibrate(None, None)
            running.end()
            running.let_go()
            del plan, validation, fresh, held_out
        self._calibrate(kept, last)
        running.end()

    def _decide_rounds(self, reading: Reading) -> None:
        """Whether validation rows end the fit, the rounds at most, and how much each adds."""
        self._stops_early = bool(self.early_stopping)
        self._n_rounds = self._most_rounds(reading)
        self._rate = float(self.learning_rate or 0.0)

    def _most_rounds(self, reading: Reading) -> int:
        return int(self.n_estimators or 0)

    def _begun(self, data: TrainingData, plan: Plan, random_state: Any) -> Run:
        """A run that can be continued, before its first round."""
        return Run(
            (), parameters_of(self), self._resolved(), random_state, Shape.of(self),
            self._contents(data, plan),
        )  # fmt: skip

    def _contents(self, data: TrainingData, plan: Plan) -> Contents:
        """Digests of the training rows, by which a later fit knows them."""
        return contents(data, plan)

    def _origin(self, begun: Run, sets: Mapping[str, Rows], where: Where) -> Origin:
        """What a checkpoint says of this fit: its parameters, training rows and validation sets."""
        others = {f"eval_set {name!r}": set_digest(rows, where) for name, rows in sets.items()}
        return origin_of(self, begun.contents.with_others(**others), begun.random_state)

    def _binned(self, data: TrainingData, n_ranges: int | None, keyed: bool = False) -> Binned:
        """The training rows in the layout of a plan (data/rows.py); keys are to draw rows by."""
        if getattr(self, "n_bags", 1) > 1 and is_streamed(data.rows.X):
            data.rows.X.want_keys()  # to draw bags by
        return data.binned(self.max_bins or MAX_BINS_LIMIT, n_ranges=n_ranges, keyed=keyed)

    def _keep(
        self,
        trace: Trace,
        plan: Plan,
        training: TrainingLoss | None,
        validation: Validation | None,
    ) -> None:
        """Fitted attributes from the trace; early stopping keeps the best round.

        Losses may be known of one round more: where Ctrl-C came before all had seen it.
        """
        n = n_rounds = trace.n_rounds
        if validation is not None and validation.history[:n]:
            self.validation_loss_ = np.array(validation.history[:n])
            if self._stops_early:
                n_rounds = validation.best_of_first(n)
        self.history_ = History(
            np.array(training.history[:n] if training else []),
            np.array(validation.history[:n] if validation else []),
            np.array([r.weights for r in trace.rounds if r.weights]).reshape(-1, 4),
            {
                name: {metric: np.array(values[:n]) for metric, values in of_set.items()}
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
