"""Metrics beside scikit-learn's: seconds and ratios of one interleaved run.

Run: python -m bench.metrics [--repeats 5]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
from sklearn import metrics as peer

from bench.markdown import table
from ensemble_gpu import metrics as ours

Pair = tuple[Callable[[], object], Callable[[], object]]


def works() -> dict[str, Pair]:
    """What is timed: (ours, scikit-learn's)."""
    rng = np.random.default_rng(0)
    n = 1_000_000
    y = rng.integers(2, size=n)
    s = rng.normal(size=n) + y
    p = 1.0 / (1.0 + np.exp(-s))
    w = rng.gamma(1.0, size=n)
    few = rng.integers(2, size=100_000)
    stack = rng.normal(size=(200, len(few))) + few
    taken = (s > 0.5).astype(np.int64)
    return {
        "roc_auc, 1,000,000": (lambda: ours.roc_auc(y, s), lambda: peer.roc_auc_score(y, s)),
        "roc_auc, 1,000,000, weights": (
            lambda: ours.roc_auc(y, s, sample_weight=w),
            lambda: peer.roc_auc_score(y, s, sample_weight=w),
        ),
        "roc_auc, 200 x 100,000": (
            lambda: ours.roc_auc(few, stack),
            lambda: [peer.roc_auc_score(few, one) for one in stack],
        ),
        "roc_curve, 1,000,000": (
            lambda: ours.roc_curve(y, s), lambda: peer.roc_curve(y, s, drop_intermediate=False),
        ),
        "average_precision, 1,000,000": (
            lambda: ours.average_precision(y, s), lambda: peer.average_precision_score(y, s),
        ),
        "log_loss, 1,000,000": (lambda: ours.log_loss(y, p), lambda: peer.log_loss(y, p)),
        "confusion_matrix, 1,000,000": (
            lambda: ours.confusion_matrix(y, taken), lambda: peer.confusion_matrix(y, taken),
        ),
        "mse, 1,000,000": (lambda: ours.mse(s, p), lambda: peer.mean_squared_error(s, p)),
    }  # fmt: skip


def seconds(call: Callable[[], object]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    rows = []
    for name, (mine, theirs) in works().items():
        mine()  # compiles
        pairs = [(seconds(mine), seconds(theirs)) for _ in range(repeats)]
        a, b = (min(column) for column in zip(*pairs, strict=True))
        rows.append([name, f"{a:.4f}", f"{b:.4f}", f"{b / a:.1f}"])
    print(table(["metric", "ensemble_gpu s", "scikit-learn s", "ratio"], rows))


if __name__ == "__main__":
    main()
