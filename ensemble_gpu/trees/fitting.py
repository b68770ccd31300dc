"""What every estimator of trees does in `fit`: parameters, categories, bins, statistics."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ensemble_gpu.arrays import cupy as gpu
from ensemble_gpu.arrays.devices import DEVICES, check_device
from ensemble_gpu.arrays.namespace import Where, locate
from ensemble_gpu.arrays.streamed import is_streamed
from ensemble_gpu.data.categories import Categories
from ensemble_gpu.data.matrix import BinnedMatrix
from ensemble_gpu.data.parameters import (
    check_amount,
    check_choice,
    check_integer,
    check_jobs,
    check_max_features,
    check_not_negative,
    count_features,
)
from ensemble_gpu.data.rows import Binned
from ensemble_gpu.data.sampling import check_seed, draw_seed
from ensemble_gpu.estimators.categorical import CATEGORICAL_SPLITS, CategoricalEstimator
from ensemble_gpu.estimators.reading import TrainingData, read, training_data
from ensemble_gpu.kernels.edges import MAX_BINS_LIMIT
from ensemble_gpu.kernels.protocol import Engine
from ensemble_gpu.kernels.select import engine_for
from ensemble_gpu.kernels.teams.engine import TeamEngine
from ensemble_gpu.kernels.tree_protocol import SplitRule
from ensemble_gpu.model.forest import Forest
from ensemble_gpu.trees.build import TreeParameters
from ensemble_gpu.trees.replicas import Replica, replicated
from ensemble_gpu.trees.statistics import Statistics

MISSING = ("learn", "error")
SPLITTERS = ("best", "random")

PARAMETERS = """
    splitter : {{"best", "random"}}, default="{splitter}"
        "random" draws one threshold for each feature that is tried (extremely randomised trees),
        "best" tries all of them.
    max_depth : int or None, default=None
        None: until leaves are pure or too small.
    min_samples_split, min_samples_leaf : int, or float as a share of the rows, default=2, 1
        Rows that a node needs to be split, and that each child must keep.
    min_weight_fraction_leaf : float in [0, 0.5], default=0.0
        Share of the weight of all rows of the tree that each child must keep.
    max_features : int, float, "sqrt", "log2" or None, default={max_features}
        Features drawn for each node (a share, where a float); None: all. If none of them can split
        the node, more are drawn.
    max_leaf_nodes : int or None, default=None
        Grow the leaf that lowers the impurity most, until there are this many.
    min_impurity_decrease : float, default=0.0
        Least fall of the impurity, weighted by the node's share of the weight, for a split.
    ccp_alpha : float, default=0.0
        Cost of a leaf in minimal cost-complexity pruning.
    monotonic_cst : array of -1, 0, +1, dict of names, or None
        +1: the prediction{positive} may only rise with the feature; -1: only fall.
    max_bins : int or None, default=255
        Thresholds come from at most this many bins a feature (2 to 65,534); a feature with fewer
        distinct values is exact. None: exact for every feature (CART); on CUDA up to 65,535
        distinct values.
    categorical_features : "from_dtype", array of indices, names or bool, or None
        Which features are categories: "from_dtype" those that a pandas or polars frame says are.
        Unknown categories are treated as missing.
    categorical_split : {{"subset", "single"}}, default="subset"
        A set of categories goes left (the first in order of their mean response: no set is better
        for two classes or a regression; with more classes the best of one order a class), or a
        single one.
    missing : {{"learn", "error"}}, default="learn"
        NaN goes to the side that scores better; "error" refuses NaN.
    device : {{None, "cpu", "cuda", "auto"}}, default=None
        Where to train; None follows the input.
    n_jobs : int or None, default=None
        Threads of the CPU engine; None and -1 mean all.
    random_state : int, RandomState instance or None"""


@dataclass(frozen=True)
class TreeData:
    """Binned rows, and what is added up over them.

    `data` are all rows, those that take no part as well. In a team they are the worker's own, while
    the binned rows are everybody's, and `replica` says where the worker's are among them.
    """

    binned: Binned
    data: TrainingData
    statistics: Statistics
    parameters: TreeParameters
    replica: Replica | None = None

    @property
    def X(self) -> Any:
        """All rows, encoded, as the engine takes them."""
        return self.data.rows.X

    @property
    def engine(self) -> Engine:
        return self.binned.engine

    @property
    def matrix(self) -> BinnedMatrix:
        return self.binned.matrix

    @property
    def categories(self) -> Categories:
        return self.binned.categories


class TreeEstimator(CategoricalEstimator):
    """`fit` of trees. A subclass reads y, and has the statistics that are added up."""

    criterion: str
    splitter: str
    max_depth: int | None
    min_samples_split: int | float
    min_samples_leaf: int | float
    min_weight_fraction_leaf: float
    max_features: Any
    max_leaf_nodes: int | None
    min_impurity_decrease: float
    ccp_alpha: float
    monotonic_cst: Any
    max_bins: int | None
    categorical_features: Any
    categorical_split: str
    random_state: Any
    model_: Forest

    _criteria: Mapping[str, int]
    _missing_options = MISSING

    def _read_target(self, y: Any, n_rows: int, w: Any, where: Where) -> tuple[Any, Any]:
        raise NotImplementedError

    def _statistics(self, target: Any, weights: Any, engine: Engine) -> Statistics:
        raise NotImplementedError

    def _grow(self, prepared: TreeData) -> None:
        """Grow, and set the fitted attributes."""
        raise NotImplementedError

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Grow on X [n, p] and y [n].

        Parameters
        ----------
        X : array of any array-API library, frame, matrix of scipy.sparse or list; NaN and masked
            cells are missing. Or `Batches`, which have y and weights
        y : for a classifier labels (on a device integers or bool, on the host anything hashable),
            for a regressor numbers
        sample_weight : weights >= 0; a row of weight zero is as if absent

        Returns
        -------
        self
        """
        with self._fitting():
            self._check_parameters()
            self._forget()
            with gpu.current(locate(X), "growing trees"):
                prepared = self._prepare(X, y, sample_weight)
                self.engine_ = prepared.engine.name
                self._grow(prepared)
        return self

    def _why_no_batches(self) -> str | None:
        return None

    def _draws_rows(self) -> bool:
        """Whether rows are drawn by keys of their features and the target that was read."""
        return False

    def _check_parameters(self) -> None:
        check_choice("criterion", self.criterion, tuple(self._criteria))
        check_choice("splitter", self.splitter, SPLITTERS)
        check_choice("missing", self.missing, MISSING)
        check_choice("categorical_split", self.categorical_split, CATEGORICAL_SPLITS)
        check_choice("device", self.device, DEVICES)
        for name, low in (("max_depth", 1), ("max_leaf_nodes", 2)):
            check_integer(name, getattr(self, name), low, others=(None,))
        check_amount("min_samples_split", self.min_samples_split, 2)
        check_amount("min_samples_leaf", self.min_samples_leaf, 1)
        check_max_features(self.max_features)
        check_not_negative("min_weight_fraction_leaf", self.min_weight_fraction_leaf, 0.5)
        check_not_negative("min_impurity_decrease", self.min_impurity_decrease)
        check_not_negative("ccp_alpha", self.ccp_alpha)
        check_integer("max_bins", self.max_bins, 2, MAX_BINS_LIMIT, others=(None,))
        check_jobs(self.n_jobs)
        check_seed(self.random_state)
        check_device(self.device)

    def _prepare(self, X: Any, y: Any, w: Any) -> TreeData:
        reading = read(self, X, y, w)
        engine = engine_for(reading.where, self.n_jobs)
        data = training_data(reading.seen_by(engine), engine, self.max_bins)
        self._categories = data.categories
        if is_streamed(data.rows.X) and self._draws_rows():
            data.rows.X.want_keys()
        binned, replica = data.binned(self.max_bins, n_ranges=None), None
        if isinstance(engine, TeamEngine):
            engine = engine.own
            binned, replica = replicated(binned, data.rows, engine)
        statistics = self._statistics(binned.target, binned.weights, engine)
        parameters = self._parameters(binned.matrix, binned.categories, statistics)
        return TreeData(binned, data, statistics, parameters, replica)

    def _parameters(
        self, matrix: BinnedMatrix, categories: Categories, statistics: Statistics
    ) -> TreeParameters:
        p, n = self.n_features_in_, matrix.codes.n_rows
        signs = self._signs()
        if signs.any() and statistics.n_classes > 2:
            raise ValueError(
                f"monotonic_cst is for two classes; y holds {statistics.n_classes} classes, whose "
                "probabilities cannot all be monotone."
            )
        rule = SplitRule(
            self._criteria[self.criterion],
            _rows(self.min_samples_leaf, n),
            signs,
            categories.mask(p),
            self.categorical_split == "single",
            self.splitter == "random",
        )
        return TreeParameters(
            rule,
            self.max_depth,
            self.max_leaf_nodes,
            max(2, _rows(self.min_samples_split, n)),
            float(self.min_impurity_decrease),
            count_features(self.max_features, p),
            float(self.ccp_alpha),
            draw_seed(self.random_state),
            float(self.min_weight_fraction_leaf),
        )

    def apply(self, X: Any) -> Any:
        """The leaf of every row: int64 [n] for a tree, [n, trees] for a forest."""
        X, home, _, _ = self._inputs(X)
        return home.hand_over(self.model_.apply(X))

    @property
    def feature_importances_(self) -> np.ndarray:
        """Each feature's share in the fall of the impurity."""
        check_is_fitted(self, "model_")
        return self.model_.importances()


def _rows(value: int | float, n: int) -> int:
    return int(value) if isinstance(value, numbers.Integral) else math.ceil(value * n)
