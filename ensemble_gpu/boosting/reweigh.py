"""The reweigh strategy, AdaBoost with any classifier: learners are cloned, fitted and weighed.

D_t are the weights of the rows, which sum to 1. Round t fits a clone h_t of the learner with sample
weights W D_t, or, where it takes none, on n rows drawn from D_t. W is the sum of the sample weights
given, n if there were none: the first learner sees what it would see alone. nu is the learning
rate, c the class of a row.

discrete  e = weight of the rows that h_t gets wrong.
          Two classes: alpha = nu/2 ln((1 - e) / e), w <- w exp(-alpha y h_t(x)).
          K classes, SAMME (Zhu et al. 2009): alpha = nu (ln((1 - e) / e) + ln(K - 1)), and the
          weights of the wrong rows are multiplied by exp(alpha).
real      h_k = ln p_k - mean_j ln p_j of h_t's probabilities, w <- w exp(-nu h_c(x)).
          Two classes: h = 1/2 ln(p / (1 - p)), Real AdaBoost (Friedman, Hastie & Tibshirani 2000);
          K classes: SAMME.R (Zhu et al. 2009). Z = sum D exp(-nu h_c), the weight after the round.

Weights are kept on the host as logarithms: none is lost to underflow, and the rounds are the same
wherever the learners work. No p is below half the share of the lightest row (1 / (2 n) without
sample weights), the smoothing of the stumps (boosting/rules.py).

A learner of two classes may abstain, by NaN (one with an attribute `abstains`, which is fitted to
-1 and +1, by 0): with W0, W+ and W- the weight of the rows that abstain, are right and wrong,
e = W- / (W+ + W-), the weight of an abstaining row stays, and Z = W0 + W+ exp(-alpha) +
W- exp(alpha).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ensemble_gpu.arrays.namespace import Where
from ensemble_gpu.arrays.sparse import take_rows
from ensemble_gpu.boosting.rules import round_weights, rule_for
from ensemble_gpu.data.rows import Rows
from ensemble_gpu.kernels.host.adaboost import MOST_CONFIDENT, SMALLEST_ERROR
from ensemble_gpu.kernels.host.weights import NO_GAIN
from ensemble_gpu.learners.classifier import Member
from ensemble_gpu.learners.foreign import (
    LEAST_WEIGHT,
    Clones,
    fit_unchanged,
    takes_weights,
    total_weight,
)
from ensemble_gpu.learners.protocol import RoundWeights
from ensemble_gpu.model.committee import Voice, check_reach
from ensemble_gpu.model.link import as_columns

# A resample that holds one class only is drawn again, so often at the most.
MOST_DRAWS = 10


@dataclass(frozen=True)
class Verdict:
    """What a learner's answers on the training rows come to.

    `change` is added to the rows' log weights, `useful` says whether the learner is better than
    chance, `wrong` which rows it gets wrong.
    """

    error: float
    alpha: float
    change: np.ndarray
    wrong: np.ndarray
    useful: bool
    weights: RoundWeights

    @property
    def perfect(self) -> bool:
        """Whether every row is voted right."""
        return self.weights.abstaining == 0.0 and not self.wrong.any()


def judge_votes(
    D: np.ndarray, wrong: np.ndarray, abstaining: np.ndarray, rate: float, n_classes: int
) -> Verdict:
    """The discrete variant; rows that abstain are neither right nor wrong."""
    voting = float(D[~abstaining].sum()) if abstaining.any() else 1.0
    silent = 1.0 - voting
    error = float(D[wrong].sum()) / voting if voting > 0.0 else 1.0
    chance = 1.0 - 1.0 / n_classes
    e = min(max(error, SMALLEST_ERROR), chance)
    alpha = min(rate * (math.log((1.0 - e) / e) + math.log(n_classes - 1.0)), MOST_CONFIDENT)
    if n_classes == 2:
        alpha = 0.5 * alpha
        change = np.where(wrong, alpha, np.where(abstaining, 0.0, -alpha))
    else:
        change = np.where(wrong, alpha, 0.0)
    shares = [silent, voting * (1.0 - error), voting * error]
    weights = round_weights(rule_for("discrete", n_classes), error, alpha, shares)
    return Verdict(error, alpha, change, wrong, error < chance * (1.0 - NO_GAIN), weights)


def judge_confidences(D: np.ndarray, own: np.ndarray, wrong: np.ndarray, rate: float) -> Verdict:
    """The real variant; `own` is h_c, what the learner says for a row's own class.

    It is useful where the loss begins to fall along h, however small nu is, and has not risen
    again at nu.
    """
    change = -rate * own
    Z = float((D * np.exp(change)).sum())
    useful = float((D * own).sum()) > NO_GAIN and Z < 1.0 + NO_GAIN
    error = float(D[wrong].sum())
    return Verdict(Z, rate, change, wrong, useful, RoundWeights(0.0, 1.0 - error, error, Z))


class Reweigh:
    """Fit a learner to the weights, judge it, let the weights follow."""

    def __init__(
        self,
        learner: Any,
        rows: Rows,
        voice: Voice,
        rate: float,
        seed: int,
        where: Where,
        alone: bool = True,
    ) -> None:
        check_reach(learner, where)
        # whether a first learner that is of no use is an error, and not only the end
        self.alone = alone
        self.learner, self.rows, self.voice, self.rate, self.where = (
            learner, rows, voice, rate, where,
        )  # fmt: skip
        self.y = where.host(rows.target)
        weights = np.ones(len(self.y)) if rows.weights is None else where.host(rows.weights)
        self.logs = np.log(weights)
        self.total = total_weight(weights, len(self.y))
        self.weighs = takes_weights(learner)
        self.generator, self.clones = np.random.default_rng(seed), Clones(self.learner)
        self.n_followed, self.loss, self.reason = 0, 1.0, ""
        # Found on the way to the last round; it could be found from the round as well.
        self.found: tuple[Member, Verdict] | None = None

    def best(self) -> Member | None:
        D = self._distribution()
        learner = self._fitted(D)
        if learner is None:
            self.reason = f"{MOST_DRAWS} resamples of the rows held one class only"
            if self.n_followed == 0 and self.alone:
                raise ValueError(
                    f"estimator {type(self.learner).__name__} takes no sample weights, and "
                    f"{self.reason}; give more rows or even weights."
                )
            return None
        verdict = self._judged(learner, D)
        if not verdict.useful:
            self._give_up(verdict)
            return None
        member = Member(
            learner, verdict.alpha, verdict.error, verdict.perfect, verdict.weights,
            self.generator.bit_generator.state,
        )  # fmt: skip
        self.found = member, verdict
        return member

    def _distribution(self) -> np.ndarray:
        D = np.exp(self.logs - self.logs.max())
        return D / D.sum()

    def _judged(self, learner: Any, D: np.ndarray) -> Verdict:
        """What the learner's answers on the training rows come to."""
        h = as_columns(self.where.host(self.voice(learner, self.rows.X, self.where)), np)
        wrong = h.argmax(axis=1) != self.y
        if self.voice.least is None:
            abstaining = (h == 0.0).all(axis=1)
            wrong &= ~abstaining
            return judge_votes(D, wrong, abstaining, self.rate, self.voice.n_classes)
        rate = min(self.rate, MOST_CONFIDENT / self.voice.span)
        return judge_confidences(D, h[np.arange(len(D)), self.y], wrong, rate)

    def _fitted(self, D: np.ndarray) -> Any | None:
        """A clone of the learner, fitted to D; None where no resample holds two classes."""
        # where the learner is random, with a seed of its own for every round
        learner = self.clones(lambda _: int(self.generator.integers(2**31 - 1)))
        X, where, n = self.rows.X, self.where, len(D)
        y = self.voice.labels(self.rows.target)
        if self.weighs:
            weights = where.put(np.maximum(self.total * D, LEAST_WEIGHT))
            return fit_unchanged(learner, X, y, weights)
        cumulated = np.cumsum(D)
        for _ in range(MOST_DRAWS):
            points = self.generator.random(n) * cumulated[-1]
            drawn = np.minimum(np.searchsorted(cumulated, points, side="right"), n - 1)
            if (self.y[drawn] != self.y[drawn[0]]).any():
                at = where.put(drawn)
                return fit_unchanged(learner, take_rows(X, at), where.xp.take(y, at), None)
        return None

    def _give_up(self, verdict: Verdict) -> None:
        """Why the rounds end here; an error where it is the first."""
        error = verdict.error if self.voice.least is None else verdict.weights.wrong
        if self.voice.least is None:
            self.reason = f"no learner is better than chance (its weighted error: {error:.6f})"
        else:
            self.reason = f"no learner lowers the loss any further (its Z: {verdict.error:.6f})"
        if self.n_followed or not self.alone:
            return
        name, K = type(self.learner).__name__, self.voice.n_classes
        chance = 1.0 - 1.0 / K
        if not error < chance * (1.0 - NO_GAIN):
            raise ValueError(
                f"estimator {name} is not better than chance in the first round: its weighted "
                f"error is {error:.6g}, and must be below {chance:.6g} for {K} classes."
            )
        raise ValueError(
            f"estimator {name} is too sure of itself in the first round: its probabilities make "
            f"the exponential loss {verdict.error:.6g} times as large, and must lower it. Use "
            "variant='discrete', a smaller learning_rate, or calibrate the estimator."
        )

    def training_loss(self, member: Member) -> float:
        """Mean loss, relative to that of the outputs 0."""
        assert member.weights is not None
        return self.loss * member.weights.Z

    def follow(self, member: Member) -> None:
        if self.found is not None and self.found[0] is member:
            verdict = self.found[1]
        else:
            verdict = self._judged(member.learner, self._distribution())
        self.found = None
        self.loss = self.training_loss(member)
        self.logs = self.logs + verdict.change
        self.n_followed += 1
        self.generator.bit_generator.state = member.trail
