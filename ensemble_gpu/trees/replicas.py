"""All rows for every worker of a team: codes take one byte a cell, and trees then need no sums of
others. Each worker grows trees of its own (bagging/shared_trees.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ensemble_gpu.arrays.namespace import locate
from ensemble_gpu.arrays.sparse import take_rows
from ensemble_gpu.data.keys import row_keys
from ensemble_gpu.data.matrix import BinnedMatrix
from ensemble_gpu.data.rows import Binned, Rows
from ensemble_gpu.kernels.protocol import Codes, Engine
from ensemble_gpu.kernels.team import Team

# Codes up to this are exact in float32.
EXACT = 1 << 24


@dataclass(frozen=True)
class Replica:
    """Where the rows of a worker are among those of all: `X` are its own, at the places `mine`.

    `order` are the places of everybody's rows, worker by worker.
    """

    team: Team
    X: Any
    mine: np.ndarray
    order: np.ndarray

    def joined(self, own: np.ndarray) -> np.ndarray:
        """Something of every worker's rows, in the order of all rows."""
        every = self.team.concatenated(own)
        out = np.empty_like(every)
        out[self.order] = every
        return out

    def keys(self, target: np.ndarray, factor: np.ndarray | None) -> np.ndarray:
        """The keys of all rows (data/keys.py), of which every worker finds those of its own."""
        factor = None if factor is None else factor[self.mine]
        own = locate(self.X).put(target[self.mine])
        return self.joined(row_keys(own, self.X, factor))


def replicated(binned: Binned, rows: Rows, own: Engine) -> tuple[Binned, Replica]:
    """The binned rows of all workers, as one worker with the engine `own` would have them."""
    team, where = binned.engine.team, own.where
    at = np.arange(rows.X.shape[0]) if binned.order is None else where.host(binned.order)
    places = team.positions(at)
    every = team.concatenated(places)
    in_order = np.sort(every)
    order = np.searchsorted(in_order, every)
    X = rows.X if binned.order is None else take_rows(rows.X, binned.order)
    replica = Replica(team, X, np.searchsorted(in_order, places), order)

    def joined(array: Any) -> Any:
        return None if array is None else where.put(replica.joined(where.host(array)))

    codes = _codes(binned, replica, own)
    return replace(
        binned, engine=own, order=None, target=joined(binned.target),
        weights=joined(binned.weights),
        matrix=BinnedMatrix(codes, binned.matrix.edges, binned.matrix.gaps),
    ), replica  # fmt: skip


def _codes(binned: Binned, replica: Replica, own: Engine) -> Codes:
    """Codes of all rows, in the layout of the engine."""
    engine, codes, where = binned.engine, binned.matrix.codes, own.where
    kind = np.uint8 if codes.width <= 256 else np.uint16 if codes.width <= 1 << 16 else np.uint32
    columns: Sequence[np.ndarray] = [
        where.host(engine.column(codes, f)).astype(kind) for f in range(codes.n_features)
    ]
    every = replica.joined(np.stack(columns, axis=1))
    numbers = every.astype(np.float32 if codes.width < EXACT else np.float64)
    edges = [np.arange(codes.width - 1) + 0.5] * codes.n_features  # a code is its own code
    rows = where.put(np.arange(len(numbers)))
    return own.encode(where.put(numbers), edges, rows, None, codes.width)
