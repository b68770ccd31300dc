"""What the boosting loop costs around somebody else's learner: `python -m bench.foreign`.

A tree of scikit-learn counts the processor time of its own fits and predictions of the training
rows; the rest of BoostingRegressor's and BoostingClassifier's fit (clones, gradients, the step) is
the loop's, as a share of the fits. scikit-learn's GradientBoosting with the same trees runs in
turn. One thread; the least of several runs. Prints a table.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor
from sklearn.tree import DecisionTreeRegressor

from bench.data import Shape, generated
from bench.markdown import seconds, table
from ensemble_gpu import BoostingClassifier, BoostingRegressor

SHAPES = (Shape(1_000, 10), Shape(10_000, 28), Shape(100_000, 28))
DEPTH = 3


class Timed(DecisionTreeRegressor):
    """Adds up the processor time of its fits and of its predictions."""

    spent = 0.0
    predicting = 0.0

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        start = time.process_time()
        fitted = super().fit(X, y, sample_weight)
        Timed.spent += time.process_time() - start
        return fitted

    def predict(self, X: Any, check_input: bool = True) -> Any:
        start = time.process_time()
        answers = super().predict(X, check_input)
        Timed.predicting += time.process_time() - start
        return answers


def _ours(kind: Any, loss: str, rounds: int) -> Any:
    return kind(
        loss, estimator=Timed(max_depth=DEPTH), n_estimators=rounds, early_stopping=False, n_jobs=1
    )


def _timed(fit: Callable[[], Any]) -> tuple[float, float, float]:
    """Processor time of a fit, and of it that of the learner's fits and predictions."""
    Timed.spent = Timed.predicting = 0.0
    start = time.process_time()
    fit()
    return time.process_time() - start, Timed.spent, Timed.predicting


def _line(loss: str, shape: Shape, rounds: int, repeats: int) -> list[str]:
    split = generated(shape)
    X, classes = split.X.astype(np.float64), split.y
    regression = loss in ("squared", "absolute", "huber")
    noise = np.random.default_rng(0).normal(size=len(X))
    y = 2.0 * classes + noise if regression else classes
    kind = BoostingRegressor if regression else BoostingClassifier
    peer = GradientBoostingRegressor if regression else GradientBoostingClassifier
    runs, theirs = [], []
    for _ in range(repeats):
        runs.append(_timed(lambda: _ours(kind, loss, rounds).fit(X, y)))
        theirs.append(_timed(lambda: peer(max_depth=DEPTH, n_estimators=rounds).fit(X, y))[0])
    whole, own, predicting = min(runs, key=lambda run: run[0] - run[1])
    loop = (whole - own - predicting) / own
    return [
        loss, str(shape), seconds(own), seconds(predicting), seconds(whole),
        f"{100 * loop:.1f} %", f"{100 * (loop + predicting / own):.1f} %",
        f"{min(theirs) / whole:.2f}",
    ]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    head = [
        "loss", "rows", "its own fits", "its predictions", "the whole fit", "loop",
        "loop and predictions", "GradientBoosting / ours",
    ]  # fmt: skip
    lines = [
        _line(loss, shape, given.rounds, given.repeats)
        for loss in ("squared", "huber", "logistic")
        for shape in SHAPES
    ]
    print(f"DecisionTreeRegressor(max_depth={DEPTH}), {given.rounds} rounds\n")
    print(table(head, lines))


if __name__ == "__main__":
    main()
