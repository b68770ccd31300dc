"""Teams of threads: a fit whose rows several workers have."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ensemble_gpu import use_engine
from ensemble_gpu.distributed import Journal, LostWorker, ThreadReduce, fit

# Five parts, one of them empty, for three workers, in no order of their own.
CUTS = (0, 90, 90, 260, 400)
OWNERS = (0, 1, 1, 2, 0)


def parts_of(n: int, cuts: Sequence[int] = CUTS) -> list[slice]:
    ends = [*cuts, n]
    return [slice(a, b) for a, b in pairwise(ends)]


def rows_of(array: Any, parts: Sequence[slice]) -> Any:
    """The rows of some parts, one after the other."""
    if array is None:
        return None
    if hasattr(array, "iloc"):
        import pandas as pd

        return pd.concat([array.iloc[part] for part in parts])
    return np.concatenate([array[part] for part in parts])


def team_fit(
    make: Callable[[], Any],
    X: Any,
    y: Any,
    w: Any = None,
    *,
    cuts: Sequence[int] = CUTS,
    owners: Sequence[int] = OWNERS,
    put: Callable[[Any], Any] = lambda array: array,
    engine: str | None = None,
    journals: Sequence[Journal] | None = None,
    **more: Any,
) -> list[Any]:
    """The estimators of all workers; an error of one of them is raised."""
    size, parts = max(owners) + 1, parts_of(len(X), cuts)
    reduces, fitted, errors = ThreadReduce.team(size), [None] * size, []

    def run(rank: int) -> None:
        numbers = [k for k in range(len(parts)) if owners[k] == rank]
        own = [parts[k] for k in numbers]
        sizes = [part.stop - part.start for part in own]
        rows = (None if a is None else put(rows_of(a, own)) for a in (X, y, w))
        estimator = make().set_params(n_jobs=1)
        journal = None if journals is None else journals[rank]
        try:
            call = lambda: fit(  # noqa: E731
                estimator, *rows, reduce=reduces[rank], numbers=numbers, sizes=sizes,
                journal=journal, **more,
            )  # fmt: skip
            if engine is None:
                fitted[rank] = call()
            else:
                with use_engine(engine):
                    fitted[rank] = call()
        except BaseException as error:
            errors.append(error)
            reduces[rank].leave()

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for error in sorted(errors, key=lambda one: isinstance(one, LostWorker)):
        raise error
    return fitted
