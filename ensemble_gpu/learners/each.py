"""A learner for every output in a round: K stumps or K trees, each fitted to one output alone.

Round t adds alpha h_tk to F_k, k = 1 ... K, and h_tk is the stump or tree that fits -dl/dF_k best.
All K are fitted at the F of the round before, so they are chosen from the sums of one pass over
the gradients, and the step rules (boosting/steps.py) see them as one learner with K outputs: the
values of its leaves are rows of one array, filled up with zeros where an output has fewer leaves.

In the model a stump or tree of output k has the value 0 for the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from ensemble_gpu.arrays.namespace import Where
from ensemble_gpu.kernels.protocol import Engine
from ensemble_gpu.learners.protocol import Candidate, Leaves, Outcome
from ensemble_gpu.learners.stump import Stumps
from ensemble_gpu.learners.tree import Trees


@dataclass(frozen=True)
class EachRound:
    """A round: what was learnt for every output, with values [1, leaf]; None: nothing was."""

    weights: ClassVar[None] = None
    perfect: ClassVar[bool] = False

    parts: tuple[Any | None, ...]
    alpha: float
    error: float
    trail: Any = None

    @property
    def found(self) -> Iterator[tuple[int, Any]]:
        """(output, its part) of those that have one."""
        return ((k, part) for k, part in enumerate(self.parts) if part is not None)

    @property
    def name(self) -> str:
        return next(part.name for _, part in self.found)

    @property
    def values(self) -> np.ndarray:
        """[output, leaf], zeros beyond an output's leaves."""
        return stacked([None if part is None else part.values for part in self.parts])

    def with_values(self, values: np.ndarray, alpha: float) -> EachRound:
        parts = list(self.parts)
        for k, part in self.found:
            parts[k] = part.with_values(values[k : k + 1, : part.values.shape[1]], alpha)
        return replace(self, parts=tuple(parts), alpha=alpha)


def stacked(rows: Sequence[np.ndarray | None]) -> np.ndarray:
    """Arrays [1, n] of several n as one [output, largest n]; zeros where there is nothing."""
    kind = next(row.dtype for row in rows if row is not None)
    out = np.zeros((len(rows), max(row.shape[1] for row in rows if row is not None)), dtype=kind)
    for into, row in zip(out, rows, strict=True):
        if row is not None:
            into[: row.shape[1]] = row[0]
    return out


@dataclass(frozen=True)
class EachLeaves:
    """The leaves of every output's own learner; None: the output stays where it is."""

    engine: Engine
    outputs: tuple[Leaves | None, ...]

    def moved(self, F: Any, rows: slice, values: np.ndarray, out: Any = None) -> Any:
        n = len(self.outputs)
        places = [None if out is None else out[k : k + 1, :] for k in range(n)]
        planes = [F[k : k + 1, :] for k in range(n)]
        for k, leaves in enumerate(self.outputs):
            if leaves is not None:
                planes[k] = leaves.moved(planes[k], rows, values[k : k + 1], places[k])
        written = [plane is place for plane, place in zip(planes, places, strict=True)]
        if not any(written):
            return self.engine.where.xp.concat(planes, axis=0)
        for k, done in enumerate(written):
            if not done:
                out[k : k + 1, :] = planes[k]
        return out

    def sums(self, q: Any, rows: slice) -> np.ndarray:
        return stacked([
            None if leaves is None else leaves.sums(q[k : k + 1, :], rows)
            for k, leaves in enumerate(self.outputs)
        ])  # fmt: skip


class EachOutput:
    """What stumps and trees have in common where every output has its own."""

    def __init__(self, engine: Engine, own: Any, n_outputs: int) -> None:
        self.engine, self.own, self.n_outputs = engine, own, n_outputs
        self.name, self.by_feature, self.matrix = own.name, own.by_feature, own.matrix

    def _candidates(self, barred: list[int]) -> list[Candidate | None]:
        """The best candidate of every output alone."""
        raise NotImplementedError

    def best(self, barred: list[int]) -> Candidate | None:
        each = self._candidates(barred)
        found = [one for one in each if one is not None]
        if not found:
            return None
        c, S = (
            stacked([None if one is None else getattr(one, name) for one in each])
            for name in ("c", "S")
        )
        leaves = tuple(None if one is None else one.leaves for one in each)
        bars = sorted({feature for one in found for feature in one.bars})
        gain = sum(one.gain for one in found)
        return Candidate(c, S, gain, EachLeaves(self.engine, leaves), _maker(each, gain), bars)

    def leaves(self, round_: EachRound) -> EachLeaves:
        parts = (None if part is None else self.own.leaves(part) for part in round_.parts)
        return EachLeaves(self.engine, tuple(parts))

    def random_state(self) -> Any:
        return self.own.random_state()

    def restore(self, random_state: Any) -> None:
        self.own.restore(random_state)

    def round_info(self, round_: EachRound) -> dict[str, Any]:
        """A test for every output is no single test."""
        return {"feature": None, "threshold": None}

    def _flat(self, rounds: Sequence[EachRound]) -> list[Any]:
        """The stumps or trees of all rounds, with values [output, leaf] for all outputs."""
        return [self._wide(k, part) for round_ in rounds for k, part in round_.found]

    def _wide(self, k: int, part: Any) -> Any:
        values = np.zeros((self.n_outputs, part.values.shape[1]))
        values[k] = part.values[0]
        return part.with_values(values, part.alpha)

    def outcome(
        self, rounds: Sequence[EachRound], start: np.ndarray, constant: np.ndarray
    ) -> Outcome:
        own = self.own.outcome(self._flat(rounds), start, constant)
        ends = np.cumsum([sum(1 for _ in round_.found) for round_ in rounds], dtype=np.int64)
        return Outcome(own.model.in_rounds(ends), own.importances)


def _maker(each: list[Candidate | None], gain: float) -> Callable[..., EachRound]:
    def made(values: np.ndarray, alpha: float, error: float, trail: Any) -> EachRound:
        parts: list[Any | None] = []
        for k, one in enumerate(each):
            if one is None:
                parts.append(None)
                continue
            own = values[k : k + 1, : one.c.shape[1]].copy()
            parts.append(one.made(own, alpha, error * (one.gain / gain), None))
        return EachRound(tuple(parts), alpha, error, trail)

    return made


class EachStumps(EachOutput):
    """A stump for every output; their sums come from one pass over the codes."""

    own: Stumps

    def seek(self, gradients: Any) -> bool:
        return self.own.seek(gradients)

    def _candidates(self, barred: list[int]) -> list[Candidate | None]:
        return [self.own.best_of_output(k, barred) for k in range(self.n_outputs)]

    def added(self, round_: EachRound, X: Any, where: Where) -> Any:
        none = where.zeros((X.shape[0],), where.xp.float64)
        columns = [none] * self.n_outputs
        for k, part in round_.found:
            columns[k] = self.own.added(part, X, where)[:, 0]
        return where.xp.stack(columns, axis=1)


@dataclass(frozen=True)
class _OneOutput:
    """The gradients of one output, as a learner of one output reads them.

    `round` counts the trees of all outputs, so that each draws features of its own.
    """

    gradients: Any
    rows: Any
    k: int

    def __getattr__(self, name: str) -> Any:
        return getattr(self.gradients, name)

    @property
    def intercept(self) -> np.ndarray:
        return self.gradients.intercept[self.k : self.k + 1]

    @property
    def packed(self) -> Any:
        gradients = self.gradients
        return gradients.format.of_output(gradients.packed, self.k)

    @property
    def round(self) -> int:
        return len(self.gradients.intercept) * self.gradients.round + self.k

    def drawn(self) -> Any:
        return self.rows


class EachTrees(EachOutput):
    """A tree for every output, grown on its two statistics."""

    own: Trees

    def seek(self, gradients: Any) -> bool:
        rows = gradients.drawn()
        self.views = [_OneOutput(gradients, rows, k) for k in range(self.n_outputs)]
        n_rows = gradients.n_rows if rows is None else rows.shape[0]
        return self.engine.team.count(n_rows) > 0

    def _candidates(self, barred: list[int]) -> list[Candidate | None]:
        own = self.own
        return [own.best(barred) if own.seek(view) else None for view in self.views]

    def added(self, round_: EachRound, X: Any, where: Where) -> Any:
        return self.own.added_together(self._flat([round_]), X)


def each_output(own: Stumps | Trees, n_outputs: int) -> EachStumps | EachTrees:
    """A learner that gives every output a stump or a tree of its own."""
    kind = EachStumps if isinstance(own, Stumps) else EachTrees
    return kind(own.engine, own, n_outputs)
