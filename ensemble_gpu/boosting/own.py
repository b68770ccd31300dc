"""AdaBoost of a learner of this package: from its parameters to what the loop runs on."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ensemble_gpu.boosting.given import learner_rows
from ensemble_gpu.boosting.rules import best_constant, rule_for
from ensemble_gpu.boosting.strategy import Plan
from ensemble_gpu.boosting.votes import Votes
from ensemble_gpu.data.rows import OrderedRows
from ensemble_gpu.data.sampling import draw_seed
from ensemble_gpu.estimators.reading import TrainingData
from ensemble_gpu.kernels.fixedpoint import log2_fixed
from ensemble_gpu.model.calibration import CalibratedLoss


def check_own(estimator: Any, variant: str) -> None:
    """Raise where a learner of this package is not for the variant, or its parameters are wrong."""
    allowed = getattr(estimator, "variants", ())
    if variant not in allowed:
        raise ValueError(
            f"variant must be {' or '.join(map(repr, allowed)) or 'none'} for estimator "
            f"{estimator!r}; got {variant!r}."
        )
    estimator.check()


def own_plan(boosting: Any, data: TrainingData) -> Plan:
    """Votes of a learner that answers -1, 0 or +1, or a class: the discrete variant."""
    if data.rows.offset is not None:
        raise ValueError(
            "init_score is for boosting of stumps and trees; estimator is "
            f"{boosting.estimator!r}, whose answers are votes."
        )
    n_classes, where = len(boosting.classes_), data.where
    rule, rows = rule_for("discrete", n_classes), data.ordered()
    given = learner_rows(boosting, data, rule.n_outputs, draw_seed(boosting.random_state))
    voters = boosting.estimator.voters(given)
    return Plan(
        Votes(rows.engine, voters, rule, _log_weights(rows), boosting._rate),
        voters,
        start=np.zeros(rule.n_outputs),
        constant=best_constant(rule, _shares(rows, n_classes)),
        link=rule.link,
        loss=CalibratedLoss(rule.link, where),
        cheap_loss=True,
    )


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
