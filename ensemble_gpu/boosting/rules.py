"""The variants of AdaBoost: how a split is scored and what its leaves say.

Weights are D(i), total W; W_l+ and W_l- are the positive and negative weight in leaf l, W_0 the
weight of abstaining rows (missing feature), nu the learning rate.

real      Schapire & Singer 1999, section 4.1. c_l = 1/2 ln((W_l+ + s) / (W_l- + s)).
          A split is scored by Z / 2 = W_0 / 2 + sum_l sqrt(W_l+ W_l-).
gentle    Friedman, Hastie & Tibshirani 2000. c_l = (W_l+ - W_l-) / (W_l+ + W_l-).
          Scored by a quarter of the weighted squared error:
          W_0 / 4 + sum_l W_l+ W_l- / (W_l+ + W_l-).
discrete  The textbook. Each leaf votes -1 or +1 for its heavier class (both polarities, and the
          constant); e = weight of the wrong rows divided by the weight of the voting ones;
          alpha = 1/2 ln((1 - e) / e). Scored by wrong + W_0 / 2: to abstain is to guess.

After a round w_i <- w_i exp(-y_i nu c(x_i)); an abstaining row's weight stays.

Three or more classes: real and gentle are AdaBoost.MH, one weight per (row, class) with
Y_ik = +1 for the true class and -1 otherwise; scores are summed over the classes and each leaf
has K values. discrete is SAMME (Zhu et al. 2009): each leaf votes for its heaviest class,
alpha = ln((1 - e) / e) + ln(K - 1), the weights of rows voted wrong are multiplied by
exp(nu alpha), and abstaining rows count as guesses that err with probability 1 - 1/K.

Smoothing: s = W / (2 m) per plane, m the number of rows. With sample weights m is the total weight
in units of the smallest, so a row of weight 3 equals three rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ensemble_gpu.kernels.protocol import (
    CONFIDENCE,
    GENTLE,
    MAJORITY,
)
from ensemble_gpu.learners.protocol import RoundWeights
from ensemble_gpu.model.link import MARGINS, VOTES


@dataclass(frozen=True)
class AdaBoostRule:
    """One variant for K classes.

    `abstention` times a weight is its price in the score when it abstains; `chance` times the
    total weight is what a useless split scores (the two are equal: to abstain is to guess).
    `group_of` lays out the weights (see kernels/protocol.py), `n_outputs` the model.
    """

    name: str
    kind: int
    chance: float
    group_of: np.ndarray
    n_outputs: int
    reports: str

    @property
    def link(self) -> str:
        """How outputs become probabilities (model/link.py): SAMME's are votes for classes."""
        return VOTES if self.kind == MAJORITY and self.n_outputs > 1 else MARGINS


def rule_for(variant: str, n_classes: int) -> AdaBoostRule:
    """The rule of a variant for a number of classes; formulas at the top of this file."""
    each = np.arange(n_classes, dtype=np.int64)
    if variant == "discrete":
        name, outputs = ("discrete", 1) if n_classes == 2 else ("SAMME", n_classes)
        chance = 1.0 - 1.0 / n_classes
        return AdaBoostRule(name, MAJORITY, chance, each[None, :], outputs, "weighted error")
    kind, chance = (CONFIDENCE, 0.5) if variant == "real" else (GENTLE, 0.25)
    if n_classes == 2:
        return AdaBoostRule(variant, kind, chance, np.array([[1, 0]], dtype=np.int64), 1, "Z")
    group_of = 2 * each[:, None] + (each != each[:, None])
    return AdaBoostRule(f"{variant} (MH)", kind, chance, group_of, n_classes, "Z")


def best_constant(rule: AdaBoostRule, shares: np.ndarray) -> np.ndarray:
    """The outputs that minimise the loss without any stump, from the classes' shares p_k.

    1/2 ln(p_k / (1 - p_k)) for margins (class 1 of two), ln p_k for votes.
    """
    if rule.link == VOTES:
        return np.log(shares)
    odds = 0.5 * np.log(shares / (1.0 - shares))
    return odds if rule.n_outputs > 1 else odds[1:]


def round_weights(
    rule: AdaBoostRule, error: float, alpha: float, shares: Sequence[float]
) -> RoundWeights:
    """Shares of the weight before a round, and Z_t: the mean loss after it over that before it.

    Rules that report Z have it. With W0, W+ and W- the shares of abstaining rows and of those that
    the vote gets right and wrong,

        Z = W0 + W+ exp(-b) + W- exp(b / (K - 1)),    b = alpha (K - 1) / K for K > 2 classes

    and b = alpha for two: the factor on the mean of exp(-y F), or on SAMME's mean of exp(-F_y),
    where a learner answers 1 for its class and -1 / (K - 1) for the others (Zhu et al. 2009).
    """
    abstaining, right, wrong = shares
    if rule.kind != MAJORITY:
        return RoundWeights(abstaining, right, wrong, error)
    others = max(1, rule.n_outputs - 1)
    b = alpha if rule.n_outputs == 1 else alpha * others / rule.n_outputs
    Z = abstaining + right * math.exp(-b) + wrong * math.exp(b / others)
    return RoundWeights(abstaining, right, wrong, Z)
