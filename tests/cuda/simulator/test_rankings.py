"""Rankings on the CUDA engine: the CPU engine's model, fingerprint for fingerprint."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ensemble_gpu import BoostingRanker, use_engine
from ensemble_gpu.boosting import integers
from tests.ranking import pairs_of, ranking

X, Y, QID = ranking(36, 3, missing=0.1)
CASES: list[dict[str, Any]] = [
    {},
    {"loss": "logistic"},
    {"loss": "lambda", "truncation": 4},
    {"variant": "rankboost"},
    {"max_depth": 2, "min_samples_leaf": 2},
]


def fits(parameters: dict[str, Any], **given: Any) -> list[str]:
    found = []
    for engine in ("cuda", "cpu"):
        with use_engine(engine):
            model = BoostingRanker(
                n_estimators=3, max_bins=6, learning_rate=0.5, n_jobs=1, **parameters
            ).fit(X, **given)
        assert model.engine_ == engine
        assert model.n_estimators_ == 3
        found.append(model.model_.fingerprint())
    return found


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fit_equals_the_cpu_fit(case: dict[str, Any]) -> None:
    weights = np.random.default_rng(0).integers(1, 3, 36) if case else None
    ours, expected = fits(case, y=Y, qid=QID, sample_weight=weights)
    assert ours == expected


def test_packed_gradients_equal_those_of_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(integers, "FINE_ROWS", 0)
    ours, expected = fits({}, y=Y, qid=QID)
    assert ours == expected


@pytest.mark.parametrize("variant", ["gradient", "rankboost"])
def test_fit_to_pairs_equals_the_cpu_fit(variant: str) -> None:
    ours, expected = fits({"variant": variant}, pairs=pairs_of(Y, QID))
    assert ours == expected
