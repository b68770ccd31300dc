"""Boosting as regularised regression: `python -m bench.regularised [--only PART]`.

    columns   L2BoostRegressor(Linear(), componentwise=True), 5,000 rounds with df, beside a NumPy
              loop of one product A' r a round without df; what a thousand rounds of it take
    kernel    KernelRidge at n = 4,000: all k up to 1,000 for ten ridges, beside one eigh
    path      200 knots over all stumps of 10,000 x 28 rows, beside scikit-learn's lars_path on the
              explicit matrix; peak memory of each beyond X in a second run
    simplex   1,000 knots of the absolute loss over 500 rows and 496 stumps, beside scipy's linprog
              (HiGHS) at one penalty
    ball      L1BoostingClassifier on 100,000 x 28 rows, at most 500 rounds, beside 500 stumps of
              BoostingClassifier; the radius by 5 folds over 10 radii, beside one fit at that radius

Processor time of all threads, so set OPENBLAS_NUM_THREADS=1 where others are busy: threads of BLAS
that wait count too. Contestants run in turn, the least of several runs. Prints a table.
"""

from __future__ import annotations

import argparse
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import linprog
from sklearn.base import clone
from sklearn.linear_model import lars_path

from bench.markdown import seconds, table
from ensemble_gpu import (
    BoostingClassifier,
    L1BoostingClassifier,
    L2BoostRegressor,
    regularization_path,
)
from ensemble_gpu.smoothers import KernelRidge, Linear

Line = list[str]
# The loop of one product a round is run for so small a share of the rounds.
SHARE = 25


def _timed(work: Callable[[], Any]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def _contest(
    title: str, ours: Callable[[], Any], theirs: Callable[[], Any], repeats: int, factor: int = 1
) -> Line:
    """The other's time is multiplied by `factor`."""
    times = [(_timed(ours), factor * _timed(theirs)) for _ in range(repeats)]
    own, other = (min(column) for column in zip(*times, strict=True))
    return [title, seconds(own), seconds(other), f"{other / own:.2f}"]


def _pursuit(X: np.ndarray, y: np.ndarray, rounds: int, rate: float) -> np.ndarray:
    A = X - X.mean(axis=0)
    norms = (A * A).sum(axis=0)
    b, r = np.zeros(A.shape[1]), y - y.mean()
    for _ in range(rounds):
        c = A.T @ r
        j = int(np.argmax(c * c / norms))
        step = rate * c[j] / norms[j]
        b[j] += step
        r = r - step * A[:, j]
    return b


def columns(repeats: int) -> list[Line]:
    rng = np.random.default_rng(0)
    lines, thousand = [], []
    for n, p, rounds in ((10_000, 200, 5_000), (100_000, 200, 5_000)):
        X = rng.normal(size=(n, p)) + rng.normal(size=(n, 1))
        y = X[:, :30] @ rng.normal(size=30) + rng.normal(size=n)
        ours = L2BoostRegressor(
            Linear(), componentwise=True, n_estimators=rounds, criterion=None, learning_rate=0.1
        )

        def fit(ours: Any = ours, X: Any = X, y: Any = y) -> Any:
            return ours.fit(X, y)

        def loop(X: Any = X, y: Any = y, few: int = rounds // SHARE) -> Any:
            return _pursuit(X, y, few, 0.1)

        title = f"{n:,} x {p}, {rounds:,} rounds with df"
        lines.append(_contest(title, fit, loop, repeats, SHARE))
        thousand.append(_a_thousand(ours, X, y, repeats))
    small, large = thousand
    title = "a thousand of these rounds: 10,000 rows; 100,000 rows"
    return [*lines, [title, seconds(small), seconds(large), f"{large / small:.2f}"]]


def _a_thousand(ours: Any, X: Any, y: Any, repeats: int) -> float:
    """Seconds of a thousand rounds, from fits of many and of few, which prepare the same."""
    many, few = (clone(ours).set_params(n_estimators=rounds) for rounds in (41_000, 1_000))
    times = [
        (_timed(lambda: many.fit(X, y)), _timed(lambda: few.fit(X, y))) for _ in range(repeats)
    ]
    most, least = (min(column) for column in zip(*times, strict=True))
    return (most - least) / (len(many.rss_) - len(few.rss_)) * 1_000


def kernel(repeats: int) -> list[Line]:
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(4_000, 3))
    y = np.sin(6.0 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=4_000)
    ridges = np.geomspace(0.01, 100.0, 10)
    ours = L2BoostRegressor(
        KernelRidge(0.3, list(ridges)), n_estimators=1_000, learning_rate=0.5, criterion="gcv"
    )
    apart = ((X[:, None, :] - X[None]) ** 2).sum(axis=2)
    K = np.exp(-apart / (2.0 * 0.09))
    title = "kernel ridge, n = 4,000: 1,000 rounds, 10 ridges; one eigh"
    return [_contest(title, lambda: ours.fit(X, y), lambda: np.linalg.eigh(K), repeats)]


def path(repeats: int) -> list[Line]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(10_000, 28))
    y = X[:, 0] + np.sin(2.0 * X[:, 1]) + X[:, 2] * X[:, 2] + rng.normal(size=10_000)

    def ours() -> Any:
        return regularization_path(X, y, intercept="mean", max_knots=200)

    def theirs() -> Any:
        A = _stumps(X)
        return lars_path(A, y - y.mean(), method="lasso", max_iter=199, Gram=None, copy_X=False)

    alphas = theirs()[0]
    off = np.abs(alphas - ours().alphas[: len(alphas)]).max()
    title = f"path of 200 knots; lars_path (alphas differ by {off:.1e})"
    peaks = [_peak(work) for work in (ours, theirs)]
    sizes = [f"{peak / 2**20:.0f} MiB" for peak in peaks]
    memory = ["the same: peak memory beyond X", *sizes, f"{peaks[1] / peaks[0]:.1f}"]
    return [_contest(title, ours, theirs, repeats), memory]


def simplex(repeats: int) -> list[Line]:
    rng = np.random.default_rng(0)
    n, X = 500, rng.normal(size=(500, 16))
    y = X[:, 0] + np.sin(2.0 * X[:, 1]) + rng.normal(size=n)
    given = {"loss": "absolute", "intercept": "zero", "max_bins": 32, "max_knots": 1_000}
    found = regularization_path(X, y, **given)
    A = _stumps(X, 32)
    P, alpha = A.shape[1], float(found.alphas[len(found) // 2])
    c = np.concatenate([np.full(2 * P, alpha), np.full(2 * n, 1.0 / n)])
    rows = np.hstack([A, -A, np.eye(n), -np.eye(n)])

    def theirs() -> Any:
        return linprog(c, A_eq=rows, b_eq=y)

    point = found.at(alpha=alpha)
    left = y - found.model(alpha=alpha)(X)[:, 0]
    off = abs(np.abs(left).mean() + alpha * point.radius - theirs().fun)
    title = f"absolute loss, {len(found)} knots; linprog at one (objectives differ by {off:.1e})"
    return [_contest(title, lambda: regularization_path(X, y, **given), theirs, repeats)]


def _stumps(X: np.ndarray, max_bins: int = 255) -> np.ndarray:
    """The explicit dictionary of the same thresholds, [n, 7112] with 255 bins of 28 features."""
    found = regularization_path(
        X, X[:, 0], intercept="mean", max_knots=1, max_bins=max_bins
    ).dictionary
    columns = np.empty((len(X), len(found.feature)), order="F")
    for j, (f, t) in enumerate(zip(found.feature, found.threshold, strict=True)):
        columns[:, j] = np.where(X[:, f] > t, 1.0, -1.0)
    return columns


def _peak(work: Callable[[], Any]) -> int:
    tracemalloc.start()
    work()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak


def ball(repeats: int) -> list[Line]:
    rng = np.random.default_rng(0)
    n = 100_000
    X = rng.normal(size=(n, 28))
    f = X[:, 0] + np.sin(2.0 * X[:, 1]) + X[:, 2] * X[:, 2] - 1.0 + X[:, 3] * X[:, 4]
    y = (f + rng.normal(size=n) > 0.0).astype(np.int64)
    stumps = BoostingClassifier(max_depth=1, n_estimators=500, early_stopping=False, n_jobs=1)
    ours = L1BoostingClassifier(radius=20.0, n_jobs=1).fit(X, y)
    stumps.fit(X, y)
    title = (
        f"ball of radius 20: {ours.n_iter_} of 500 rounds, {ours.n_estimators_} stumps, gap "
        f"{ours.gap_[-1] / ours.loss_[-1]:.1e} R; 500 boosted stumps"
    )
    lines = [_contest(title, lambda: ours.fit(X, y), lambda: stumps.fit(X, y), repeats)]
    chosen = L1BoostingClassifier(radius="cv", n_jobs=1).fit(X, y)
    one = L1BoostingClassifier(radius=chosen.radius_, n_jobs=1)
    tried = len(chosen.cv_.radii)
    title = f"one fit; radius by 5 folds, {tried} of 10 radii: {chosen.radius_:g}"
    return [*lines, _contest(title, lambda: one.fit(X, y), lambda: chosen.fit(X, y), 1)]


PARTS = {"columns": columns, "kernel": kernel, "path": path, "simplex": simplex, "ball": ball}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=PARTS)
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    chosen = [given.only] if given.only else list(PARTS)
    lines = [line for name in chosen for line in PARTS[name](given.repeats)]
    print(table(["what", "ours", "the other", "the other / ours"], lines))


if __name__ == "__main__":
    main()
