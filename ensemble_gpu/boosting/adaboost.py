"""AdaBoost with stumps: the estimator is thin, the work is in rules, strategies and kernels."""

from __future__ import annotations

from typing import Any

import numpy as np

from ensemble_gpu.arrays.devices import DEVICES, check_device, from_host, to_workplace
from ensemble_gpu.arrays.namespace import NUMPY, Where, check_same_place, locate
from ensemble_gpu.boosting.classifier import AdditiveClassifier
from ensemble_gpu.boosting.loop import Trace, boost
from ensemble_gpu.boosting.rows import Prepared, Rows, hold_out, prepare
from ensemble_gpu.boosting.rules import Rule, best_constant, rule_for
from ensemble_gpu.boosting.strategies import Rescale
from ensemble_gpu.boosting.watching import Validation, call_callbacks
from ensemble_gpu.data.binning import MAX_BINS_LIMIT
from ensemble_gpu.data.validation import (
    check_choice,
    check_integer,
    check_jobs,
    check_labels,
    check_real,
    check_weights,
    weighty_classes,
)
from ensemble_gpu.kernels.protocol import Criterion, Engine
from ensemble_gpu.kernels.select import engine_for
from ensemble_gpu.model.additive import AdditiveModel, Rounds

VARIANTS = ("real", "discrete", "gentle")
MISSING = ("abstain", "learn", "error")


class AdaBoostClassifier(AdditiveClassifier):
    """AdaBoost over decision stumps, trained where the arrays live.

    Every round takes the best stump over all features, thresholds and polarities,
    F <- F + nu h_t, and multiplies the weights, w_i <- w_i exp(-y_i nu h_t(x_i)). The model is
    the same bit for bit on every engine, array library and number of threads.

    Parameters
    ----------
    estimator : None
        The weak learner; None is the stump.
    variant : {"real", "discrete", "gentle"}, default="real"
        With W_l+ and W_l- the weight of positive and negative rows in leaf l:

        - "real": leaf value 1/2 ln((W_l+ + s) / (W_l- + s)), s half a row's share of the weight;
          minimises Z = W_0 + 2 sum_l sqrt(W_l+ W_l-) (Schapire & Singer 1999);
        - "discrete": each leaf votes -1 or +1, alpha = 1/2 ln((1 - e) / e), minimises the
          weighted error e;
        - "gentle": leaf value (W_l+ - W_l-) / (W_l+ + W_l-) (Friedman et al. 2000).

        With three or more classes "discrete" is SAMME, alpha = ln((1 - e) / e) + ln(K - 1);
        "real" and "gentle" are AdaBoost.MH: a weight per (row, class), K values a leaf.
    n_estimators : int, default=100
        Rounds at most.
    learning_rate : float, default=1.0
        nu in (0, inf): the factor on the weights is raised to this power.
    max_bins : int or None, default=255
        Thresholds come from at most this many bins a feature (2 to 65,534); a feature with fewer
        distinct values is exact. None: as many as it has values (at most 65,534).
    missing : {"abstain", "learn", "error"}, default="abstain"
        NaN in the stump's feature: "abstain" adds 0; "learn" sends it to the side that scores
        better; "error" refuses NaN.
    early_stopping : bool, default=False
        Stop when the validation loss has not improved for `n_iter_no_change` rounds, and keep the
        best round. Uses X_val, y_val of `fit`, or holds out `validation_fraction` of the rows.
    validation_fraction : float, default=0.1
    n_iter_no_change : int, default=10
    device : {None, "cpu", "cuda", "auto"}, default=None
        Where to train; None follows the input.
    n_jobs : int or None, default=None
        Threads of the CPU engine; None and -1 mean all.
    callbacks : list of callables or None
        Each is called with a `RoundInfo` after a round; returning True stops the fit. One that
        has a method `close` is closed when the fit ends.
    random_state : int, RandomState instance or None
        Draws the validation rows; nothing else is random.

    Attributes
    ----------
    classes_ : ndarray of the labels
    n_features_in_, feature_names_in_ : as in scikit-learn
    n_estimators_ : int, rounds in the model
    errors_ : ndarray, weighted error (discrete) or Z (real, gentle) of each round
    alphas_ : ndarray, coefficient of each round's stump: alpha (discrete), nu (real, gentle)
    feature_importances_ : ndarray, share of each feature in sum of -ln Z, or of alpha (discrete)
    validation_loss_ : ndarray, log-loss on the validation rows after each round that was run
        (only where there were validation rows)
    model_ : AdditiveModel
    link_ : str, "margins" or, for SAMME, "votes": what the model's outputs are
    stop_reason_ : str, why the fit ended
    engine_ : str, the engine that ran: "cpu", "cuda" or "reference"
    """

    def __init__(
        self,
        estimator: None = None,
        *,
        variant: str = "real",
        n_estimators: int = 100,
        learning_rate: float = 1.0,
        max_bins: int | None = 255,
        missing: str = "abstain",
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 10,
        device: str | None = None,
        n_jobs: int | None = None,
        callbacks: list[Any] | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.variant = variant
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.max_bins = max_bins
        self.missing = missing
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.device = device
        self.n_jobs = n_jobs
        self.callbacks = callbacks
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        X_val: Any = None,
        y_val: Any = None,
        sample_weight_val: Any = None,
    ) -> AdaBoostClassifier:
        """Boost on X [n, p] and labels y [n].

        Parameters
        ----------
        X : array of any array-API library, frame or list; NaN is missing
        y : labels; on a device integers or bool, on the host anything hashable
        sample_weight : weights >= 0; a row of weight zero is as if absent
        X_val, y_val, sample_weight_val : rows for the validation loss

        Returns
        -------
        self
        """
        before = dict(self.__dict__)
        try:
            self._check_parameters()
            for name in [name for name in before if name.endswith("_")]:
                delattr(self, name)  # what an earlier fit has left
            self._fit(X, y, sample_weight, X_val, y_val, sample_weight_val)
        except BaseException:  # an error or Ctrl-C leaves the estimator as it was
            self.__dict__.clear()
            self.__dict__.update(before)
            raise
        return self

    def _check_parameters(self) -> None:
        if self.estimator is not None:
            raise TypeError(f"estimator must be None (the stump); got {self.estimator!r}.")
        check_choice("variant", self.variant, VARIANTS)
        check_choice("missing", self.missing, MISSING)
        check_choice("device", self.device, DEVICES)
        if not isinstance(self.early_stopping, bool | np.bool_):
            raise ValueError(f"early_stopping must be True or False; got {self.early_stopping!r}.")
        check_integer("n_estimators", self.n_estimators, 1)
        check_integer("n_iter_no_change", self.n_iter_no_change, 1)
        check_real("learning_rate", self.learning_rate, 0.0)
        check_real("validation_fraction", self.validation_fraction, 0.0, 0.9)
        if self.max_bins is not None:
            check_integer("max_bins", self.max_bins, 2, MAX_BINS_LIMIT)
        if self.n_jobs is not None:
            check_jobs(self.n_jobs)
        callbacks = [] if self.callbacks is None else self.callbacks
        listed = isinstance(callbacks, list | tuple)
        for wrong in [c for c in callbacks if not callable(c)] if listed else [callbacks]:
            raise TypeError(f"callbacks must be None or a list of callables; got {wrong!r}.")
        check_device(self.device)

    def _fit(self, X: Any, y: Any, w: Any, X_val: Any, y_val: Any, w_val: Any) -> None:
        if self.device != "cpu":
            check_same_place(
                locate(X), y=y, sample_weight=w, X_val=X_val, y_val=y_val, sample_weight_val=w_val
            )
        X, y, w, X_val, y_val, w_val = (
            to_workplace(a, self.device) for a in (X, y, w, X_val, y_val, w_val)
        )
        train = self._check_rows(X, y, w)
        held_out = self._check_validation(X_val, y_val, w_val)
        del X, X_val
        place = locate(train.X)
        engine = engine_for(place, self.n_jobs)
        here = NUMPY if engine.name == "cpu" else place
        train = train.seen_by(engine)
        keep = None if train.weights is None else train.weights > 0.0
        if held_out is not None:
            held_out = held_out.seen_by(engine)
        elif self.early_stopping:
            held_out, keep = hold_out(
                train, keep, len(self.classes_), self.validation_fraction, self.random_state, here
            )
        rule = rule_for(self.variant, len(self.classes_))
        max_bins = self.max_bins or MAX_BINS_LIMIT
        prepared = prepare(engine, train, keep, rule.group_of, max_bins, here)
        del train  # features that were moved to a device are free again once they are encoded
        trace, validation = self._boost(engine, prepared, held_out, rule, here)
        self._keep(trace, prepared, rule, validation)
        self.engine_ = engine.name
        self.link_ = rule.link

    def _check_rows(self, X: Any, y: Any, w: Any) -> Rows:
        """Rows where `device` wants them; classes_ are the labels that have any weight."""
        place = locate(X)
        X = self._check_X(X, reset=True)
        classes, index = check_labels(y, X.shape[0], place, 2, "y")
        weights = check_weights(w, X.shape[0], place, "sample_weight")
        if weights is not None:
            classes, index = weighty_classes(classes, index, weights, place)
        self.classes_ = classes
        return Rows(*(from_host(a, self.device) for a in (X, index, weights)))

    def _check_validation(self, X: Any, y: Any, w: Any) -> Rows | None:
        if X is None:
            if y is not None or w is not None:
                raise ValueError("y_val and sample_weight_val need X_val; X_val is None.")
            return None
        place = locate(X)
        X = self._check_X(X, reset=False, name="X_val")
        classes, index = check_labels(y, X.shape[0], place, 1, "y_val")
        known = {label: k for k, label in enumerate(self.classes_.tolist())}
        unknown = [label for label in classes.tolist() if label not in known]
        if unknown:
            raise ValueError(
                f"y_val holds labels that y does not: {unknown!r}; labels of y: {list(known)!r}."
            )
        numbers = np.array([known[label] for label in classes.tolist()], dtype=np.int64)
        weights = check_weights(w, X.shape[0], place, "sample_weight_val")
        index = place.xp.take(place.put(numbers), index)
        return Rows(*(from_host(a, self.device) for a in (X, index, weights)))

    def _boost(
        self,
        engine: Engine,
        prepared: Prepared,
        held_out: Rows | None,
        rule: Rule,
        here: Where,
    ) -> tuple[Trace, Validation | None]:
        matrix, layout = prepared.matrix, prepared.layout
        learn = self.missing == "learn"
        criterion = Criterion(
            rule.kind, np.zeros(layout.n_groups), learn, matrix.n_thresholds(learn)
        )
        strategy = Rescale(
            engine.histograms(matrix.codes, layout, prepared.log_weights),
            matrix.codes,
            layout,
            rule,
            criterion,
            float(self.learning_rate),
            prepared.lightest,
        )
        watchers: list[Any] = []
        validation = None
        if held_out is not None:
            patience = self.n_iter_no_change if self.early_stopping else None
            validation = Validation(held_out, rule, matrix, here, patience)
            watchers.append(validation)
        if self.callbacks:
            watchers.append(call_callbacks(self.callbacks, self.n_estimators, matrix, validation))
        try:
            return boost(strategy, self.n_estimators, watchers), validation
        finally:
            for callback in self.callbacks or []:
                getattr(callback, "close", lambda: None)()

    def _keep(
        self, trace: Trace, prepared: Prepared, rule: Rule, validation: Validation | None
    ) -> None:
        """Fitted attributes from the trace; early stopping keeps the best round."""
        stumps, matrix = trace.stumps, prepared.matrix
        if validation is not None and validation.history:
            self.validation_loss_ = np.array(validation.history)
            if self.early_stopping:
                stumps = stumps[: validation.best_round]
        rounds = Rounds(
            np.array([s.feature for s in stumps], dtype=np.int64),
            np.array([matrix.threshold(s.feature, s.bin) for s in stumps], dtype=np.float64),
            np.array([s.missing_leaf for s in stumps], dtype=np.int64),
            np.array([s.values for s in stumps]).reshape(len(stumps), rule.n_outputs, 3),
            np.array([s.alpha for s in stumps], dtype=np.float64),
            np.array([s.error for s in stumps], dtype=np.float64),
        )
        intercept = np.zeros(rule.n_outputs)
        if not stumps:
            intercept = best_constant(rule, prepared.shares)
        self.model_ = AdditiveModel(rounds, self.n_features_in_, intercept)
        self.n_estimators_ = len(stumps)
        self.errors_, self.alphas_ = rounds.error, rounds.alpha
        self.stop_reason_ = trace.stop_reason
        gain = rounds.alpha if rule.reports == "weighted error" else -np.log(rounds.error)
        gains = np.bincount(
            rounds.feature, weights=np.maximum(gain, 0.0), minlength=self.n_features_in_
        )
        self.feature_importances_ = gains / gains.sum() if gains.sum() > 0.0 else gains
