"""init_score, warm_start and metrics on the CUDA engine: the model of the CPU engine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ensemble_gpu import AdaBoostClassifier, BoostingClassifier, BoostingRegressor, use_engine
from tests.boosters import plain
from tests.boosting.replaying import problem

FITS: dict[str, tuple[Any, int]] = {
    "real": (AdaBoostClassifier(max_bins=6, calibrate=False), 2),
    "trees": (BoostingClassifier(**plain(max_depth=2, max_bins=6)), 3),
    "gram": (BoostingRegressor(max_bins=6, max_depth=1), 0),
}


@pytest.mark.parametrize("name", FITS)
def test_a_continued_fit_with_scores_equals_the_cpu_fit(name: str) -> None:
    estimator, n_classes = FITS[name]
    X, y = problem(n_classes, n=40)
    score = np.random.default_rng(0).normal(size=(40, n_classes if n_classes > 2 else 1))
    metric = "mae" if n_classes == 0 else "roc_auc"
    params = estimator.get_params() | {"metric": metric}
    sets = [(X, y, None, score)]
    with use_engine("cpu"):
        whole = type(estimator)(**params | {"n_estimators": 4})
        whole.fit(X, y, init_score=score, eval_set=sets)
    with use_engine("cuda"):
        parts = type(estimator)(**params | {"n_estimators": 2, "warm_start": True})
        parts.fit(X, y, init_score=score, eval_set=sets)
        parts.set_params(n_estimators=4).fit(X, y, init_score=score, eval_set=sets)
    assert parts.engine_ == "cuda"
    assert parts.model_.fingerprint() == whole.model_.fingerprint()
    np.testing.assert_allclose(parts.history_.validation, whole.history_.validation, rtol=1e-12)
