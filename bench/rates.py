"""Learning rates, per work and contestant.

Found once by `python -m bench.tune rates`: the rate of GRID with the highest held-out AUC on a
set of the same kind, but with another seed and fewer rows. The reports show everybody's AUC on the
timed set beside the time.
"""

from __future__ import annotations

GRID = (0.1, 0.3, 0.5, 1.0)

# {(features, classes, rounds): {contestant: rate}}
TUNED: dict[tuple[int, int, int], dict[str, float]] = {
    (30, 2, 300): {
        "ensemble_gpu": 0.1, "LightGBM": 0.1, "XGBoost": 0.1, "CatBoost": 0.1,
        "sklearn HistGB": 0.1, "sklearn AdaBoost": 0.3, "EBM": 0.3,
    },
    (28, 2, 100): {
        "ensemble_gpu": 0.5, "LightGBM": 0.5, "XGBoost": 0.5, "CatBoost": 0.5,
        "sklearn HistGB": 0.5, "sklearn AdaBoost": 1.0, "ensemble_gpu, discrete": 1.0,
    },
    (28, 2, 1_000): {
        "ensemble_gpu": 0.1, "LightGBM": 0.1, "XGBoost": 0.1, "CatBoost": 0.1,
        "sklearn HistGB": 0.1,
    },
    (28, 10, 300): {
        "ensemble_gpu": 0.5, "LightGBM": 0.3, "XGBoost": 0.5, "CatBoost": 1.0,
        "sklearn HistGB": 0.3, "ensemble_gpu, rounds x 4": 0.3,
    },
    (2_000, 2, 500): {
        "ensemble_gpu": 0.1, "LightGBM": 0.1, "XGBoost": 0.1, "CatBoost": 0.1,
        "sklearn HistGB": 0.1,
    },
}  # fmt: skip


def rate_for(name: str, features: int, classes: int, rounds: int) -> float:
    """The tuned rate of the work nearest in rounds; 0.3 where nothing of the kind was tuned."""
    alike = [key for key in TUNED if key[:2] == (features, classes)]
    if not alike:
        return 0.3
    nearest = min(alike, key=lambda key: abs(key[2] - rounds))
    return TUNED[nearest].get(name, 0.3)
