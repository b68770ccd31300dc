"""Votes of fixed voters: F(x) = intercept + sum over voters l of c_l h_l(x).

A voter answers -1, 0 (abstains) or +1, or, for three or more classes, with a class, for which it
counts 1; c_l is the sum of the coefficients of the rounds that chose it. However many rounds there
are, a prediction asks each voter once, and those that no round chose never.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import numpy as np

from ensemble_gpu.arrays.namespace import Where, locate
from ensemble_gpu.model.base import Model, canonical_bytes, check_array, check_length, check_range
from ensemble_gpu.model.inputs import rows_at_work
from ensemble_gpu.model.stages import stages


class Voter(Protocol):
    """What a model asks for votes; two that are equal answer alike."""

    def __call__(self, X: Any, where: Where) -> Any:
        """-1, 0 or +1 for every row of X, or the number of a class, -1 abstains: integers."""
        ...

    def canonical(self) -> bytes:
        """Bytes that equal voters share; raises NoFingerprintError where there are none."""
        ...


class VoteModel(Model):
    """An immutable weighted sum of votes; call it with arrays of any library.

    Parameters
    ----------
    voters : sequence of Voter, those that rounds have chosen
    chosen : array of int, the voter of each round
    alphas : array of float, the coefficient of each round
    n_features : int
    intercept : array of n_outputs values; several: one a class
    """

    _format = b"ensemble_gpu.VoteModel.1"

    voters: tuple[Any, ...]
    chosen: np.ndarray
    alphas: np.ndarray
    n_features: int
    intercept: np.ndarray

    def __init__(
        self,
        voters: Sequence[Any],
        chosen: np.ndarray,
        alphas: np.ndarray,
        *,
        n_features: int,
        intercept: np.ndarray,
    ) -> None:
        own = {
            "chosen": np.array(chosen, dtype=np.int64),
            "alphas": np.array(alphas, dtype=np.float64),
            "intercept": np.array(intercept, dtype=np.float64),
        }
        check_array("intercept", own["intercept"], (None,))
        check_array("chosen", own["chosen"], (None,))
        check_array("alphas", own["alphas"], (len(own["chosen"]),))
        check_range("chosen", own["chosen"], 0, len(voters) - 1)
        for array in own.values():
            array.setflags(write=False)
        self._assign(voters=tuple(voters), n_features=n_features, **own)

    def __getstate__(self) -> dict[str, Any]:
        names = ("voters", "chosen", "alphas", "n_features", "intercept")
        return {name: getattr(self, name) for name in names}

    @property
    def n_outputs(self) -> int:
        return len(self.intercept)

    @property
    def n_rounds(self) -> int:
        return len(self.chosen)

    @property
    def coefficients(self) -> np.ndarray:
        """c_l of every voter."""
        return np.bincount(self.chosen, self.alphas, len(self.voters))

    @property
    def largest_margin(self) -> float:
        """The largest F_c - max_{k != c} F_k that the rounds allow; for two classes of 2 F."""
        return (2.0 if self.n_outputs == 1 else 1.0) * float(np.abs(self.alphas).sum())

    def __repr__(self) -> str:
        return (
            f"VoteModel({self.n_rounds} rounds of {len(self.voters)} voters; {self.n_features} "
            f"features, {self.n_outputs} output(s))"
        )

    def _canonical(self) -> Iterator[bytes]:
        yield canonical_bytes([self.n_features, self.n_outputs, len(self.voters), self.n_rounds])
        for array in (self.intercept, self.chosen, self.alphas):
            yield canonical_bytes(array)
        for voter in self.voters:
            yield voter.canonical()

    def first(self, n_rounds: int) -> VoteModel:
        """The model of the first n rounds (of all, where there are fewer)."""
        check_length("n_rounds", n_rounds)
        used, chosen = np.unique(self.chosen[:n_rounds], return_inverse=True)
        return VoteModel(
            [self.voters[k] for k in used],
            chosen,
            self.alphas[:n_rounds],
            n_features=self.n_features,
            intercept=self.intercept,
        )

    def _votes(self, voter: Any, coefficient: float, X: Any, where: Where) -> Any:
        """What a voter adds: float64 [n, outputs]."""
        return votes(voter(X, where), coefficient, self.n_outputs, where)

    def __call__(self, X: Any, n_jobs: int | None = None) -> Any:
        """F(X) as float64 [n, outputs], in the namespace and on the device of X."""
        X, source, where = rows_at_work(X, self.n_features)
        total = where.zeros((X.shape[0], self.n_outputs), where.xp.float64)
        for voter, c in zip(self.voters, self.coefficients.tolist(), strict=True):
            total = total + self._votes(voter, c, X, where)
        return source.hand_over(total + where.put(self.intercept)[None, :])

    def of_answers(self, answers: Any) -> Any:
        """F of rows whose answers -1, 0, +1 are known: [n, members of the pool], n outputs are 1.

        As `__call__` of an X, for a pool that was given as a matrix.
        """
        where = locate(answers)
        total = where.zeros((answers.shape[0], 1), where.xp.float64)
        for voter, c in zip(self.voters, self.coefficients.tolist(), strict=True):
            total = total + votes(answers[:, voter.number], c, 1, where)
        return total + where.put(self.intercept)[None, :]

    def staged(
        self, X: Any, rounds: Sequence[int] | None = None, n_jobs: int | None = None
    ) -> Iterator[Any]:
        """F after each round, starting with the first, or after the chosen ones (ascending)."""
        X, source, where = rows_at_work(X, self.n_features)
        total = where.zeros((X.shape[0], self.n_outputs), where.xp.float64)
        intercept = where.put(self.intercept)[None, :]
        for first, last in stages(rounds, self.n_rounds):
            used, of_round = np.unique(self.chosen[first:last], return_inverse=True)
            sums = np.bincount(of_round, self.alphas[first:last], len(used))
            for k, c in zip(used.tolist(), sums.tolist(), strict=True):
                total = total + self._votes(self.voters[k], c, X, where)
            yield source.hand_over(total + intercept)


def votes(answers: Any, coefficient: float, n_outputs: int, where: Where) -> Any:
    """Coefficient times answers -1, 0, +1, or for the class that is answered: [n, outputs]."""
    xp = where.xp
    if n_outputs == 1:
        return coefficient * where.as_float64(answers)[:, None]
    own = answers[:, None] == xp.arange(n_outputs, dtype=answers.dtype, device=where.device)
    return coefficient * where.as_float64(own)
