"""AdaBoost of a learner of this package: from its parameters to what the loop runs on."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from ensemble_gpu.boosting.coded import AUTO, SHARED
from ensemble_gpu.boosting.given import learner_rows
from ensemble_gpu.boosting.plans import (
    DescentParameters,
    classification_plan,
    rescale_plan,
    worth_of,
)
from ensemble_gpu.boosting.redrawn import Redrawn, WeightedRows
from ensemble_gpu.boosting.rules import AdaBoostRule, best_constant, rule_for
from ensemble_gpu.boosting.strategy import Plan
from ensemble_gpu.boosting.votes import Votes
from ensemble_gpu.data.integers import weight_of_one
from ensemble_gpu.data.matrix import BinnedMatrix, sort_by_class
from ensemble_gpu.data.rows import OrderedRows, bin_by
from ensemble_gpu.data.sampling import draw_seed
from ensemble_gpu.estimators.reading import TrainingData
from ensemble_gpu.kernels.edges import MAX_BINS_LIMIT
from ensemble_gpu.kernels.fixedpoint import log2_fixed
from ensemble_gpu.kernels.protocol import Layout
from ensemble_gpu.learners.derived import DerivedTables
from ensemble_gpu.learners.even import EvenRows
from ensemble_gpu.learners.generated import Generated
from ensemble_gpu.learners.protocol import Learner
from ensemble_gpu.learners.redrawn import RedrawnTables
from ensemble_gpu.learners.source import Source
from ensemble_gpu.losses import LogitBoost, for_classes
from ensemble_gpu.model.calibration import CalibratedLoss


def check_own(estimator: Any, variant: str, multiclass: str) -> None:
    """Raise where a learner of this package is not for the variant, or its parameters are wrong."""
    allowed = getattr(estimator, "variants", None)
    if allowed is None:
        raise TypeError(
            f"estimator {estimator!r} is for BoostingClassifier and BoostingRegressor: it fits "
            "gradients."
        )
    if variant not in allowed:
        raise ValueError(
            f"variant must be {' or '.join(map(repr, allowed))} for estimator {estimator!r}; got "
            f"{variant!r}."
        )
    if multiclass not in (AUTO, SHARED):
        raise ValueError(
            f"multiclass must be {AUTO!r} or {SHARED!r} for estimator {estimator!r}; got "
            f"{multiclass!r}."
        )
    estimator.check()


def own_plan(boosting: Any, data: TrainingData) -> Plan:
    """Stumps on generators, once or anew in every round; or votes, of any other learner."""
    learner, n_classes = boosting.estimator, len(boosting.classes_)
    seed = draw_seed(boosting.random_state)
    if boosting.variant == "logit":
        return _logit_plan(boosting, data, seed)
    rule = rule_for(boosting.variant, n_classes)
    given = learner_rows(boosting, data, rule.n_outputs, seed)
    if isinstance(learner, Generated) and learner.redraw == "once":
        return _derived_plan(boosting, data, learner.source(given), rule)
    if data.rows.offset is not None:
        raise ValueError(
            "init_score is for boosting of stumps and trees; estimator is "
            f"{learner!r}, whose weights begin equal."
        )
    rows, rate = data.ordered(), boosting._rate
    if isinstance(learner, Generated):
        return _planned(data, rows, rule, *_redrawn(boosting, rows, learner.source(given), rule))
    voters = learner.voters(given)
    strategy = Votes(rows.engine, voters, rule, _log_weights(rows), rate)
    return _planned(data, rows, rule, strategy, voters)


def _planned(
    data: TrainingData, rows: OrderedRows, rule: AdaBoostRule, strategy: Any, learner: Learner
) -> Plan:
    return Plan(
        strategy,
        learner,
        start=np.zeros(rule.n_outputs),
        constant=best_constant(rule, _shares(rows, max(2, rule.n_outputs))),
        link=rule.link,
        loss=CalibratedLoss(rule.link, data.where),
        cheap_loss=True,
    )


def _redrawn(
    boosting: Any, rows: OrderedRows, source: Source, rule: AdaBoostRule
) -> tuple[Redrawn, RedrawnTables]:
    """Stumps on generators of every round's own."""
    n_classes = len(boosting.classes_)
    if len(rule.group_of) > 1 or boosting.missing == "learn":
        raise ValueError(
            "redraw='round' is for two classes or variant='discrete', and for "
            f"missing='abstain' or 'error'; variant is {boosting.variant!r}, missing is "
            f"{boosting.missing!r}, y holds {n_classes} classes. Use redraw='once', or "
            "BoostingClassifier."
        )
    tables = RedrawnTables(source, worth_of(rule))
    weighted = _by_class(rows, source, rule, n_classes)
    return Redrawn(rows.engine, tables, weighted, rule, boosting._rate), tables


def _logit_plan(boosting: Any, data: TrainingData, seed: int) -> Plan:
    """Newton steps on the logistic loss, as of stumps."""
    n_classes = len(boosting.classes_)
    loss = for_classes(LogitBoost(), n_classes)
    descent = DescentParameters.of(boosting, step="newton")
    given = learner_rows(boosting, data, 1 if n_classes == 2 else n_classes, seed)
    learner = boosting.estimator.gradient_learner(given)
    return classification_plan(data.ordered(), data.where, loss, n_classes, descent, learner)


def _derived_plan(boosting: Any, data: TrainingData, source: Source, rule: AdaBoostRule) -> Plan:
    """The rescale strategy on generators as features."""
    engine, generators = data.engine, source.drawn(0)
    most = boosting.max_bins or MAX_BINS_LIMIT

    def made(order: Any | None, layout: Layout | None) -> BinnedMatrix:
        assert layout is not None
        return source.binned(generators, engine.adopt(order), layout, most)

    binned = bin_by(engine, data.taking_part(), None, made, n_ranges=len(boosting.classes_))
    plan = rescale_plan(boosting, binned, data.where, rule)
    tables = DerivedTables(binned.matrix, worth_of(rule), source.grid, generators)
    return replace(plan, learner=tables)


def _by_class(
    rows: OrderedRows, source: Source, rule: AdaBoostRule, n_classes: int
) -> WeightedRows:
    where = rows.engine.where
    sorted_ = sort_by_class(rows.target, n_classes, None, where)
    lightest = 1.0 / rows.n_rows
    if rows.weights is not None:
        w = where.host(rows.weights)
        lightest = weight_of_one(w) / w.max() / math.fsum(w / w.max())
    logs = where.xp.take(_log_weights(rows), sorted_.rows)
    even = EvenRows(source, sorted_.rows, Layout(sorted_.starts, rule.group_of))
    return WeightedRows(even, logs, lightest)


def _log_weights(rows: OrderedRows) -> Any:
    """Fixed-point log2 of the sample weights."""
    where = rows.engine.where
    if rows.weights is None:
        return where.zeros((rows.n_rows,), where.xp.int64)
    return log2_fixed(rows.weights, where)


def _shares(rows: OrderedRows, n_classes: int) -> np.ndarray:
    """The classes' shares of the weight; in any order of the rows, as fsum is."""
    where = rows.engine.where
    y = where.host(rows.target)
    w = np.ones(len(y)) if rows.weights is None else where.host(rows.weights)
    w = w / w.max()
    sizes = np.array([math.fsum(w[y == k]) for k in range(n_classes)])
    return sizes / math.fsum(sizes)
