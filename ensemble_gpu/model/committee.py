"""A committee of classifiers: F(x) = sum over rounds t of alpha_t h_t(x).

The learners know the classes as 0 ... K - 1. What one says, h, is

a vote         -1 or +1 for two classes; for more, 1 for its class and 0 for the others (SAMME)
a confidence   h_k = ln p_k - mean_j ln p_j of its probabilities p_k, none below `least`

and for two classes a confidence is one number, h = 1/2 ln(p / (1 - p)), as in Real AdaBoost. For
more classes it is SAMME.R's (K - 1) (ln p_k - mean_j ln p_j), divided by K - 1, so that, as for
votes, probabilities are proportional to exp(F_k).
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ensemble_gpu.arrays.devices import to_workplace
from ensemble_gpu.arrays.namespace import NUMPY, Where, locate
from ensemble_gpu.model.inputs import rows_of
from ensemble_gpu.model.link import MARGINS, VOTES
from ensemble_gpu.model.stages import stages


def check_reach(learner: Any, where: Where) -> None:
    """Raise where a learner would be given arrays that it cannot take.

    Estimators of this package say `takes_any_array`; of others only NumPy is assumed.
    """
    if where is not NUMPY and not getattr(learner, "takes_any_array", False):
        raise ValueError(
            f"{type(learner).__name__} works on NumPy arrays; X is {where}, and nothing is moved "
            "silently. device='cpu' copies X to the host; an estimator of this package works where "
            "X is."
        )


@dataclass(frozen=True)
class Voice:
    """What a learner says about rows: votes (`least` is None) or confidences."""

    n_classes: int
    least: float | None

    @property
    def n_outputs(self) -> int:
        return self.n_classes if self.n_classes > 2 else 1

    @property
    def link(self) -> str:
        return VOTES if self.n_classes > 2 else MARGINS

    @property
    def span(self) -> float:
        """What h can say for a class more than for another, at the most."""
        if self.least is None:
            return 2.0 if self.n_outputs == 1 else 1.0
        return math.log((1.0 - self.least) / self.least)

    def __call__(self, learner: Any, X: Any, where: Where) -> Any:
        """h(X) as float64 [n, outputs]."""
        if self.least is None:
            return self._votes(learner.predict(X), where)
        return self._confidences(self._probabilities(learner, X, where), self.least, where)

    def _votes(self, predicted: Any, where: Where) -> Any:
        xp = where.xp
        index = xp.astype(predicted, xp.int64)[:, None]
        if self.n_outputs == 1:
            return 2.0 * where.as_float64(index) - 1.0
        return where.as_float64(index == xp.arange(self.n_classes, device=where.device)[None, :])

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


@dataclass(frozen=True, eq=False, repr=False)
class Committee:
    """An immutable weighted sum of fitted classifiers; call it with rows."""

    learners: tuple[Any, ...]
    alphas: np.ndarray
    voice: Voice = field(kw_only=True)
    n_features: int = field(kw_only=True)

    def __post_init__(self) -> None:
        self.alphas.setflags(write=False)

    def __len__(self) -> int:
        return len(self.learners)

    @property
    def n_outputs(self) -> int:
        return self.voice.n_outputs

    @property
    def largest_margin(self) -> float:
        """F_c - max_{k != c} F_k of a row that every learner gets right with all its might."""
        return self.voice.span * float(self.alphas.sum())

    def __repr__(self) -> str:
        kinds = Counter(type(learner).__name__ for learner in self.learners)
        names = ", ".join(f"{n} {name}" for name, n in kinds.items()) or "nobody"
        return f"Committee({names}; {self.n_features} features, {self.n_outputs} output(s))"

    def first(self, n_rounds: int) -> Committee:
        """The model of the first n rounds (of all, where there are fewer)."""
        if n_rounds < 0:
            raise ValueError(f"n_rounds must be an integer >= 0; got {n_rounds!r}.")
        return Committee(
            self.learners[:n_rounds],
            self.alphas[:n_rounds].copy(),
            voice=self.voice,
            n_features=self.n_features,
        )

    def fingerprint(self) -> str:
        """SHA-256 of the canonical bytes, where the learners' own models have one."""
        digest = hashlib.sha256(b"ensemble_gpu.Committee.1")
        least = -1.0 if self.voice.least is None else self.voice.least
        sizes = [self.n_features, self.voice.n_classes, len(self)]
        digest.update(np.array(sizes, dtype="<i8").tobytes())
        digest.update(np.array([least, *self.alphas], dtype="<f8").tobytes())
        for learner in self.learners:
            own = getattr(getattr(learner, "model_", None), "fingerprint", None)
            if own is None:
                raise TypeError(
                    f"{type(learner).__name__} has no fingerprint; estimators of this package have."
                )
            digest.update(np.array(learner.classes_, dtype="<i8").tobytes())
            digest.update(own().encode())
        return digest.hexdigest()

    def __call__(self, X: Any, n_jobs: int | None = None) -> Any:
        """F(X) as float64 [n, outputs], in the namespace and on the device of X.

        Each learner decides for itself how many threads it takes: `n_jobs` says nothing here.
        """
        (F,) = self.staged(X, [len(self)])
        return F

    def staged(self, X: Any, rounds: Sequence[int] | None = None) -> Iterator[Any]:
        """F after each round, starting with the first, or after the chosen ones (ascending)."""
        X = rows_of(X, self.n_features)
        home, X = locate(X), to_workplace(X)
        where = locate(X)
        for learner in self.learners[:1]:
            check_reach(learner, where)
        total = where.zeros((X.shape[0], self.n_outputs), where.xp.float64)
        asked = range(1, len(self) + 1) if rounds is None else rounds
        for first, last in stages(asked, len(self)):
            for t in range(first, last):
                total = total + float(self.alphas[t]) * self.voice(self.learners[t], X, where)
            yield home.hand_over(
                total + 0.0
            )  # the next stage does not depend on what becomes of it
