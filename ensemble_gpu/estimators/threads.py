"""Calls side by side, their results one after the other."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from typing import Any

from ensemble_gpu.arrays.namespace import NARROW, NUMPY, locate
from ensemble_gpu.estimators.base import ArrayEstimator
from ensemble_gpu.kernels.select import engine_for

# Calls that are handed out ahead of the one whose result is next, for each thread: enough for the
# threads to be busy where calls differ in length.
AHEAD = 4


def in_order(function: Callable[[Any], Any], items: Iterable[Any], threads: int) -> Generator[Any]:
    """function(item) of every item in `threads` threads, results in the order of the items.

    Few calls are handed out at a time. An error or Ctrl-C therefore ends all of it once the calls
    that have begun are done, however many items there are.
    """
    pool = ThreadPoolExecutor(threads)
    waiting: deque[Future[Any]] = deque()
    try:
        for item in items:
            waiting.append(pool.submit(function, item))
            if len(waiting) > AHEAD * threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def threads_of(estimator: Any, X: Any) -> int:
    """Threads that a fit to X would use; 1 where it is not the CPU engine that fits."""
    if not isinstance(estimator, ArrayEstimator) or "n_jobs" not in estimator.get_params(False):
        return 1
    where = locate(X)
    if estimator.device == "cpu" or where.kind == NARROW:  # worked on at the host
        where = NUMPY
    if estimator.device not in (None, "cpu"):
        return 1
    return engine_for(where, estimator.n_jobs).n_workers


def fits_side_by_side(
    function: Callable[[Any, bool], Any], items: Sequence[Any], threads: int
) -> Generator[Any]:
    """function(item, one thread alone) of every item, results in the order of the items.

    As many fits as keep all threads busy run side by side, on one thread each, where they lose
    nothing to waiting for each other. What is left runs one after the other, on all of them.
    """
    whole = len(items) - len(items) % threads if threads > 1 else 0
    context = copy_context()  # the engine that the caller has chosen

    def alone(item: Any) -> Any:
        return context.copy().run(function, item, True)

    if whole:
        yield from in_order(alone, items[:whole], threads)
    for item in items[whole:]:
        yield function(item, False)
