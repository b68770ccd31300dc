"""Random forests: trees on bootstrap samples, a few features at each node, averaged."""

from __future__ import annotations

import math
import numbers
import warnings
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np

from ensemble_gpu.arrays.means import magnitude
from ensemble_gpu.arrays.namespace import NUMPY, Where, to_numpy
from ensemble_gpu.bagging.bagged_trees import bags_of, checksum, grow_forest, out_of_bag
from ensemble_gpu.bagging.out_of_bag import check_some_out, forget_out_of_bag
from ensemble_gpu.data.bags import Bags
from ensemble_gpu.data.parameters import (
    check_amount,
    check_choice,
    check_flag,
    check_flag_or_metric,
    check_integer,
)
from ensemble_gpu.estimators.shape import Shape
from ensemble_gpu.kernels.protocol import Engine
from ensemble_gpu.model.forest import Forest
from ensemble_gpu.trees.fitting import PARAMETERS, TreeData, TreeEstimator
from ensemble_gpu.trees.prediction import TreeClassifier, TreeRegressor
from ensemble_gpu.trees.statistics import WEIGHT_BITS, Statistics, class_statistics

# Class weights of a bag are multiples of 2^-FACTOR_BITS, and below 2^MOST_FACTOR_BITS of them:
# their sums, weights times bootstrap counts, stay below 2^62.
FACTOR_BITS, MOST_FACTOR_BITS = 16, 27

SUBSPACES = ("node", "tree")
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
    warm_start : bool, default=False
        Keep the trees of the last fit and add to them. Features, their names and categories, and
        classes must be those of the last fit."""

_ATTRIBUTES = """

    Attributes
    ----------
    n_features_in_, feature_names_in_ : as in scikit-learn{classes}
    model_ : Forest
    n_estimators_ : int, trees in the model
    feature_importances_ : ndarray, share of each feature in the fall of the impurity
    oob_score_ : float, {score} of the predictions out of bag (only with oob_score)
    {oob} : ndarray, predictions out of bag, NaN where every tree has seen the row
    engine_ : str, the engine that ran: "cpu", "cuda" or "reference"
    """


class _RandomForest(TreeEstimator):
    """`_grow` of a forest."""

    n_estimators: int
    bootstrap: bool
    max_samples: int | float | None
    oob_score: bool | Callable[..., float]
    warm_start: bool
    subspace: str
    # of each tree: how many draws (None: no bootstrap) from which rows (their checksum)
    _drawn: list[tuple[int | None, int]]
    _seed: int
    _grown_for: Shape

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_integer("n_estimators", self.n_estimators, 1)
        check_choice("subspace", self.subspace, SUBSPACES)
        check_flag("bootstrap", self.bootstrap)
        check_flag("warm_start", self.warm_start)
        check_flag_or_metric("oob_score", self.oob_score)
        if self.oob_score and not self.bootstrap:
            raise ValueError("oob_score needs bootstrap=True; bootstrap is False.")
        check_amount("max_samples", self.max_samples, 1, (None,))
        if self.max_samples is not None and not self.bootstrap:
            raise ValueError(
                f"max_samples={self.max_samples!r} is for bootstrap=True; bootstrap is False."
            )

    def _forget(self) -> None:
        if not self.warm_start:
            super()._forget()

    def _grow(self, prepared: TreeData) -> None:
        if self.subspace == "tree":
            k, p = prepared.parameters.n_features, self.n_features_in_
            parameters = replace(prepared.parameters, n_features=p, subspace=k)
            prepared = replace(prepared, parameters=parameters)
        old = self._earlier()
        if old is None:
            self._seed, self._grown_for, self._drawn = prepared.parameters.seed, Shape.of(self), []
        else:  # equal categories may have had other numbers
            self._categories = self._grown_for.categories
            parameters = replace(prepared.parameters, seed=self._seed)
            binned = replace(prepared.binned, categories=self._categories)
            prepared = replace(prepared, binned=binned, parameters=parameters)
        more = range(len(self._drawn), self.n_estimators)
        bags, statistics = None, prepared.statistics
        if self.bootstrap and (more or self.oob_score):
            bags, statistics = bags_of(prepared, self._weighted_classes, self._draws)
        if more:
            grown_from = replace(prepared, statistics=statistics)
            # closed, and its threads with it, also where an interrupt comes between two trees
            with closing(grow_forest(grown_from, bags, more, self._reweigh)) as trees:
                voting = map(self._voting, trees)
                self.model_ = Forest.join(chain([old] if old else [], voting), len(more))
            self.n_estimators_ = len(self.model_)
            drawn = (None, 0) if bags is None else (bags.n_draws, checksum(bags))
            self._drawn = self._drawn + [drawn] * len(more)
        else:
            warnings.warn(
                f"warm_start=True and n_estimators={self.n_estimators} as before: no tree was "
                "added.",
                UserWarning,
                stacklevel=3,
            )
        forget_out_of_bag(self)
        if self.oob_score:
            assert bags is not None
            self._keep_out_of_bag(prepared, bags)

    def _contained(self) -> tuple[str, ...]:
        """Fewer trees are the first of more; what is known out of bag is of all of them."""
        return () if self.warm_start or self.oob_score else ("n_estimators",)

    def _fit_all(self, name: str, values: list[Any], X: Any, y: Any, **weights: Any) -> list[Any]:
        self._check_values(name, values)
        self.n_estimators = max(values)
        self.fit(X, y, **weights)
        return [
            self._with(n_estimators=n, n_estimators_=n, model_=self.model_.first(n))
            for n in values
        ]  # fmt: skip

    @property
    def _weighted_classes(self) -> bool:
        """Whether the weights of rows hold those of their classes."""
        return bool((getattr(self, "_class_factor", np.ones(1)) != 1.0).any())

    def _earlier(self) -> Forest | None:
        """The trees of the last fit, to be added to."""
        if not (self.warm_start and hasattr(self, "model_")):
            return None
        old = self.model_
        self._grown_for.check(Shape.of(self))
        if len(old) > self.n_estimators:
            raise ValueError(
                f"n_estimators must be at least {len(old)}, the trees of the last fit, with "
                f"warm_start=True; got {self.n_estimators}."
            )
        return old

    def _draws(self, n_rows: int) -> int:
        m = self.max_samples
        if m is None:
            return n_rows
        if isinstance(m, numbers.Integral):
            if int(m) > n_rows:
                raise ValueError(
                    f"max_samples must be at most the number of rows, {n_rows}; got {m!r}."
                )
            return int(m)
        return max(1, round(m * n_rows))

    def _reweigh(self, statistics: Statistics, counts: Any | None, where: Where) -> Statistics:
        """What a tree adds up, given how often each row was drawn for it."""
        return statistics

    def _voting(self, tree: Forest) -> Forest:
        """A tree as it is in the model."""
        return tree

    def _keep_out_of_bag(self, prepared: TreeData, bags: Bags) -> None:
        """Mean outputs [rows] of the trees that have not seen the row; then their score."""
        where, rows = prepared.engine.where, checksum(bags)
        if any(n_draws is not None and other != rows for n_draws, other in self._drawn):
            raise ValueError(
                "oob_score with warm_start=True needs the rows and weights of the last fit; X, y "
                "or sample_weight has changed. Use oob_score=False, or warm_start=False."
            )
        every = [None if n is None else replace(bags, n_draws=n) for n, _ in self._drawn]
        total, times = out_of_bag(prepared, every, self.model_)
        check_some_out(times > 0)
        if (times == 0).any():
            warnings.warn(
                "Some rows have no prediction out of bag: every tree has seen them. More trees "
                "would help.",
                UserWarning,
                stacklevel=4,
            )
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = total / times[:, None]
        outputs = np.full((prepared.X.shape[0], mean.shape[1]), np.nan)
        order = prepared.binned.order
        outputs[slice(None) if order is None else to_numpy(order)] = mean
        statistics = prepared.statistics
        target, weights = where.host(statistics.target), where.host(statistics.weights)
        self._set_out_of_bag(outputs, mean, times > 0, target, weights, statistics)

    def _set_out_of_bag(
        self, outputs: np.ndarray, mean: np.ndarray, known: np.ndarray, target: np.ndarray,
        weights: np.ndarray, statistics: Statistics,
    ) -> None:  # fmt: skip
        raise NotImplementedError

    def decision_path(self, X: Any) -> Any:
        """(sparse indicator [n, nodes], where the nodes of each tree begin), on the host."""
        X, _, _, _ = self._inputs(X)
        return self.model_.decision_path(X)


class RandomForestClassifier(TreeClassifier, _RandomForest):
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
        + _ATTRIBUTES.format(
            classes=", classes_, n_classes_", score="accuracy", oob="oob_decision_function_"
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
        self.random_state = random_state

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("voting", self.voting, VOTING)

    def _earlier(self) -> Forest | None:
        old = super()._earlier()
        if old is None:
            self._voted = self.voting
        elif self.voting != self._voted:
            raise ValueError(
                f"warm_start=True adds trees to those of the last fit, whose voting was "
                f"{self._voted!r} and is {self.voting!r}. Use warm_start=False to fit anew."
            )
        return old

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


class RandomForestRegressor(TreeRegressor, _RandomForest):
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
        + _ATTRIBUTES.format(classes="", score="R^2", oob="oob_prediction_")
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
        ccp_alpha: float = 0.0,
        monotonic_cst: Any = None,
        max_bins: int | None = 255,
        categorical_features: Any = "from_dtype",
        categorical_split: str = "subset",
        missing: str = "learn",
        device: str | None = None,
        n_jobs: int | None = None,
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
        self.ccp_alpha = ccp_alpha
        self.monotonic_cst = monotonic_cst
        self.max_bins = max_bins
        self.categorical_features = categorical_features
        self.categorical_split = categorical_split
        self.missing = missing
        self.device = device
        self.n_jobs = n_jobs
        self.random_state = random_state

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
