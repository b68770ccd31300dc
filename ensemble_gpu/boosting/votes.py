"""The votes strategy: discrete AdaBoost of learners that answer -1, 0 or +1 (pools, rectangles).

Every row's weight is a fixed-point logarithm (kernels/fixedpoint.py), to which a round adds

    -y_i alpha h(x_i)    for two classes; for K classes alpha / K where h is wrong and
                         -alpha (K - 1) / K where it is right (SAMME: weights are exp(-F_y))

rounded to an integer number of units: exact, in any order, on every engine. The weights of a round
are these logarithms as integers q_i, of which a finder (learners/votes.py) adds up what its voters
get right and wrong. With W+, W- and W0 these sums and what abstains, e = W- / (W+ + W-),

    alpha = nu / 2 ln((1 - e) / e),    Z = W0 + W- e^alpha + W+ e^-alpha

and for K classes alpha = nu (ln((1 - e) / e) + ln(K - 1)). The rounds end where no edge is left.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ensemble_gpu.boosting.rules import AdaBoostRule, round_weights
from ensemble_gpu.kernels.fixedpoint import from_log, quantum_bits
from ensemble_gpu.kernels.host.adaboost import MOST_CONFIDENT, SMALLEST_ERROR
from ensemble_gpu.kernels.host.scalar import log
from ensemble_gpu.kernels.host.weights import is_chance
from ensemble_gpu.kernels.protocol import ABSTAIN, LEFT, N_LEAVES, RIGHT, Engine
from ensemble_gpu.learners.votes import Found, Vote, Voters


class Votes:
    """The votes strategy on one engine; `logs` are the rows' logarithms of weights, int64."""

    def __init__(
        self, engine: Engine, voters: Voters, rule: AdaBoostRule, logs: Any, rate: float,
        loss: float = 1.0,
    ) -> None:  # fmt: skip
        self.engine, self.finder, self.rule, self.rate = engine, voters.finder, rule, rate
        self.logs, self.loss = logs, loss
        self.n_classes = max(2, rule.n_outputs)
        self.bits = quantum_bits(logs.shape[0])
        self.reason = ""
        # Found on the way to the last round; it could be found from the round as well.
        self.found: tuple[Any, Any] | None = None

    def best(self) -> Vote | None:
        where, xp = self.engine.where, self.engine.where.xp
        q, _ = self.engine.quantised(self.logs, self.bits)
        found = self.finder.by_weight(q)
        if found is None:
            self.reason = "no voter is better than chance"
            return None
        total = int(xp.sum(xp.astype(q, xp.int64)))
        vote = self._vote(found, total)
        if vote is not None:
            codes = self.finder.rights(vote.key)
            right = RIGHT if vote.alpha > 0.0 else LEFT
            perfect = bool(xp.all(codes == where.full(right, codes.dtype)))
            vote = Vote(vote.key, vote.alpha, vote.error, perfect, vote.weights)
            self.found = vote, codes
        return vote

    def _vote(self, found: Found, total: int) -> Vote | None:
        """The round of a voter; None where it is no better than chance."""
        wrong, right = found.sums[0].tolist()
        flipped = self.n_classes == 2 and wrong > right
        if flipped:
            wrong, right = right, wrong
        voting = right + wrong
        chance = self.rule.chance
        score = wrong + chance * (total - voting)
        if is_chance(score, chance, float(total)):
            self.reason = f"no voter is better than chance (its score: {score / total:.6f})"
            return None
        error = wrong / voting
        e = max(error, SMALLEST_ERROR)
        alpha = self.rate * (log((1.0 - e) / e) + log(self.n_classes - 1.0))
        alpha = min(alpha, MOST_CONFIDENT)
        alpha = 0.5 * alpha if self.n_classes == 2 else alpha
        shares = [(total - voting) / total, right / total, wrong / total]
        weights = round_weights(self.rule, error, alpha, shares)
        return Vote(found.key, -alpha if flipped else alpha, error, False, weights)

    def training_loss(self, vote: Vote) -> float:
        """Mean of exp(-margin), relative to that of the outputs 0 (SAMME: of exp(-F_y))."""
        assert vote.weights is not None
        return self.loss * vote.weights.Z

    def follow(self, vote: Vote) -> None:
        where, xp = self.engine.where, self.engine.where.xp
        if self.found is not None and self.found[0] is vote:
            codes = self.found[1]
        else:
            codes = self.finder.rights(vote.key)
        logs, others = np.zeros(N_LEAVES), self.n_classes - 1
        b = vote.alpha if others == 1 else vote.alpha * others / self.n_classes
        logs[[LEFT, RIGHT, ABSTAIN]] = b / others, -b, 0.0
        self.loss, self.found = self.training_loss(vote), None
        self.logs = self.logs + xp.take(where.put(from_log(logs)), codes)
