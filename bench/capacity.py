"""Forests whose trees choose their capacity beside the plain forest: `python -m bench.capacity`.

Two classes, 28 features, from raw float32 rows. Prints seconds, their ratio to the plain forest of
the same run (at most 1.5 is asked for, with rows out of the bag), leaves a tree and the accuracy on
held-out rows. The default is two threads; --threads 1 counts processor time.
"""

from __future__ import annotations

import argparse
from functools import partial
from typing import Any

import numpy as np

from bench.data import Shape, generated
from bench.markdown import seconds, table
from bench.measure import Effort, interleave
from ensemble_gpu import RandomForestClassifier

PLAIN = "plain"
SETTINGS: dict[str, dict[str, Any]] = {
    PLAIN: {},
    "max_depth": {"capacity": "max_depth"},
    "max_leaf_nodes": {"capacity": "max_leaf_nodes"},
    "ccp_alpha": {"capacity": "ccp_alpha"},
    "max_depth, log-loss": {"capacity": "max_depth", "validation_loss": "log_loss"},
    "max_depth, a fifth held out": {"capacity": "max_depth", "validation": "holdout"},
}
FOLDS = {"max_depth, 5 folds": {"capacity": "max_depth", "validation": "cv"}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--trees", type=int, default=100)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--folds", action="store_true", help="folds too: five more trees a tree")
    given = parser.parse_args()
    split = generated(Shape(given.rows, 28))
    settings = SETTINGS | (FOLDS if given.folds else {})

    def fit(n: int, params: dict[str, Any], X: np.ndarray, y: np.ndarray) -> Any:
        forest = RandomForestClassifier(n, n_jobs=given.threads, random_state=0, **params)
        return forest.fit(X, y)

    calls = {}
    for name, params in settings.items():
        fit(2, params, split.X[:2000], split.y[:2000])  # compiles
        calls[name] = partial(fit, given.trees, params, split.X, split.y)
    timings = interleave(calls, Effort(given.threads, given.repeats, 600.0))
    rows = [
        [
            name, seconds(t.best), f"{t.best / timings[PLAIN].best:.2f}",
            f"{(t.result.model_.nodes.feature < 0).sum() / given.trees:,.0f}",
            f"{t.result.score(split.X_test, split.y_test):.4f}",
        ]
        for name, t in timings.items()
    ]  # fmt: skip
    print(table(["capacity", "seconds", "of the plain forest", "leaves a tree", "accuracy"], rows))


if __name__ == "__main__":
    main()
