"""One tree in a team: every worker has its rows of each node, and the sums are everybody's."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ensemble_gpu.kernels.host.search import choose
from ensemble_gpu.kernels.protocol import Codes, Engine
from ensemble_gpu.kernels.team import Team
from ensemble_gpu.kernels.tree_protocol import (
    LEAF,
    Frontier,
    Sample,
    SplitRule,
    Splits,
    subset_words,
    unpacked,
)

# Cells [node, feature, code, column] of sums that are sent at once.
MOST_CELLS = 1 << 22
# Sums of all features are kept where at least one in so many is tried,
TRIED = 4
# and of nodes of at least this many rows.
KEEP_ROWS = 1024


def sibling(node: int) -> int:
    """Of nodes 1 and 2, 3 and 4, ... the other one; the root is alone."""
    return node + 1 if node % 2 else node - 1


class TeamGrower:
    """A grower of the worker's own rows (None: it has none of the sample), and the team's sums.

    Rows are counted along with the statistics, so that a level takes one message: how many rows go
    left follows from the sums. Where most features are tried, the sums of a split node are kept:
    those of its larger child are what the smaller one leaves of them, so that only the smaller
    one's rows are added up and sent.
    """

    def __init__(
        self, engine: Engine, codes: Codes, sample: Sample, rule: SplitRule, team: Team
    ) -> None:
        self.team, self.rule, self.width, self.p = team, rule, codes.width, codes.n_features
        self.n_stats = sample.n_stats
        n = codes.n_rows if sample.rows is None else sample.rows.shape[0]
        counted = replace(rule, min_rows=max(2, rule.min_rows))
        self.own = engine.grower(codes, sample, counted) if n else None
        self.where = where = engine.where
        self.empty = where.zeros(0, where.xp.int64)
        target = sample.target
        if target is not None and sample.rows is not None:
            target = where.xp.take(target, sample.rows)
        self.target = None if target is None else where.host(target)
        own = np.zeros(sample.n_stats, dtype=np.int64) if self.own is None else self.own.total()
        *total, n_rows = team.sum([*own.tolist(), n]).tolist()
        self._total, self.n_rows = np.array(total), np.array([n_rows])
        self.parent = np.full(1, -1, dtype=np.int64)
        self.kept: dict[int, np.ndarray] = {}
        self.n_left: dict[int, int] = {}
        self.n_columns = self.n_stats + 1

    def total(self) -> np.ndarray:
        return self._total

    def n_sampled(self) -> int:
        return int(self.n_rows[0])

    def _own_sums(self, frontier: Frontier) -> np.ndarray:
        if self.own is not None:
            return self.own.sums(frontier)
        tried = self.p if frontier.features is None else frontier.features.shape[1]
        return np.zeros((len(frontier.nodes), tried, self.width, self.n_columns), dtype=np.int64)

    def sums(self, frontier: Frontier) -> np.ndarray:
        return self._asked_for(self._sums(frontier))

    def _asked_for(self, sums: np.ndarray) -> np.ndarray:
        """Without the numbers of rows, where the rule does not ask for them."""
        return sums if self.rule.min_rows > 1 else np.ascontiguousarray(sums[..., :-1])

    def _sums(self, frontier: Frontier) -> np.ndarray:
        """Sums of everybody's rows, and how many they are."""
        return self.team.sum(self._own_sums(frontier))

    def split(self, frontier: Frontier) -> Splits:
        nodes = frontier.nodes
        found = Splits.none(
            len(nodes), self.n_stats, subset_words(self.rule.categorical, self.width)
        )
        tried = self.p if frontier.features is None else frontier.features.shape[1]
        step = max(2, MOST_CELLS // (self.p * self.width * self.n_columns))
        for start in range(0, len(nodes), step):
            part = frontier[start : start + step]
            sums = self._kept_sums(part) if TRIED * tried >= self.p else self._sums(part)
            at = np.arange(start, start + len(part.nodes))
            best = choose(self.rule, part, self._asked_for(sums), self.n_rows[part.nodes])
            self._note_left(part, best, sums)
            found.replace(at, best)
        return found

    def _note_left(self, frontier: Frontier, best: Splits, sums: np.ndarray) -> None:
        """How many rows of each node its best split sends left."""
        subsets = unpacked(best.subset)
        for i, (node, f) in enumerate(
            zip(frontier.nodes.tolist(), best.feature.tolist(), strict=True)
        ):
            if f == LEAF:
                continue
            tried = f if frontier.features is None else int((frontier.features[i] == f).argmax())
            rows, last = sums[i, tried, :, -1], int(best.bin[i])
            left = rows[: last + 1] if last >= 0 else rows[:-1][subsets[i][: self.width - 1]]
            self.n_left[node] = int(left.sum()) + int(best.missing_left[i]) * int(rows[-1])

    def _kept_sums(self, frontier: Frontier) -> np.ndarray:
        """Sums of all features, which are kept for the children of the nodes."""
        nodes = frontier.nodes.tolist()
        derived = {node for node in nodes if self._is_derived(node, nodes)}
        added = np.array([node not in derived for node in nodes])
        out = np.empty((len(nodes), self.p, self.width, self.n_columns), dtype=np.int64)
        out[added] = self._sums(replace(frontier[added], features=None))
        place = {node: i for i, node in enumerate(nodes)}
        for node in derived:
            whole, part = self.kept[int(self.parent[node])], out[place[sibling(node)]]
            np.subtract(whole, part, out=out[place[node]])
        for node in nodes:
            self.kept.pop(int(self.parent[node]), None)
        for i, node in enumerate(nodes):
            if self.n_rows[node] >= KEEP_ROWS:
                self.kept[node] = out[i]
        if frontier.features is None:
            return out
        return np.take_along_axis(out, frontier.features[:, :, None, None], axis=1)

    def _is_derived(self, node: int, nodes: list[int]) -> bool:
        """Whether the sums are the parent's minus those of the sibling, which is smaller."""
        other = sibling(node)
        if int(self.parent[node]) not in self.kept or other not in nodes:
            return False
        return (self.n_rows[other], other) < (self.n_rows[node], node)

    def partition(self, nodes: np.ndarray, splits: Splits) -> np.ndarray:
        if self.own is not None:
            self.own.partition(nodes, splits)
        n_left = np.array([self.n_left.pop(node) for node in nodes.tolist()], dtype=np.int64)
        pairs = np.stack([n_left, self.n_rows[nodes] - n_left], axis=1)
        self.n_rows = np.concatenate([self.n_rows, pairs.reshape(-1)])
        self.parent = np.concatenate([self.parent, np.repeat(nodes, 2)])
        return n_left

    def nodes(self) -> Any:
        return self.empty if self.own is None else self.own.nodes()

    def pure(self, nodes: np.ndarray) -> np.ndarray:
        if self.target is None or not len(nodes):
            return np.zeros(len(nodes), dtype=bool)
        slot = np.full(len(self.n_rows), -1, dtype=np.int64)
        slot[nodes] = np.arange(len(nodes))
        own = slot[self.where.host(self.nodes())]
        inside = own >= 0
        ends = np.full((2, len(nodes)), np.iinfo(np.int64).min)  # of -target and of target
        for end, target in zip(ends, (-self.target, self.target), strict=True):
            np.maximum.at(end, own[inside], target[inside])
        low, high = self.team.largest_of(ends)
        return -low == high
