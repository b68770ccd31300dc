"""What half-spaces, balls and boxes share: generators that are drawn, and stumps on them.

Generators are drawn from a seed and the number of the round (learners/source.py). What is
promised: with the same seed the generators, z, the stumps and the model are the same to the last
bit on NumPy, torch, JAX, CuPy and array-api-strict, on every engine, for rows in any order.

once   N generators, drawn before the first round: their numbers are features, binned as features
       are (quantiles, at most max_bins), and rounds are the stump engine's (learners/derived.py).
round  N generators anew in every round, with evenly spaced thresholds, 127 to 254 of them
       (learners/even.py). The best of them all is the round's (learners/redrawn.py).
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from ensemble_gpu.arrays.sparse import check_dense
from ensemble_gpu.data.parameters import check_choice, check_integer
from ensemble_gpu.kernels.protocol import one_class
from ensemble_gpu.learners.derived import DerivedStumps
from ensemble_gpu.learners.protocol import LearnerRows
from ensemble_gpu.learners.redrawn import RedrawnStumps
from ensemble_gpu.learners.source import DrawnFrom, Source
from ensemble_gpu.learners.stump import SplitConstraints
from ensemble_gpu.model.generators import Generators

REDRAWS = ("once", "round")
# Codes of all generators and rows: 8 GiB.
MOST_CELLS = 1 << 33


class Generated(BaseEstimator):
    """Stumps on numbers that are made of several features; a subclass draws the generators."""

    variants = ("real", "discrete", "gentle", "logit")
    # Whether generators are made of training rows.
    draws_rows: ClassVar[bool] = False

    n_candidates: int
    redraw: str
    n_features: int | None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def check(self) -> None:
        """Raise where the parameters are wrong."""
        check_integer("n_candidates", self.n_candidates, 1)
        check_choice("redraw", self.redraw, REDRAWS)
        check_integer("n_features", self.n_features, 1, others=(None,))

    def _draw(self, rng: np.random.Generator, rows: DrawnFrom) -> Generators:
        """`n_candidates` generators."""
        raise NotImplementedError

    def source(self, rows: LearnerRows) -> Source:
        """What the generators of a fit are drawn from."""
        self.check()
        check_dense(rows.X, f"estimator {type(self).__name__}")
        n, p = rows.X.shape
        if n * self.n_candidates > MOST_CELLS:
            raise ValueError(
                f"n_candidates must be at most {MOST_CELLS // n} for {n} rows, so that their codes "
                f"take {MOST_CELLS >> 30} GiB at most; got {self.n_candidates}."
            )
        if self.n_features is not None and self.n_features > p:
            raise ValueError(
                f"n_features must be at most {p}, the features of X; got {self.n_features}."
            )
        return Source(self, rows)

    def gradient_learner(self, rows: LearnerRows) -> DerivedStumps | RedrawnStumps:
        """What the rounds of any loss go by."""
        source = self.source(rows)
        if self.redraw == "round":
            return RedrawnStumps(rows.engine, source)
        layout = one_class(rows.X.shape[0])
        generators = source.drawn(0)
        matrix = source.binned(generators, None, layout, rows.max_bins)
        n = len(generators)
        constraints = SplitConstraints(
            False, False, np.zeros(n, dtype=np.int64), n, rows.seed, np.zeros(n, dtype=bool)
        )
        return DerivedStumps(rows.engine, matrix, constraints, source.grid, generators)

    def _features(self, rng: np.random.Generator, p: int) -> np.ndarray:
        """Which features each generator uses: bool [N, p]."""
        if self.n_features is None or self.n_features >= p:
            return np.ones((self.n_candidates, p), dtype=bool)
        order = np.argsort(rng.random((self.n_candidates, p)), axis=1, kind="stable")
        used = np.zeros((self.n_candidates, p), dtype=bool)
        np.put_along_axis(used, order[:, : self.n_features], True, axis=1)
        return used


class AroundRows(Generated):
    """Generators around drawn training rows."""

    draws_rows = True

    def __init__(
        self, n_candidates: int = 500, *, redraw: str = "once", n_features: int | None = None
    ) -> None:
        self.n_candidates = n_candidates
        self.redraw = redraw
        self.n_features = n_features
