"""One row at a time, as a service asks: `python -m bench.one_row`.

Three kinds of models of 20,000 x 28, each asked in two ways, on one thread:

estimator    predict_proba of the estimators, which check their input
bare model   `model_`, `Booster.predict`, `Booster.inplace_predict`: the answer and nothing else

Contestants take turns; the best loop counts. Prints a table and writes it to
bench/results/one_row.md.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import catboost
import lightgbm
import numpy as np
import xgboost

from bench.markdown import seconds, table
from ensemble_gpu import AdaBoostClassifier, BoostingClassifier, RandomForestClassifier

RESULTS = Path(__file__).parent / "results" / "one_row.md"
ROWS, FEATURES, LOOPS, CALLS = 20_000, 28, 9, 200

Ask = Callable[[np.ndarray], Any]
Ways = dict[str, dict[str, Ask]]


def _rows() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(ROWS, FEATURES)).astype(np.float32)
    return X, (X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=ROWS) > 0).astype(np.int64)


def _ways(ours: Any, light: Any, extreme: Any, cat: Any) -> Ways:
    booster, own = light.booster_, extreme.get_booster()
    ways: Ways = {
        "estimator": {
            "ensemble_gpu": ours.predict_proba,
            "LightGBM": light.predict_proba,
            "XGBoost": extreme.predict_proba,
        },
        "bare model": {
            "ensemble_gpu": ours.model_,
            "LightGBM": lambda x: booster.predict(x, num_threads=1),
            "XGBoost": own.inplace_predict,
        },
    }
    if cat is not None:
        ways["estimator"]["CatBoost"] = cat.predict_proba
    return ways


def _boosted(ours: Any, rounds: int, leaves: int, depth: int) -> tuple[Any, ...]:
    return (
        ours,
        lightgbm.LGBMClassifier(n_estimators=rounds, num_leaves=leaves, n_jobs=1, verbose=-1),
        xgboost.XGBClassifier(n_estimators=rounds, max_depth=depth, n_jobs=1),
        catboost.CatBoostClassifier(
            iterations=rounds, depth=depth, verbose=0, thread_count=1, allow_writing_files=False
        ),
    )


def _contests() -> dict[str, tuple[Any, ...]]:
    trees = BoostingClassifier(n_estimators=100, max_leaf_nodes=31, early_stopping=False)
    return {
        "1,000 stumps": _boosted(AdaBoostClassifier(n_estimators=1_000), 1_000, 2, 1),
        "100 boosted trees of 31 leaves": _boosted(trees, 100, 31, 5),
        "forest, 100 trees of 256 leaves": (
            RandomForestClassifier(n_estimators=100, max_leaf_nodes=256, random_state=0),
            lightgbm.LGBMClassifier(
                boosting_type="rf", bagging_freq=1, bagging_fraction=0.63, n_estimators=100,
                num_leaves=256, n_jobs=1, verbose=-1,
            ),
            xgboost.XGBRFClassifier(
                n_estimators=100, max_leaves=256, max_depth=0, grow_policy="lossguide", n_jobs=1
            ),
            None,
        ),
    }  # fmt: skip


def _best(asked: dict[str, Ask], x: np.ndarray) -> dict[str, float]:
    """Seconds a call of the best of several loops, which take turns."""
    best = dict.fromkeys(asked, np.inf)
    for _ in range(LOOPS):
        for name, ask in asked.items():
            start = time.perf_counter()
            for _ in range(CALLS):
                ask(x)
            best[name] = min(best[name], (time.perf_counter() - start) / CALLS)
    return best


def main() -> None:
    X, y = _rows()
    lines = []
    for title, contestants in _contests().items():
        fitted = [None if one is None else one.fit(X, y) for one in contestants]
        for way, asked in _ways(*fitted).items():
            best = _best(asked, X[:1].copy())
            ours = best.pop("ensemble_gpu")
            rival = min(best, key=lambda name: best[name])
            lines.append(
                [title, way, seconds(ours), f"{seconds(best[rival])} ({rival})",
                 f"**{best[rival] / ours:.1f}x**"]
            )  # fmt: skip
    text = table(["one row", "asked", "ours", "fastest peer", "ratio"], lines)
    RESULTS.write_text("# One row at a time, one thread\n\n" + text)
    print(text)


if __name__ == "__main__":
    main()
