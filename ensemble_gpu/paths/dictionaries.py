"""From the parameter `dictionary` to columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ensemble_gpu.arrays.namespace import locate
from ensemble_gpu.data.rows import Rows
from ensemble_gpu.kernels.select import engine_for
from ensemble_gpu.learners.generated import Generated
from ensemble_gpu.learners.pool import Pool
from ensemble_gpu.learners.protocol import LearnerRows
from ensemble_gpu.model.additive import AdditiveModel
from ensemble_gpu.model.derived import DerivedModel
from ensemble_gpu.model.generators import Generators, Grid
from ensemble_gpu.paths.columns import Columns, Features, PathRows
from ensemble_gpu.paths.members import Members
from ensemble_gpu.paths.stumps import Stumps

STUMPS, FEATURES = "stumps", "features"
# Numbers that generators make of all rows: 1 GiB.
MOST_CELLS = 1 << 27


@dataclass(frozen=True)
class DictionarySettings:
    """What columns are made by, besides the dictionary: thresholds, centring, the seed.

    `names` are those of the features, where there are some.
    """

    max_bins: int
    centred: bool
    seed: int
    names: Sequence[str] | None


@dataclass(frozen=True)
class Derivation:
    """From a model of generators' numbers to one of the features that they are made of."""

    grid: Grid
    generators: Generators

    def __call__(self, model: AdditiveModel) -> DerivedModel:
        return DerivedModel.of(self.grid, self.generators, model)


def check_dictionary(dictionary: Any) -> None:
    """Raise where the parameter is none of the dictionaries there are."""
    if isinstance(dictionary, Pool | Generated):
        dictionary.check()
        if getattr(dictionary, "redraw", "once") != "once":
            raise ValueError(
                f"dictionary {dictionary!r} draws its columns anew in every round, and a path "
                "needs them once: use redraw='once'."
            )
    elif not isinstance(dictionary, str) or dictionary not in (STUMPS, FEATURES):
        raise ValueError(
            "dictionary must be one of 'stumps', 'features', a Pool, HalfSpaces, Balls or Boxes of "
            f"ensemble_gpu.learners; got {dictionary!r}."
        )


def dictionary_of(
    dictionary: Any, rows: Rows, classes: np.ndarray | None, settings: DictionarySettings
) -> Columns:
    """The columns at the rows; `classes` are the labels, where targets are classes."""
    if isinstance(dictionary, Pool | Generated):
        return _learnt(dictionary, rows, classes, settings)
    where = locate(rows.X)
    own = PathRows(where.as_float64(rows.X), rows.target, rows.weights, where, settings.names)
    if dictionary == FEATURES:
        return Features(own, centred=settings.centred)
    return Stumps(own, max_bins=settings.max_bins, centred=settings.centred)


def _learnt(
    dictionary: Pool | Generated,
    rows: Rows,
    classes: np.ndarray | None,
    settings: DictionarySettings,
) -> Columns:
    """Columns of weak learners, where the engine sees the rows."""
    engine = engine_for(locate(rows.X))
    rows = rows.seen_by(engine)
    where = locate(rows.X)
    given = LearnerRows(
        engine, rows.X, rows.target, rows.weights, where, n_outputs=1, n_rounds=0,
        max_bins=settings.max_bins, seed=settings.seed, classes=classes,
    )  # fmt: skip
    own = PathRows(rows.X, where.as_float64(rows.target), rows.weights, where)
    if isinstance(dictionary, Pool):
        return Members(dictionary, given, own, centred=settings.centred)
    n, N = rows.X.shape[0], dictionary.n_candidates
    if n * N > MOST_CELLS:
        raise ValueError(
            f"n_candidates must be at most {MOST_CELLS // n} for a path over {n} rows, so that "
            f"their numbers take {MOST_CELLS >> 27} GiB at most; got {N}."
        )
    source = dictionary.source(given)
    generators = source.drawn(0)

    names = [f"{type(dictionary).__name__} {k}" for k in range(N)]
    derived = replace(own, X=generators(source.u, source.where), names=names)
    return Stumps(
        derived, max_bins=settings.max_bins, centred=settings.centred,
        made=Derivation(source.grid, generators),
    )  # fmt: skip
