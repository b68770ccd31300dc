"""The weights of AdaBoost in a team: q of a worker's rows, and the sums of everybody's."""

from __future__ import annotations

import numpy as np

from ensemble_gpu.arrays.namespace import NUMPY
from ensemble_gpu.kernels.protocol import Criterion, Histograms, Split, WeightRule
from ensemble_gpu.kernels.reference.score import choose
from ensemble_gpu.kernels.team import Team


class TeamHistograms:
    """`own` weights and sums of one worker of a team."""

    def __init__(self, own: Histograms, team: Team) -> None:
        self.own, self.team = own, team

    def requantise(
        self, log_tables: np.ndarray, used: np.ndarray, least: np.ndarray | None = None
    ) -> np.ndarray:
        """The heaviest row of a group may be another worker's."""
        own = self.own.requantise(log_tables, used, least)
        exponent = self.team.largest_of(own)
        if not np.array_equal(own, exponent):
            self.own.requantise(log_tables, used, exponent)
        return exponent

    def add_up(self) -> np.ndarray:
        return self.team.sum(self.own.add_up())

    def heaviest(self) -> np.ndarray:
        return self.team.largest_of(self.own.heaviest())

    def split(self, scale: np.ndarray, criterion: Criterion) -> Split | None:
        """Sums, and every worker's bounds on its weights in a place of its own: one message."""
        own, size, rank = self.own.add_up(), self.team.reduce.size, self.team.reduce.rank
        heaviest = np.zeros((size, len(own)), dtype=np.int64)
        heaviest[rank] = self.own.heaviest()
        every = self.team.sum(np.concatenate([own.reshape(-1), heaviest.reshape(-1)]))
        sums, heaviest = every[: own.size].reshape(own.shape), every[own.size :]
        largest = heaviest.reshape(size, -1).max(axis=0)
        return choose(sums, largest, scale, criterion, NUMPY)

    def rescale(self, feature: int, leaf_of: np.ndarray, ratio: np.ndarray, kept: int) -> None:
        self.own.rescale(feature, leaf_of, ratio, kept)

    def rounds(self, criterion: Criterion, rule: WeightRule) -> None:
        return None
