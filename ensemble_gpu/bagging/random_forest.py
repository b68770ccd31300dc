"""Random forests: trees on bootstrap samples, a few features at each node, averaged."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ensemble_gpu.arrays.means import magnitude
from ensemble_gpu.arrays.namespace import NUMPY, Where
from ensemble_gpu.bagging import capacity as choosing
from ensemble_gpu.bagging.forest import ForestEstimator
from ensemble_gpu.data.parameters import check_choice
from ensemble_gpu.kernels.protocol import Engine
from ensemble_gpu.model.forest import Forest
from ensemble_gpu.trees.fitting import PARAMETERS
from ensemble_gpu.trees.judging import CLASS_LOSSES, MSE
from ensemble_gpu.trees.prediction import TreeClassifier, TreeRegressor
from ensemble_gpu.trees.statistics import WEIGHT_BITS, Statistics, class_statistics

# Class weights of a bag are multiples of 2^-FACTOR_BITS, and below 2^MOST_FACTOR_BITS of them:
# their sums, weights times bootstrap counts, stay below 2^62.
FACTOR_BITS, MOST_FACTOR_BITS = 16, 27

VOTING = ("soft", "hard")

_FOREST = """
    n_estimators : int, default=100
        Trees."""

_BAGS = """
        Draws rows, features and random thresholds. A seed gives one forest on every device,
        engine and number of threads.
    bootstrap : bool, default=True
        Each tree sees a bootstrap sample, as a count for every row; without, all rows. Whole
        sample weights (of mean at most 16) are repetitions of rows, as many more to draw from; what
        is drawn does not depend on the order of the rows.
    max_samples : int, float or None, default=None
        Draws of a bootstrap sample (a share of the rows, where a float); None: as many as rows.
    subspace : {"node", "tree"}, default="node"
        What `max_features` are drawn for: every node, or a tree as a whole, whose nodes try all of
        them (the random subspace method; a node that none of them can split stays a leaf).
    oob_score : bool or callable, default=False
        Predict every row by the trees that have not seen it; callable: metric(y, prediction).
    callbacks : list of callables or None
        Each is called with a `RoundInfo` after a tree; returning True ends the fit with the trees
        so far. A `Checkpoint` writes them to a file, which `fit(X, y, resume=path)` adds to. One
        that has a method `close` is closed when the fit ends.
    warm_start : bool, default=False
        Keep the trees of the last fit and add to them. Features, their names and categories, and
        classes must be those of the last fit, and so must what capacities are chosen by."""

_ATTRIBUTES = """

    Attributes
    ----------
    n_features_in_, feature_names_in_ : as in scikit-learn{classes}
    model_ : Forest
    n_estimators_ : int, trees in the model
    feature_importances_ : ndarray, share of each feature in the fall of the impurity
    oob_score_ : float, {score} of the predictions out of bag (only with oob_score); optimistic, and
        fit warns of it, where capacities were chosen with validation="oob", by the same rows
    {oob} : ndarray, predictions out of bag, NaN where every tree has seen the row
    engine_ : str, the engine that ran: "cpu", "cuda" or "reference"{capacity}
    """


class RandomForestClassifier(TreeClassifier, ForestEstimator):
    __doc__ = (
        """A random forest for two or more classes, grown where the arrays live.

    Parameters
    ----------"""
        + _FOREST
        + """
    criterion : {"gini", "entropy", "log_loss", "error"}, default="gini"
        The impurity that splits lower: 1 - sum p_k^2, -sum p_k log2 p_k (two names), or the
        misclassified share 1 - max p_k."""
        + PARAMETERS.format(splitter="best", max_features='"sqrt"', positive=" of the second class")
        + _BAGS
        + """
    voting : {"soft", "hard"}, default="soft"
        The mean of the trees' shares of the classes, or of their votes: each for the class with
        the largest share in its leaf, the first of several.
    class_weight : dict, "balanced", "balanced_subsample" or None
        Weights of the labels; "balanced": n / (K n_k), "balanced_subsample": the same with the
        counts of each bootstrap sample."""
        + choosing.PARAMETERS.format(loss=choosing.CLASS_LOSS)
        + _ATTRIBUTES.format(
            classes=", classes_, n_classes_",
            score="accuracy",
            oob="oob_decision_function_",
            capacity=choosing.ATTRIBUTES.format(loss="validation_loss"),
        )
    )

    _class_weights = ("balanced", "balanced_subsample")

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        criterion: str = "gini",
        splitter: str = "best",
        max_depth: int | None = None,
        min_samples_split: int | float = 2,
        min_samples_leaf: int | float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_features: Any = "sqrt",
        max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0,
        bootstrap: bool = True,
        max_samples: int | float | None = None,
        subspace: str = "node",
        oob_score: bool | Callable[..., float] = False,
        warm_start: bool = False,
        capacity: str | None = None,
        capacity_grid: Sequence[Any] | None = None,
        validation: str = "oob",
        validation_fraction: float = 0.2,
        validation_folds: int = 5,
        validation_loss: str = "error",
        voting: str = "soft",
        class_weight: Any = None,
        ccp_alpha: float = 0.0,
        monotonic_cst: Any = None,
        max_bins: int | None = 255,
        categorical_features: Any = "from_dtype",
        categorical_split: str = "subset",
        missing: str = "learn",
        device: str | None = None,
        n_jobs: int | None = None,
        callbacks: list[Any] | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.criterion = criterion
        self.splitter = splitter
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.max_features = max_features
        self.max_leaf_nodes = max_leaf_nodes
        self.min_impurity_decrease = min_impurity_decrease
        self.bootstrap = bootstrap
        self.max_samples = max_samples
        self.subspace = subspace
        self.oob_score = oob_score
        self.warm_start = warm_start
        self.capacity = capacity
        self.capacity_grid = capacity_grid
        self.validation = validation
        self.validation_fraction = validation_fraction
        self.validation_folds = validation_folds
        self.validation_loss = validation_loss
        self.voting = voting
        self.class_weight = class_weight
        self.ccp_alpha = ccp_alpha
        self.monotonic_cst = monotonic_cst
        self.max_bins = max_bins
        self.categorical_features = categorical_features
        self.categorical_split = categorical_split
        self.missing = missing
        self.device = device
        self.n_jobs = n_jobs
        self.callbacks = callbacks
        self.random_state = random_state

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("voting", self.voting, VOTING)
        check_choice("validation_loss", self.validation_loss, CLASS_LOSSES)

    @property
    def _validation_loss(self) -> str:
        return self.validation_loss

    def _voting(self, tree: Forest) -> Forest:
        return tree if self.voting == "soft" else tree.voting()

    def _statistics(self, target: Any, weights: Any, engine: Engine) -> Statistics:
        if self.class_weight != "balanced_subsample":
            return super()._statistics(target, weights, engine)
        return class_statistics(
            self.criterion, target, self.n_classes_, weights, engine, WEIGHT_BITS
        )

    def _reweigh(self, statistics: Statistics, counts: Any | None, where: Where) -> Statistics:
        """Balanced within the bag: weights times n / (K n_k), as integers."""
        if self.class_weight != "balanced_subsample":
            return statistics
        xp, label = where.xp, statistics.target
        drawn = xp.ones_like(label) if counts is None else counts
        own = [xp.sum(xp.where(label == k, drawn, 0)) for k in range(self.n_classes_)]
        sizes = np.array([int(n) for n in own])
        factor = sizes.sum() / (self.n_classes_ * np.maximum(sizes, 1))
        bits = min(FACTOR_BITS, MOST_FACTOR_BITS - math.frexp(factor.max())[1])
        integers = np.maximum(np.rint(np.ldexp(factor, bits)), 1.0).astype(np.int64)
        own = xp.take(where.put(integers), label)
        unit = statistics.weight_unit * 2.0**-bits
        return replace(statistics, weights=statistics.weights * own, weight_unit=unit)

    def _set_out_of_bag(
        self, outputs: np.ndarray, mean: np.ndarray, known: np.ndarray, target: np.ndarray,
        weights: np.ndarray, statistics: Statistics,
    ) -> None:  # fmt: skip
        self.oob_decision_function_ = outputs
        found = np.argmax(mean[known], axis=1)
        truth, weights = target[known], weights[known] / self._class_factor[target[known]]
        if callable(self.oob_score):
            self.oob_score_ = float(self.oob_score(self.classes_[truth], self.classes_[found]))
        else:
            self.oob_score_ = float(np.average(found == truth, weights=weights))


class RandomForestRegressor(TreeRegressor, ForestEstimator):
    __doc__ = (
        """A random forest for a real target, grown where the arrays live.

    Parameters
    ----------"""
        + _FOREST
        + """
    criterion : {"squared_error", "poisson"}, default="squared_error"
        The impurity that splits lower: the variance, or the Poisson deviance mean of y ln(y / m),
        for y >= 0."""
        + PARAMETERS.format(splitter="best", max_features="1.0", positive="")
        + _BAGS
        + choosing.PARAMETERS.format(loss="")
        + _ATTRIBUTES.format(
            classes="",
            score="R^2",
            oob="oob_prediction_",
            capacity=choosing.ATTRIBUTES.format(loss="squared error"),
        )
    )

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        criterion: str = "squared_error",
        splitter: str = "best",
        max_depth: int | None = None,
        min_samples_split: int | float = 2,
        min_samples_leaf: int | float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_features: Any = 1.0,
        max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0,
        bootstrap: bool = True,
        max_samples: int | float | None = None,
        subspace: str = "node",
        oob_score: bool | Callable[..., float] = False,
        warm_start: bool = False,
        capacity: str | None = None,
        capacity_grid: Sequence[Any] | None = None,
        validation: str = "oob",
        validation_fraction: float = 0.2,
        validation_folds: int = 5,
        ccp_alpha: float = 0.0,
        monotonic_cst: Any = None,
        max_bins: int | None = 255,
        categorical_features: Any = "from_dtype",
        categorical_split: str = "subset",
        missing: str = "learn",
        device: str | None = None,
        n_jobs: int | None = None,
        callbacks: list[Any] | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.criterion = criterion
        self.splitter = splitter
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.max_features = max_features
        self.max_leaf_nodes = max_leaf_nodes
        self.min_impurity_decrease = min_impurity_decrease
        self.bootstrap = bootstrap
        self.max_samples = max_samples
        self.subspace = subspace
        self.oob_score = oob_score
        self.warm_start = warm_start
        self.capacity = capacity
        self.capacity_grid = capacity_grid
        self.validation = validation
        self.validation_fraction = validation_fraction
        self.validation_folds = validation_folds
        self.ccp_alpha = ccp_alpha
        self.monotonic_cst = monotonic_cst
        self.max_bins = max_bins
        self.categorical_features = categorical_features
        self.categorical_split = categorical_split
        self.missing = missing
        self.device = device
        self.n_jobs = n_jobs
        self.callbacks = callbacks
        self.random_state = random_state

    @property
    def _validation_loss(self) -> str:
        return MSE

    def _set_out_of_bag(
        self, outputs: np.ndarray, mean: np.ndarray, known: np.ndarray, target: np.ndarray,
        weights: np.ndarray, statistics: Statistics,
    ) -> None:  # fmt: skip
        self.oob_prediction_ = outputs[:, 0]
        truth = statistics.shift + statistics.unit * target[known]
        found, w = mean[known, 0], weights[known].astype(np.float64)
        if callable(self.oob_score):
            self.oob_score_ = float(self.oob_score(truth, found))
            return
        unit = magnitude(truth, NUMPY)
        truth, found = truth / unit, found / unit
        spread = np.sum(w * (truth - np.average(truth, weights=w)) ** 2)
        left = np.sum(w * (truth - found) ** 2)
        self.oob_score_ = float(1.0 - left / spread) if spread > 0.0 else math.nan
