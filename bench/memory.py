"""Peak memory of this process."""

from __future__ import annotations

import resource
import sys
import threading
from pathlib import Path

# ru_maxrss counts bytes on macOS, KiB elsewhere.
RSS_UNIT = 1 if sys.platform == "darwin" else 1024
STATUS, RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def forget_peak() -> None:
    """The highest size counts from here on, where the system can do that (Linux)."""
    if RESET.exists():
        RESET.write_text("5")


def peak() -> int:
    """Highest size of this process.

    Linux: VmHWM, as ru_maxrss may be that of the parent, whose memory a child shares until exec.
    """
    if STATUS.exists():
        for line in STATUS.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * RSS_UNIT


class OwnPages:
    """The most memory without pages of files, which the system may drop, looked at now and then.

    Linux: RssAnon; elsewhere 0.
    """

    def __init__(self, seconds: float = 0.02) -> None:
        self.seconds, self.most = seconds, 0
        self._ended = threading.Event()
        self._watch = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> OwnPages:
        self.before = self._now()
        self._watch.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._watch.join()

    def _look(self) -> None:
        while not self._ended.wait(self.seconds):
            self.most = max(self.most, self._now() - self.before)

    @staticmethod
    def _now() -> int:
        if STATUS.exists():
            for line in STATUS.read_text().splitlines():
                if line.startswith("RssAnon:"):
                    return int(line.split()[1]) * 1024
        return 0
