"""K classes from a learner that knows two: each is asked about two groups of the classes.

Y_ik = +1 where k is the class of row i, else -1. F_k <- F_k + alpha s_k h(x), s the code of a
round, h in {-1, +1} (or, in the real variant, confidences).

single  AdaBoost.MH (Schapire & Singer 1999), R = mean over i, k of exp(-Y_ik F_k): a learner for
        every class k is fitted to Y_ik with the weights D(i, k), and the one with the least
        Z = sum_{j != k} W_j + W_k Z_k speaks, in the discrete variant W_k Z_k = 2 sqrt(W_k+ W_k-);
        s_k = 1, the other classes abstain. Only class k's weights change, so only its learner is
        fitted anew. A row that is classified wrong has sum_k exp(-Y_ik F_k) >= 2, hence
        error <= (K / 2) prod_t Z_t.
codes   AdaBoost.OC (Schapire 1997): classes are coloured mu_t: {1 ... K} -> {-1, +1}, by a hash
        of the seed, with both colours; a learner is fitted to mu_t(y_i) with weights proportional
        to the sum over k of D(i, k) 1[mu_t(k) != mu_t(y_i)]. s = mu_t: F_k - F_y moves for classes
        of the other colour alone, the others abstain. R = mean of sum_{k != y} exp(F_k - F_y)^(1/2)
        and error <= (K - 1) prod_t Z_t.
ovr     K separate AdaBoosts, a class against the rest; a round is one of each.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ensemble_gpu.arrays.namespace import Where
from ensemble_gpu.boosting.one_class import OneClassAtATime, OneClassTrail
from ensemble_gpu.boosting.reweigh import Reweigh, Verdict
from ensemble_gpu.data.bags import learner_seed
from ensemble_gpu.data.rows import Rows
from ensemble_gpu.learners.classifier import Member
from ensemble_gpu.learners.foreign import tags_of, total_weight
from ensemble_gpu.learners.protocol import RoundWeights
from ensemble_gpu.model.answers import Coded, Each
from ensemble_gpu.model.committee import Voice

AUTO, SHARED, SINGLE, CODES, OVR = "auto", "shared", "single", "codes", "ovr"
FORMS = (AUTO, SHARED, SINGLE, CODES, OVR)
# Of weights that a round does not change.
SILENT = RoundWeights(1.0, 0.0, 0.0, 1.0)
# Colourings that are tried in a round before it ends the fit.
MOST_COLOURINGS = 10


def knows_several(learner: Any) -> bool:
    """Whether a classifier says that it takes more than two classes."""
    tags = tags_of(learner)
    return tags is None or tags.classifier_tags is None or tags.classifier_tags.multi_class


def form_of(learner: Any, given: str, n_classes: int) -> str:
    """How K classes are learnt; two of them always as they are."""
    if n_classes == 2:
        return SHARED
    if given == AUTO:
        return SHARED if knows_several(learner) else SINGLE
    return given


def coded_strategy(
    form: str,
    learner: Any,
    rows: Rows,
    binary: Voice,
    n_classes: int,
    rate: float,
    seed: int,
    where: Where,
) -> OneClassAtATime | OneVersusRest | Codes:
    """The strategy of a learner of two classes, for K of them."""
    if form == CODES:
        return Codes(learner, rows, binary, n_classes, rate, seed, where)
    xp = where.xp
    classes = [
        Reweigh(
            learner,
            Rows(rows.X, xp.astype(rows.target == k, xp.int64), rows.weights),
            binary,
            rate,
            learner_seed(seed, k, 0),
            where,
            alone=False,
        )
        for k in range(n_classes)
    ]
    return OneLearnerAtATime(classes) if form == SINGLE else OneVersusRest(classes)


def useless(learner: Any, reason: str) -> ValueError:
    """The error where the first round finds nothing."""
    return ValueError(
        f"estimator {type(learner).__name__} is of no use in the first round, for any class or "
        f"group of classes: {reason}."
    )


def unit_code(k: int, n_classes: int, value: float = 1.0) -> tuple[float, ...]:
    """`value` for class k, 0 for the others."""
    return tuple(value if j == k else 0.0 for j in range(n_classes))


def of_member(member: Member, k: int, n_classes: int, weights: RoundWeights) -> Member:
    """A round of class k as a round of all of them."""
    return replace(
        member,
        learner=Coded(member.learner, unit_code(k, n_classes)),
        error=weights.Z,
        perfect=False,
        weights=weights,
        trail=OneClassTrail(k, member),
    )


class OneLearnerAtATime(OneClassAtATime):
    """The class whose learner lowers the loss most, round by round."""

    def __init__(self, classes: Sequence[Reweigh]) -> None:
        super().__init__(classes, of_member)

    def best(self) -> Member | None:
        found = super().best()
        if found is None and not any(own.n_followed for own in self.classes):
            raise useless(self.classes[0].learner, self.reason)
        return found


class OneVersusRest:
    """One binary AdaBoost a class, a round of each at a time."""

    def __init__(self, classes: Sequence[Reweigh]) -> None:
        self.classes = classes
        self.ended = [False] * len(classes)
        self.reason = ""

    def best(self) -> Member | None:
        """A class whose learner is right for every row, or no better than chance, has ended."""
        own = [None if ended else strategy.best()
               for ended, strategy in zip(self.ended, self.classes, strict=True)]  # fmt: skip
        found = [(k, member) for k, member in enumerate(own) if member is not None]
        if not found:
            self.reason = next((s.reason for s in self.classes if s.reason), "") or (
                "a learner of every class classifies every row correctly"
            )
            if not any(strategy.n_followed for strategy in self.classes):
                raise useless(self.classes[0].learner, self.reason)
            return None
        K = len(self.classes)
        parts = tuple(Coded(member.learner, unit_code(k, K, member.alpha)) for k, member in found)
        error = float(np.mean([member.error for _, member in found]))
        return Member(Each(parts), 1.0, error, False, self._weights(own), tuple(own))

    def _weights(self, own: Sequence[Member | None]) -> RoundWeights:
        """Shares of the weight of all classes; those of a class that has ended abstain."""
        total = math.fsum(strategy.loss for strategy in self.classes)
        sums = np.zeros(4)
        for strategy, member in zip(self.classes, own, strict=True):
            weights = SILENT if member is None else member.weights
            assert weights is not None
            sums += strategy.loss / total * np.array(weights)
        return RoundWeights(*sums.tolist())

    def training_loss(self, round_: Member) -> float:
        """Mean of exp(-Y_ik F_k) over rows and classes."""
        assert round_.weights is not None
        return round_.weights.Z * float(np.mean([strategy.loss for strategy in self.classes]))

    def follow(self, round_: Member) -> None:
        for k, member in enumerate(round_.trail):
            self.ended[k] = member is None or member.perfect
            if member is not None:
                self.classes[k].follow(member)


class Codes:
    """Learners of two colours of classes; weights D(i, k), k not the class of the row."""

    def __init__(
        self, learner: Any, rows: Rows, binary: Voice, n_classes: int, rate: float, seed: int,
        where: Where,
    ) -> None:  # fmt: skip
        self.learner, self.rows, self.binary, self.where = learner, rows, binary, where
        self.n_classes, self.rate, self.seed = n_classes, rate, seed
        self.y = where.host(rows.target)
        weights = None if rows.weights is None else where.host(rows.weights)
        self.total = total_weight(weights, len(self.y))
        each = np.zeros(len(self.y)) if weights is None else np.log(weights)
        self.logs = np.where(self.y[:, None] == np.arange(n_classes), -np.inf, each[:, None])
        self.number, self.loss, self.reason = 0, 1.0, ""
        self.found: tuple[Member, Verdict] | None = None

    def colouring(self, number: int) -> np.ndarray:
        """mu of a round: the bits of a hash, the first that are not all alike."""
        mu, which = np.ones(self.n_classes), 0
        while (mu == mu[0]).all():
            bits = [
                learner_seed(self.seed, number, which + k) >> 11 & 1 for k in range(self.n_classes)
            ]
            mu, which = 2.0 * np.array(bits) - 1.0, which + self.n_classes
        return mu

    def _asked(self, number: int) -> tuple[np.ndarray, np.ndarray, Reweigh]:
        """(mu, shares of the weight D(i, k), a strategy of two colours at this D)."""
        mu = self.colouring(number)
        shares = np.exp(self.logs - self.logs.max())
        shares = shares / shares.sum()
        own = mu[self.y]
        across = np.where(mu[None, :] != own[:, None], shares, 0.0)
        labels = self.where.put((own > 0.0).astype(np.int64))
        asked = Reweigh(
            self.learner, Rows(self.rows.X, labels, None), self.binary, self.rate,
            learner_seed(self.seed, number, 1 << 20), self.where, alone=False,
        )  # fmt: skip
        asked.logs, asked.total = np.log(across.sum(axis=1)), self.total
        return mu, across, asked

    def best(self) -> Member | None:
        """A round; the next colouring is tried where a learner is of no use for one."""
        for number in range(self.number, self.number + MOST_COLOURINGS):
            mu, across, asked = self._asked(number)
            member = asked.best()
            if member is None:
                continue
            assert asked.found is not None
            assert member.weights is not None
            voting = float(across.sum())
            mixed = voting * np.array(member.weights) + (1.0 - voting) * np.array(SILENT)
            weights = RoundWeights(*mixed.tolist())
            found = Member(
                Coded(member.learner, tuple(mu.tolist())), member.alpha, member.error, False,
                weights, number,
            )  # fmt: skip
            self.found = found, asked.found[1]
            return found
        self.reason = f"{asked.reason} for {MOST_COLOURINGS} colourings"
        if self.number == 0:
            raise useless(self.learner, self.reason)
        return None

    def training_loss(self, round_: Member) -> float:
        """Mean loss, relative to that of the outputs 0."""
        assert round_.weights is not None
        return self.loss * round_.weights.Z

    def follow(self, round_: Member) -> None:
        mu, _, asked = self._asked(round_.trail)
        if self.found is not None and self.found[0] is round_:
            verdict = self.found[1]
        else:
            verdict = asked._judged(round_.learner.learner, asked._distribution())
        self.loss, self.found = self.training_loss(round_), None
        across = mu[None, :] != mu[self.y][:, None]
        self.logs = self.logs + np.where(across, verdict.change[:, None], 0.0)
        self.number = round_.trail + 1
