"""AdaBoost with any classifier: learners that are cloned, fitted and weighed.

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
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.utils.validation import has_fit_parameter

from ensemble_gpu.arrays.namespace import Where
from ensemble_gpu.boosting.rescale import NO_GAIN, SMALLEST_SHARE
from ensemble_gpu.boosting.rules import rule_for, shrinkage
from ensemble_gpu.boosting.strategy import Outcome, Plan, shares
from ensemble_gpu.data.integers import weight_of_one
from ensemble_gpu.data.rows import Rows
from ensemble_gpu.data.sampling import draw_seed
from ensemble_gpu.kernels.host.adaboost import MOST_CONFIDENT, SMALLEST_ERROR
from ensemble_gpu.model.committee import Committee, Voice, check_reach
from ensemble_gpu.model.link import as_columns, log_loss

VARIANTS = ("real", "discrete")
# A resample that holds one class only is drawn again, so often at the most.
MOST_DRAWS = 10
# However light a row has become, a learner still sees it.
LEAST_WEIGHT = 1e-300
# However light or heavy all rows are together, a learner can add their weights.
LEAST_TOTAL, MOST_TOTAL = 1e-100, 1e100


def check_learner(estimator: Any, variant: str) -> None:
    """Raise unless AdaBoost's `estimator` is a classifier that the variant can use."""
    if isinstance(estimator, type):
        raise TypeError(
            f"estimator must be an instance of a classifier; got the class {estimator.__name__}: "
            f"write {estimator.__name__}()."
        )
    needed = ("fit", "predict", "get_params", "__sklearn_tags__")
    if not all(hasattr(estimator, name) for name in needed) or not is_classifier(estimator):
        raise TypeError(
            "estimator must be None (the stump) or a scikit-learn classifier, with fit and "
            f"predict; got {estimator!r}."
        )
    if variant not in VARIANTS:
        raise ValueError(
            f"variant must be one of {', '.join(map(repr, VARIANTS))} where an estimator is given; "
            f"got {variant!r}, which is for stumps (estimator=None)."
        )
    if variant == "real" and not hasattr(estimator, "predict_proba"):
        raise ValueError(
            f"variant='real' needs probabilities, and {type(estimator).__name__} has no "
            "predict_proba; use variant='discrete'."
        )


@dataclass(frozen=True)
class Member:
    """A round: a fitted learner, whose answers the model adds times alpha."""

    name: ClassVar[str] = "learner"

    learner: Any
    alpha: float
    error: float
    perfect: bool


@dataclass(frozen=True)
class Verdict:
    """What a learner's answers on the training rows come to.

    `change` is added to the rows' log weights, `factor` is the total weight after it over the one
    before, `useful` whether the learner is better than chance.
    """

    error: float
    alpha: float
    change: np.ndarray
    factor: float
    useful: bool


def judge_votes(D: np.ndarray, wrong: np.ndarray, rate: float, n_classes: int) -> Verdict:
    """The discrete variant."""
    error = float(D[wrong].sum())
    chance = 1.0 - 1.0 / n_classes
    e = min(max(error, SMALLEST_ERROR), chance)
    alpha = min(rate * (math.log((1.0 - e) / e) + math.log(n_classes - 1.0)), MOST_CONFIDENT)
    if n_classes == 2:
        alpha = 0.5 * alpha
        change = np.where(wrong, alpha, -alpha)
    else:
        change = np.where(wrong, alpha, 0.0)
    factor = float(shrinkage(rule_for("discrete", n_classes), error, alpha))
    return Verdict(error, alpha, change, factor, error < chance * (1.0 - NO_GAIN))


def judge_confidences(D: np.ndarray, own: np.ndarray, rate: float) -> Verdict:
    """The real variant; `own` is h_c, what the learner says for a row's own class.

    It is useful where the loss begins to fall along h, however small nu is, and has not risen
    again at nu.
    """
    change = -rate * own
    Z = float((D * np.exp(change)).sum())
    useful = float((D * own).sum()) > NO_GAIN and Z < 1.0 + NO_GAIN
    return Verdict(Z, rate, change, Z, useful)


class Foreign:
    """The strategy: fit a learner to the weights, judge it, let the weights follow."""

    def __init__(
        self, learner: Any, rows: Rows, voice: Voice, rate: float, seed: int, where: Where
    ) -> None:
        check_reach(learner, where)
        self.learner, self.rows, self.voice, self.rate, self.where = (
            learner, rows, voice, rate, where,
        )  # fmt: skip
        self.y = where.host(rows.target)
        weights = np.ones(len(self.y)) if rows.weights is None else where.host(rows.weights)
        self.logs = np.log(weights)
        self.total = max(float(np.minimum(weights, MOST_TOTAL).sum()), LEAST_TOTAL)
        self.weighs = has_fit_parameter(learner, "sample_weight")
        self.generator = np.random.default_rng(seed)
        self.verdict: Verdict | None = None
        self.round, self.loss, self.reason = 0, 1.0, ""

    def best(self) -> Member | None:
        D = np.exp(self.logs - self.logs.max())
        D = D / D.sum()
        learner = self._fitted(D)
        if learner is None:
            self.reason = f"{MOST_DRAWS} resamples of the rows held one class only"
            if self.round == 0:
                raise ValueError(
                    f"estimator {type(self.learner).__name__} takes no sample weights, and "
                    f"{self.reason}; give more rows or even weights."
                )
            return None
        h = as_columns(self.where.host(self.voice(learner, self.rows.X, self.where)), np)
        wrong = h.argmax(axis=1) != self.y
        if self.voice.least is None:
            verdict = judge_votes(D, wrong, self.rate, self.voice.n_classes)
        else:
            rate = min(self.rate, MOST_CONFIDENT / self.voice.span)
            verdict = judge_confidences(D, h[np.arange(len(D)), self.y], rate)
        if not verdict.useful:
            self._give_up(verdict, float(D[wrong].sum()))
            return None
        self.verdict = verdict
        self.round += 1
        return Member(learner, verdict.alpha, verdict.error, perfect=not wrong.any())

    def _fitted(self, D: np.ndarray) -> Any | None:
        """A clone of the learner, fitted to D; None where no resample holds two classes."""
        learner = self._clone()
        X, y, where, n = self.rows.X, self.rows.target, self.where, len(D)
        if self.weighs:
            weights = where.put(np.maximum(self.total * D, LEAST_WEIGHT))
            learner.fit(X, y, sample_weight=weights)
            return learner
        cumulated = np.cumsum(D)
        for _ in range(MOST_DRAWS):
            points = self.generator.random(n) * cumulated[-1]
            drawn = np.minimum(np.searchsorted(cumulated, points, side="right"), n - 1)
            if (self.y[drawn] != self.y[drawn[0]]).any():
                at = where.put(drawn)
                learner.fit(where.xp.take(X, at, axis=0), where.xp.take(y, at))
                return learner
        return None

    def _clone(self) -> Any:
        """Where the learner is random, with a seed of its own for every round."""
        learner = clone(self.learner)
        names = [name for name in learner.get_params() if name.split("__")[-1] == "random_state"]
        seeds = {name: int(self.generator.integers(2**31 - 1)) for name in sorted(names)}
        return learner.set_params(**seeds) if seeds else learner

    def _give_up(self, verdict: Verdict, error: float) -> None:
        """Why the rounds end here; an error where it is the first."""
        if self.voice.least is None:
            self.reason = f"no learner is better than chance (its weighted error: {error:.6f})"
        else:
            self.reason = f"no learner lowers the loss any further (its Z: {verdict.error:.6f})"
        if self.round:
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
        """Mean of the weights, relative to the first round's."""
        assert self.verdict is not None
        return self.loss * self.verdict.factor

    def follow(self, member: Member) -> None:
        assert self.verdict is not None
        self.loss = self.training_loss(member)
        self.logs = self.logs + self.verdict.change


@dataclass(frozen=True)
class CommitteePlan(Plan):
    """Learners: rounds become a committee."""

    strategy: Foreign
    voice: Voice
    start: np.ndarray
    link: str
    loss: Callable[[Any, Any, Any], float]
    cheap_loss: bool = True

    def added(self, member: Member, X: Any, where: Where) -> Any:
        return member.alpha * self.voice(member.learner, X, where)

    def round_info(self, member: Member) -> dict[str, Any]:
        return {"feature": None, "threshold": None}

    def outcome(self, rounds: Sequence[Member], n_features: int) -> Outcome:
        learners = tuple(member.learner for member in rounds)
        alphas = np.array([member.alpha for member in rounds], dtype=np.float64)
        model = Committee(learners, alphas, voice=self.voice, n_features=n_features)
        if not all(hasattr(learner, "feature_importances_") for learner in learners):
            return Outcome(model, None)
        errors = np.array([member.error for member in rounds])
        worth = alphas if self.voice.least is None else np.maximum(-np.log(errors), 0.0)
        own = np.array([learner.feature_importances_ for learner in learners])
        return Outcome(model, shares(worth @ own))


def foreign_plan(estimator: Any, rows: Rows, keep: Any | None, here: Where) -> CommitteePlan:
    """From the parameters of an AdaBoost to what the loop runs on."""
    xp, n_classes = here.xp, len(estimator.classes_)
    if keep is not None:
        at = xp.nonzero(keep)[0]
        weights = None if rows.weights is None else xp.take(rows.weights, at)
        rows = Rows(xp.take(rows.X, at, axis=0), xp.take(rows.target, at), weights)
    rows = Rows(rows.X, xp.astype(rows.target, xp.int64), rows.weights)
    least = 0.5 * _lightest(rows, here) if estimator.variant == "real" else None
    voice = Voice(n_classes, least)
    seed = draw_seed(estimator.random_state)
    rate = float(estimator.learning_rate)
    return CommitteePlan(
        Foreign(estimator.estimator, rows, voice, rate, seed, here),
        voice,
        np.zeros(voice.n_outputs),
        voice.link,
        lambda F, target, weights: log_loss(F, target, weights, voice.link, here),
    )


def _lightest(rows: Rows, here: Where) -> float:
    """The lightest row's share of the weight."""
    if rows.weights is None:
        return max(1.0 / rows.X.shape[0], SMALLEST_SHARE)
    weights = here.host(rows.weights)
    largest = weights.max()
    return max(weight_of_one(weights) / largest / float((weights / largest).sum()), SMALLEST_SHARE)
