"""The L1 ball on the CUDA engine: the CPU engine's model, fingerprint for fingerprint."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ensemble_gpu import L1BoostingClassifier, L1BoostingRegressor, use_engine
from ensemble_gpu.learners import HalfSpaces, Pool
from tests.cuda.simulator.test_fits import data


@pytest.mark.parametrize(
    ("kind", "n_classes", "parameters"),
    [
        (L1BoostingClassifier, 2, {"radius": 2.0, "missing": "learn"}),
        (L1BoostingClassifier, 3, {"alpha": 0.05, "max_bins": 4}),
        (L1BoostingClassifier, 2, {"radius": 1.0, "max_depth": 2}),
        (L1BoostingClassifier, 2, {"radius": 1.0, "estimator": HalfSpaces(4)}),
        (L1BoostingClassifier, 2, {"radius": 1.0, "estimator": Pool()}),
        (L1BoostingRegressor, 0, {"radius": "cv", "radii": [0.5], "n_folds": 2}),
    ],
)
def test_models_are_those_of_the_cpu(kind: Any, n_classes: int, parameters: dict[str, Any]) -> None:
    X, y, weights = data(n_classes or 2, 0.0 if "estimator" in parameters else 0.2)
    if isinstance(parameters.get("estimator"), Pool):
        X = np.where(X > 0.3, 1.0, -1.0)
    target = y if n_classes else np.nan_to_num(X[:, 0]) + y
    models = []
    for engine in ("cuda", "cpu"):
        with use_engine(engine):
            fitted = kind(**{"n_estimators": 2, "max_bins": 7, "n_jobs": 1, **parameters})
            fitted.fit(X, target, sample_weight=weights)
        assert fitted.engine_ == engine
        assert fitted.n_estimators_ > 0
        models.append(fitted.model_)
    assert models[0].fingerprint() == models[1].fingerprint()
