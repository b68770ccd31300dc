"""One fit in a process of its own, for its peak memory (measure.py).

python -m bench.child CONTESTANT FOLDER ROUNDS THREADS prints the bytes that a fit adds to a process
that holds X.npy and y.npy of the folder.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import psutil

from bench.memory import forget_peak, peak
from bench.peers import CONTESTANTS, Job, warm_up
from bench.rates import rate_for


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
