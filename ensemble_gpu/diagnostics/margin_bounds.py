"""What is known of margins before they are looked at, and of new rows from the margins of old ones.

Margins are those of `margins`: S_t is the largest margin that the first t rounds allow, which they
are divided by; 2 sum |alpha| for two classes of the discrete variant.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ensemble_gpu.arrays.namespace import to_numpy
from ensemble_gpu.data.parameters import check_real
from ensemble_gpu.diagnostics.complexity import complexity_of
from ensemble_gpu.diagnostics.margin_values import largest_margin, margins
from ensemble_gpu.diagnostics.training import after, check_boosted_classifier, training_error_bound
from ensemble_gpu.model.committee import CodedVoice

# Where the bound on new rows is looked at.
THETAS = np.linspace(0.005, 1.0, 200)


def margin_bound(estimator: Any, theta: Any, rounds: Sequence[int] | None = None) -> Any:
    """Upper bound of the (weighted) share of training rows with a margin of theta or less.

        share(margin <= theta) <= c prod_t Z_t exp(theta S / 2)

    with c prod_t Z_t the bound on the training error, which it is for theta = 0
    (`training_error_bound`). For two classes, "discrete" and learning_rate=1 that is the textbook's
    prod_t 2 sqrt(e_t^(1 - theta) (1 - e_t)^(1 + theta)) (Schapire, Freund, Bartlett & Lee 1998).

    Parameters
    ----------
    estimator : a fitted AdaBoostClassifier, as of `training_error_bound`
    theta : number or numbers in [0, 1]
    rounds : numbers of rounds after which to look; None: after the last

    Returns
    -------
    float or ndarray of the shape of theta; with `rounds` an axis before it. Above 1 it says nothing
    """
    bound = training_error_bound(estimator)
    if isinstance(getattr(estimator.model_, "voice", None), CodedVoice):
        raise ValueError(
            "There is no bound on margins for multiclass='single', 'codes' or 'ovr' with an "
            f"estimator; got multiclass={estimator.multiclass!r}."
        )
    at = np.asarray(theta, dtype=np.float64)
    if not ((at >= 0.0) & (at <= 1.0)).all():
        raise ValueError(f"theta must be in [0, 1]; got {theta!r}.")
    when = [estimator.n_estimators_] if rounds is None else list(rounds)
    found = [
        (bound[t - 1] if t else 1.0) * np.exp(0.5 * largest_margin(after(estimator, t).model_) * at)
        for t in when
    ]
    return np.array(found) if rounds is not None else _plain(found[0])


def _plain(found: np.ndarray) -> Any:
    return float(found) if found.ndim == 0 else found


@dataclass(frozen=True)
class MarginBracket:
    """low <= rho* <= high: the largest minimum margin of any convex combination of the learners.

    low is the minimum margin of the model, high the least edge W+ - W- = 1 - 2 e of its rounds,
    that of round `round` (counted from 1).
    """

    low: float
    high: float
    round: int


def margin_bracket(estimator: Any, X: Any, y: Any) -> MarginBracket:
    """Between which numbers the largest possible minimum margin rho* is.

    By the minimax theorem rho* is the least over all weights D of the largest edge of a learner,
    max_h sum_i D_i y_i h(x_i). A round that takes the learner with the largest edge shows an upper
    bound, the model itself a lower one.

    Parameters
    ----------
    estimator : AdaBoostClassifier, variant="discrete", of two classes, fitted to X and y: of
        stumps, a Pool, or learners that are drawn once (redraw="once")
    X, y : the rows that it was trained on
    """
    check_boosted_classifier(estimator)
    learner = getattr(estimator, "estimator", None)
    best = learner is None or hasattr(learner, "gradient_learner")
    best = best and getattr(learner, "redraw", "once") == "once"
    best = best and getattr(learner, "choose", "edge") == "edge"
    if (
        getattr(estimator, "variant", None) != "discrete"
        or len(estimator.classes_) != 2
        or not best
    ):
        raise ValueError(
            "The bracket needs AdaBoostClassifier with variant='discrete', two classes, and a "
            "learner that finds the largest edge: stumps, a Pool with choose='edge', or redraw="
            f"'once'; got {estimator!r} with {len(estimator.classes_)} classes."
        )
    if not estimator.n_estimators_:
        raise ValueError("The bracket needs a round at least; the model has none.")
    _, right, wrong, _ = estimator.history_.weights[: estimator.n_estimators_].T
    edges = right - wrong
    low = float(np.min(to_numpy(margins(estimator, X, y))))
    return MarginBracket(low, float(edges.min()), int(edges.argmin()) + 1)


@dataclass(frozen=True)
class GeneralisationBound:
    """P(error on a new row) <= bound, with probability 1 - delta; the terms add up to it.

    Attributes
    ----------
    theta : the margin in question
    share : of the training rows with a margin of theta or less
    complexity_term : (4 / theta) Rad_m(H)
    theta_term : sqrt(ln(log2(2 / theta)) / m)
    confidence_term : sqrt(ln(2 / delta) / (2 m))
    bound : their sum; from 1 on it says nothing (`vacuous`)
    """

    theta: float
    share: float
    complexity_term: float
    theta_term: float
    confidence_term: float

    @property
    def bound(self) -> float:
        return math.fsum([self.share, self.complexity_term, self.theta_term, self.confidence_term])

    @property
    def vacuous(self) -> bool:
        return self.bound >= 1.0


def generalisation_bound(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    theta: float | None = None,
    delta: float = 0.05,
    complexity: float | None = None,
) -> GeneralisationBound:
    """A bound on the error on new rows that depends on margins and not on the number of rounds.

    With probability 1 - delta over m training rows, for all theta in (0, 1] at once and every
    convex combination f of learners h in H,

        P(y f <= 0) <= share(y f <= theta) + (4 / theta) Rad_m(H)
                       + sqrt(ln(log2(2 / theta)) / m) + sqrt(ln(2 / delta) / (2 m)).

    For one theta: (2 / theta) Rad_m(H) by symmetrisation and contraction of a ramp of slope
    1 / theta, and McDiarmid's sqrt(ln(1 / delta) / (2 m)). For all of them: theta_k = 2^-k with the
    deviation sqrt(ln k / m) more, so that the chances add up to delta sum 1 / (2 k^2) < delta, and
    the theta_k next below theta is more than theta / 2 (Koltchinskii & Panchenko 2002).

    Parameters
    ----------
    estimator : a fitted boosted classifier of two classes, as of `margins`
    X, y : the rows that it was trained on
    theta : in (0, 1]; None: the best of 200
    delta : in (0, 1)
    complexity : Rad_m(H) or a bound on it (`vc_complexity`); None: `stump_complexity`
    """
    if theta is not None:
        check_real("theta", theta, 0.0, 1.0)
    at = THETAS if theta is None else np.array([theta])
    found = generalisation_bounds(estimator, X, y, at, delta=delta, complexity=complexity)
    return min(found, key=lambda one: one.bound)


def generalisation_bounds(
    estimator: Any, X: Any, y: Any, thetas: Any, *, delta: float, complexity: float | None
) -> list[GeneralisationBound]:
    """`generalisation_bound` at each of several theta."""
    check_boosted_classifier(estimator)
    check_real("delta", delta, 0.0, 1.0)
    if len(estimator.classes_) != 2:
        raise ValueError(f"The bound is for two classes; got {len(estimator.classes_)}.")
    found = np.asarray(to_numpy(margins(estimator, X, y)))
    return margin_terms(found, complexity_of(estimator, complexity, len(found)), thetas, delta)


def margin_terms(
    found: np.ndarray, complexity: float, thetas: Any, delta: float
) -> list[GeneralisationBound]:
    """The bound from margins, at each theta."""
    m = len(found)
    return [
        GeneralisationBound(
            float(at),
            float(np.mean(found <= at)),
            4.0 * complexity / float(at),
            math.sqrt(math.log(math.log2(2.0 / at)) / m),
            math.sqrt(math.log(2.0 / delta) / (2.0 * m)),
        )
        for at in thetas
    ]
