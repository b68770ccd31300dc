"""From Dask collections to partitions: the same rows of X, y, weights and offsets together."""

from __future__ import annotations

import math
from typing import Any

import dask
import dask.array as da
import numpy as np

from ensemble_gpu.dask.worker import bundle


def is_collection(data: Any) -> bool:
    return dask.is_dask_collection(data)


def partitions(X: Any, y: Any, sample_weight: Any, init_score: Any) -> list[Any]:
    """Delayed partitions (`Part`) of rows that belong together, in the order of the rows."""
    if not is_collection(X):
        raise TypeError(
            "X must be a Dask Array or DataFrame (dask.array.from_array makes one of an array); "
            f"got {type(X).__name__}. For arrays of this process use the estimator without Dask."
        )
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None.")
    if isinstance(X, da.Array):
        if X.ndim != 2:
            raise ValueError(
                f"Expected 2D array X (rows, features), got {X.ndim}D array instead: shape "
                f"{X.shape}. Reshape your data."
            )
        X = X.rechunk({1: -1}) if X.numblocks[1] > 1 else X
    pieces = [_delayed(X)]
    named = (("y", y), ("sample_weight", sample_weight), ("init_score", init_score))
    for name, given in named:
        pieces.append(_aligned(given, name, X, len(pieces[0])))
    one = dask.delayed(bundle, pure=False)
    return [one(number, *each) for number, each in enumerate(zip(*pieces, strict=True))]


def _delayed(data: Any) -> list[Any]:
    found = data.to_delayed()
    return found.reshape(-1).tolist() if hasattr(found, "reshape") else list(found)


def _row_chunks(X: Any) -> tuple[int, ...] | None:
    """Rows of every partition, if they are known."""
    if not isinstance(X, da.Array) or any(math.isnan(n) for n in X.chunks[0]):
        return None
    return X.chunks[0]


def _aligned(given: Any, name: str, X: Any, n_partitions: int) -> list[Any]:
    """Delayed partitions of what belongs to X, a None each where nothing is given."""
    if given is None:
        return [None] * n_partitions
    chunks = _row_chunks(X)
    if not is_collection(given):
        if chunks is None:
            raise TypeError(
                f"{name} must be a Dask collection with the partitions of X, whose sizes are not "
                f"known; got {type(given).__name__}."
            )
        given = np.asarray(given)
        _check_rows(name, len(given) if given.ndim else 0, chunks)
        given = da.from_array(given, chunks=(chunks, *((n,) for n in given.shape[1:])))
    if isinstance(given, da.Array):
        own = _row_chunks(given)
        if given.ndim > 1 and given.numblocks[1] > 1:
            given = given.rechunk({1: -1})
        if chunks is not None and own is not None and own != chunks:
            _check_rows(name, sum(own), chunks)
            given = given.rechunk({0: chunks})
    found = _delayed(given)
    if len(found) != n_partitions:
        raise ValueError(
            f"X has {n_partitions} partitions, {name} has {len(found)}: rows that belong together "
            "must be in the same partition. Repartition one of them as the other."
        )
    return found


def _check_rows(name: str, n: int, chunks: tuple[int, ...]) -> None:
    if n != sum(chunks):
        raise ValueError(
            "Found input variables with inconsistent numbers of samples: X has "
            f"{sum(chunks)} rows, {name} has {n}."
        )


def whole(collection: Any) -> Any:
    """A collection as one delayed array or frame; what is none stays as it is."""
    if not is_collection(collection):
        return collection
    if isinstance(collection, da.Array):
        one = collection.rechunk(tuple(-1 for _ in collection.shape))
        return _delayed(one)[0]
    return _delayed(collection.repartition(npartitions=1))[0]
