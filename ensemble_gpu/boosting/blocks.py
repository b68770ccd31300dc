"""How many rounds one call finds, where an engine or a kernel runs whole rounds by itself."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

# A call runs at most about as long: so long a fit cannot be interrupted, and so much work may be
# lost where it is stopped.
BLOCK_SECONDS = 0.01
FIRST_BLOCK = 8


class BlockSize:
    """As many rounds as take between half of BLOCK_SECONDS and all of it."""

    def __init__(self) -> None:
        self.rounds = FIRST_BLOCK

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Around a call that finds so many rounds."""
        start = time.perf_counter()
        yield
        self.note(time.perf_counter() - start)

    def note(self, seconds: float) -> None:
        """How long a call has taken."""
        if seconds < 0.5 * BLOCK_SECONDS:
            self.rounds *= 2
        elif seconds > BLOCK_SECONDS:
            self.rounds = max(1, self.rounds // 2)
