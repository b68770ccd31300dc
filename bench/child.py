"""One fit in a process of its own, for its peak memory (measure.py).

python -m bench.child CONTESTANT FOLDER ROUNDS THREADS prints the bytes that a fit adds to a process
that holds X.npy and y.npy of the folder.
"""

from __future__ import annotations

import resource
import sys
from pathlib import Path

import numpy as np
import psutil

from bench.peers import CONTESTANTS, Job, warm_up
from bench.rates import rate_for

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


def main() -> None:
    """Measure one fit."""
    name, folder = sys.argv[1:3]
    rounds, threads = int(sys.argv[3]), int(sys.argv[4])
    X, y = np.load(Path(folder, "X.npy")), np.load(Path(folder, "y.npy"))
    classes = int(y.max()) + 1
    warm_up(name, X, y, threads)
    forget_peak()
    before = psutil.Process().memory_info().rss
    rate = rate_for(name, X.shape[1], classes, rounds)
    model = CONTESTANTS[name].fit(Job(X, y, rounds, rate, threads))
    print(max(0, peak() - before))
    del model


if __name__ == "__main__":
    main()
