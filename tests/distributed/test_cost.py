"""Messages and bytes of a round are those of the table in docs/cluster.md."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ensemble_gpu import AdaBoostClassifier, BoostingClassifier
from ensemble_gpu.distributed import ThreadReduce
from tests.distributed.teams import team_fit

P, WIDTH = 4, 17  # 16 bins, and the code of missing values


@pytest.fixture
def sent(monkeypatch) -> list[int]:
    """Bytes of every sum of the first worker."""
    found: list[int] = []
    whole = ThreadReduce.sum

    def counting(self: Any, array: np.ndarray) -> np.ndarray:
        if self.rank == 0:
            found.append(array.nbytes)
        return whole(self, array)

    monkeypatch.setattr(ThreadReduce, "sum", counting)
    return found


def a_round(make: Any, sent: list[int], few: int = 4, many: int = 8) -> tuple[float, float]:
    """(messages, bytes) of a round, of fits that differ in their number."""
    X = np.random.default_rng(0).standard_normal((600, P)).astype(np.float32)
    y = (X[:, 0] + X[:, 1] * X[:, 2] > 0).astype(int)
    told = []
    for n in (few, many):
        sent.clear()
        team_fit(lambda n=n: make(n), X, y, cuts=(0, 300), owners=(0, 1))
        told.append((len(sent), sum(sent)))
    (a, b), (c, d) = told
    return (c - a) / (many - few), (d - b) / (many - few)


def test_a_round_of_adaboost_is_one_sum(sent):
    def make(n: int) -> Any:
        return AdaBoostClassifier(n_estimators=n, max_bins=16, calibrate=False)

    groups, workers = 2, 2
    messages, n_bytes = a_round(make, sent)
    exponents = 8 * groups * workers  # now and then, when weights are requantised
    assert n_bytes == 8 * groups * (P * WIDTH + workers) + (messages - 1) * exponents
    assert 1 <= messages < 1.5


def test_a_round_of_gradient_stumps_is_a_sum_and_the_largest_gradients(sent):
    def make(n: int) -> Any:
        return BoostingClassifier(n_estimators=n, max_depth=1, max_bins=16, early_stopping=False)

    assert a_round(make, sent) == (2, 8 * 2 * P * WIDTH + 16 * 2)


def test_a_tree_is_a_sum_a_level_and_two_before(sent):
    def make(n: int) -> Any:
        return BoostingClassifier(
            n_estimators=n, max_depth=3, max_bins=16, max_features=None, subsample=1.0,
            early_stopping=False, min_samples_leaf=5,
        )  # fmt: skip

    messages, _ = a_round(make, sent)
    assert messages == 2 + 3
