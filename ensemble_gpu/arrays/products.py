"""Matrix products of the host on one thread, where the threads of the caller share the work.

A library's threads wait for each other by spinning: beside ours, or those of other processes, a
product of 10,000 x 28 by 28 x 1,000 took ten times as long on two threads as on one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from threadpoolctl import ThreadpoolController


@cache
def _controller() -> ThreadpoolController:
    """Of the libraries that are loaded when a product is first limited."""
    return ThreadpoolController()


@contextmanager
def single_threaded() -> Iterator[None]:
    """While the block runs NumPy's products take one thread each."""
    with _controller().limit(limits=1, user_api="blas"):
        yield
