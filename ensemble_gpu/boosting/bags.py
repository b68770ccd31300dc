"""Boosting in bags: models on bootstrap weights of the same binned rows, averaged into one.

    F = (1 / B) sum over bags b of F_b,    F_b boosted with the weights w_i c_bi

c_bi is how often row i was drawn into bag b (data/bags.py): by keys of the rows, so that their
order does not matter, and a whole weight is as many rows. All bags advance in step: a round of the
whole is a round of every bag. So validation rows see the average, early stopping keeps one number
of rounds for all bags, and the first n rounds of the model are the first n of every bag. A bag that
finds nothing more to learn stays as it is while others go on.

Values of leaves, v / B, are rounded to the quantum of which all sums are multiples
(boosting/gradients.py): the average is an exact sum as well.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from ensemble_gpu.arrays.namespace import Where
from ensemble_gpu.boosting.plans import DescentParameters
from ensemble_gpu.boosting.strategy import Plan
from ensemble_gpu.data.bags import learner_seed, make_bags
from ensemble_gpu.data.keys import repetitions
from ensemble_gpu.data.rows import Binned
from ensemble_gpu.estimators.reading import TrainingData
from ensemble_gpu.learners.protocol import Outcome, ValuedRound

# From binned rows and parameters to what the loop runs on, for a single model.
Planner = Callable[[Binned, DescentParameters], Plan]


def plan_in_bags(
    planner: Planner, binned: Binned, data: TrainingData, descent: DescentParameters, n_bags: int
) -> Plan:
    """The plan of one model, or of `n_bags` on bootstrap weights, each with a seed of its own."""
    if n_bags == 1:
        return planner(binned, descent)
    weights = _bootstrap_weights(data, descent.seed)
    plans = [
        planner(
            binned.with_weights(weights(bag)),
            descent.with_seed(learner_seed(descent.seed, bag, 0)),
        )
        for bag in range(n_bags)
    ]
    start, constant = (
        np.mean([getattr(plan, name) for plan in plans], axis=0) for name in ("start", "constant")
    )
    return replace(
        plans[0],
        strategy=InStep([plan.strategy for plan in plans]),
        learner=Averaged([plan.learner for plan in plans], plans[0].strategy.quantum),
        start=start,
        constant=constant,
        binned=binned,
    )


def _bootstrap_weights(data: TrainingData, seed: int) -> Callable[[int], Any]:
    """The weights of all rows in a bag, drawn from those that take part."""
    where, n_rows = data.where, data.rows.X.shape[0]
    at = None if data.keep is None else where.xp.nonzero(data.keep)[0]
    rows = data.taking_part()
    bags = make_bags(
        rows.X,
        rows.target,
        *repetitions(None if rows.weights is None else where.host(rows.weights), data.engine.team),
        seed=seed,
        replace=True,
        max_samples=1.0,
        takes_weights=True,
        team=data.engine.team,
        at=None if at is None else where.host(at),
    )
    places = slice(None) if at is None else where.host(at)

    def weights(bag: int) -> Any:
        every = np.zeros(n_rows)
        every[places] = bags.weights(bags.counts(bag))
        return where.put(every)

    return weights


@dataclass(frozen=True)
class BagRound:
    """A round of every bag; None of a bag that has ended. `alpha` and `error` are means."""

    weights: ClassVar[None] = None
    trail: ClassVar[None] = None
    perfect: ClassVar[bool] = False

    rounds: tuple[Any | None, ...]
    name: str

    @property
    def going_on(self) -> list[Any]:
        return [round_ for round_ in self.rounds if round_ is not None]

    @property
    def alpha(self) -> float:
        return float(np.mean([round_.alpha for round_ in self.going_on]))

    @property
    def error(self) -> float:
        return float(np.mean([round_.error for round_ in self.going_on]))


class InStep:
    """The strategies of all bags, a round of each at a time."""

    def __init__(self, strategies: Sequence[Any]) -> None:
        self.strategies = strategies
        self.ended = [False] * len(strategies)
        self.losses: dict[int, float] = {}
        self.reason = ""

    def best(self) -> BagRound | None:
        pairs = zip(self.strategies, self.ended, strict=True)
        found = tuple(None if ended else strategy.best() for strategy, ended in pairs)
        names = [round_.name for round_ in found if round_ is not None]
        if not names:
            self.reason = f"{self.strategies[0].reason} in any bag"
            return None
        return BagRound(found, names[0])

    def follow(self, round_: BagRound) -> None:
        for bag, own in enumerate(round_.rounds):
            self.ended[bag] = own is None
            if own is not None:
                self.strategies[bag].follow(own)

    def training_loss(self, round_: BagRound) -> float:
        """Mean over the bags of each one's loss, on its own weights."""
        for bag, own in enumerate(round_.rounds):
            if own is not None:
                self.losses[bag] = self.strategies[bag].training_loss(own)
        return float(np.mean(list(self.losses.values())))


class Averaged:
    """The learners of all bags; what a round adds is the average."""

    def __init__(self, learners: Sequence[Any], quantum: float) -> None:
        self.learners, self.quantum = learners, quantum
        self.name, self.by_feature = learners[0].name, learners[0].by_feature

    def _shared(self, round_: ValuedRound) -> Any:
        """A bag's round as it is in the average."""
        n = len(self.learners)
        values = np.rint(round_.values / (n * self.quantum)) * self.quantum
        return round_.with_values(values, round_.alpha / n)

    def added(self, round_: BagRound, X: Any, where: Where) -> Any:
        total: Any = 0.0
        for learner, own in zip(self.learners, round_.rounds, strict=True):
            if own is not None:
                total = total + learner.added(self._shared(own), X, where)
        return total

    def round_info(self, round_: BagRound) -> dict[str, Any]:
        """A test in each bag is no single test."""
        return {"feature": None, "threshold": None}

    def outcome(self, rounds: Sequence[BagRound], start: Any, constant: Any) -> Outcome:
        """One model of all rounds: those of the first round of every bag, then of the second ..."""
        learner, every = self.learners[0], [list(map(self._shared, r.going_on)) for r in rounds]
        flat = [own for together in every for own in together]
        model = learner.outcome(flat, start, constant).model
        sizes = [len(together) for together in every]
        if model.n_rounds != len(flat):  # a learner of several stumps
            sizes = [learner.outcome(own, start, constant).model.n_rounds for own in every]
        ends = np.cumsum(sizes, dtype=np.int64)
        return Outcome(model.in_rounds(ends), self._importances(rounds, start, constant))

    def _importances(self, rounds: Sequence[BagRound], start: Any, constant: Any) -> Any:
        """The mean of the bags'; of those that have any."""
        found = []
        for bag, learner in enumerate(self.learners):
            own = [round_.rounds[bag] for round_ in rounds if round_.rounds[bag] is not None]
            found.append(learner.outcome(own, start, constant).importances)
        if any(own is None for own in found):
            return None
        mean = np.mean(found, axis=0)
        total = mean.sum()
        return mean / total if total > 0.0 else mean
