"""Any regressor or classifier as the weak learner of any loss: its answers are a direction h.

With g_i = dl/dF at row i and w_i its sample weight, a round fits

    a regressor    to -g_i, with weights w_i
    a classifier   to the labels -sign g_i, with weights w_i |g_i|: of answers in {-1, +1} the one
                   of least weighted error has the steepest descent <g, h>

for every output a clone of its own, or one for all of them where a regressor takes several targets.
A learner without sample weights is fitted to n rows drawn in proportion to them instead, by a
hash of what the rows hold (data/keys.py). F(x) = c + sum_t alpha_t h_t(x) is a Committee.

Weights are repeated rows as far as they are to the learner. To a tree of scikit-learn they are up
to ties: where two features separate the rows of a node in the same way, the rounding of its sums,
which weights and repeated rows do not share, decides which is taken; the training rows get the
same answers, others may not. Trees of this package add integers and take the first.

A line search ends within a thousandth of the first slope. Trees of this package as learners
therefore give the native model up to that: two splits that are worth the same to six digits may
change places (with step="constant" the models agree to 1e-9).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from ensemble_gpu.arrays.namespace import Where
from ensemble_gpu.arrays.sparse import take_rows
from ensemble_gpu.data.bags import learner_seed
from ensemble_gpu.data.keys import row_keys, sorted_rows
from ensemble_gpu.data.rows import Rows
from ensemble_gpu.kernels.host.draws import add_up, weighted_counts
from ensemble_gpu.learners.foreign import (
    LEAST_WEIGHT,
    Clones,
    fit_unchanged,
    tags_of,
    takes_weights,
    total_weight,
)
from ensemble_gpu.learners.protocol import Outcome, alphas_and_errors, shares
from ensemble_gpu.model.answers import Always, Answers, Each, parts
from ensemble_gpu.model.committee import Committee, check_reach

SHARED, EACH, AUTO = "shared", "each", "auto"


@dataclass(frozen=True)
class Direction:
    """A round: a fitted learner, whose answers the model adds times alpha."""

    name: ClassVar[str] = "learner"
    weights: ClassVar[None] = None
    perfect: ClassVar[bool] = False

    learner: Any
    alpha: float
    error: float
    trail: Any = None


@dataclass(frozen=True)
class Part:
    """Rows that take part in a round: their positions (None: all) and weights (None: equal)."""

    at: Any | None
    weights: Any | None


class Directions:
    """Clones of an estimator, fitted to gradients at the rows."""

    name, by_feature = "learner", False

    def __init__(
        self, estimator: Any, rows: Rows, where: Where, n_outputs: int, form: str, seed: int
    ) -> None:
        check_reach(estimator, where)
        self.estimator, self.X, self.where, self.seed = estimator, rows.X, where, seed
        self.clones = Clones(estimator)
        tags = tags_of(estimator)
        signs = tags is not None and tags.estimator_type == "classifier"
        self.voice = Answers(n_outputs, signs)
        self.shared = n_outputs > 1 and self._shares(form, tags)
        self.weighs = takes_weights(estimator)
        weights = None if rows.weights is None else where.host(rows.weights)
        self.total = total_weight(weights, rows.X.shape[0])
        self.order: np.ndarray | None = None
        if not self.weighs and (signs or rows.weights is not None):
            self.order = sorted_rows(row_keys(rows.target, rows.X))

    def _shares(self, form: str, tags: Any) -> bool:
        """Whether one regressor is fitted to the targets of all outputs."""
        several = tags is not None and tags.target_tags.multi_output and not self.voice.signs
        if form == SHARED and not several:
            raise ValueError(
                f"multiclass='shared' needs a regressor for several targets; estimator "
                f"{type(self.estimator).__name__} is none. Use multiclass='each'."
            )
        return several and form != EACH

    @property
    def draws(self) -> bool:
        """Whether a learner sees rows that were drawn."""
        return self.order is not None

    def fitted(self, g: Any, number: int, part: Part) -> Any:
        """The learner of round `number` for gradients g [outputs, rows]."""
        xp = self.where.xp
        if self.shared:
            return self._fit(xp.permute_dims(-g, (1, 0)), part, number, 0)
        n_outputs = g.shape[0]
        found = [self._fit_one(g[k, :], part, number, k) for k in range(n_outputs)]
        return found[0] if n_outputs == 1 else Each(tuple(found))

    def _fit_one(self, g: Any, part: Part, number: int, output: int) -> Any:
        if not self.voice.signs:
            return self._fit(-g, part, number, output)
        xp, where = self.where.xp, self.where
        size = xp.abs(g)
        w = size if part.weights is None else size * (part.weights / xp.max(part.weights))
        labels = xp.where(g < 0.0, where.full(1, xp.int64), where.full(-1, xp.int64))
        one = labels[w > 0.0] if part.at is None else xp.take(labels, part.at)
        first = int(one[0]) if one.shape[0] else 1
        if bool(xp.all(one == first)):
            return Always(first)
        w = w * (self.total / float(xp.sum(w)))
        return self._fit(labels, Part(part.at, xp.maximum(w, where.full(LEAST_WEIGHT))), number,
                         output)  # fmt: skip

    def _fit(self, target: Any, part: Part, number: int, output: int) -> Any:
        """A clone fitted to a target, with weights or on rows drawn by weight."""
        which = number * self.voice.n_outputs + output
        learner = self.clones(partial(learner_seed, self.seed, which))
        X, at, weights = self.X, part.at, part.weights
        if weights is not None and not self.weighs:
            at, weights = self._drawn(part, which), None
        if at is not None:
            X, target = take_rows(X, at), take_rows(target, at)
            weights = None if weights is None else self.where.xp.take(weights, at)
        return fit_unchanged(learner, X, target, weights)

    def _drawn(self, part: Part, which: int) -> Any:
        """As many rows as there are, drawn in proportion to the weights of those that take part."""
        assert self.order is not None
        chances = self.where.host(part.weights)
        if part.at is not None:
            every, chances = chances, np.zeros_like(chances)
            at = self.where.host(part.at)
            chances[at] = every[at]
        n = len(chances) if part.at is None else part.at.shape[0]
        counts = weighted_counts(self.seed, which, chances[self.order], n)
        counts = add_up(self.order, counts, len(chances))
        return self.where.put(np.repeat(self.order, counts[self.order]).astype(np.int64))

    def answers(self, learner: Any, X: Any, where: Where) -> Any:
        """h(X) as float64 [n, outputs]."""
        return self.voice(learner, X, where)

    def added(self, round_: Direction, X: Any, where: Where) -> Any:
        return round_.alpha * self.voice(round_.learner, X, where)

    def round_info(self, round_: Direction) -> dict[str, Any]:
        return {"feature": None, "threshold": None}

    def outcome(
        self, rounds: Sequence[Direction], start: np.ndarray, constant: np.ndarray
    ) -> Outcome:
        learners = [round_.learner for round_ in rounds]
        alphas, gains = alphas_and_errors(rounds)
        model = Committee(
            learners, alphas, voice=self.voice, n_features=self.X.shape[1],
            intercept=start if rounds else constant,
        )  # fmt: skip
        every = [parts(learner) for learner in learners]
        if not all(hasattr(one, "feature_importances_") for own in every for one in own):
            return Outcome(model, None)
        importances = [np.mean([one.feature_importances_ for one in own], axis=0) for own in every]
        return Outcome(model, shares(gains @ np.array(importances)) if rounds else None)
