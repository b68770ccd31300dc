"""The parameters of gradient boosting that its estimators have: meaning, defaults, checks.

What is not given depends on whether rounds grow trees or stumps. Trees are held back: each is grown
on a draw of the rows, each node on a draw of the features, and leaves keep some rows and are
shrunk. Stumps are as simple as can be already, and without all that they have strategies of their
own (boosting/plans.py). The numbers were found on the tuning sets of bench/quality.py; the ranker
has its own (boosting/boosting_ranker.py).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import numpy as np

from ensemble_gpu.boosting.fitting import BoostedEstimator
from ensemble_gpu.boosting.given import (
    STEPS_OF_OTHERS,
    check_given,
    check_step_of_others,
    learner_of,
)
from ensemble_gpu.boosting.plans import INITS, DescentParameters, gradient_learner
from ensemble_gpu.boosting.steps import LEAF_STEP, STEPS
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
from ensemble_gpu.estimators.reading import Reading, TrainingData
from ensemble_gpu.kernels.team import ALONE, Team, current_team
from ensemble_gpu.learners.directions import Directions
from ensemble_gpu.learners.protocol import GradientLearner
from ensemble_gpu.learners.tree import Size, splits_once
from ensemble_gpu.losses import Loss

# Rounds without and with early stopping, where n_estimators is None.
ROUNDS, MOST_ROUNDS = 500, 10_000
# Rows from which early_stopping="auto" is on.
AUTO_ROWS = 10_000
AUTO = "auto"

# From rows, parameters and a learner to what the loop runs on.
Planner = Callable[[Any, DescentParameters, Any], Plan]


@dataclass(frozen=True)
class Restraint:
    """What holds trees back; each is the default of the parameter of this name.

    Sums of second derivatives are those of rows that weigh 1.
    """

    min_samples_leaf: int
    min_hessian: float
    l2_regularization: float
    subsample: float
    max_features: Any

    def for_rows_of(self, weight: float) -> Restraint:
        """The same for rows of this weight."""
        return replace(
            self,
            min_hessian=weight * self.min_hessian,
            l2_regularization=weight * self.l2_regularization,
        )


OF_STUMPS = Restraint(1, 0.0, 0.0, 1.0, None)


@dataclass(frozen=True)
class Defaults:
    """Of an estimator: what holds its trees back, and the rate where it is None.

    `path` is what the rate times the rounds is, within `rates`.
    """

    trees: Restraint
    path: float
    rates: tuple[float, float]

    def rate(self, n_rounds: int) -> float:
        """The learning rate of so many rounds."""
        least, most = self.rates
        return min(max(self.path / n_rounds, least), most)


DEFAULTS = Defaults(Restraint(20, 1e-3, 1.0, 0.8, 0.4), 15.0, (0.03, 0.1))

PARAMETERS = """
    estimator : regressor, classifier, learner of `ensemble_gpu.learners` or None
        The weak learner; None: stumps and trees. A regressor with scikit-learn's interface is
        cloned in every round and fitted to -gradient, a classifier to its sign with weights
        |gradient|; alpha, of either sign, minimises R(f + alpha h). That goes for any loss. One
        that takes no sample weights is fitted to rows drawn by weight. Several outputs have one
        regressor in a round where it takes several targets, else one each. The rounds end where h
        is no direction of descent. An estimator that is not of this package gets arrays of the
        host (other devices: device="cpu"), and whether it takes NaN is its own affair, unless
        missing="error". Parameters of stumps and trees are refused beside it.
    n_estimators : int or None, default=None
        Rounds at most. None: {rounds}, or with early stopping {cap:,}, so that it decides.
    learning_rate : float in (0, 1] or None, default=None
        nu: a round adds nu alpha h. None: {path:g} / n_estimators, at least {least_rate:g} and at
        most {most_rate:g}; {usual_rate:g} where n_estimators is None, {most_rate:g} with
        warm_start.
    init : {{"constant", "zero"}}, default="constant"
        Where F begins: at the best constant for y, or at 0. (What runs as an AdaBoost begins at 0.)
    max_depth : int or None, default={depth}
        Depth of the trees; None: no limit. 1: stumps, whose sum is a table a feature: each is
        fitted in a fraction of the time of a tree, and the model can be drawn feature by feature.
        Trees find interactions between features and mostly predict better.
    max_leaf_nodes : int or None, default=None
        Leaves of a tree, the best grown first; None: no limit.
    min_samples_leaf : int or None, default=None
        Rows of those drawn that each leaf must keep, whatever their weights; None:
        {min_samples_leaf}, of stumps 1.
    min_hessian : float or None, default=None
        Sum of weighted second derivatives that each leaf must keep (of a square that is halved: the
        weight of its rows); None: {min_hessian:g}, of stumps 0.
    l2_regularization : float or None, default=None
        Added to that sum where the value of a leaf is divided by it; None:
        {l2_regularization:g}, of stumps 0. Stumps with any of the three are grown as trees. Where
        rows weigh less than 1 in the mean, the defaults of both sums are so much less.
    step : {{"leaf", "line_search", "newton", "constant"}} or None, default=None
        How far to go along a stump or tree h. None: {step}.

        - "leaf", for the absolute, quantile and Huber losses: each leaf by itself goes to its best
          constant, of the first two the weighted quantile of its residuals y - F. All training
          rows take part, and the training loss never rises;
        - "line_search": alpha minimises R(f + alpha h) over all training rows, safeguarded so that
          the training loss never rises;
        - "newton": each leaf is a Newton step, sum of -gradient / sum of second derivatives;
        - "constant": alpha = 1 / L, L the bound on the loss's second derivative (1 without one).

        The squared loss of all rows has one answer to all three, the mean residual of the leaf.
    candidates : int, default=1
        Of stumps: so many, the best of each of the features with the largest gains, are taken to
        the end of their steps, and the one there that lowers the loss most is added: h and alpha
        are chosen together. The squared loss knows without: the largest gain is the largest fall.
    subsample : float in (0, 1] or None, default=None
        Probability with which a row takes part in the choice of a round's learner; None:
        {subsample}, of stumps 1. Rows are drawn by what they hold: their order does not matter,
        and one of whole weight w is drawn as w equal rows are (one of another weight as a whole).
    n_bags : int, default=1
        That many models, each on a bootstrap sample of the rows (drawn from the same binned rows
        as integer weights), advance together round by round, and their F is averaged into one
        model: steadier probabilities for n_bags times the work. A round means a round of every
        bag, for `n_estimators`, staged predictions, `model_.first(n)` and early stopping, which
        watches the average.
    max_features : int, float, "sqrt", "log2", "auto" or None, default="auto"
        Features drawn for each round, of trees for each node (a share, where a float); None: all;
        "auto": {max_features}.
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
    early_stopping : bool or "auto", default={stopping}
        True: stop when the validation loss has not improved for `n_iter_no_change` rounds, and keep
        the best round; uses eval_set or X_val, y_val of `fit`, or holds out `validation_fraction`
        of the {held}.
        "auto": True from {auto:,} rows on.
    validation_fraction : float, default=0.1
    n_iter_no_change : int, default=20
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
    random_state : int, RandomState instance or None, default=0
        Draws rows (subsample, bags, validation) and features. A number: each fit draws the same,
        on every device. None: something else in each fit.

    Attributes
    ----------
    n_features_in_, feature_names_in_ : as in scikit-learn{classes}
    n_estimators_ : int, rounds in the model (of every bag)
    errors_ : ndarray, gain of each round: twice the fall of the loss's quadratic model, summed over
        rows of weight at most 1 (mean over the bags); with an estimator <g, h>^2 / <h, h>, g the
        gradient
    alphas_ : ndarray, nu alpha of each round (mean over the bags)
    feature_importances_ : ndarray, share of each feature in the gains (mean over the bags)
    history_ : History, `training` and `validation` losses after each round; `history_.plot()`. The
        training loss is there where callbacks or validation rows ask for it, and for stumps with
        the squared loss; with bags it is the mean of each bag's loss on its own sample.
        `history_.evals[set][metric]` are all metrics of all validation sets
    validation_loss_ : ndarray, `history_.validation` (only where there were validation rows)
    model_ : AdditiveModel (stumps) or Forest (trees, and all that have categorical features), with
        the best constant as intercept; with an estimator a Committee, or what its learner makes
    background_ : Background, weights of the training rows between the thresholds of the stumps, for
        `explain` (where model_ is an AdditiveModel)
    estimators_ : list of the fitted estimators of the rounds, where one was given
    link_ : str, how outputs become predictions (model/link.py)
    stop_reason_ : str, why the fit ended
    engine_ : str, the engine that ran: "cpu", "cuda" or "reference"
    """


def described(without: tuple[str, ...] = (), defaults: Defaults = DEFAULTS, **more: Any) -> str:
    """The part of an estimator's docstring that is about these parameters, and attributes.

    `without` those that it does not have.
    """
    least, most = defaults.rates
    trees = asdict(defaults.trees)
    share = trees.pop("max_features")
    texts = {
        "rounds": ROUNDS, "cap": MOST_ROUNDS, "path": defaults.path, "least_rate": least,
        "most_rate": most, "usual_rate": defaults.rate(ROUNDS), "auto": AUTO_ROWS,
        "subsample": f"{trees.pop('subsample'):g}",
        "max_features": "all" if share is None else f"{share:g}, of stumps all",
    }  # fmt: skip
    text = PARAMETERS.format(**texts | trees | more)
    for name in without:
        text = re.sub(rf"\n    {name} :.*?(?=\n    \w)", "", text, flags=re.DOTALL)
    return text


def usual_weight(weights: np.ndarray | None, team: Team = ALONE) -> float:
    """The mean weight of the rows that have any, at most 1; their order does not matter.

    Weights may add up to 1, say; whole ones stay repetitions of rows.
    """
    weights = np.ones(1) if weights is None else weights[weights > 0.0]
    if not team.any(bool((weights < 1.0).any())):
        return 1.0
    return min(1.0, team.fsum(weights) / team.count(len(weights)))


class GradientBoosting(BoostedEstimator):
    """The parameters of gradient boosting."""

    loss: str | Loss
    step: str | None
    init: str
    candidates: int
    max_depth: int | None
    max_leaf_nodes: int | None
    min_samples_leaf: int | None
    min_hessian: float | None
    l2_regularization: float | None
    subsample: float | None
    n_bags: int
    max_features: Any
    monotonic_cst: Any
    interaction_cst: Any
    categorical_features: Any
    categorical_split: str
    # The step of losses without kinks.
    _smooth_step: str

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("step", self.step, (*STEPS, None))
        check_choice("init", self.init, INITS)
        check_integer("candidates", self.candidates, 1)
        if self.estimator is not None:
            check_given(self)
        check_choice("categorical_split", self.categorical_split, CATEGORICAL_SPLITS)
        check_real("subsample", self.subsample, 0.0, 1.0, others=(None,))
        check_integer("n_bags", self.n_bags, 1)
        check_max_features(self.max_features, others=(AUTO,))
        check_integer("min_samples_leaf", self.min_samples_leaf, 1, others=(None,))
        for name in ("min_hessian", "l2_regularization"):
            check_not_negative(name, getattr(self, name), others=(None,))
        for name, low in (("max_depth", 1), ("max_leaf_nodes", 2)):
            check_integer(name, getattr(self, name), low, others=(None,))
        if self.candidates > 1:
            self._check_candidates()

    def _check_candidates(self) -> None:
        held = self._restraint()
        if not self._size(held).stump:
            raise ValueError(
                f"candidates={self.candidates!r} is for stumps; max_depth, max_leaf_nodes, "
                "min_samples_leaf, min_hessian or l2_regularization ask for trees."
            )
        if held.max_features is not None:
            raise ValueError(
                f"candidates={self.candidates!r} are taken of all features; max_features must be "
                f"None or 'auto', got {self.max_features!r}."
            )

    def _check_rounds(self) -> None:
        if not isinstance(self.early_stopping, bool | np.bool_):
            check_choice("early_stopping", self.early_stopping, (True, False, "auto"))
        check_integer("n_estimators", self.n_estimators, 1, others=(None,))
        check_real("learning_rate", self.learning_rate, 0.0, 1.0, others=(None,))

    def _defaults(self) -> Defaults:
        return DEFAULTS

    def _reads_codes_alone(self) -> bool:
        """Stumps of all rows: trees have codes of their own."""
        every = self.n_bags == 1 and self.subsample in (None, 1.0)
        return super()._reads_codes_alone() and every and self._size(self._restraint()).stump

    def _restraint(self, weight: float = 1.0) -> Restraint:
        """As given; where nothing is, that of stumps, or of trees for rows of this weight."""
        stumps = self.estimator is not None or splits_once(self.max_depth, self.max_leaf_nodes)
        given = {f.name: getattr(self, f.name) for f in fields(Restraint)}
        if isinstance(self.max_features, str) and self.max_features == AUTO:
            del given["max_features"]
        told = {n: v for n, v in given.items() if v is not None or n == "max_features"}
        of_trees = self._defaults().trees.for_rows_of(weight)
        return replace(OF_STUMPS if stumps else of_trees, **told)

    def _resolved(self) -> dict[str, Any]:
        return {"learning_rate": self._resolved_rate(), **asdict(self._restraint())}

    def _size(self, held: Restraint) -> Size:
        return Size(
            self.max_depth,
            self.max_leaf_nodes,
            int(held.min_samples_leaf),
            float(held.min_hessian),
            float(held.l2_regularization),
        )

    def _decide_rounds(self, reading: Reading) -> None:
        stops, n_rows = self.early_stopping, current_team().count(reading.rows.X.shape[0])
        self._stops_early = n_rows >= AUTO_ROWS if stops == "auto" else bool(stops)
        default = MOST_ROUNDS if self._stops_early else ROUNDS
        self._n_rounds = default if self.n_estimators is None else int(self.n_estimators)
        self._rate = self._resolved_rate()

    def _resolved_rate(self) -> float:
        if self.learning_rate is not None:
            return float(self.learning_rate)
        if self.warm_start:  # how many rounds there will be is not known
            return self._defaults().rates[1]
        return self._defaults().rate(
            ROUNDS if self.n_estimators is None else int(self.n_estimators)
        )

    def _descent(
        self, data: TrainingData, loss: Loss, votes: bool, n_learners: int = 1
    ) -> DescentParameters:
        step = self._resolved_step(loss)
        weights = data.rows.weights
        host = None if weights is None else data.where.host(weights)
        held = self._restraint(usual_weight(host, data.engine.team))
        return DescentParameters.of(
            self,
            step=step,
            subsample=held.subsample,
            n_features=count_features(held.max_features, self.n_features_in_),
            signs=self._signs(),
            votes=votes,
            size=self._size(held),
            categories=self._categories,
            one_category=self.categorical_split == "single",
            interactions=read_interactions(
                self.interaction_cst, self.n_features_in_, getattr(self, "feature_names_in_", None)
            ),
            n_learners=n_learners,
            init=self.init,
            candidates=int(self.candidates),
        )

    def _resolved_step(self, loss: Loss) -> str:
        """As given, if the loss allows it; else the step that suits the loss best."""
        smooth = self._smooth_step if loss.has_hessian else "line_search"
        step = self.step or (LEAF_STEP if loss.has_leaf_step else smooth)
        if step == "newton" and not loss.has_hessian:
            also = "'leaf', " if loss.has_leaf_step else ""
            raise ValueError(
                f"step='newton' needs a second derivative, which loss {loss.name!r} does not have; "
                f"step must be {also}'line_search' or 'constant' for it."
            )
        if step == LEAF_STEP and not loss.has_leaf_step:
            newton = "'newton', " if loss.has_hessian else ""
            raise ValueError(
                "step='leaf' is for the losses 'absolute', 'quantile' and 'huber'; for loss "
                f"{loss.name!r} step must be {newton}'line_search' or 'constant'."
            )
        return step

    def _given_plan(
        self,
        data: TrainingData,
        loss: Loss,
        planner: Planner,
        n_outputs: int,
        form: str = AUTO,
        keyed: bool = False,
    ) -> Plan:
        """What the loop runs on where `estimator` is the weak learner."""
        descent = self._descent(data, loss, votes=False)
        rows = data.ordered(keyed=keyed or descent.subsample < 1.0)
        learner = learner_of(self, data, descent, n_outputs, form)
        if isinstance(learner, Directions):
            check_step_of_others(self)
            descent = replace(descent, step=self.step or STEPS_OF_OTHERS[0])
        return planner(rows, descent, learner)

    def _learner(self, binned: Binned, descent: DescentParameters) -> GradientLearner:
        """The weak learner of the rounds; a subclass may have another (learners/protocol.py)."""
        return gradient_learner(binned, descent)
