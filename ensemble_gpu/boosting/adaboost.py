"""AdaBoost: the estimator is thin, the work is in rules, strategies, kernels and learners."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone

from ensemble_gpu.arrays.namespace import Where
from ensemble_gpu.arrays.streamed import is_streamed
from ensemble_gpu.boosting.calibration import Folds, learnt_scale
from ensemble_gpu.boosting.classifier import BoostedClassifier
from ensemble_gpu.boosting.coded import AUTO, CODES, FORMS, OVR, SINGLE
from ensemble_gpu.boosting.given import is_own
from ensemble_gpu.boosting.own import check_own, own_plan
from ensemble_gpu.boosting.plans import (
    DescentParameters,
    classification_plan,
    gradient_learner,
    rescale_plan,
)
from ensemble_gpu.boosting.reweigh_plan import reweigh_plan
from ensemble_gpu.boosting.rules import rule_for
from ensemble_gpu.boosting.strategy import Plan
from ensemble_gpu.data.parameters import check_choice, check_flag
from ensemble_gpu.data.rows import Rows
from ensemble_gpu.data.sampling import count_items
from ensemble_gpu.estimators.categorical import CATEGORICAL_SPLITS
from ensemble_gpu.estimators.reading import Reading, TrainingData
from ensemble_gpu.kernels.team import current_team
from ensemble_gpu.learners.classifier import check_variant
from ensemble_gpu.losses import LogitBoost, consistent_rounds, for_classes
from ensemble_gpu.model.calibration import best_scale
from ensemble_gpu.model.link import probabilities

VARIANTS = ("real", "discrete", "gentle", "logit")
CONSISTENT = "consistent"  # as many rounds as the schedule says
SINGLE_VARIANTS = ("real", "gentle")  # whose stumps may speak about one class


class AdaBoostClassifier(BoostedClassifier):
    """AdaBoost over decision stumps or any classifier, trained where the arrays live.

    Every round takes the best stump over all features, thresholds and polarities,
    F <- F + nu h_t, and multiplies the weights, w_i <- w_i exp(-y_i nu h_t(x_i)). The model is
    the same bit for bit on every engine, array library and number of threads.

    With an `estimator` a round fits a clone of it to the weights instead.

    Parameters
    ----------
    estimator : classifier or None
        The weak learner; None is the stump. Any classifier of this package or with
        scikit-learn's interface: it is fitted with sample weights, or, if it takes none, on rows
        drawn by weight. It sees the classes as 0 ... K - 1, in the order of `classes_`. One that
        is not of this package gets arrays of the host (other devices: device="cpu").
        `max_bins` is for stumps; whether NaN is taken depends on the estimator, unless
        missing="error". One with a parameter `categorical_features` is told which features are
        categories. Of two classes it may abstain ("discrete"): an answer of NaN adds 0 to F, and
        the row keeps its weight; one with an attribute `abstains = True` is fitted to -1 and +1,
        and abstains by 0 as well. A learner of `ensemble_gpu.learners` (Pool, HalfSpaces, Balls,
        Boxes, Rectangles) works where X is, on integer weights as stumps do.
    variant : {"real", "discrete", "gentle", "logit"}, default="real"
        With W_l+ and W_l- the weight of positive and negative rows in leaf l:

        - "real": leaf value 1/2 ln((W_l+ + s) / (W_l- + s)), s half a row's share of the weight;
          minimises Z = W_0 + 2 sum_l sqrt(W_l+ W_l-) (Schapire & Singer 1999);
        - "discrete": each leaf votes -1 or +1, alpha = 1/2 ln((1 - e) / e), minimises the
          weighted error e;
        - "gentle": leaf value (W_l+ - W_l-) / (W_l+ + W_l-) (Friedman et al. 2000);
        - "logit": LogitBoost (ibid.), Newton steps on the logistic loss ln(1 + exp(-2 y F)).

        With three or more classes "discrete" is SAMME, alpha = ln((1 - e) / e) + ln(K - 1);
        "real" and "gentle" are AdaBoost.MH: a weight per (row, class), K values a leaf; "logit"
        takes Newton steps on the multinomial loss.

        With an estimator: "real", 1/2 ln(p / (1 - p)) of its predict_proba (Friedman et al. 2000;
        SAMME.R for more classes); "discrete", its votes, as above.
    multiclass : {"auto", "shared", "single", "codes", "ovr"}, default="auto"
        Three or more classes. Stumps, "real" and "gentle": "shared" ("auto"), a stump has values
        for all classes; "single", for one class, the one where it lowers the loss most. Single
        stumps need more rounds, each as cheap as for two classes, and reach a lower loss in less
        time. An estimator: "shared", it is fitted to all classes; the others are for one that
        knows two, such as liblinear's LogisticRegression ("auto": "single" for one that says so):

        - "single": AdaBoost.MH, one class against the rest, the one that lowers the loss most;
          training error <= (K / 2) prod_t Z_t;
        - "codes": AdaBoost.OC, the classes are drawn into two groups in each round, and the learner
          tells the groups apart; training error <= (K - 1) prod_t Z_t;
        - "ovr": an AdaBoost for every class against the rest; a round is one of each.
    n_estimators : int or "consistent", default=100
        Rounds at most; "consistent": floor(m^0.9) of m rows, a schedule under which AdaBoost is
        consistent (`consistent_rounds`).
    learning_rate : float, default=1.0
        nu in (0, inf): the factor on the weights is raised to this power.
    max_bins : int or None, default=255
        Thresholds come from at most this many bins a feature (2 to 65,534); a feature with fewer
        distinct values is exact. None: as many as it has values (at most 65,534).
    categorical_features : "from_dtype", array of indices, names or bool, or None
        Which features are categories: "from_dtype" (default) those that a pandas or polars frame
        says are. Unknown categories are treated as missing. Where there are any, missing values
        learn a side, and the model is a Forest of trees of depth 1.
    categorical_split : {"subset", "single"}, default="subset"
        A set of categories goes left, or a single one. Sets are scored as thresholds are: by Z, the
        squared error or the weighted error of the variant ("logit": by the gain). With two classes
        no set is better; with more the best is taken of one order of the categories a class.
    missing : {"abstain", "learn", "error"}, default="abstain"
        NaN in the stump's feature: "abstain" adds 0; "learn" sends it to the side that scores
        better; "error" refuses NaN.
    calibrate : bool or None, default=None
        Whether probabilities are those of `scale_` times F. After some rounds F is too large for
        probabilities that are right. The scale is learnt by minimising the log-loss on rows that a
        model has not been trained on: of models fitted to four fifths of the rows each, one or more
        until 2,000 rows are evaluated, and the rows held out by early stopping (five fits of few
        rows, 0.8 of a fit where there are 10,000 or more). Half a row of a wrong class is added, so
        that the scale is finite where F is always right (model/calibration.py). The scale is 1
        where it cannot be learnt: no rounds, or a class with a single row. Nothing else depends on
        it: neither `decision_function` nor `predict` nor the model. None: True for stumps, False
        with an estimator.
    early_stopping : bool, default=False
        Stop when the validation loss has not improved for `n_iter_no_change` rounds, and keep the
        best round. Uses eval_set or X_val, y_val of `fit`, or holds out `validation_fraction` of
        the rows. The loss is the log-loss at the scale that is best for these rows in that round.
    validation_fraction : float, default=0.1
    n_iter_no_change : int, default=100
        A round of AdaBoost is a large step, and losses of few validation rows are uneven: with 10
        rounds a fit would end after some 20 on breast cancer and lose two points of accuracy.
    metric : name, callable, or list of these, default=None
        What the validation rows are judged by; None or "loss": the log-loss. Names: "log_loss",
        "roc_auc" ("auc"), "error", "accuracy", "balanced_accuracy", "brier". A callable:
        metric(y, probabilities) -> float, called with arrays of X's library (and sample_weight=,
        where given); lower is better, unless it has an attribute greater_is_better = True.
        Probabilities are those of the round's best scale for the validation rows, unless calibrate
        is off. Early stopping goes by the first metric of the last validation set, or by `stop_on`
        of fit.
    class_weight : dict, "balanced" or None
        Weights of the labels, by which those of their rows are multiplied (not those of X_val);
        "balanced": n / (K n_k).
    device : {None, "cpu", "cuda", "auto"}, default=None
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
        Draws the validation rows (by what they hold, not by their order), and with an estimator
        its seed in each round and the rows of one without sample weights; nothing else is random.

    Attributes
    ----------
    classes_ : ndarray of the labels
    n_features_in_, feature_names_in_ : as in scikit-learn
    n_estimators_ : int, rounds in the model
    errors_ : ndarray, weighted error (discrete), Z (real, gentle) or gain (logit) of each round
    alphas_ : ndarray, coefficient of each round's stump: alpha (discrete), nu (the others)
    feature_importances_ : ndarray, share of each feature in sum of -ln Z, of alpha (discrete), or
        of the gains (logit); with an estimator the mean of its own with these weights, if it has
        any
    estimators_ : list of the fitted estimators, where one was given
    history_ : History, training loss (mean of exp(-y F), for SAMME of exp(-F_y), or the logistic
        loss) and validation loss after each round; `history_.plot()` draws them. `history_.weights`
        [round, 4] are the shares of the weight before each round that abstain, are voted right and
        wrong, and Z, the factor of the round on the training loss; `history_.evals[set][metric]`
        are all metrics of all validation sets
    validation_loss_ : ndarray, `history_.validation`: the metric that decides early stopping
        (only where there were validation rows)
    scale_ : float, the factor on F in probabilities; 1 where calibrate is off
    model_ : AdditiveModel; Forest where there are categories; Committee with an estimator;
        VoteModel or DerivedModel with a learner of `ensemble_gpu.learners`
    background_ : Background, weights of the training rows between the thresholds of the stumps, for
        `explain` (where model_ is an AdditiveModel)
    link_ : str, "margins" or, for SAMME and SAMME.R, "votes": what the model's outputs are
    stop_reason_ : str, why the fit ended
    engine_ : str, the engine that ran: "cpu", "cuda" or "reference"
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        variant: str = "real",
        multiclass: str = AUTO,
        n_estimators: int | str = 100,
        learning_rate: float = 1.0,
        max_bins: int | None = 255,
        categorical_features: Any = "from_dtype",
        categorical_split: str = "subset",
        missing: str = "abstain",
        calibrate: bool | None = None,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 100,
        metric: Any = None,
        class_weight: Any = None,
        device: str | None = None,
        n_jobs: int | None = None,
        callbacks: list[Any] | None = None,
        warm_start: bool = False,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.variant = variant
        self.multiclass = multiclass
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.max_bins = max_bins
        self.categorical_features = categorical_features
        self.categorical_split = categorical_split
        self.missing = missing
        self.calibrate = calibrate
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

    _other_rounds = (CONSISTENT,)

    def _most_rounds(self, reading: Reading) -> int:
        if self.n_estimators != CONSISTENT:
            return super()._most_rounds(reading)
        weights = reading.rows.weights
        host = None if weights is None else reading.where.host(weights)
        return consistent_rounds(count_items(reading.rows.X.shape[0], host, current_team()))

    def _check_parameters(self) -> None:
        check_choice("variant", self.variant, VARIANTS)
        check_choice("multiclass", self.multiclass, FORMS)
        check_choice("categorical_split", self.categorical_split, CATEGORICAL_SPLITS)
        if self.calibrate is not None:
            check_flag("calibrate", self.calibrate)
        if is_own(self.estimator):
            check_own(self.estimator, self.variant, self.multiclass)
        elif self.estimator is not None:
            check_variant(self.estimator, self.variant)
        elif self.multiclass in (CODES, OVR):
            raise ValueError(
                f"multiclass={self.multiclass!r} is for an estimator that knows two classes; "
                "estimator is None, and stumps know any number of them."
            )
        elif self.multiclass == SINGLE and self.variant not in SINGLE_VARIANTS:
            raise ValueError(
                "multiclass='single' is for variant one of "
                f"{', '.join(map(repr, SINGLE_VARIANTS))}; variant is {self.variant!r}."
            )
        super()._check_parameters()

    def _reads_codes_alone(self) -> bool:
        return super()._reads_codes_alone() and not self._calibrates

    @property
    def _calibrates(self) -> bool:
        return self.estimator is None if self.calibrate is None else bool(self.calibrate)

    def _for_order(self) -> Any:
        """The scale of probabilities is positive: it changes neither their order nor labels."""
        return clone(self).set_params(calibrate=False) if self._calibrates else self

    def _contained(self) -> tuple[str, ...]:
        """Of calibrated models not even the rounds: the scale is that of their number."""
        return () if self._calibrates else super()._contained()

    def _kept_data(self, data: TrainingData) -> Folds | None:
        if not self._calibrates:
            return None
        folds = Folds(data, len(self.classes_))
        if is_streamed(data.rows.X) and not self._stops_early:
            folds.foresee(1 if self.variant == "logit" else len(self.classes_))
        return folds

    def _calibrate(self, data: Folds | None, held_out: Rows | None) -> None:
        self.scale_ = 1.0
        if data is not None:
            self.scale_ = learnt_scale(self, data, held_out, self.n_estimators_)

    def _prediction(self, F: Any, target: Any, where: Where) -> Any:
        """Probabilities at the best scale of the round, where they will be calibrated."""
        if not self._calibrates:
            return super()._prediction(F, target, where)
        scale = best_scale(F, target, None, self.link_, where)
        return probabilities(F, self.link_, where, scale)

    def _plan(self, data: TrainingData) -> Plan:
        if is_own(self.estimator):
            return own_plan(self, data)
        if self.estimator is not None:
            return reweigh_plan(self, data)
        n_classes = len(self.classes_)
        if self.variant == "logit":
            loss = for_classes(LogitBoost(), n_classes)
            descent = DescentParameters.of(
                self, step="newton", categories=self._categories,
                one_category=self.categorical_split == "single",
            )  # fmt: skip
            binned = self._binned(data, descent.n_ranges)
            learner = gradient_learner(binned, descent)
            return classification_plan(binned, data.where, loss, n_classes, descent, learner)
        binned = self._binned(data, n_classes)
        return rescale_plan(self, binned, data.where, rule_for(self.variant, n_classes))
