"""A committee of learners: F(x) = c + sum over rounds t of alpha_t h_t(x).

c is the intercept, 0 for AdaBoost. Learners of gradients answer with numbers or signs
(model/answers.py). Those of AdaBoost are fitted to classes 0 ... K - 1. The answer h of one is

a vote         -1 or +1 for two classes, 0 for a row of which it says nothing (NaN, and 0 where it
               is fitted to -1 and +1); for more, 1 for its class and 0 for the others (SAMME)
a confidence   h_k = ln p_k - mean_j ln p_j of its probabilities p_k, none below `least`

and for two classes a confidence is one number, h = 1/2 ln(p / (1 - p)), as in Real AdaBoost. For
more classes it is SAMME.R's (K - 1) (ln p_k - mean_j ln p_j), divided by K - 1, so that, as for
votes, probabilities are proportional to exp(F_k).

A learner that knows two classes answers for two groups of them: its h times code_k is added to F_k
(`Coded`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ensemble_gpu.arrays.namespace import NUMPY, Where
from ensemble_gpu.model.answers import Always, Answers, Coded, parts, uncoded
from ensemble_gpu.model.base import (
    Model,
    NoFingerprintError,
    canonical_bytes,
    check_array,
    check_length,
    read_only,
)
from ensemble_gpu.model.inputs import rows_at_work
from ensemble_gpu.model.link import MARGINS, VOTES
from ensemble_gpu.model.stages import stages


def check_reach(learner: Any, where: Where) -> None:
    """Raise where a learner would be given arrays that it cannot take.

    Estimators of this package have `takes_any_array`; others are given NumPy arrays only.
    """
    if where is not NUMPY and not getattr(learner, "takes_any_array", False):
        raise ValueError(
            f"{type(learner).__name__} works on NumPy arrays; X is {where}, and nothing is moved "
            "silently. device='cpu' copies X to the host; an estimator of this package works where "
            "X is."
        )


@dataclass(frozen=True)
class Voice:
    """How a learner answers for rows: votes (`least` is None) or confidences."""

    n_classes: int
    least: float | None
    signed: bool = False  # two classes are -1 and +1 for the learner, and 0 abstains

    @property
    def n_outputs(self) -> int:
        return self.n_classes if self.n_classes > 2 else 1

    def canonical(self) -> tuple[list[int], list[float]]:
        """The integers and the floats that say what this is."""
        kind = [self.n_classes, 1] if self.signed else [self.n_classes]
        return kind, [-1.0 if self.least is None else self.least]

    def labels(self, index: Any) -> Any:
        """What the learner is told of the classes 0 ... K - 1."""
        return 2 * index - 1 if self.signed else index

    def span_of(self, learner: Any) -> float:
        """The largest difference between a learner's answers for two classes."""
        return self.span

    @property
    def link(self) -> str:
        return VOTES if self.n_classes > 2 else MARGINS

    @property
    def span(self) -> float:
        """The largest difference between the answers for two classes."""
        if self.least is None:
            return 2.0 if self.n_outputs == 1 else 1.0
        return math.log((1.0 - self.least) / self.least)

    def __call__(self, learner: Any, X: Any, where: Where) -> Any:
        """h(X) as float64 [n, outputs]."""
        if self.least is None:
            return self._votes(learner, learner.predict(X), X.shape[0], where)
        return self._confidences(self._probabilities(learner, X, where), self.least, where)

    def _votes(self, learner: Any, predicted: Any, n: int, where: Where) -> Any:
        xp = where.xp
        shape = tuple(np.shape(predicted))
        if shape != (n,):
            raise ValueError(
                f"estimator {type(learner).__name__} must predict a label a row; for {n} rows its "
                f"answer has shape {shape}."
            )
        label = where.as_float64(predicted)[:, None]
        if self.n_outputs == 1:
            h = label if self.signed else 2.0 * label - 1.0
            h = xp.where(xp.isnan(h), xp.zeros_like(h), h)
            known = (xp.abs(h) == 1.0) | (xp.isnan(label) | (label == 0.0))
        else:
            h = where.as_float64(
                label == xp.arange(self.n_classes, dtype=xp.float64, device=where.device)[None, :]
            )
            known = xp.sum(h, axis=1) == 1.0
        if not bool(xp.all(known)):
            raise ValueError(
                f"estimator {type(learner).__name__} must predict the labels that it was fitted "
                f"to, {self._allowed}."
            )
        return h

    @property
    def _allowed(self) -> str:
        if self.n_outputs > 1:
            return f"0 ... {self.n_classes - 1}"
        return "-1 and +1 (0 or NaN abstains)" if self.signed else "0 and 1 (NaN abstains)"

    def _probabilities(self, learner: Any, X: Any, where: Where) -> Any:
        """[n, K]; a class that the learner has not seen has probability 0."""
        p = where.as_float64(learner.predict_proba(X))
        if p.shape[1] == self.n_classes:
            return p
        at = {int(label): j for j, label in enumerate(learner.classes_)}
        none = where.xp.zeros_like(p[:, 0])
        columns = [p[:, at[k]] if k in at else none for k in range(self.n_classes)]
        return where.xp.stack(columns, axis=1)

    def _confidences(self, p: Any, least: float, where: Where) -> Any:
        xp = where.xp
        logs = xp.log(xp.minimum(xp.maximum(p, where.full(least)), where.full(1.0 - least)))
        h = logs - xp.mean(logs, axis=1, keepdims=True)
        return h if self.n_outputs > 1 else h[:, 1:]


@dataclass(frozen=True)
class CodedVoice:
    """How learners of two groups of K classes answer: sum of h times code over those of a round."""

    n_classes: int
    binary: Voice
    link: str

    @property
    def n_outputs(self) -> int:
        return self.n_classes

    def canonical(self) -> tuple[list[int], list[float]]:
        integers, floats = self.binary.canonical()
        return [self.n_classes, LINK_NUMBERS[self.link], *integers], floats

    def span_of(self, learner: Any) -> float:
        codes = np.array([part.code for part in parts(learner)])
        apart = np.abs(codes[:, :, None] - codes[:, None, :]).sum(axis=0).max()
        return 0.5 * self.binary.span * float(apart)

    def __call__(self, learner: Any, X: Any, where: Where) -> Any:
        """h(X) as float64 [n, K]."""
        return sum(
            self.binary(part.learner, X, where) * where.put(np.array(part.code))[None, :]
            for part in parts(learner)
        )


LINK_NUMBERS = {MARGINS: 1, VOTES: 2}


class Committee(Model):
    """An immutable weighted sum of fitted learners; call it with arrays of any library.

    Parameters
    ----------
    learners : sequence of fitted classifiers or regressors, one a round (or `Each`: one an output)
    alphas : array of their weights
    voice : Voice, CodedVoice or Answers
    n_features : int
    intercept : array [outputs] or None: zeros
    """

    _format = b"ensemble_gpu.Committee.1"

    learners: tuple[Any, ...]
    alphas: np.ndarray
    voice: Voice | CodedVoice | Answers
    n_features: int
    intercept: np.ndarray

    def __init__(
        self,
        learners: Sequence[Any],
        alphas: np.ndarray,
        *,
        voice: Voice | CodedVoice | Answers,
        n_features: int,
        intercept: np.ndarray | None = None,
    ) -> None:
        start = np.zeros(voice.n_outputs) if intercept is None else intercept
        self._assign(
            learners=tuple(learners),
            alphas=read_only(alphas, np.float64),
            voice=voice,
            n_features=n_features,
            intercept=read_only(start, np.float64),
        )
        check_array("alphas", self.alphas, (len(self.learners),))
        check_array("intercept", self.intercept, (voice.n_outputs,))

    def __getstate__(self) -> dict[str, Any]:
        return {
            "learners": self.learners, "alphas": self.alphas, "voice": self.voice,
            "n_features": self.n_features, "intercept": self.intercept,
        }  # fmt: skip

    def __len__(self) -> int:
        return len(self.learners)

    @property
    def n_outputs(self) -> int:
        return self.voice.n_outputs

    @property
    def largest_margin(self) -> float:
        """The largest F_c - max_{k != c} F_k that the learners allow: sum |alpha_t| span_t."""
        pairs = zip(self.alphas.tolist(), self.learners, strict=True)
        return math.fsum(abs(alpha) * self.voice.span_of(learner) for alpha, learner in pairs)

    def __repr__(self) -> str:
        kinds = Counter(
            type(uncoded(part)).__name__ for learner in self.learners for part in parts(learner)
        )
        names = ", ".join(f"{n} {name}" for name, n in kinds.items()) or "no learners"
        return f"Committee({names}; {self.n_features} features, {self.n_outputs} output(s))"

    def first(self, n_rounds: int) -> Committee:
        """The model of the first n rounds (of all, where there are fewer)."""
        check_length("n_rounds", n_rounds)
        return Committee(
            self.learners[:n_rounds],
            self.alphas[:n_rounds].copy(),
            voice=self.voice,
            n_features=self.n_features,
            intercept=self.intercept,
        )

    def _canonical(self) -> Iterator[bytes]:
        integers, floats = self.voice.canonical()
        yield canonical_bytes([self.n_features, *integers, len(self)])
        yield canonical_bytes([*floats, *self.alphas])
        if self.intercept.any():
            yield canonical_bytes(self.intercept)
        for learner in self.learners:
            for part in parts(learner):
                yield from _canonical_part(part)

    def __call__(self, X: Any, n_jobs: int | None = None) -> Any:
        """F(X) as float64 [n, outputs], in the namespace and on the device of X.

        `n_jobs` is not used: each learner has its own.
        """
        (F,) = self.staged(X, [len(self)])
        return F

    def staged(
        self, X: Any, rounds: Sequence[int] | None = None, n_jobs: int | None = None
    ) -> Iterator[Any]:
        """F after each round, starting with the first, or after the chosen ones (ascending)."""
        X, source, where = rows_at_work(X, self.n_features)
        for learner in self.learners[:1]:
            check_reach(uncoded(parts(learner)[0]), where)
        total = where.zeros((X.shape[0], self.n_outputs), where.xp.float64)
        total = total + where.put(self.intercept)[None, :]
        for first, last in stages(rounds, len(self)):
            for t in range(first, last):
                total = total + float(self.alphas[t]) * self.voice(self.learners[t], X, where)
            yield source.hand_over(total + 0.0)  # a copy: the caller may write to it


def _canonical_part(learner: Any) -> Iterator[bytes]:
    """The labels of a classifier, and the fingerprint of what was learnt."""
    if isinstance(learner, Coded):
        yield canonical_bytes(np.array(learner.code))
        learner = learner.learner
    if isinstance(learner, Always):
        yield canonical_bytes([learner.label])
        return
    own = getattr(getattr(learner, "model_", None), "fingerprint", None)
    if own is None:
        raise NoFingerprintError(
            f"{type(learner).__name__} has no fingerprint; estimators of this package have."
        )
    if hasattr(learner, "classes_"):
        yield canonical_bytes(np.array(learner.classes_, dtype=np.int64))
    yield own().encode()
