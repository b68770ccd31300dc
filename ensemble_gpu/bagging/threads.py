"""Calls side by side, their results one after the other."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

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
