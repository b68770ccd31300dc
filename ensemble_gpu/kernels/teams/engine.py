"""The engine of a worker in a team: another engine on its own rows, and sums over all workers'.

What `histograms`, `sums` and the methods of their kind add up over all rows of some codes is added
up over the workers as well: all of them get the same integers, and choose the same from them.
Methods that work on blocks of rows (`leaf_sums`, `sums_by`, `by_block`) stay with the worker's own;
who calls them joins the result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from ensemble_gpu.kernels.protocol import Codes, Engine, Layout
from ensemble_gpu.kernels.residuals import Ruler, Slots
from ensemble_gpu.kernels.team import Team
from ensemble_gpu.kernels.teams.grower import TeamGrower
from ensemble_gpu.kernels.teams.ranks import ranked
from ensemble_gpu.kernels.teams.weights import TeamHistograms
from ensemble_gpu.kernels.tree_protocol import CodeTree, Sample, SplitRule


@dataclass(frozen=True)
class TeamCodes(Codes):
    """Codes of a worker's rows, and the counts of all rows; `own` has those of its own rows."""

    own: Codes | None = None


def _own(codes: Codes) -> Codes:
    assert isinstance(codes, TeamCodes)
    assert codes.own is not None
    return codes.own


class TeamEngine:
    """`own` on the rows of one worker of a `team`."""

    n_workers = 1  # threads would meet the other workers in an order of their own

    def __init__(self, own: Engine, team: Team) -> None:
        self.own, self.team = own, team
        self.name, self.where = own.name, own.where

    def __getattr__(self, name: str) -> Any:
        """What a worker does with rows of its own."""
        return getattr(self.own, name)

    def single(self) -> TeamEngine:
        """Itself: there is one worker."""
        return self

    def _joined(self, codes: Codes) -> TeamCodes:
        given = {f.name: getattr(codes, f.name) for f in fields(codes)}
        return TeamCodes(**given | {"counts": self.team.sum(codes.counts)}, own=codes)

    def encode(
        self,
        X: Any,
        edges: list[np.ndarray],
        rows: Any,
        layout: Layout | None,
        width: int | None = None,
    ) -> Codes:
        return self._joined(self.own.encode(X, edges, rows, layout, width))

    def histograms(self, codes: Codes, layout: Layout, log_weights: Any) -> TeamHistograms:
        own = self.own.histograms(_own(codes), layout, log_weights)
        return TeamHistograms(own, self.team)

    def column(self, codes: Codes, feature: int) -> Any:
        return self.own.column(_own(codes), feature)

    def sums(self, codes: Codes, q: Any) -> np.ndarray:
        return self.team.sum(self.own.sums(_own(codes), q))

    def pair_sums(self, codes: Codes, packed: Any) -> tuple[np.ndarray, np.ndarray]:
        return self._both(self.own.pair_sums(_own(codes), packed))

    def following_sums(self, codes: Codes) -> Callable[[Any], tuple[np.ndarray, np.ndarray]]:
        follow = self.own.following_sums(_own(codes))
        return lambda packed: self._both(follow(packed))

    def _both(self, pair: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        G, H = self.team.sum(np.stack(pair))
        return G, H

    def pair_counts(self, codes: Codes, feature: int, weights: Any | None) -> np.ndarray:
        own = self.own.pair_counts(_own(codes), feature, weights)
        return self.team.sum(own).astype(own.dtype)

    def code_sums(
        self, codes: Codes, feature: int, first: int, last: int, weights: Any | None
    ) -> np.ndarray:
        return self.team.sum(self.own.code_sums(_own(codes), feature, first, last, weights))

    def add_tables(self, F: Any, codes: Codes, used: np.ndarray, tables: np.ndarray) -> Any:
        return self.own.add_tables(F, _own(codes), used, tables)

    def ranked(self, slots: Slots, r: Any, weights: Any | None, ranks: np.ndarray) -> np.ndarray:
        return ranked(slots, r, weights, ranks, self.where, self.team)

    def ruled_sums(self, slots: Slots, r: Any, weights: Any | None, ruler: Ruler) -> np.ndarray:
        return self.team.sum(self.own.ruled_sums(slots, r, weights, ruler))

    def grower(self, codes: Codes, sample: Sample, rule: SplitRule) -> TeamGrower:
        return TeamGrower(self.own, _own(codes), sample, rule, self.team)

    def leaves(self, codes: Codes, tree: CodeTree) -> Any:
        return self.own.leaves(_own(codes), tree)
