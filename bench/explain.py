"""Shapley values beside the package shap's TreeExplainer, on the same trees.

`python -m bench.explain` (pip install shap).

Two works: AdaBoost of 500 stumps, and a forest of 100 trees of 256 leaves (both 28 features, 10,000
rows explained). shap is given our trees, in float64, and fewer rows, one after the other with ours
in the same run; its time a row does not depend on their number. The ratio is that of processor
times of one thread, and of wall times with two threads of ours (shap has one). Also how far the
values are apart.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from ensemble_gpu import AdaBoostClassifier, RandomForestClassifier, RandomForestRegressor

ROWS, THEIR_ROWS, REPEATS = 10_000, 20, 3


def shap_trees(estimator: Any, X: np.ndarray) -> dict[str, Any]:
    """The trees of a Forest or the stumps of an AdditiveModel as TreeExplainer takes them."""
    model = estimator.model_
    if hasattr(model, "rounds"):
        rounds = model.rounds
        own = zip(rounds.feature, rounds.threshold, rounds.values[:, :, :2], strict=True)
        return {"trees": [_stump(f, t, values, X) for f, t, values in own]}
    trees = []
    for t in range(model.n_trees):
        span = model.span(t)
        nodes = model.nodes.between(span.start, span.stop)
        trees.append({
            "children_left": nodes.left, "children_right": nodes.right,
            "children_default": np.where(nodes.missing_left, nodes.left, nodes.right),
            "features": nodes.feature, "thresholds": nodes.threshold,
            "values": nodes.value / model.n_trees, "node_sample_weight": nodes.weight,
        })  # fmt: skip
    return {"trees": trees}


def _stump(f: int, t: float, values: np.ndarray, X: np.ndarray) -> dict[str, np.ndarray]:
    left = float((X[:, f] <= t).sum())
    return {
        "children_left": np.array([1, -1, -1]), "children_right": np.array([2, -1, -1]),
        "children_default": np.array([1, -1, -1]), "features": np.array([f, -1, -1]),
        "thresholds": np.array([t, np.nan, np.nan]),
        "values": np.concatenate([np.zeros((1, len(values))), values.T]),
        "node_sample_weight": np.array([len(X), left, len(X) - left]),
    }  # fmt: skip


def fastest(work: Callable[[], Any], clock: Callable[[], float]) -> float:
    start = clock()
    work()
    return clock() - start


def compare(name: str, estimator: Any, X: np.ndarray, rows: int) -> None:
    """Print times a row and ratios; `rows` are those that shap is given."""
    import shap

    explainer = shap.TreeExplainer(
        shap_trees(estimator, X), feature_perturbation="tree_path_dependent"
    )
    one, two = (estimator._with(n_jobs=n_jobs) for n_jobs in (1, 2))
    ours = one.explain(X[:ROWS]).values
    theirs = explainer.shap_values(X[:rows], check_additivity=False)
    apart = np.abs(ours[:rows] - theirs.reshape(ours[:rows].shape)).max()
    times: dict[str, list[float]] = {"shap": [], "one": [], "shap wall": [], "two": []}
    works = {
        "shap": (lambda: explainer.shap_values(X[:rows], check_additivity=False), rows),
        "one": (lambda: one.explain(X[:ROWS]), ROWS),
        "two": (lambda: two.explain(X[:ROWS]), ROWS),
    }
    for _ in range(REPEATS):
        for key, (work, n) in works.items():
            wall = time.perf_counter()
            spent = fastest(work, time.process_time) / n
            wall = (time.perf_counter() - wall) / n
            times[key].append(wall if key == "two" else spent)
            if key == "shap":
                times["shap wall"].append(wall)
    best = {key: 1e6 * min(found) for key, found in times.items()}
    print(
        f"{name:<44} shap {best['shap']:9.1f} us a row, ours {best['one']:7.2f} (one thread), "
        f"{best['two']:7.2f} (two): {best['shap'] / best['one']:6.0f}x and "
        f"{best['shap wall'] / best['two']:6.0f}x; {apart:.0e} apart"
    )


def main() -> None:
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 28))
    y = X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=len(X)) > 0.0
    stumps = AdaBoostClassifier(n_estimators=500).fit(X, y)
    compare("AdaBoost, 500 stumps", stumps, X, 50 * THEIR_ROWS)
    for kind in (RandomForestRegressor, RandomForestClassifier):
        forest = kind(100, max_leaf_nodes=256, max_features="sqrt", random_state=0)
        compare(f"{kind.__name__}, 100 trees of 256 leaves", forest.fit(X, y * 1.0), X, THEIR_ROWS)


if __name__ == "__main__":
    main()
