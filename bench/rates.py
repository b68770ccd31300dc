"""Learning rates and, where the models would not be equal otherwise, rounds of each contestant.

Found once by `python -m bench.tune rates`: the rate of GRID with the highest held-out AUC on a
set of the same kind, but with another seed and fewer rows; for wide data and ten classes by
`python -m bench.curves`, at the timed size (results/curves.md). The reports show everybody's AUC
on the timed set beside the time.
"""

from __future__ import annotations

GRID = (0.1, 0.3, 0.5, 1.0)
L2_RATE = 0.1

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
    (28, 2, 200): {
        "ensemble_gpu": 0.5, "ensemble_gpu, logistic": 0.5, "LightGBM": 0.5, "XGBoost": 0.5,
        "CatBoost": 0.5, "sklearn HistGB": 0.5,
    },
    (28, 2, 1_000): {
        "ensemble_gpu": 0.1, "LightGBM": 0.1, "XGBoost": 0.1, "CatBoost": 0.1,
        "sklearn HistGB": 0.1,
    },
    (28, 10, 2_500): {"ensemble_gpu, single": 0.6},
    (28, 10, 120): {
        "LightGBM": 0.7, "XGBoost": 1.4, "sklearn HistGB": 0.7, "ensemble_gpu, logistic": 0.7,
    },
    (28, 10, 300): {
        "ensemble_gpu": 0.5, "LightGBM": 0.5, "XGBoost": 1.0, "CatBoost": 1.0,
        "sklearn HistGB": 0.5, "ensemble_gpu, gentle": 0.5, "ensemble_gpu, logistic": 0.5,
    },
    (2_000, 2, 500): {
        "ensemble_gpu": 0.1, "LightGBM": 0.1, "XGBoost": 0.1, "CatBoost": 0.1,
        "sklearn HistGB": 0.1, "ensemble_gpu, gentle": 0.1, "ensemble_gpu, logistic": 0.1,
    },
}  # fmt: skip

# {contestant: rounds} for ten classes at equal AUC, 100,000 x 28: a round of our AdaBoost or of
# CatBoost is one stump with K values ("single": with one), a round of the others K stumps.
CLASSES_ROUNDS = {
    "ensemble_gpu": 900, "ensemble_gpu, single": 2_500, "ensemble_gpu, logistic": 120,
    "LightGBM": 120, "XGBoost": 120, "CatBoost": 600, "sklearn HistGB": 120,
}  # fmt: skip

# {loss: {contestant: rate}}, 200 rounds (`python -m bench.tune losses`)
LOSS_RATES: dict[str, dict[str, float]] = {
    "absolute": {
        "ensemble_gpu": 0.5, "LightGBM": 0.5, "XGBoost": 0.5, "CatBoost": 0.5,
        "sklearn HistGB": 0.5,
    },
    "huber": {"ensemble_gpu": 0.5, "LightGBM": 1.0, "XGBoost": 0.5, "CatBoost": 0.5},
    "quantile": {
        "ensemble_gpu": 0.5, "LightGBM": 0.5, "XGBoost": 0.5, "CatBoost": 0.5,
        "sklearn HistGB": 0.5,
    },
    "poisson": {
        "ensemble_gpu": 0.5, "LightGBM": 1.0, "XGBoost": 1.0, "CatBoost": 0.5,
        "sklearn HistGB": 0.5,
    },
    "exponential": {"ensemble_gpu": 0.5, "LightGBM": 0.5, "XGBoost": 0.5},
    "hinge": {"ensemble_gpu": 0.1, "XGBoost": 0.1},
    "multinomial": {"ensemble_gpu": 0.5, "LightGBM": 0.5, "XGBoost": 0.5, "CatBoost": 1.0},
}  # fmt: skip


def rate_for(name: str, features: int, classes: int, rounds: int) -> float:
    """The tuned rate of the work nearest in rounds; 0.3 where nothing of the kind was tuned."""
    alike = [key for key in TUNED if key[:2] == (features, classes) and name in TUNED[key]]
    if not alike:
        return 0.3
    return TUNED[min(alike, key=lambda key: abs(key[2] - rounds))][name]


def loss_rate_for(loss: str, name: str) -> float:
    """The tuned rate for a row of losses.py; 0.3 where there is none."""
    return LOSS_RATES.get(loss, {}).get(name, 0.3)
