"""Digests of what a fit is given: equal for equal data on every engine, library and device.

Row i has a number q_i, a hash of i. A feature's digest is that of its edges and of the sums

    S[b] = sum of q_i over the rows with code b

in integers: one pass of an engine over its codes, however they lie in memory. An array's digest
is that of sum_i q_i bits(a_i) modulo 2^64, a column at a time. A single value that differs changes
its sum for sure (q_i is odd), several ones but for one chance in about 2^63. They find mistakes,
not forgeries.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import numpy as np

from ensemble_gpu.arrays.namespace import Where
from ensemble_gpu.arrays.sparse import is_no_array
from ensemble_gpu.data.keys import row_keys
from ensemble_gpu.data.matrix import BinnedMatrix
from ensemble_gpu.data.rows import Rows
from ensemble_gpu.kernels.host.hashing import STEP
from ensemble_gpu.kernels.protocol import Engine

# Rows whose numbers are made at once: they stay in the cache.
BLOCK = 1 << 14
LETTERS = 16


def row_numbers(n: int) -> np.ndarray:
    """q_i of rows 0 ... n - 1: odd, uint64."""
    return np.concatenate([q for _, q in _blocks(n)]) if n else np.zeros(0, dtype=np.uint64)


def _blocks(n: int) -> Iterator[tuple[slice, np.ndarray]]:
    """Rows, and their numbers: a step of splitmix64."""
    for first in range(0, n, BLOCK):
        rows = slice(first, min(first + BLOCK, n))
        q = np.arange(rows.start + 1, rows.stop + 1, dtype=np.uint64) * STEP
        q = (q ^ (q >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        q = (q ^ (q >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        yield rows, (q ^ (q >> np.uint64(31))) | np.uint64(1)


def digest(*parts: bytes) -> str:
    """A short text for some bytes."""
    found = hashlib.sha256()
    for part in parts:
        found.update(len(part).to_bytes(8, "little"))
        found.update(part)
    return found.hexdigest()[:LETTERS]


def column_digests(array: np.ndarray) -> list[str]:
    """Of every column of an array [n, columns] on the host; equal numbers of any type are alike."""
    sums = np.zeros(array.shape[1], dtype=np.uint64)
    for rows, q in _blocks(len(array)):
        bits = np.ascontiguousarray(array[rows], dtype=np.float64).view(np.uint64)
        sums += (bits * q[:, None]).sum(axis=0, dtype=np.uint64)
    return [digest(len(array).to_bytes(8, "little"), own.tobytes()) for own in sums]


def array_digest(array: np.ndarray) -> str:
    """Of an array of numbers on the host."""
    columns = array.reshape(len(array), -1) if array.ndim else array.reshape(1, 1)
    return digest(*(own.encode() for own in column_digests(columns)))


def feature_digests(engine: Engine, matrix: BinnedMatrix) -> list[str]:
    """Of every feature of binned rows."""
    q = row_numbers(matrix.codes.n_rows).view(np.int64)
    sums = engine.sums(matrix.codes, engine.where.put(q)[None, :])[0]
    return [
        digest(_trimmed(own[:-1]).tobytes(), own[-1:].tobytes(), np.asarray(edges).tobytes())
        for own, edges in zip(sums, matrix.edges, strict=True)
    ]


def _trimmed(sums: np.ndarray) -> np.ndarray:
    """Up to the last that is not 0: how many codes there are depends on the other features."""
    return sums[: 1 + int(np.flatnonzero(sums).max(initial=-1))]


def unbinned_digests(rows: Rows, where: Where) -> list[str]:
    """Of every feature of rows that are not binned; of those in no array, of all together."""
    if not is_no_array(rows.X):
        return column_digests(where.host(rows.X))
    keys = row_keys(rows.target, rows.X)
    return [digest((keys * row_numbers(len(keys))).sum(dtype=np.uint64).tobytes())]
