"""What learners that were fitted to gradients answer: numbers, or the signs of a classifier.

One learner may answer for all outputs, or every output has its own (`Each`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ensemble_gpu.arrays.namespace import Where, locate


@dataclass(frozen=True)
class Each:
    """A learner for every output, in order."""

    learners: tuple[Any, ...]


@dataclass(frozen=True)
class Coded:
    """A classifier of two groups of K classes: its answer times code_k counts for class k."""

    learner: Any
    code: tuple[float, ...]


def uncoded(learner: Any) -> Any:
    """The classifier itself."""
    return learner.learner if isinstance(learner, Coded) else learner


@dataclass(frozen=True)
class Always:
    """The classifier of rows that all have one label, which it predicts; most others refuse."""

    takes_any_array = True

    label: int

    def predict(self, X: Any) -> Any:
        where = locate(X)
        return where.zeros(X.shape[0], where.xp.int64) + self.label


def parts(learner: Any) -> tuple[Any, ...]:
    """The learners of a round, one by one."""
    return learner.learners if isinstance(learner, Each) else (learner,)


@dataclass(frozen=True)
class Answers:
    """How a learner answers for rows: a number an output; of a classifier -1, 0 or +1.

    Classifiers are fitted to the labels -1 and +1; an answer of 0 or NaN abstains, and counts as 0.
    """

    n_outputs: int
    signs: bool

    @property
    def span(self) -> float:
        """The largest difference between the answers for two classes, where there is one."""
        if not self.signs:
            raise TypeError(
                "margins are normalised by the largest answers of the learners, and a regressor's "
                "have no bound."
            )
        return 2.0

    def span_of(self, learner: Any) -> float:
        return self.span

    def canonical(self) -> tuple[list[int], list[float]]:
        """The integers and the floats that say what this is."""
        return [-self.n_outputs, int(self.signs)], []

    def __call__(self, learner: Any, X: Any, where: Where) -> Any:
        """h(X) as float64 [n, outputs]."""
        own = parts(learner)
        found = [self._checked(one, one.predict(X), X.shape[0], len(own), where) for one in own]
        h = found[0] if len(found) == 1 else where.xp.concat(found, axis=1)
        return self._as_signs(h, learner, where) if self.signs else self._finite(h, learner, where)

    def _checked(self, learner: Any, answer: Any, n: int, n_parts: int, where: Where) -> Any:
        width = self.n_outputs // n_parts
        shape = tuple(np.shape(answer))
        if shape != (n, width) and not (width == 1 and shape == (n,)):
            raise ValueError(
                f"estimator {type(learner).__name__} must predict {width} number(s) a row; for {n} "
                f"rows its answer has shape {shape}."
            )
        answer = answer if len(shape) == 2 else where.xp.reshape(answer, (n, 1))
        return where.as_float64(answer)

    def _as_signs(self, h: Any, learner: Any, where: Where) -> Any:
        xp = where.xp
        h = xp.where(xp.isnan(h), xp.zeros_like(h), h)
        if bool(xp.any((h != 0.0) & (xp.abs(h) != 1.0))):
            raise ValueError(
                f"estimator {type(parts(learner)[0]).__name__} must predict the labels that it was "
                "fitted to, -1 and +1 (0 or NaN abstains)."
            )
        return h

    def _finite(self, h: Any, learner: Any, where: Where) -> Any:
        if not bool(where.xp.all(where.xp.isfinite(h))):
            raise ValueError(
                f"estimator {type(parts(learner)[0]).__name__} predicts NaN or infinity; a "
                "regressor's answers must be finite."
            )
        return h
