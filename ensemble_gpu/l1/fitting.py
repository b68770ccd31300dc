"""From the parameters of an estimator to rounds in the L1 ball, and to its model."""

from __future__ import annotations

import math
import numbers
from functools import partial
from typing import Any

import numpy as np

from ensemble_gpu.arrays import cupy as gpu
from ensemble_gpu.arrays.devices import DEVICES, check_device
from ensemble_gpu.arrays.namespace import locate
from ensemble_gpu.boosting.problem import Problem
from ensemble_gpu.boosting.staged import StagedEstimator
from ensemble_gpu.data.categories import NO_CATEGORIES
from ensemble_gpu.data.parameters import check_choice, check_integer, check_jobs, check_real
from ensemble_gpu.data.rows import OrderedRows
from ensemble_gpu.data.sampling import (
    check_seed,
    count_items,
    draw_seed,
    items_of,
    stratified_folds,
)
from ensemble_gpu.estimators.categorical import CategoricalEstimator
from ensemble_gpu.estimators.reading import TrainingData, read, training_data
from ensemble_gpu.explaining.background import Background
from ensemble_gpu.kernels.edges import MAX_BINS_LIMIT
from ensemble_gpu.kernels.protocol import Engine
from ensemble_gpu.kernels.select import engine_for
from ensemble_gpu.l1.bounds import ALL, CLOSED, CORRECTIVE, STEPS, Bound, Curves, Settings
from ensemble_gpu.l1.dictionaries import Dictionary, StumpDictionary
from ensemble_gpu.l1.radius import Fold, cross_validated, grid_of
from ensemble_gpu.l1.rows import BallRows
from ensemble_gpu.l1.solver import Ball
from ensemble_gpu.l1.trees import TreeDictionary
from ensemble_gpu.l1.voters import PoolDictionary, RectangleDictionary
from ensemble_gpu.learners.generated import DerivedStumps, Generated
from ensemble_gpu.learners.pool import Pool
from ensemble_gpu.learners.protocol import LearnerRows
from ensemble_gpu.learners.rectangles import Rectangles, RectangleSearch
from ensemble_gpu.learners.stump import SplitConstraints, StumpTables
from ensemble_gpu.learners.tree import Size, Trees, splits_once
from ensemble_gpu.losses import (
    Exponential,
    Huber,
    Logistic,
    Loss,
    Multinomial,
    Squared,
    SquaredMargin,
    TruncatedSquared,
    consistent_radius,
)
from ensemble_gpu.model.additive import AdditiveModel

INITS = CONSTANT, ZERO = "constant", "zero"
CV, CONSISTENT = "cv", "consistent"
# Convex, with a second derivative, and at least 0: what the gap goes by.
SMOOTH = (Exponential, Logistic, Multinomial, SquaredMargin, TruncatedSquared, Squared, Huber)
LEARNERS = (Pool, Rectangles, Generated)
# A penalised sum has room for so many units before roundings of its outputs begin.
ROOM = 256.0


class L1Boosting(StagedEstimator, CategoricalEstimator):
    """Rounds in the ball; a subclass reads the target."""

    loss: str | Loss
    radius: Any
    alpha: float | None
    estimator: Any
    max_depth: int | None
    max_leaf_nodes: int | None
    n_estimators: int
    tol: float
    step: str
    init: str
    radii: Any
    n_folds: int
    max_bins: int | None
    random_state: Any

    # Names of losses, for messages.
    _losses: tuple[str, ...]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if isinstance(self.estimator, LEARNERS):
            own = self.estimator.__sklearn_tags__().input_tags
            tags.input_tags.allow_nan &= own.allow_nan
            tags.input_tags.sparse &= own.sparse
        return tags

    def _resolved_loss(self, n_classes: int) -> Loss:
        raise NotImplementedError

    def _target(self, rows: OrderedRows, loss: Loss) -> Any:
        raise NotImplementedError

    def _classes(self) -> np.ndarray | None:
        """The labels, where there are any."""
        return getattr(self, "classes_", None)

    def _unit(self, y: np.ndarray, weights: np.ndarray | None) -> float:
        """What radii of a grid are multiples of."""
        return 1.0

    def _check_parameters(self) -> None:
        check_real("radius", self.radius, 0.0, others=(CV, CONSISTENT, None))
        check_real("alpha", self.alpha, 0.0, others=(None,))
        if self.radius is not None and self.alpha is not None:
            raise ValueError(
                f"give radius or alpha; got radius={self.radius!r} and alpha={self.alpha!r}."
            )
        check_integer("n_estimators", self.n_estimators, 1)
        check_real("tol", self.tol, 0.0)
        check_choice("step", self.step, STEPS)
        if self.alpha is not None and self.step != CORRECTIVE:
            raise ValueError(f"step must be 'corrective' where alpha is given; got {self.step!r}.")
        check_choice("init", self.init, INITS)
        self._check_radii()
        check_integer("n_folds", self.n_folds, 2)
        check_integer("max_bins", self.max_bins, 2, MAX_BINS_LIMIT, others=(None,))
        for name, low in (("max_depth", 1), ("max_leaf_nodes", 2)):
            check_integer(name, getattr(self, name), low, others=(None,))
        check_choice("missing", self.missing, self._missing_options)
        check_choice("device", self.device, DEVICES)
        check_jobs(self.n_jobs)
        check_seed(self.random_state)
        self._check_estimator()
        self._check_loss(self._resolved_loss(2))
        check_device(self.device)

    def _check_radii(self) -> None:
        if isinstance(self.radii, numbers.Integral) and not isinstance(self.radii, bool):
            return check_integer("radii", self.radii, 1)
        if not isinstance(self.radii, list | tuple | np.ndarray) or not len(self.radii):
            raise TypeError(f"radii must be an integer or a list of radii; got {self.radii!r}.")
        for radius in self.radii:
            check_real("radii", radius, 0.0)
        return None

    def _check_estimator(self) -> None:
        given = self.estimator
        if given is None:
            return
        if not isinstance(given, LEARNERS):
            raise TypeError(
                "estimator must be None or one of Pool, Rectangles, HalfSpaces, Balls, Boxes of "
                f"ensemble_gpu.learners; got {given!r}."
            )
        given.check()
        if getattr(given, "redraw", "once") != "once":
            raise ValueError(
                f"redraw must be 'once' in the L1 ball, which is that of one set of functions; got "
                f"{given!r}."
            )
        if self.missing == "learn":
            raise ValueError(
                f"missing must be 'abstain' or 'error' for estimator {given!r}; got 'learn', which "
                "is for stumps."
            )
        if not splits_once(self.max_depth, self.max_leaf_nodes):
            raise ValueError(
                "max_depth and max_leaf_nodes are for the trees that are grown where estimator is "
                f"None; estimator is {given!r}."
            )

    def _check_loss(self, loss: Loss) -> None:
        if not isinstance(loss, SMOOTH):
            raise ValueError(
                f"loss must be one of {', '.join(repr(name) for name in self._losses)}, which are "
                f"convex, smooth and >= 0; got {loss.name!r}. At a kink the derivative jumps: the "
                "gap <g, f> - radius <g, h> need not close, and no rate 8 radius^2 M / (t + 2) "
                "holds, as M bounds the second derivative. 'truncated_squared' is a smooth relative"
                " of the hinge, 'huber' of the absolute loss; BoostingClassifier and "
                "BoostingRegressor take any loss."
            )

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit to X [n, p] and y [n], with weights >= 0.

        Returns
        -------
        self
        """
        with self._fitting():
            self._check_parameters()
            self._forget()
            with gpu.current(locate(X), "boosting"):
                reading = read(self, X, y, sample_weight)
                engine = engine_for(reading.where, self.n_jobs)
                data = training_data(reading.seen_by(engine), engine, self.max_bins)
                self._categories = NO_CATEGORIES
                self._fit(data, engine)
        return self

    def _fit(self, data: TrainingData, engine: Engine) -> None:
        classes = self._classes()
        loss = self._resolved_loss(2 if classes is None else len(classes))
        rows = data.ordered(keyed=self._wanted() == CV)
        problem = Problem(loss, self._target(rows, loss), rows.weights, np.zeros(1), 1.0)
        problem = self._started(problem, engine)
        dictionary = self._dictionary(data, problem)
        bound = self._bound(rows, problem, dictionary)
        ball = _ball(engine, problem, dictionary, bound, self._scale_of(problem))
        settings = Settings(int(self.n_estimators), float(self.tol), self.step)
        curves = ball.run(bound, settings)
        self._keep(ball, bound, curves)
        if isinstance(self.model_, AdditiveModel):
            assert isinstance(dictionary, StumpDictionary)
            matrix = dictionary.matrix
            self.background_ = Background.of(self.model_, matrix, rows.weights, engine)
        self.link_, self.engine_ = loss.link_name, engine.name
        self.certified_ = dictionary.exact

    def _wanted(self) -> Any:
        """The radius that is asked for; None: a penalty."""
        return CV if self.radius is None and self.alpha is None else self.radius

    def _started(self, problem: Problem, engine: Engine) -> Problem:
        """With the constants that the model begins with, found on the host."""
        host, y = engine.where.host, engine.where.host(problem.y)
        weights = None if problem.weights is None else host(problem.weights)
        n_outputs = _n_outputs(problem, self._classes())
        start = np.zeros(n_outputs)
        if self.init == CONSTANT and y.ndim == 1:
            start = problem.loss.best_constant(y, weights)
        elif self.init == CONSTANT:
            start = np.concatenate([problem.loss.best_constant(own, weights) for own in y])
        return Problem(problem.loss, problem.y, problem.weights, start, 1.0)

    def _scale_of(self, problem: Problem) -> float:
        """The size of outputs that are not bounded by a radius."""
        return 1.0

    def _dictionary(self, data: TrainingData, problem: Problem) -> Dictionary:
        engine, most = data.engine, self.max_bins or MAX_BINS_LIMIT
        if self.estimator is not None:
            return self._given(data, len(problem.start))
        if splits_once(self.max_depth, self.max_leaf_nodes):
            binned = data.binned(most, n_ranges=1)
            return StumpDictionary(
                engine, StumpTables(binned.matrix), learn=self.missing == "learn"
            )
        binned = data.binned(most, n_ranges=None)
        p = self.n_features_in_
        constraints = SplitConstraints(
            True, False, np.zeros(p, dtype=np.int64), p, 0, np.zeros(p, dtype=bool)
        )
        size = Size(self.max_depth, self.max_leaf_nodes, 1)
        trees = Trees(engine, binned.matrix, size, constraints, NO_CATEGORIES)
        return TreeDictionary(engine, trees, problem)

    def _given(self, data: TrainingData, n_outputs: int) -> Dictionary:
        rows, most = data.taking_part(), self.max_bins or MAX_BINS_LIMIT
        learner = self.estimator.gradient_learner(
            LearnerRows(
                data.engine, rows.X, rows.target, rows.weights, data.where, n_outputs,
                int(self.n_estimators), most, draw_seed(self.random_state), self._classes(),
            )
        )  # fmt: skip
        if isinstance(learner, DerivedStumps):
            return StumpDictionary(data.engine, learner, learn=False)
        if isinstance(self.estimator, Pool):
            return PoolDictionary(learner, learner.finder)
        assert isinstance(learner.finder, RectangleSearch)
        return RectangleDictionary(learner, learner.finder)

    def _bound(self, rows: OrderedRows, problem: Problem, dictionary: Dictionary) -> Bound:
        """The radius or penalty, chosen where that was asked for."""
        if self.alpha is not None:
            return Bound.penalty(float(self.alpha))
        wanted, host = self._wanted(), rows.engine.where.host
        if isinstance(wanted, numbers.Real):
            return Bound.ball(float(wanted))
        weights = None if rows.weights is None else host(rows.weights)
        unit = self._unit(host(rows.target), weights)
        if wanted == CONSISTENT:
            items = count_items(rows.n_rows, weights)
            return Bound.ball(unit * consistent_radius(problem.loss, max(items, 3)))
        grid = grid_of(self.radii, unit)
        scale = _power(float(grid.max()) + float(np.abs(problem.start).max()))
        folds = self._folds(rows, problem, dictionary, weights, scale)
        settings = Settings(int(self.n_estimators), float(self.tol), self.step)
        self.cv_ = cross_validated(folds, grid, settings)
        return Bound.ball(self.cv_.best)

    def _folds(
        self, rows: OrderedRows, problem: Problem, dictionary: Dictionary,
        weights: np.ndarray | None, scale: float,
    ) -> list[Fold]:  # fmt: skip
        engine, where, n = rows.engine, rows.engine.where, rows.n_rows
        assert rows.keys is not None
        items, classes = items_of(rows.keys, weights), self._classes()
        index = np.zeros(n, dtype=np.int64) if classes is None else where.host(rows.target)
        n_classes = 1 if classes is None else len(classes)
        counts = np.bincount(index[items.rows], minlength=n_classes)
        n_folds = min(int(self.n_folds), int(counts.min()))
        if n_folds < 2:
            raise ValueError(
                f"radius='cv' needs two rows at least{'' if classes is None else ' of each label'}"
                f"; got {counts.min()} (n_samples={n}). Give a radius, or 'consistent'."
            )
        seed = draw_seed(self.random_state)
        folds = []
        for held in stratified_folds(index, items, n_classes, n_folds, seed):
            count = np.bincount(held, minlength=n).astype(np.float64)
            whole = np.ones(n) if weights is None else weights
            apart = count if items.whole or weights is None else whole * (count > 0)
            part = Problem(problem.loss, problem.y, where.put(whole - apart), np.zeros(1), 1.0)
            part = self._started(part, engine)
            ball = Ball(BallRows(engine, part), dictionary, scale)
            held_out = partial(ball.rows.held_out_loss, weights=where.put(apart))
            folds.append(Fold(ball, held_out, float(apart.sum())))
        return folds

    def _keep(self, ball: Ball, bound: Bound, curves: Curves) -> None:
        worth = np.array([ball.worth.get(key, 0.0) for key in ball.keys])
        outcome = ball.dictionary.outcome(
            ball.keys, ball.coefficients, worth, ball.rows.problem.start
        )
        self.model_ = outcome.model
        if outcome.importances is not None:
            self.feature_importances_ = outcome.importances
        self.l1_norm_, self.penalty_ = ball.norm, ball.penalty
        self.radius_ = self.l1_norm_ if bound.penalised else bound.size
        self.loss_, self.gap_ = np.array(curves.losses), np.array(curves.gaps)
        self.coefficients_ = ball.coefficients.copy()
        self.n_iter_, self.n_estimators_ = len(curves.gaps) - 1, len(ball.keys)
        self.converged_ = curves.reason == CLOSED
        self.stop_reason_ = {
            CLOSED: f"the gap is at most tol = {self.tol:g} of the loss",
            ALL: f"all {self.n_estimators} rounds were run",
        }.get(curves.reason, "nothing but rounding lowers the loss any further")


def _power(x: float) -> float:
    """The power of two from x on."""
    return math.ldexp(1.0, math.frexp(x)[1])


def _n_outputs(problem: Problem, classes: np.ndarray | None) -> int:
    if problem.y.ndim == 2:
        return int(problem.y.shape[0])
    return 1 if classes is None or len(classes) == 2 else len(classes)


def _ball(
    engine: Engine, problem: Problem, dictionary: Dictionary, bound: Bound, unit: float
) -> Ball:
    """With coefficients in steps that suit the size of the outputs."""
    size = ROOM * unit if bound.penalised else bound.size
    scale = _power(size + float(np.abs(problem.start).max()))
    return Ball(BallRows(engine, problem), dictionary, scale)
