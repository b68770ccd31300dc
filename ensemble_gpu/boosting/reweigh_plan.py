"""From the parameters of an AdaBoost with an estimator to what the loop runs on."""

from __future__ import annotations

from typing import Any

import numpy as np

from ensemble_gpu.arrays.namespace import Where
from ensemble_gpu.boosting.coded import CODES, SHARED, coded_strategy, form_of
from ensemble_gpu.boosting.reweigh import Reweigh
from ensemble_gpu.boosting.strategy import Plan
from ensemble_gpu.data.integers import weight_of_one
from ensemble_gpu.data.rows import Rows
from ensemble_gpu.data.sampling import draw_seed
from ensemble_gpu.estimators.reading import TrainingData
from ensemble_gpu.kernels.host.weights import SMALLEST_SHARE
from ensemble_gpu.learners.classifier import Members
from ensemble_gpu.learners.foreign import told_of
from ensemble_gpu.model.calibration import CalibratedLoss
from ensemble_gpu.model.committee import CodedVoice, Voice
from ensemble_gpu.model.link import MARGINS, VOTES


def reweigh_plan(estimator: Any, data: TrainingData) -> Plan:
    """From the parameters of an AdaBoost to what the loop runs on."""
    if data.rows.offset is not None:
        raise ValueError(
            "init_score is for boosting of stumps and trees; estimator is "
            f"{estimator.estimator!r}, whose answers are votes or probabilities."
        )
    where, xp, n_classes = data.where, data.where.xp, len(estimator.classes_)
    rows = data.taking_part()
    rows = Rows(rows.X, xp.astype(rows.target, xp.int64), rows.weights)
    least = 0.5 * _lightest(rows, where) if estimator.variant == "real" else None
    learner, seed = told_of(data.categories, estimator.estimator), draw_seed(estimator.random_state)
    signed = bool(getattr(learner, "abstains", False))
    form = form_of(learner, estimator.multiclass, n_classes)
    voice: Voice | CodedVoice
    strategy: Any
    if form == SHARED:
        voice = Voice(n_classes, least, signed and n_classes == 2)
        strategy = Reweigh(learner, rows, voice, estimator._rate, seed, where)
    else:
        binary = Voice(2, least, signed)
        voice = CodedVoice(n_classes, binary, VOTES if form == CODES else MARGINS)
        strategy = coded_strategy(form, learner, rows, binary, n_classes, estimator._rate, seed,
                                  where)  # fmt: skip
    return Plan(
        strategy,
        Members(voice, estimator.n_features_in_),
        np.zeros(voice.n_outputs),
        np.zeros(voice.n_outputs),
        voice.link,
        CalibratedLoss(voice.link, where),
        cheap_loss=True,
    )


def _lightest(rows: Rows, where: Where) -> float:
    """The lightest row's share of the weight."""
    if rows.weights is None:
        return max(1.0 / rows.X.shape[0], SMALLEST_SHARE)
    weights = where.host(rows.weights)
    largest = weights.max()
    return max(weight_of_one(weights) / largest / float((weights / largest).sum()), SMALLEST_SHARE)
