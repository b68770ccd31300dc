"""Cross-validation beside a plain fit, GridSearchCV and LightGBM: seconds and ratios of one run.

Stumps, 28 features, 5 folds. Calibration (but of `order`) and early stopping are off. Seconds are
the least of interleaved repeats. GridSearchCV has two processes, which are there before it is
timed. Beside `tune` also stand the bare fits that no way of choosing between rates can do without:
20, on two threads side by side, of rows and bins that are there.

    folds    AdaBoost: log-loss and AUC after every tenth round, beside a fit and lightgbm.cv
    l2boost  squared loss: the held-out loss after every round, beside a fit
    tune     4 learning rates, without and with 10 numbers of rounds, beside GridSearchCV: log-loss
    order    the same by AUC with AdaBoostClassifier as it is, calibrated
    squares  the same of L2Boost, by RMSE

Run: python -m bench.cross_validation [PART ...] [--repeats 3] [--sizes 1000:100 ...]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, StratifiedKFold

from bench.markdown import table
from ensemble_gpu import AdaBoostClassifier, BoostingRegressor, cross_validate, tune
from ensemble_gpu.selection.fitting import common_bins
from ensemble_gpu.selection.judging import read_held, task_of

RATES = [0.1, 0.3, 0.5, 1.0]
METRICS = ["log_loss", "roc_auc"]
Work = Callable[[], object]


def seconds(works: dict[str, Work], repeats: int) -> dict[str, float]:
    """The least seconds of each, in turns."""
    least = dict.fromkeys(works, float("inf"))
    for _ in range(repeats):
        for name, work in works.items():
            start = time.perf_counter()
            work()
            least[name] = min(least[name], time.perf_counter() - start)
    return least


def rows_of(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Features, and a target of nine of them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 28)).astype(np.float32)
    return X, X[:, :8].sum(axis=1) + X[:, 8] ** 2 + rng.normal(size=n)


def folds_of(X: np.ndarray, y: np.ndarray) -> list:
    return list(StratifiedKFold(5, shuffle=True, random_state=0).split(X, y))


def lightgbm_cv(X: np.ndarray, y: np.ndarray, rounds: int, folds: list) -> Work:
    import lightgbm

    parameters = {
        "objective": "binary", "num_leaves": 2, "learning_rate": 0.1, "verbose": -1,
        "metric": ["binary_logloss", "auc"], "num_threads": 2,
    }  # fmt: skip
    return lambda: lightgbm.cv(parameters, lightgbm.Dataset(X, y), rounds, folds=folds)


def folds(repeats: int, n: int = 100_000, rounds: int = 1_000) -> list[list[str]]:
    X, t = rows_of(n)
    y = (t > 1.0).astype(np.int64)
    pairs, tenth = folds_of(X, y), list(range(10, rounds + 1, 10))
    plain = AdaBoostClassifier(n_estimators=rounds, learning_rate=0.1, calibrate=False)
    cross_validate(plain, X[:1000], y[:1000], metrics=METRICS, rounds=tenth[:1])  # compiles
    found = seconds(
        {
            "fit": lambda: plain.fit(X, y),
            "ours": lambda: cross_validate(plain, X, y, cv=pairs, metrics=METRICS, rounds=tenth),
            "lightgbm": lightgbm_cv(X, y, rounds, pairs),
        },
        repeats,
    )
    fit, ours, theirs = found.values()
    what = f"{n:,} rows, {rounds:,} rounds"
    return [
        [f"AdaBoost, {what}: one fit", f"{fit:.3f}", ""],
        ["cross_validate, every tenth round", f"{ours:.3f}", f"{ours / fit:.2f} fits"],
        ["lightgbm.cv, two leaves", f"{theirs:.3f}", f"{theirs / ours:.2f} of ours"],
    ]


def l2boost(repeats: int, n: int = 1_000_000, rounds: int = 1_000) -> list[list[str]]:
    X, y = rows_of(n)
    plain = BoostingRegressor(n_estimators=rounds, max_depth=1, early_stopping=False)
    cross_validate(plain, X[:3000], y[:3000], rounds="all")  # compiles
    found = seconds(
        {
            "fit": lambda: plain.fit(X, y),
            "ours": lambda: cross_validate(plain, X, y, rounds="all"),
        },
        repeats,
    )
    fit, ours = found.values()
    return [
        [f"L2Boost, {n:,} rows, {rounds:,} rounds: one fit", f"{fit:.3f}", ""],
        ["cross_validate, every round", f"{ours:.3f}", f"{ours / fit:.2f} fits"],
    ]


@dataclass(frozen=True)
class Tuned:
    """An estimator to tune, by a metric and what GridSearchCV calls it."""

    estimator: Any
    metric: str
    scoring: str
    classes: bool = True


TUNED = {
    "tune": Tuned(AdaBoostClassifier(calibrate=False), "log_loss", "neg_log_loss"),
    "order": Tuned(AdaBoostClassifier(), "roc_auc", "roc_auc"),
    "squares": Tuned(
        BoostingRegressor(max_depth=1, early_stopping=False), "rmse",
        "neg_root_mean_squared_error", classes=False,
    ),
}  # fmt: skip


def bare_fits(estimator: Any, X: np.ndarray, y: np.ndarray, pairs: list) -> Work:
    """Fits of all rates to all folds, two at a time, with bins of all rows."""
    one = clone(estimator).set_params(n_jobs=1)
    if "calibrate" in one.get_params():
        one.set_params(calibrate=False)
    bins = common_bins(one, read_held(X, y, None, task_of(one, None))[0])
    rows = [(X[train], y[train]) for train, _ in pairs]

    def fit(call: tuple[float, tuple[np.ndarray, np.ndarray]]) -> None:
        model = clone(one).set_params(learning_rate=call[0])
        with model._sharing(bins):
            model.fit(*call[1])

    def work() -> None:
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(fit, product(RATES, rows)))

    return work


def tuning(repeats: int, n: int, rounds: int, tuned: Tuned) -> list[list[str]]:
    X, y = rows_of(n)
    if tuned.classes:
        y = (y > 1.0).astype(np.int64)
    pairs = folds_of(X, y if tuned.classes else np.arange(n) % 2)
    ten = list(range(rounds // 10, rounds + 1, rounds // 10))
    plain = clone(tuned.estimator).set_params(n_estimators=rounds)
    one, metric = clone(plain).set_params(n_jobs=1), tuned.metric
    rates, both = {"learning_rate": RATES}, {"learning_rate": RATES, "n_estimators": ten}

    def searched(grid: dict) -> Work:
        search = GridSearchCV(one, grid, cv=pairs, n_jobs=2, scoring=tuned.scoring)
        return lambda: search.fit(X, y)

    small = GridSearchCV(one, {"max_bins": [8, 16]}, cv=2, n_jobs=2)
    small.fit(X[:500], y[:500])  # starts processes
    tune(plain, X[:500], y[:500], {"learning_rate": [1.0]}, cv=2)
    found = seconds(
        {
            "bare": bare_fits(plain, X, y, pairs),
            "rates": lambda: tune(plain, X, y, rates, cv=pairs, metric=metric, rounds=None),
            "grid of rates": searched(rates),
            "both": lambda: tune(plain, X, y, both, cv=pairs, metric=metric),
            "grid of both": searched(both),
        },
        repeats,
    )
    bare, ours, theirs, ours_of_both, theirs_of_both = found.values()
    name = type(plain).__name__
    return [
        [f"{name} by {metric}, {n:,} rows, {rounds:,} rounds: 20 bare fits", f"{bare:.3f}", ""],
        ["tune, 4 rates", f"{ours:.3f}", f"{ours / bare:.2f} bare"],
        [
            "GridSearchCV(n_jobs=2)", f"{theirs:.3f}",
            f"{theirs / ours:.1f} of ours ({theirs / bare:.1f} bare)",
        ],
        ["tune, 4 rates and 10 numbers of rounds", f"{ours_of_both:.3f}", ""],
        [
            "GridSearchCV(n_jobs=2)", f"{theirs_of_both:.3f}",
            f"{theirs_of_both / ours_of_both:.1f} of ours ({theirs_of_both / bare:.1f} bare)",
        ],
    ]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", default=["folds", "l2boost", *TUNED])
    parser.add_argument("--repeats", type=int, default=3)
    sizes = ["1000:100", "10000:100", "100000:1000"]
    parser.add_argument("--sizes", nargs="*", default=sizes, help="rows:rounds of tune")
    given = parser.parse_args()
    rows = folds(given.repeats) if "folds" in given.parts else []
    rows += l2boost(given.repeats) if "l2boost" in given.parts else []
    for part, tuned in TUNED.items():
        for size in given.sizes if part in given.parts else []:
            n, rounds = map(int, size.split(":"))
            rows += tuning(given.repeats, n, rounds, tuned)
    print(table(["work", "seconds", "ratio"], rows))


if __name__ == "__main__":
    main()
