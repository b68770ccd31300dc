"""What random forests do in `fit`: bags, trees side by side, predictions out of bag."""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from typing import Any

import numpy as np

from ensemble_gpu.arrays.namespace import Where, to_numpy
from ensemble_gpu.bagging.bagged_trees import (
    BaggedRows,
    bags_of,
    checksum,
    kept_rows,
    out_of_bag,
    repeats_of,
    side_by_side,
)
from ensemble_gpu.bagging.capacity import CapacityChoice, check_capacity, grid_of
from ensemble_gpu.bagging.growing import Growing
from ensemble_gpu.bagging.out_of_bag import check_some_out, forget_out_of_bag
from ensemble_gpu.bagging.shared_trees import shared_out
from ensemble_gpu.bagging.validation import FOLDS, OUT_OF_BAG, Validation, kinds_of
from ensemble_gpu.data.bags import Bags
from ensemble_gpu.data.parameters import (
    check_amount,
    check_choice,
    check_flag,
    check_flag_or_metric,
    check_integer,
)
from ensemble_gpu.estimators.checkpoint import checkpoints_of
from ensemble_gpu.estimators.contents import contents_of
from ensemble_gpu.estimators.progress import check_callbacks
from ensemble_gpu.estimators.resuming import Origin, Resumable, origin_of, read_checkpoint
from ensemble_gpu.estimators.shape import Shape
from ensemble_gpu.model.forest import Forest
from ensemble_gpu.saving.files import load
from ensemble_gpu.trees.fitting import TreeData, TreeEstimator
from ensemble_gpu.trees.statistics import Statistics

SUBSPACES = ("node", "tree")

# What trees of one forest have in common, and what those that choose a capacity have besides.
_SHARED = ("capacity", "voting")
_JUDGED = ("validation", "validation_fraction", "validation_folds", "validation_loss")


class ForestEstimator(TreeEstimator):
    """`_grow` of a forest."""

    n_estimators: int
    bootstrap: bool
    max_samples: int | float | None
    oob_score: bool | Callable[..., float]
    warm_start: bool
    subspace: str
    capacity: str | None
    capacity_grid: Any
    validation: str
    validation_fraction: float
    validation_folds: int
    # of each tree: how many draws (None: no bootstrap) from which rows (their checksum)
    _drawn: list[tuple[int | None, int]]
    _seed: int
    _grown_for: Shape
    _grown_with: dict[str, Any]
    capacity_grid_: tuple[Any, ...]
    capacities_: tuple[Any, ...]
    validation_curves_: np.ndarray
    callbacks: list[Any] | None
    # The checkpoint that a fit goes on from.
    _saved: Resumable | None = None

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, resume: Any = None) -> Any:
        """Grow on X [n, p] and y [n].

        Parameters
        ----------
        X : array of any array-API library, frame, matrix of scipy.sparse or list; NaN and masked
            cells are missing. Or `Batches`, which have y and weights
        y : for a classifier labels (on a device integers or bool, on the host anything hashable),
            for a regressor numbers
        sample_weight : weights >= 0; a row of weight zero is as if absent
        resume : path of a `Checkpoint`, to whose trees those that are missing are added; one that
            does not exist begins anew

        Returns
        -------
        self
        """
        saved = None if resume is None else read_checkpoint(resume)
        if saved is None:
            return super().fit(X, y, sample_weight)
        saved.origin.check_parameters(self, saved.path)
        self._saved = saved
        try:
            return super().fit(X, y, sample_weight)
        finally:
            del self._saved

    def _why_no_batches(self) -> str | None:
        """Thresholds lie between the values of a node, codes of other rows do not say on which
        side.
        """
        for name in ("oob_score", "capacity"):
            if getattr(self, name):
                value = getattr(self, name)
                return f"{name}={value!r} evaluates trees on values of X, not on bins alone"
        return None

    def _draws_rows(self) -> bool:
        """Numbers are drawn by what is made of them for sums."""
        return self.bootstrap and hasattr(self, "classes_")

    @property
    def _validation_loss(self) -> str:
        """What is added up over the rows that judge capacities."""
        raise NotImplementedError

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
        check_capacity(self)
        check_callbacks(self.callbacks)

    def _forget(self) -> None:
        if not self.warm_start:
            super()._forget()

    def _grow(self, prepared: TreeData) -> None:
        if self.subspace == "tree":
            k, p = prepared.parameters.n_features, self.n_features_in_
            parameters = replace(prepared.parameters, n_features=p, subspace=k)
            prepared = replace(prepared, parameters=parameters)
        origin = None
        if checkpoints_of(self.callbacks) or self._saved is not None:
            origin = self._origin(prepared)
        old = self._earlier() if self._saved is None else self._kept(self._saved, origin)
        if old is None:
            self._seed, self._grown_for, self._drawn = prepared.parameters.seed, Shape.of(self), []
            self._grown_with = self._shared()
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
            rows = BaggedRows(replace(prepared, statistics=statistics), bags, self._reweigh)
            choice = None if self.capacity is None else self._choice(prepared, rows)
            drawn = (None, 0) if bags is None else (bags.n_draws, checksum(bags))
            growing = Growing(self, old, origin, drawn)
            grow: Any = rows.tree if choice is None else choice.tree
            if choice is not None:
                self.capacity_grid_ = choice.grid.values
            # closed, and its threads with it, also where an interrupt comes between two trees
            trees: Any = side_by_side(grow, more, prepared.engine)
            if prepared.replica is not None:
                trees = shared_out(grow, more, prepared.engine, prepared.replica.team)
            with closing(trees):
                growing(trees, len(more))
        elif self._saved is None:
            warnings.warn(
                f"warm_start=True and n_estimators={self.n_estimators} as before: no tree was "
                "added.",
                UserWarning,
                stacklevel=4,
            )
        forget_out_of_bag(self)
        if self.oob_score:
            assert bags is not None
            self._keep_out_of_bag(prepared, bags)
        if more:
            growing.end()

    def _choice(self, prepared: TreeData, rows: BaggedRows) -> CapacityChoice:
        """How the trees choose their capacity."""
        bags = rows.bags
        X, target = kept_rows(prepared), prepared.statistics.target
        if self.validation == FOLDS and self.validation_folds > X.shape[0]:
            raise ValueError(
                f"validation_folds must be at most the number of rows that have weight; got "
                f"{self.validation_folds} with n_samples={X.shape[0]}."
            )
        if bags is None:
            repeats, factor = repeats_of(prepared, self._weighted_classes)
        else:
            repeats, factor = bags.repeats, bags.factor
        validation = Validation(
            self.validation, float(self.validation_fraction), int(self.validation_folds),
            self._seed, kinds_of(X, target, factor), repeats,
        )  # fmt: skip
        assert self.capacity is not None
        # a warm start goes on with the grid of the last fit, which may be from other rows
        given = getattr(self, "capacity_grid_", self.capacity_grid)
        grid = grid_of(self.capacity, given, prepared)
        return CapacityChoice(rows, X, validation, grid, self._validation_loss)

    def _contained(self) -> tuple[str, ...]:
        """Fewer trees are the first of more; what else is known of trees is of all of them."""
        watched = self.warm_start or self.callbacks
        alone = watched or self.oob_score or self.capacity is not None
        return () if alone else ("n_estimators",)

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
        for name, value in self._shared().items():
            if value != self._grown_with[name]:
                raise ValueError(
                    f"warm_start=True adds trees to those of the last fit, whose {name} was "
                    f"{self._grown_with[name]!r} and is {value!r}. Use warm_start=False to fit "
                    "anew."
                )
        if len(old) > self.n_estimators:
            raise ValueError(
                f"n_estimators must be at least {len(old)}, the trees of the last fit, with "
                f"warm_start=True; got {self.n_estimators}."
            )
        return old

    def _resolved(self) -> dict[str, Any]:
        return {}

    def _origin(self, prepared: TreeData) -> Origin:
        """What a checkpoint says of this fit. The seed is kept with the trees."""
        data = prepared.data
        contents = contents_of(data.rows, data.keep, data.where, prepared.matrix, prepared.engine)
        return origin_of(self, contents, None)

    def _kept(self, saved: Resumable, origin: Origin | None) -> Forest:
        """The trees of a checkpoint, and what goes with them."""
        assert origin is not None
        saved.origin.check_data(origin, getattr(self, "feature_names_in_", None), saved.path)
        other = load(saved.path)
        n = min(self.n_estimators, len(other.model_))
        for name in ("_seed", "_grown_for", "_grown_with"):
            setattr(self, name, getattr(other, name))
        self._drawn, self.model_, self.n_estimators_ = other._drawn[:n], other.model_.first(n), n
        if self.capacity is not None:
            self.capacity_grid_, self.capacities_ = other.capacity_grid_, other.capacities_[:n]
            self.validation_curves_ = other.validation_curves_[:n]
        return self.model_

    def _shared(self) -> dict[str, Any]:
        """Parameters that all trees of a forest have in common, whichever fit has grown them."""
        names = _SHARED if self.capacity is None else (*_SHARED, *_JUDGED)
        grid = None if self.capacity_grid is None else tuple(self.capacity_grid)
        own = {name: getattr(self, name) for name in names if hasattr(self, name)}
        return own | {"capacity_grid": grid}

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
        if self.capacity is not None and self.validation == OUT_OF_BAG:
            warnings.warn(
                "oob_score_ is optimistic: with validation='oob' the rows that it is made of have "
                "chosen the capacities of the trees. With 'holdout' or 'cv' they have not.",
                UserWarning,
                stacklevel=5,
            )
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
                stacklevel=5,
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
