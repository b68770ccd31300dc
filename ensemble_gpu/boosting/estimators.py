"""The estimators that boost any loss; boosting/plans.py says which strategy runs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ensemble_gpu.arrays.namespace import Where
from ensemble_gpu.boosting.bags import plan_in_bags
from ensemble_gpu.boosting.classifier import BoostedClassifier
from ensemble_gpu.boosting.fitting import BoostedEstimator
from ensemble_gpu.boosting.plans import (
    DescentParameters,
    classification_plan,
    gradient_learner,
    mean_class_loss,
    regression_plan,
    rescale_plan,
)
from ensemble_gpu.boosting.regressor import BoostedRegressor
from ensemble_gpu.boosting.rules import rule_for
from ensemble_gpu.boosting.steps import STEPS
from ensemble_gpu.boosting.strategy import Plan
from ensemble_gpu.data.interactions import read_interactions
from ensemble_gpu.data.parameters import (
    check_choice,
    check_integer,
    check_max_features,
    check_not_negative,
    check_real,
    count_features,
)
from ensemble_gpu.data.rows import Binned
from ensemble_gpu.estimators.categorical import CATEGORICAL_SPLITS
from ensemble_gpu.estimators.reading import TrainingData
from ensemble_gpu.learners.protocol import GradientLearner
from ensemble_gpu.learners.tree import Size, splits_once
from ensemble_gpu.losses import (
    Exponential,
    Loss,
    Poisson,
    Quantile,
    classification_loss,
    regression_loss,
)

# None in place of a number: rounds without and with early stopping, and what a leaf of a tree keeps
# (rows, sum of second derivatives) and l2; found on the sets of bench/quality.py.
ROUNDS, MOST_ROUNDS = 100, 10_000
TREE_CONDITIONS = 20, 1e-3, 0.0
NO_CONDITIONS = 1, 0.0, 0.0
# Rows from which early_stopping="auto" is on.
AUTO_ROWS = 10_000

_SHARED = """
    n_estimators : int or None, default=None
        Rounds at most. None: {rounds}, or with early stopping {cap}, so that it decides.
    learning_rate : float in (0, 1], default={rate}
        nu: a round adds nu alpha h.
    max_depth : int or None, default={depth}
        Depth of the trees; None: no limit. 1: stumps, whose sum is a table a feature: each is
        fitted in a fraction of the time of a tree, and the model can be drawn feature by feature.
        Trees find interactions between features and mostly predict better.
    max_leaf_nodes : int or None, default=None
        Leaves of a tree, the best grown first; None: no limit.
    min_samples_leaf : int or None, default=None
        Rows that each leaf must keep, whatever their weights; None: {leaf}, of stumps 1.
    min_hessian : float or None, default=None
        Sum of weighted second derivatives that each leaf must keep (of a square that is halved: the
        weight of its rows); None: {hessian:g}, of stumps 0.
    l2_regularization : float or None, default=None
        Added to that sum where the value of a leaf is divided by it; None: {l2:g}, of stumps 0.
        Stumps with any of the three are grown as trees of depth 1.
    step : {{"line_search", "newton", "constant"}}, default="{step}"
        How far to go along a stump or tree h:

        - "line_search": alpha minimises R(f + alpha h) over all training rows, safeguarded so that
          the training loss never rises;
        - "newton": each leaf is a Newton step, sum of -gradient / sum of second derivatives;
        - "constant": alpha = 1 / L, L the bound on the loss's second derivative (1 without one).

        The squared loss has one answer to all three, the mean residual of the leaf.
    subsample : float in (0, 1], default=1.0
        Probability with which a row takes part in the choice of a round's learner. Rows are drawn
        by what they hold: their order does not matter, and one of whole weight w is drawn as w
        equal rows are (one of another weight as a whole).
    n_bags : int, default=1
        That many models, each on a bootstrap sample of the rows (drawn from the same binned rows
        as integer weights), advance together round by round, and their F is averaged into one
        model: steadier probabilities for n_bags times the work. A round means a round of every
        bag, for `n_estimators`, staged predictions, `model_.first(n)` and early stopping, which
        watches the average.
    max_features : int, float, "sqrt", "log2" or None, default=None
        Features drawn for each round, of trees for each node (a share, where a float); None: all.
    monotonic_cst : array of -1, 0, +1, dict of names, or None
        +1: the prediction may only rise with the feature; -1: only fall.
    interaction_cst : "pairwise", "no_interactions", sequence of sets of features, or None
        Features (indices, or names where X has them) that may be tested together on the way to a
        leaf: those of any set. Features in no set are one set more. "pairwise": any two;
        "no_interactions": trees of one feature each, so that the model is a sum of functions of
        one feature. With `max_features` a node draws from those that it may test.
    max_bins : int or None, default=255
        Thresholds come from at most this many bins a feature (2 to 65,534); a feature with fewer
        distinct values is exact. None: as many as it has values (at most 65,534).
    categorical_features : "from_dtype", array of indices, names or bool, or None
        Which features are categories: "from_dtype" (default) those that a pandas or polars frame
        says are. Unknown categories are treated as missing. Where there are any, stumps are grown
        as trees of depth 1: missing values learn a side, and the model is a Forest.
    categorical_split : {{"subset", "single"}}, default="subset"
        A set of categories goes left (the first in order of the sum of -gradient / sum of second
        derivatives: no set is better; with several outputs the best of one order an output), or a
        single one.
    missing : {{"abstain", "learn", "error"}}, default="abstain"
        NaN in the stump's feature: "abstain" adds 0; "learn" sends it to the side that scores
        better, as trees always do; "error" refuses NaN.
    early_stopping : bool or "auto", default="auto"
        True: stop when the validation loss has not improved for `n_iter_no_change` rounds, and keep
        the best round; uses eval_set or X_val, y_val of `fit`, or holds out `validation_fraction`
        of the rows, drawn as those of `subsample` are.
        "auto": True from {auto:,} rows on.
    validation_fraction : float, default=0.1
    n_iter_no_change : int, default=10
    metric : name, callable, or list of these, default=None
        What the validation rows are judged by; None or "loss": the loss. Names: {metrics}. A
        callable: metric(y, {prediction}) -> float, called with arrays of X's library (and
        sample_weight=, where given); lower is better, unless it has an attribute
        greater_is_better = True. Early stopping goes by the first metric of the last validation
        set, or by `stop_on` of fit.{class_weight}
    device : {{None, "cpu", "cuda", "auto"}}, default=None
        Where to train; None follows the input.
    n_jobs : int or None, default=None
        Threads of the CPU engine; None and -1 mean all.
    callbacks : list of callables or None
        Each is called with a `RoundInfo` after a round; returning True stops the fit. One that
        has a method `close` is closed when the fit ends.
    warm_start : bool, default=False
        A fit keeps its rounds, and the next one, with a larger n_estimators, adds to them: the
        model and history of a single run, bit for bit. Data and parameters must be the same, but
        for n_estimators, n_iter_no_change, metric, callbacks, device and n_jobs; other changes are
        refused. Early stopping that has ended a fit ends the next one at the same round.
    random_state : int, RandomState instance or None
        Draws rows (subsample, bags, validation) and features.

    Attributes
    ----------
    n_features_in_, feature_names_in_ : as in scikit-learn{classes}
    n_estimators_ : int, rounds in the model (of every bag)
    errors_ : ndarray, gain of each round: twice the fall of the loss's quadratic model, summed over
        rows of weight at most 1 (mean over the bags)
    alphas_ : ndarray, nu alpha of each round (mean over the bags)
    feature_importances_ : ndarray, share of each feature in the gains (mean over the bags)
    history_ : History, `training` and `validation` losses after each round; `history_.plot()`. The
        training loss is there where callbacks or validation rows ask for it, and for stumps with
        the squared loss; with bags it is the mean of each bag's loss on its own sample.
        `history_.evals[set][metric]` are all metrics of all validation sets
    validation_loss_ : ndarray, `history_.validation` (only where there were validation rows)
    model_ : AdditiveModel (stumps) or Forest (trees, and all that have categorical features), with
        the best constant as intercept
    link_ : str, how outputs become predictions (model/link.py)
    stop_reason_ : str, why the fit ended
    engine_ : str, the engine that ran: "cpu", "cuda" or "reference"
    """


_NUMBERS: dict[str, Any] = {
    "rounds": ROUNDS, "cap": MOST_ROUNDS, "leaf": TREE_CONDITIONS[0],
    "hessian": TREE_CONDITIONS[1], "l2": TREE_CONDITIONS[2], "auto": AUTO_ROWS,
}  # fmt: skip

_CLASS_WEIGHT = """
    class_weight : dict, "balanced" or None
        Weights of the labels, by which those of their rows are multiplied (not those of X_val);
        "balanced": n / (K n_k)."""

_CLASS_METRICS = """"log_loss", "roc_auc" ("auc"),
        "error", "accuracy", "balanced_accuracy", "brier\""""
_NUMBER_METRICS = """"rmse", "mse", "mae", "mape", "r2",
        "poisson_deviance\""""


class _GradientBoosting(BoostedEstimator):
    """The parameters of gradient boosting."""

    loss: str | Loss
    step: str
    max_depth: int | None
    max_leaf_nodes: int | None
    min_samples_leaf: int | None
    min_hessian: float | None
    l2_regularization: float | None
    subsample: float
    n_bags: int
    max_features: Any
    monotonic_cst: Any
    interaction_cst: Any
    categorical_features: Any
    categorical_split: str

    def _check_parameters(self) -> None:
        check_real("learning_rate", self.learning_rate, 0.0, 1.0)
        super()._check_parameters()
        check_choice("step", self.step, STEPS)
        check_choice("categorical_split", self.categorical_split, CATEGORICAL_SPLITS)
        check_real("subsample", self.subsample, 0.0, 1.0)
        check_integer("n_bags", self.n_bags, 1)
        check_max_features(self.max_features)
        check_integer("min_samples_leaf", self.min_samples_leaf, 1, others=(None,))
        for name in ("min_hessian", "l2_regularization"):
            check_not_negative(name, getattr(self, name), others=(None,))
        for name, low in (("max_depth", 1), ("max_leaf_nodes", 2)):
            check_integer(name, getattr(self, name), low, others=(None,))

    def _check_rounds(self) -> None:
        if not isinstance(self.early_stopping, bool | np.bool_):
            check_choice("early_stopping", self.early_stopping, (True, False, "auto"))
        check_integer("n_estimators", self.n_estimators, 1, others=(None,))

    @property
    def _size(self) -> Size:
        """The size of the trees; what is None depends on whether they are stumps."""
        given = self.min_samples_leaf, self.min_hessian, self.l2_regularization
        once = splits_once(self.max_depth, self.max_leaf_nodes)
        defaults = NO_CONDITIONS if once else TREE_CONDITIONS
        rows, hessian, l2 = (d if g is None else g for g, d in zip(given, defaults, strict=True))
        return Size(self.max_depth, self.max_leaf_nodes, int(rows), float(hessian), float(l2))

    def _decide_rounds(self, n_rows: int) -> None:
        stops = self.early_stopping
        self._stops_early = n_rows >= AUTO_ROWS if stops == "auto" else bool(stops)
        default = MOST_ROUNDS if self._stops_early else ROUNDS
        self._n_rounds = default if self.n_estimators is None else int(self.n_estimators)

    def _descent(self, loss: Loss, votes: bool) -> DescentParameters:
        if self.step == "newton" and not loss.has_hessian:
            raise ValueError(
                f"step='newton' needs a second derivative, which loss {loss.name!r} does not have; "
                "step must be 'line_search' or 'constant' for it."
            )
        return DescentParameters.of(
            self,
            step=self.step,
            subsample=self.subsample,
            n_features=count_features(self.max_features, self.n_features_in_),
            signs=self._signs(),
            votes=votes,
            size=self._size,
            categories=self._categories,
            one_category=self.categorical_split == "single",
            interactions=read_interactions(
                self.interaction_cst, self.n_features_in_, getattr(self, "feature_names_in_", None)
            ),
        )

    def _learner(self, binned: Binned, descent: DescentParameters) -> GradientLearner:
        """The weak learner of the rounds; a subclass may have another (learners/protocol.py)."""
        return gradient_learner(binned, descent)


class BoostingClassifier(BoostedClassifier, _GradientBoosting):
    __doc__ = """Gradient boosting of stumps or trees for several classes, where the arrays live.

    Parameters
    ----------
    loss : str or Loss, default="logistic"
        With v = y F the margin: "logistic" ln(1 + e^-v) (multinomial for K > 2), "exponential"
        e^-v, "squared" (1 - v)^2, "truncated_squared" (1 - v)_+^2, "hinge" (1 - v)_+; or a Loss
        (`ensemble_gpu.losses`). For K > 2 a stump has K values a leaf; the margin losses take each
        class against the rest.
    stump : {"real", "discrete"}, default="real"
        "real": h fits -gradient by least squares, a value a leaf; "discrete": h in {-1, +1}
        minimises the error weighted by |gradient|, times one coefficient.

        The exponential loss with real stumps and Newton steps is Gentle AdaBoost, with discrete
        stumps and line search (two classes) the textbook's AdaBoost: these run as such (but not
        in bags).""" + (
        _SHARED.format(
            rate=0.1, depth=4, step="newton", prediction="probabilities", classes=", classes_",
            class_weight=_CLASS_WEIGHT,
            metrics=_CLASS_METRICS,
            **_NUMBERS,
        )
    )  # fmt: skip

    def __init__(
        self,
        loss: str | Loss = "logistic",
        *,
        stump: str = "real",
        n_estimators: int | None = None,
        learning_rate: float = 0.1,
        step: str = "newton",
        max_depth: int | None = 4,
        max_leaf_nodes: int | None = None,
        min_samples_leaf: int | None = None,
        min_hessian: float | None = None,
        l2_regularization: float | None = None,
        subsample: float = 1.0,
        n_bags: int = 1,
        max_features: Any = None,
        monotonic_cst: Any = None,
        interaction_cst: Any = None,
        max_bins: int | None = 255,
        categorical_features: Any = "from_dtype",
        categorical_split: str = "subset",
        missing: str = "abstain",
        early_stopping: bool | str = "auto",
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 10,
        metric: Any = None,
        class_weight: Any = None,
        device: str | None = None,
        n_jobs: int | None = None,
        callbacks: list[Any] | None = None,
        warm_start: bool = False,
        random_state: Any = None,
    ) -> None:
        self.loss = loss
        self.stump = stump
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.step = step
        self.max_depth = max_depth
        self.max_leaf_nodes = max_leaf_nodes
        self.min_samples_leaf = min_samples_leaf
        self.min_hessian = min_hessian
        self.l2_regularization = l2_regularization
        self.subsample = subsample
        self.n_bags = n_bags
        self.max_features = max_features
        self.monotonic_cst = monotonic_cst
        self.interaction_cst = interaction_cst
        self.max_bins = max_bins
        self.categorical_features = categorical_features
        self.categorical_split = categorical_split
        self.missing = missing
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.metric = metric
        self.class_weight = class_weight
        self.device = device
        self.n_jobs = n_jobs
        self.callbacks = callbacks
        self.warm_start = warm_start
        self.random_state = random_state

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("stump", self.stump, ("real", "discrete"))
        if self.stump == "discrete" and not self._size.stump:
            raise ValueError(
                "stump='discrete' is for stumps; max_depth, max_leaf_nodes and min_samples_leaf "
                "ask for trees."
            )
        classification_loss(self.loss, 2)

    def _plan(self, data: TrainingData) -> Plan:
        n_classes = len(self.classes_)
        loss = classification_loss(self.loss, n_classes)
        descent = self._descent(loss, votes=self.stump == "discrete")
        if self.stump == "discrete" and not descent.stump:
            raise ValueError(
                "stump='discrete' is for thresholds; categorical_features says that features "
                f"{list(descent.categories.values)} are categories. Use stump='real', or "
                "categorical_features=None."
            )
        if n_classes > 2 and descent.constraints.signs.any():
            raise ValueError(
                f"monotonic_cst is for two classes; y holds {n_classes} classes, whose outputs "
                "cannot all be monotone."
            )
        # an offset for every class makes weights of their own: gradients take it
        variant = self._adaboost(loss, descent, n_classes) if data.rows.offset is None else None
        if variant is None:

            def one(binned: Binned, descent: DescentParameters) -> Plan:
                learner = self._learner(binned, descent)
                return classification_plan(binned, data.where, loss, n_classes, descent, learner)

            binned = self._binned(data, descent.n_ranges)
            return plan_in_bags(one, binned, data, descent, self.n_bags)
        binned = self._binned(data, n_classes)
        plan = rescale_plan(self, binned, data.where, rule_for(variant, n_classes))
        return replace(plan, loss=mean_class_loss(loss, n_classes, data.where))

    def _adaboost(self, loss: Loss, descent: DescentParameters, n_classes: int) -> str | None:
        """The AdaBoost that these parameters describe, if they do."""
        plain = descent.subsample == 1.0 and not descent.constraints.signs.any() and descent.stump
        if not (
            isinstance(loss, Exponential)
            and plain
            and self.n_bags == 1  # a row out of the bag has no logarithm of its weight
            and descent.constraints.n_features == self.n_features_in_
        ):
            return None
        if self.stump == "real" and self.step == "newton":
            return "gentle"
        if self.stump == "discrete" and self.step == "line_search" and n_classes == 2:
            return "discrete"
        return None


class BoostingRegressor(BoostedRegressor, _GradientBoosting):
    __doc__ = """Gradient boosting of stumps or trees for a real target, where the arrays live.

    Parameters
    ----------
    loss : str or Loss, default="squared"
        "squared" (y - F)^2 (L2Boost), "absolute" |y - F|, "huber", "quantile", "poisson"
        e^F - y F with prediction e^F; or a Loss (`ensemble_gpu.losses`), such as Huber(delta=2.0).
    quantile : float in (0, 1) or None
        Which quantile loss="quantile" estimates; None: the median.""" + (
        _SHARED.format(
            rate=0.1,
            depth=6,
            step="line_search",
            prediction="predictions",
            classes="",
            class_weight="",
            metrics=_NUMBER_METRICS,
            **_NUMBERS,
        )
    )

    def __init__(
        self,
        loss: str | Loss = "squared",
        *,
        quantile: float | None = None,
        n_estimators: int | None = None,
        learning_rate: float = 0.1,
        step: str = "line_search",
        max_depth: int | None = 6,
        max_leaf_nodes: int | None = None,
        min_samples_leaf: int | None = None,
        min_hessian: float | None = None,
        l2_regularization: float | None = None,
        subsample: float = 1.0,
        n_bags: int = 1,
        max_features: Any = None,
        monotonic_cst: Any = None,
        interaction_cst: Any = None,
        max_bins: int | None = 255,
        categorical_features: Any = "from_dtype",
        categorical_split: str = "subset",
        missing: str = "abstain",
        early_stopping: bool | str = "auto",
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 10,
        metric: Any = None,
        device: str | None = None,
        n_jobs: int | None = None,
        callbacks: list[Any] | None = None,
        warm_start: bool = False,
        random_state: Any = None,
    ) -> None:
        self.loss = loss
        self.quantile = quantile
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.step = step
        self.max_depth = max_depth
        self.max_leaf_nodes = max_leaf_nodes
        self.min_samples_leaf = min_samples_leaf
        self.min_hessian = min_hessian
        self.l2_regularization = l2_regularization
        self.subsample = subsample
        self.n_bags = n_bags
        self.max_features = max_features
        self.monotonic_cst = monotonic_cst
        self.interaction_cst = interaction_cst
        self.max_bins = max_bins
        self.categorical_features = categorical_features
        self.categorical_split = categorical_split
        self.missing = missing
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.metric = metric
        self.device = device
        self.n_jobs = n_jobs
        self.callbacks = callbacks
        self.warm_start = warm_start
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = self.loss == "poisson" or isinstance(self.loss, Poisson)
        return tags

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._resolved_loss()

    def _resolved_loss(self) -> Loss:
        if self.quantile is None:
            return regression_loss(self.loss)
        if self.loss != "quantile":
            raise ValueError(f"quantile is for loss='quantile'; loss is {self.loss!r}.")
        return Quantile(quantile=self.quantile)

    def _read_target(self, y: Any, n_rows: int, w: Any, where: Where) -> tuple[Any, Any]:
        target, weights = super()._read_target(y, n_rows, w, where)
        heavy = target if weights is None else target[weights > 0.0]
        self._resolved_loss().check_target(where.host(heavy))
        return target, weights

    def _read_validation_target(self, y: Any, n_rows: int, where: Where, name: str) -> Any:
        target = super()._read_validation_target(y, n_rows, where, name)
        self._resolved_loss().check_target(where.host(target), name)
        return target

    def _plan(self, data: TrainingData) -> Plan:
        loss = self._resolved_loss()
        descent = self._descent(loss, votes=False)

        def one(binned: Binned, descent: DescentParameters) -> Plan:
            learner = self._learner(binned, descent)
            return regression_plan(binned, data.where, loss, descent, learner)

        binned = self._binned(data, descent.n_ranges)
        return plan_in_bags(one, binned, data, descent, self.n_bags)
