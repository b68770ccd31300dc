"""From an estimator's parameters to what the loop runs on.

Boosting is functional gradient descent with stumps or trees. R(f) = mean of l(y_i, f(x_i)) is
lowered round by round: a learner h_t fits -dl/df at the rows (learners/stump.py, trees.py), a
step rule says how far to go along it (boosting/steps.py), f <- f + nu alpha_t h_t. Which strategy
follows the rows depends on the loss:

exponential  rescale, where stump and step are those of an AdaBoost
squared      gram: the cost of a round does not depend on the number of rows
any other    rebuild: new gradients each round (also the two above, with subsampling or trees)
             descend: the same for learners without leaves, any regressor or classifier

A single split of a categorical feature is a tree of depth 1: tables of stumps hold thresholds. For
gradients such trees are grown (learners/tree.py); AdaBoost's weights are rescaled as ever, and its
stumps may be sets of categories (boosting/category_sets.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ensemble_gpu.arrays.means import weighted_mean
from ensemble_gpu.arrays.namespace import Where
from ensemble_gpu.boosting import rescale
from ensemble_gpu.boosting.category_sets import CategorySets
from ensemble_gpu.boosting.descend import Descend
from ensemble_gpu.boosting.gradients import Gradients
from ensemble_gpu.boosting.gram import WEIGHT_BITS, Gram, IntegerTargets, integer_targets
from ensemble_gpu.boosting.one_class import OneClassAtATime, of_stump
from ensemble_gpu.boosting.pool_gram import PoolGram
from ensemble_gpu.boosting.problem import Problem, Sampling
from ensemble_gpu.boosting.rebuild import Rebuild
from ensemble_gpu.boosting.rescale import Rescale
from ensemble_gpu.boosting.rescale_rounds import RescaleRounds
from ensemble_gpu.boosting.rows import ClassSortedData, prepare
from ensemble_gpu.boosting.rules import AdaBoostRule, best_constant
from ensemble_gpu.boosting.strategy import MeanLoss, Plan
from ensemble_gpu.boosting.vote_loss import VoteLoss
from ensemble_gpu.data.categories import NO_CATEGORIES, Categories
from ensemble_gpu.data.integers import integer_weights
from ensemble_gpu.data.interactions import Interactions
from ensemble_gpu.data.rows import Binned, OrderedRows
from ensemble_gpu.data.sampling import Draws, draw_seed, items_of
from ensemble_gpu.kernels.protocol import MAJORITY, Criterion, Engine, WeightRule
from ensemble_gpu.learners.directions import Directions
from ensemble_gpu.learners.each import EachOutput, each_output
from ensemble_gpu.learners.pool import PoolVoters
from ensemble_gpu.learners.protocol import GradientLearner
from ensemble_gpu.learners.stump import SplitConstraints, Stumps, StumpTables, Worth
from ensemble_gpu.learners.stump_forest import StumpForest
from ensemble_gpu.learners.tree import Size, Trees
from ensemble_gpu.losses import CustomLoss, Loss, Squared, SquaredMargin
from ensemble_gpu.losses.targets import class_target
from ensemble_gpu.model.calibration import CalibratedLoss
from ensemble_gpu.model.link import IDENTITY, INCREASING

STUMP = Size(1, None, 1)
INITS = CONSTANT, ZERO = "constant", "zero"


@dataclass(frozen=True)
class DescentParameters:
    """The parameters of an estimator that gradient descent goes by, resolved.

    `n_learners` are fitted in a round: one for all outputs, or one for every output. Outputs begin
    at the best constant or at zero, as `init` says. Of `candidates` the one that lowers the loss
    most is taken.
    """

    n_rounds: int
    learning_rate: float
    step: str
    subsample: float
    seed: int
    constraints: SplitConstraints
    size: Size
    categories: Categories
    n_learners: int = 1
    init: str = CONSTANT
    candidates: int = 1

    @property
    def stump(self) -> bool:
        """Whether rounds are stumps, and not trees."""
        return self.size.stump and not self.categories.values

    @property
    def n_ranges(self) -> int | None:
        """How rows are to be binned (data/rows.py): for stumps, or for trees."""
        return 1 if self.stump else None

    def with_seed(self, seed: int) -> DescentParameters:
        """The same with other random numbers."""
        return replace(self, seed=seed, constraints=replace(self.constraints, seed=seed))

    @classmethod
    def of(
        cls,
        estimator: Any,
        *,
        step: str,
        subsample: float = 1.0,
        n_features: int | None = None,
        signs: np.ndarray | None = None,
        votes: bool = False,
        size: Size = STUMP,
        categories: Categories = NO_CATEGORIES,
        one_category: bool = False,
        interactions: Interactions | None = None,
        n_learners: int = 1,
        init: str = CONSTANT,
        candidates: int = 1,
    ) -> DescentParameters:
        p = estimator.n_features_in_
        seed = draw_seed(estimator.random_state)
        constraints = SplitConstraints(
            estimator.missing == "learn",
            votes,
            np.zeros(p, dtype=np.int64) if signs is None else signs,
            p if n_features is None else n_features,
            seed,
            categories.mask(p),
            one_category,
            interactions,
        )
        return cls(
            estimator._n_rounds,
            estimator._rate,
            step,
            float(subsample),
            seed,
            constraints,
            size,
            categories,
            n_learners,
            init,
            candidates,
        )


def rescale_plan(estimator: Any, binned: Binned, where: Where, rule: AdaBoostRule) -> Plan:
    """The exponential loss: weights that are rescaled from round to round."""
    engine, prepared = binned.engine, prepare(binned, rule.group_of)
    n_classes, categories = prepared.layout.n_classes, binned.categories
    strategy: Rescale | RescaleRounds | OneClassAtATime
    if binned.offset is not None and n_classes > 2:
        raise ValueError(
            f"init_score with {n_classes} classes is for losses whose outputs are sums of scores: "
            "AdaBoostClassifier takes it with variant='logit', or use BoostingClassifier."
        )
    if getattr(estimator, "multiclass", "shared") == "single" and n_classes > 2:
        own = replace(rule, group_of=np.array([[0, 1]]), n_outputs=1)
        each = np.arange(n_classes)
        strategy = OneClassAtATime([
            _rescale(estimator, engine, prepared, own, (each != k).astype(np.int64)[None, :],
                     categories)
            for k in range(n_classes)
        ], of_stump)  # fmt: skip
    else:
        strategy = _rescale(estimator, engine, prepared, rule, rule.group_of, categories)

    worth = worth_of(rule)
    learner: StumpTables | StumpForest = StumpTables(prepared.matrix, worth)
    if categories.values:
        learner = StumpForest(prepared.matrix, categories, worth)
    return Plan(
        strategy,
        learner,
        start=np.zeros(rule.n_outputs),
        constant=np.zeros(rule.n_outputs)
        if binned.offset is not None
        else best_constant(rule, prepared.shares),
        link=rule.link,
        loss=CalibratedLoss(rule.link, where),
        cheap_loss=True,
        binned=binned,
    )


def worth_of(rule: AdaBoostRule) -> Worth:
    """What a round of AdaBoost is worth: alpha, or -ln Z."""

    def worth(alpha: np.ndarray, error: np.ndarray) -> np.ndarray:
        return alpha if rule.reports == "weighted error" else -np.log(error)

    return worth


def _rescale(
    estimator: Any,
    engine: Engine,
    prepared: ClassSortedData,
    rule: AdaBoostRule,
    group_of: np.ndarray,
    categories: Categories,
) -> Rescale | RescaleRounds:
    """A rule on weights laid out by `group_of` (kernels/protocol.py).

    Where there are categories missing values learn a side: trees of depth 1 have two leaves.
    """
    matrix, layout = prepared.matrix, replace(prepared.layout, group_of=group_of)
    codes, learn = matrix.codes, estimator.missing == "learn" or bool(categories.values)
    n_thresholds = matrix.n_thresholds(learn)
    sets = None
    if categories.values:
        sets = CategorySets(matrix, categories, estimator.categorical_split == "single")
        n_thresholds = sets.thresholds(n_thresholds)
    vote_loss = None
    if rule.kind == MAJORITY and rule.n_outputs > 1 and not learn and codes.counts[:, :, -1].any():
        vote_loss = VoteLoss(engine, codes, layout, prepared.log_weights)
    histograms = engine.histograms(codes, layout, prepared.log_weights)
    criterion = Criterion(rule.kind, np.zeros(layout.n_groups), learn, n_thresholds)
    rate = estimator._rate
    if sets is None and vote_loss is None:
        run = histograms.rounds(
            criterion,
            WeightRule(
                rule.n_outputs, rule.chance, rate, prepared.lightest, rescale.REQUANTISE_EVERY
            ),
        )
        if run is not None:
            return RescaleRounds(run, rule, prepared.loss)
    return Rescale(
        histograms, codes, layout, rule, criterion, rate, prepared.lightest, vote_loss,
        prepared.loss, sets,
    )  # fmt: skip


def classification_plan(
    rows: OrderedRows,
    where: Where,
    loss: Loss,
    n_classes: int,
    descent: DescentParameters,
    learner: GradientLearner | Directions,
) -> Plan:
    """A margin loss (one output; one a class for K > 2) or the multinomial loss."""
    target = class_target(loss, rows.target, n_classes, rows.engine.where)
    rows = replace(rows, target=target)
    n_outputs = n_classes if n_classes > 2 else 1
    mean_loss = mean_class_loss(loss, n_classes, where)
    return descent_plan(rows, loss, n_outputs, 1.0, descent, learner, mean_loss)


def mean_class_loss(loss: Loss, n_classes: int, where: Where) -> MeanLoss:
    """The loss of outputs F for label indices."""

    def mean_loss(F: Any, index: Any, weights: Any) -> float:
        return _mean_loss(loss, class_target(loss, index, n_classes, where), F, weights, where)

    return mean_loss


def regression_plan(
    rows: OrderedRows,
    where: Where,
    loss: Loss,
    descent: DescentParameters,
    learner: GradientLearner | Directions,
) -> Plan:
    """One output, or one a quantile; the target is y itself."""
    engine, scale = rows.engine, 1.0
    if loss.link_name in (IDENTITY, INCREASING):
        xp = engine.where.xp
        sizes = [rows.target] if rows.offset is None else [rows.target, rows.offset]
        largest = engine.team.largest(max(float(xp.max(xp.abs(a))) for a in sizes))[0]
        scale = math.ldexp(1.0, math.frexp(largest)[1])

    def mean_loss(F: Any, y: Any, weights: Any) -> float:
        F = where.xp.sort(F, axis=1) if loss.link_name == INCREASING else F
        return _mean_loss(loss, _for_outputs(y, loss, where), F, weights, where)

    rows = replace(rows, target=_for_outputs(rows.target, loss, engine.where))
    return descent_plan(rows, loss, loss.n_outputs, scale, descent, learner, mean_loss)


def _for_outputs(y: Any, loss: Loss, where: Where) -> Any:
    """The same target for each of several outputs."""
    return y if loss.n_outputs == 1 else where.xp.stack([y] * loss.n_outputs)


def gradient_learner(binned: Binned, descent: DescentParameters) -> GradientLearner:
    """Stumps where a single threshold is enough, else trees; one of them, or one an output."""
    engine, matrix, constraints = binned.engine, binned.matrix, descent.constraints
    learner: Stumps | Trees
    if descent.stump:
        learner = Stumps(engine, matrix, constraints)
    else:
        learner = Trees(engine, matrix, descent.size, constraints, descent.categories)
    return learner if descent.n_learners == 1 else each_output(learner, descent.n_learners)


def descent_plan(
    rows: OrderedRows,
    loss: Loss,
    n_outputs: int,
    scale: float,
    descent: DescentParameters,
    learner: GradientLearner | Directions,
    mean_loss: MeanLoss,
) -> Plan:
    """Stumps for the squared loss of all rows: gram. Learners without leaves: descend. Any other
    learner or loss: rebuild.
    """
    squared = isinstance(loss, Squared | SquaredMargin) and descent.subsample == 1.0
    strategy: Gram | PoolGram | Rebuild | Descend
    if isinstance(learner, Directions):
        problem = _problem(rows, loss, n_outputs, scale, descent.init)
        strategy = Descend(
            rows.engine, learner, problem, descent.step, descent.learning_rate,
            _sampling(rows, descent),
        )  # fmt: skip
    elif squared and isinstance(learner, Stumps):
        strategy = _gram(rows, n_outputs, descent, learner)
    elif squared and isinstance(learner, PoolVoters):
        strategy = PoolGram(
            _targets(rows, n_outputs, descent), learner.finder, descent.learning_rate
        )
    else:
        if squared and isinstance(learner, Trees | EachOutput):
            descent = replace(descent, step="newton")  # its best step is 1
        strategy = _rebuild(rows, loss, n_outputs, scale, descent, learner)
    start, cheap = strategy.intercept, isinstance(strategy, Gram | PoolGram)
    binned = rows if isinstance(rows, Binned) else None
    return Plan(strategy, learner, start, start, loss.link_name, mean_loss, cheap, binned)


def _targets(rows: OrderedRows, n_outputs: int, descent: DescentParameters) -> IntegerTargets:
    engine, y = rows.engine, rows.target if n_outputs > 1 else rows.target[None, :]
    offset = _offset(rows)
    y = y if offset is None else y - offset
    weights = integer_weights(rows.weights, WEIGHT_BITS, engine)
    intercept = offset is None and descent.init == CONSTANT
    return integer_targets(y, weights, engine, intercept=intercept)


def _gram(rows: OrderedRows, n_outputs: int, descent: DescentParameters, learner: Stumps) -> Gram:
    return Gram(
        rows.engine,
        learner.matrix.codes,
        _targets(rows, n_outputs, descent),
        learner.search,
        descent.learning_rate,
        descent.n_rounds,
        rows.tables if isinstance(rows, Binned) else None,
    )


def _rebuild(
    rows: OrderedRows, loss: Loss, n_outputs: int, scale: float, descent: DescentParameters,
    learner: GradientLearner,
) -> Rebuild:  # fmt: skip
    problem = _problem(rows, loss, n_outputs, scale, descent.init)
    sampling = _sampling(rows, descent)
    gradients = Gradients(rows.engine, rows.n_rows, problem, descent.step, sampling)
    return Rebuild(gradients, learner, descent.step, descent.learning_rate, descent.candidates)


def _problem(rows: OrderedRows, loss: Loss, n_outputs: int, scale: float, init: str) -> Problem:
    """What is minimised, from the best constant on, or from zero."""
    where = rows.engine.where
    if isinstance(loss, CustomLoss):
        y = rows.target if rows.target.ndim == 1 else rows.target[0, :]
        loss.try_on(y, where.xp.zeros_like(y))
    start = np.zeros(n_outputs)
    if rows.offset is None and init == CONSTANT:
        start = _best_constants(loss, rows, n_outputs, where)
    return Problem(loss, rows.target, rows.weights, start, scale, _offset(rows))


def _sampling(rows: OrderedRows, descent: DescentParameters) -> Sampling:
    return Sampling(descent.subsample, descent.seed, _draws(rows, descent))


def _offset(rows: OrderedRows) -> Any | None:
    """What the outputs begin with besides the intercept, which is 0 then: [outputs, rows]."""
    if rows.offset is None:
        return None
    return rows.engine.where.xp.permute_dims(rows.offset, (1, 0))


def _draws(rows: OrderedRows, descent: DescentParameters) -> Draws | None:
    """What the rounds draw their rows from; None where all rows take part."""
    if descent.subsample == 1.0:
        return None
    assert rows.keys is not None
    where, team = rows.engine.where, rows.engine.team
    weights = None if rows.weights is None else where.host(rows.weights)
    at = None if rows.order is None else where.host(rows.engine.adopt(rows.order))
    return Draws(items_of(rows.keys, weights, team, at), len(rows.keys), rows.engine)


def _best_constants(loss: Loss, rows: OrderedRows, n_outputs: int, where: Where) -> np.ndarray:
    """On the host, so that its sums have one order; 0 for classes where phi has a kink.

    The hinge's best constant is that kink, F = +-1, where no stump finds a way down.
    """
    if loss.task == "classification" and not loss.has_hessian:
        return np.zeros(n_outputs)
    y = where.host(rows.target)
    weights = None if rows.weights is None else where.host(rows.weights)
    team = rows.engine.team
    if not team.alone:
        return np.array(team.from_first(_constants_of_all(loss, rows, y, weights, n_outputs)))
    return _constants(loss, y, weights, n_outputs)


def _constants_of_all(
    loss: Loss, rows: OrderedRows, y: np.ndarray, weights: np.ndarray | None, n_outputs: int
) -> Callable[[], list[float]]:
    """The best constants of the rows of all workers, which the first one has then.

    In the order of one worker that has all of them: sums of floats depend on it.
    """
    team, n_rows = rows.engine.team, y.shape[-1]
    at = np.arange(n_rows) if rows.order is None else rows.engine.where.host(rows.order)
    order = np.argsort(team.concatenated(team.positions(at), to_all=False))
    every = team.concatenated(np.ascontiguousarray(y.T), to_all=False)
    if weights is not None:
        weights = team.concatenated(weights, to_all=False)[order]
    return lambda: _constants(loss, every[order].T, weights, n_outputs).tolist()


def _constants(loss: Loss, y: np.ndarray, weights: np.ndarray | None, n_outputs: int) -> np.ndarray:
    if y.ndim == 1:
        return loss.best_constant(y, weights)
    return np.concatenate([
        loss.output(k).best_constant(y[k], weights) for k in range(n_outputs)
    ])  # fmt: skip


def _mean_loss(loss: Loss, y: Any, F: Any, weights: Any | None, where: Where) -> float:
    """Weighted mean of l(y, F), F [rows, outputs]; summed over outputs with a y each."""
    xp = where.xp
    if y.ndim == 2:
        value = xp.sum(loss.value(y, xp.permute_dims(F, (1, 0))), axis=0)
    else:
        value = loss.value(y, F if F.shape[1] > 1 else F[:, 0])
    mean = weighted_mean(value, weights, where)
    if math.isnan(mean):
        raise ValueError(
            f"loss {loss.name!r} gave NaN on the validation rows; a loss must be finite for every "
            "finite y and F."
        )
    return mean
