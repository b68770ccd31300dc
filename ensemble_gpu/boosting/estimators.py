"""The estimators that boost any loss; boosting/plans.py says which strategy runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ensemble_gpu.arrays.means import weighted_mean
from ensemble_gpu.arrays.namespace import Where
from ensemble_gpu.boosting.bags import plan_in_bags
from ensemble_gpu.boosting.classifier import BoostedClassifier
from ensemble_gpu.boosting.evaluation import watched_metrics
from ensemble_gpu.boosting.gradient_boosting import AUTO, GradientBoosting, described
from ensemble_gpu.boosting.held_out import mean_squares, pays
from ensemble_gpu.boosting.plans import (
    DescentParameters,
    classification_plan,
    mean_class_loss,
    regression_plan,
    rescale_plan,
)
from ensemble_gpu.boosting.regressor import BoostedRegressor
from ensemble_gpu.boosting.rules import rule_for
from ensemble_gpu.boosting.strategy import Plan
from ensemble_gpu.data.bins import PartBins
from ensemble_gpu.data.parameters import check_choice
from ensemble_gpu.data.rows import Binned
from ensemble_gpu.estimators.reading import TrainingData
from ensemble_gpu.kernels.edges import MAX_BINS_LIMIT
from ensemble_gpu.kernels.team import current_team
from ensemble_gpu.learners.tree import splits_once
from ensemble_gpu.losses import (
    Exponential,
    Logistic,
    LogitBoost,
    Loss,
    Poisson,
    Quantile,
    Quantiles,
    Squared,
    classification_loss,
    regression_loss,
)
from ensemble_gpu.metrics import Metric
from ensemble_gpu.model.additive import AdditiveModel
from ensemble_gpu.model.link import IDENTITY

MULTICLASS = (AUTO, "shared", "each")

_CLASS_WEIGHT = """
    class_weight : dict, "balanced" or None
        Weights of the labels, by which those of their rows are multiplied (not those of X_val);
        "balanced": n / (K n_k)."""

AUTO_STOPPING = '"auto"'
HELD_ROWS = "rows, drawn as those of `subsample` are"
_CLASS_METRICS = """"log_loss", "roc_auc" ("auc"),
        "error", "accuracy", "balanced_accuracy", "brier\""""
_NUMBER_METRICS = """"rmse", "mse", "mae", "mape", "r2",
        "poisson_deviance", "quantile_loss\""""


class BoostingClassifier(BoostedClassifier, GradientBoosting):
    __doc__ = """Gradient boosting of stumps or trees for several classes, where the arrays live.

    Parameters
    ----------
    loss : str or Loss, default="logistic"
        With v = y F the margin: "logistic" ln(1 + e^-v) (multinomial for K > 2), "exponential"
        e^-v, "squared" (1 - v)^2, "truncated_squared" (1 - v)_+^2, "hinge" (1 - v)_+; or a Loss
        (`ensemble_gpu.losses`). For K > 2 the margin losses take each class against the rest.
    stump : {"real", "discrete"}, default="real"
        "real": h fits -gradient by least squares, a value a leaf; "discrete": h in {-1, +1}
        minimises the error weighted by |gradient|, times one coefficient.

        The exponential loss with real stumps and Newton steps is Gentle AdaBoost, with discrete
        stumps and line search (two classes) the textbook's AdaBoost: these run as such (but not
        in bags).
    multiclass : {"auto", "shared", "each"}, default="auto"
        What a round adds for K > 2 classes: "shared", one stump or tree with K values a leaf;
        "each", one for every class, K of them, chosen from the sums of one pass over the rows.
        "auto": "each" for stumps of the logistic loss, which need far more rounds to reach the same
        loss if classes share them; "shared" else (trees of a few thousand rows predict
        as well in a third of the time, but with many rows and classes "each" is better for them
        too; the squared and the exponential loss have faster ways with shared stumps). Newton steps
        of each class know nothing of the others': learning rates above 0.5 overshoot. With an
        `estimator`: "shared", a regressor for several targets; "each", one for every class;
        "auto": "shared" where the regressor says that it takes several targets.""" + (
        described(
            depth=4,
            step='"newton", without a second derivative\n        "line_search"',
            prediction="probabilities",
            classes=", classes_",
            class_weight=_CLASS_WEIGHT,
            stopping=AUTO_STOPPING,
            held=HELD_ROWS,
            metrics=_CLASS_METRICS,
        )
    )

    _smooth_step = "newton"

    def __init__(
        self,
        loss: str | Loss = "logistic",
        *,
        stump: str = "real",
        multiclass: str = AUTO,
        estimator: Any = None,
        n_estimators: int | None = None,
        learning_rate: float | None = None,
        step: str | None = None,
        init: str = "constant",
        candidates: int = 1,
        max_depth: int | None = 4,
        max_leaf_nodes: int | None = None,
        min_samples_leaf: int | None = None,
        min_hessian: float | None = None,
        l2_regularization: float | None = None,
        subsample: float | None = None,
        n_bags: int = 1,
        max_features: Any = AUTO,
        monotonic_cst: Any = None,
        interaction_cst: Any = None,
        max_bins: int | None = 255,
        categorical_features: Any = "from_dtype",
        categorical_split: str = "subset",
        missing: str = "abstain",
        early_stopping: bool | str = "auto",
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 20,
        metric: Any = None,
        class_weight: Any = None,
        device: str | None = None,
        n_jobs: int | None = None,
        callbacks: list[Any] | None = None,
        warm_start: bool = False,
        random_state: Any = 0,
    ) -> None:
        self.loss = loss
        self.stump = stump
        self.multiclass = multiclass
        self.estimator = estimator
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.step = step
        self.init = init
        self.candidates = candidates
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
        check_choice("multiclass", self.multiclass, MULTICLASS)
        if self.stump == "discrete" and not self._size(self._restraint()).stump:
            raise ValueError(
                "stump='discrete' is for stumps; max_depth, max_leaf_nodes and min_samples_leaf "
                "ask for trees."
            )
        if self.candidates > 1 and self.multiclass == "each":
            raise ValueError(
                f"candidates={self.candidates!r} is for one stump a round; multiclass='each' fits "
                "one for every class."
            )
        classification_loss(self.loss, 2)

    def _form(self) -> str:
        """What K > 2 classes have in a round: one stump or tree for all, or each its own.

        Other losses have strategies of their own for stumps that classes share.
        """
        if self.multiclass != AUTO or self.estimator is not None:
            return self.multiclass
        if self.candidates > 1:  # of one stump, whose loss can be compared
            return "shared"
        logistic = isinstance(classification_loss(self.loss, 2), Logistic | LogitBoost)
        stumps = splits_once(self.max_depth, self.max_leaf_nodes)
        return "each" if stumps and logistic else "shared"

    def _resolved(self) -> dict[str, Any]:
        return {**super()._resolved(), "multiclass": self._form()}

    def _plan(self, data: TrainingData) -> Plan:
        n_classes = len(self.classes_)
        loss = classification_loss(self.loss, n_classes)
        if self.estimator is not None:
            return self._given_plan(
                data,
                loss,
                lambda rows, descent, learner: classification_plan(
                    rows, data.where, loss, n_classes, descent, learner
                ),
                self._n_outputs(),
                self.multiclass,
            )
        each = n_classes > 2 and self._form() == "each"
        votes = self.stump == "discrete"
        descent = self._descent(data, loss, votes, n_classes if each else 1)
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

            binned = self._binned(data, descent.n_ranges, keyed=descent.subsample < 1.0)
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
            and descent.n_learners == descent.candidates == 1
            and self.n_bags == 1  # a row out of the bag has no logarithm of its weight
            and descent.constraints.n_features == self.n_features_in_
        ):
            return None
        if self.stump == "real" and descent.step == "newton":
            return "gentle"
        if self.stump == "discrete" and descent.step == "line_search" and n_classes == 2:
            return "discrete"
        return None


class BoostingRegressor(BoostedRegressor, GradientBoosting):
    __doc__ = """Gradient boosting of stumps or trees for a real target, where the arrays live.

    Parameters
    ----------
    loss : str or Loss, default="squared"
        "squared" (y - F)^2 (L2Boost), "absolute" |y - F|, "huber", "quantile", "poisson"
        e^F - y F with prediction e^F; or a Loss (`ensemble_gpu.losses`), such as Huber(delta=2.0).
    quantile : float in (0, 1), increasing list of them, or None
        Which quantile loss="quantile" estimates; None: the median. Of a list, one model has an
        output for each (a learner has as many values a leaf), and `predict` is [n, K]: the
        outputs of each row sorted, which never raises the loss, so that they never cross. The loss
        is the sum of the quantile losses; `score` is 1 minus the share of it that is left of what
        the best constants lose; metrics are the loss or callables.""" + (
        described(
            depth=6,
            step='"leaf" for the absolute,\n        quantile and Huber losses, else "line_search"',
            prediction="predictions",
            classes="",
            class_weight="",
            stopping=AUTO_STOPPING,
            held=HELD_ROWS,
            metrics=_NUMBER_METRICS,
        )
    )

    _smooth_step = "line_search"

    def __init__(
        self,
        loss: str | Loss = "squared",
        *,
        quantile: float | Sequence[float] | None = None,
        estimator: Any = None,
        n_estimators: int | None = None,
        learning_rate: float | None = None,
        step: str | None = None,
        init: str = "constant",
        candidates: int = 1,
        max_depth: int | None = 6,
        max_leaf_nodes: int | None = None,
        min_samples_leaf: int | None = None,
        min_hessian: float | None = None,
        l2_regularization: float | None = None,
        subsample: float | None = None,
        n_bags: int = 1,
        max_features: Any = AUTO,
        monotonic_cst: Any = None,
        interaction_cst: Any = None,
        max_bins: int | None = 255,
        categorical_features: Any = "from_dtype",
        categorical_split: str = "subset",
        missing: str = "abstain",
        early_stopping: bool | str = "auto",
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 20,
        metric: Any = None,
        device: str | None = None,
        n_jobs: int | None = None,
        callbacks: list[Any] | None = None,
        warm_start: bool = False,
        random_state: Any = 0,
    ) -> None:
        self.loss = loss
        self.quantile = quantile
        self.estimator = estimator
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.step = step
        self.init = init
        self.candidates = candidates
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
        if not isinstance(self._resolved_loss(), Quantiles):
            return
        for watched in watched_metrics(self.metric, self._task):
            if isinstance(watched.source, Metric):
                raise ValueError(
                    f"metric {watched.name!r} is for one prediction a row; for several quantiles "
                    f"metric must be None, 'loss' or a callable; got {self.metric!r}."
                )
        if self.monotonic_cst is not None:
            raise ValueError(
                "monotonic_cst is for one output; quantile asks for several: "
                f"{self.quantile!r}. Fit them one by one."
            )

    def _resolved_loss(self) -> Loss:
        if self.quantile is None:
            return regression_loss(self.loss)
        if self.loss != "quantile":
            raise ValueError(f"quantile is for loss='quantile'; loss is {self.loss!r}.")
        given: Any = self.quantile
        if isinstance(given, list | tuple) or getattr(given, "ndim", 0) == 1:
            return Quantiles(tuple(given.tolist() if hasattr(given, "tolist") else given))
        return Quantile(quantile=given)

    def _n_outputs(self) -> int:
        return self._resolved_loss().n_outputs

    @property
    def _quantile(self) -> float | None:  # type: ignore[override]
        return getattr(self._resolved_loss(), "quantile", None)

    def _held_out_squares(self, part: PartBins, y: Any, n_stages: int) -> np.ndarray | None:
        """Mean squared errors of rows held out after each round, from tables.

        `part` are the bins that the fit has shared, `y` the targets of the rows it was without.
        None where there are no tables, or where predictions of so many stages cost less.
        """
        model, max_bins = self.model_, self.max_bins or MAX_BINS_LIMIT
        if self.link_ != IDENTITY or not isinstance(model, AdditiveModel):
            return None
        return mean_squares(model, part, max_bins, y) if pays(model, part, n_stages) else None

    def _training_squares(self) -> np.ndarray | None:
        """Mean squared errors of the rows of `fit` after each round, where it has kept them."""
        squared = isinstance(self._resolved_loss(), Squared)
        whole = self.n_bags == 1 and not self._stops_early
        kept = self.history_.training
        return kept if squared and whole and len(kept) == self.n_estimators_ else None

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R^2 of the predictions; of several quantiles 1 - L / L_0.

        L is the sum of the quantile losses, L_0 that of the best constants for this y.
        """
        loss = self._resolved_loss()
        if not isinstance(loss, Quantiles):
            return super().score(X, y, sample_weight)
        F, y, weights, where = self._to_score(X, y, sample_weight)
        host = None if weights is None else where.host(weights)
        constant = where.put(loss.best_constant(where.host(y), host))
        xp = where.xp
        best, left = (
            weighted_mean(xp.sum(loss.value(y[None, :], rows), axis=0), weights, where)
            for rows in (constant[:, None], xp.permute_dims(F, (1, 0)))
        )
        if best == 0.0:
            return 1.0 if left == 0.0 else 0.0
        return 1.0 - left / best

    def _read_target(self, y: Any, n_rows: int, w: Any, where: Where) -> tuple[Any, Any]:
        target, weights = super()._read_target(y, n_rows, w, where)
        heavy = where.host(target if weights is None else target[weights > 0.0])
        team = current_team()
        if not team.alone:  # whether there is a value that must be there, others know as well
            ends = team.ends(heavy.min(initial=np.inf), heavy.max(initial=-np.inf))
            heavy = np.concatenate([heavy, ends])
        self._resolved_loss().check_target(heavy)
        return target, weights

    def _read_validation_target(self, y: Any, n_rows: int, where: Where, name: str) -> Any:
        target = super()._read_validation_target(y, n_rows, where, name)
        self._resolved_loss().check_target(where.host(target), name)
        return target

    def _plan(self, data: TrainingData) -> Plan:
        loss = self._resolved_loss()
        if self.estimator is not None:
            return self._given_plan(
                data,
                loss,
                lambda rows, descent, learner: regression_plan(
                    rows, data.where, loss, descent, learner
                ),
                self._n_outputs(),
            )
        descent = self._descent(data, loss, votes=False)

        def one(binned: Binned, descent: DescentParameters) -> Plan:
            learner = self._learner(binned, descent)
            return regression_plan(binned, data.where, loss, descent, learner)

        binned = self._binned(data, descent.n_ranges, keyed=descent.subsample < 1.0)
        return plan_in_bags(one, binned, data, descent, self.n_bags)
