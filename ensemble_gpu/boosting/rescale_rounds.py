"""The rescale strategy where the engine runs whole rounds by itself.

What boosting/rescale.py does step by step, an engine with `StumpRounds` (kernels/stump_rounds.py)
does in one call for many rounds. The stumps, and the bits of their values, are the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ensemble_gpu.boosting.blocks import BlockSize
from ensemble_gpu.boosting.rescale import WeightTrail, n_before_requantising, reason_for
from ensemble_gpu.boosting.rules import AdaBoostRule, round_weights
from ensemble_gpu.kernels.stump_rounds import NO_SPLIT, SkippedRounds, StumpRecords, StumpRounds
from ensemble_gpu.learners.stump import Stump


class RescaleRounds:
    """The rescale strategy in blocks of rounds.

    A round is followed when the next one is sought, in the same call.
    """

    def __init__(self, run: StumpRounds, rule: AdaBoostRule, loss: float = 1.0) -> None:
        self.run, self.rule, self.loss = run, rule, loss
        self.block = BlockSize()
        self.pending: Stump | None = None
        self.reason = ""

    def best(self) -> Stump | None:
        found = self._find(1)
        return found[0] if found else None

    def training_loss(self, stump: Stump) -> float:
        """Mean of exp(-margin), 1 for the outputs 0 (SAMME: of exp(-F_y))."""
        assert stump.weights is not None
        return self.loss * stump.weights.Z

    def follow(self, stump: Stump) -> None:
        if self.pending is not None:
            self._find(0)
        self.loss, self.pending = self.training_loss(stump), stump

    @property
    def n_groups(self) -> int:
        return self.run.records(1).trails.shape[2]

    def n_skipped(self, rounds: Sequence[Stump]) -> int:
        if not isinstance(self.run, SkippedRounds):
            return 0
        return n_before_requantising(self.rule.kind, self.run.cumulated, rounds)

    def skip(self, stump: Stump) -> None:
        assert isinstance(self.run, SkippedRounds)
        self.loss = self.training_loss(stump)
        self.run.skip(stump[:3], stump.values, stump.alpha, stump.trail)

    def rounds(self, most: int) -> Iterator[Stump]:
        """Best, follow, best, ... of up to `most` rounds, which are found some at a time."""
        while most > 0:
            asked = min(self.block.rounds, most)
            with self.block.timed():
                found = self._find(asked)
            most -= len(found)
            for stump in found:
                yield stump
                self.loss = self.training_loss(stump)
            if len(found) < asked:
                return
            self.pending = found[-1]

    def _find(self, n: int) -> list[Stump]:
        """Follow what is pending, and find n rounds; fewer where the last is the end."""
        records, pending = self.run.records(n + 1), self.pending
        if pending is not None:
            records.places[0, :3] = pending[:3]
            records.values[0], records.numbers[0, 0] = pending.values, pending.alpha
            records.trails[0] = pending.trail
        found, why, score = self.run(records, pending is not None, n)
        self.pending = None
        if why:
            self.reason = reason_for(None if why == NO_SPLIT else score)
        return self._stumps(records, found)

    def _stumps(self, records: StumpRecords, n: int) -> list[Stump]:
        places, numbers = (a[1 : n + 1].tolist() for a in (records.places, records.numbers))
        return [
            Stump(
                feature, last_bin, missing_leaf, values, alpha, error, bool(perfect),
                round_weights(self.rule, error, alpha, shares), WeightTrail(*trail),
            )
            for (feature, last_bin, missing_leaf, perfect), (alpha, error, *shares), values, trail
            in zip(places, numbers, records.values[1:], records.trails[1:], strict=False)
        ]  # fmt: skip
