"""Cross-validation beside a plain fit, GridSearchCV and LightGBM: seconds and ratios of one run.

AdaBoost of stumps, two classes, 28 features; log-loss and AUC after every tenth round. Calibration
and early stopping are off. Run: python -m bench.cross_validation [--rows 100000] [--rounds 1000]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
from sklearn.model_selection import GridSearchCV, StratifiedKFold

from bench.markdown import table
from ensemble_gpu import AdaBoostClassifier, cross_validate, tune

RATES = [0.1, 0.3, 0.5, 1.0]


def seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def lightgbm_cv(X: np.ndarray, y: np.ndarray, rounds: int, folds: list) -> Callable[[], object]:
    import lightgbm

    parameters = {
        "objective": "binary", "num_leaves": 2, "learning_rate": 0.1, "verbose": -1,
        "metric": ["binary_logloss", "auc"], "num_threads": 2,
    }  # fmt: skip
    return lambda: lightgbm.cv(parameters, lightgbm.Dataset(X, y), rounds, folds=folds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=1_000)
    given = parser.parse_args()
    rng = np.random.default_rng(0)
    X = rng.normal(size=(given.rows, 28)).astype(np.float32)
    y = (X[:, :8].sum(axis=1) + X[:, 8] ** 2 + rng.normal(size=given.rows) > 1.0).astype(np.int64)
    plain = AdaBoostClassifier(n_estimators=given.rounds, learning_rate=0.1, calibrate=False)
    tenth = list(range(10, given.rounds + 1, 10))
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    pairs = list(folds.split(X, y))
    plain.fit(X[:1000], y[:1000])  # compiles
    cross_validate(plain, X[:1000], y[:1000], metrics=["log_loss", "roc_auc"], rounds=tenth[:1])
    fit = seconds(lambda: plain.fit(X, y))
    ours = seconds(
        lambda: cross_validate(plain, X, y, cv=pairs, metrics=["log_loss", "roc_auc"], rounds=tenth)
    )
    theirs = seconds(lightgbm_cv(X, y, given.rounds, pairs))
    grid = {"learning_rate": RATES}
    tuned = seconds(lambda: tune(plain, X, y, grid, cv=pairs, rounds=None))
    chosen = seconds(lambda: tune(plain, X, y, grid, cv=pairs, rounds=tenth[9::10]))
    one = AdaBoostClassifier(n_estimators=given.rounds, calibrate=False, n_jobs=1)
    search = GridSearchCV(one, grid, cv=pairs, n_jobs=2, scoring="neg_log_loss")
    searched = seconds(lambda: search.fit(X, y))
    rows = [
        ["one fit", f"{fit:.2f}", ""],
        ["cross_validate, 5 folds, every tenth round", f"{ours:.2f}", f"{ours / fit:.2f} fits"],
        ["lightgbm.cv, two leaves", f"{theirs:.2f}", f"{theirs / ours:.2f} of ours"],
        ["tune, 4 rates x 5 folds", f"{tuned:.2f}", f"{tuned / fit:.2f} fits"],
        ["the same, 10 numbers of rounds", f"{chosen:.2f}", f"{chosen / fit:.2f} fits"],
        ["GridSearchCV(n_jobs=2), no rounds", f"{searched:.2f}", f"{searched / tuned:.2f} of ours"],
    ]
    print(table(["work", "seconds", "ratio"], rows))


if __name__ == "__main__":
    main()
