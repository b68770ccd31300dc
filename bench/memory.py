"""Peak memory of this process."""

from __future__ import annotations

import resource
import sys
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
