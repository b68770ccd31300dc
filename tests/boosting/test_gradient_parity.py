"""Beside scikit-learn with trees of depth one: the same losses from the same number of rounds.

All run on one thread, which for so small data is the fastest.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_digits,
    load_iris,
    load_wine,
    make_friedman1,
)
from sklearn.ensemble import (
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn.metrics import log_loss, mean_pinball_loss, mean_poisson_deviance
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

from ensemble_gpu import AdaBoostClassifier, BoostingClassifier, BoostingRegressor
from ensemble_gpu.losses import Huber
from tests.boosters import plain
from tests.datasets import Data

pytestmark = pytest.mark.slow

RATE = 0.1
ALONE = {"learning_rate": RATE, "n_jobs": 1}
TWO_LEAVES = {
    "max_leaf_nodes": 2, "min_samples_leaf": 1, "l2_regularization": 0.0, "early_stopping": False,
    "learning_rate": RATE,
}  # fmt: skip
CLASSES = {
    "breast cancer": load_breast_cancer, "wine": load_wine, "iris": load_iris,
    "digits": load_digits,
}  # fmt: skip


@cache
def numbers(name: str) -> Data:
    """Diabetes (442 x 10) or Friedman's first (600 x 10)."""
    if name == "diabetes":
        return Data(*load_diabetes(return_X_y=True))
    return Data(*make_friedman1(600, noise=1.0, random_state=0))


@cache
def counts() -> Data:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(800, 5))
    return Data(X, rng.poisson(np.exp(0.5 * X[:, 0] + np.sin(X[:, 1]) + 0.3)).astype(float))


def fit(estimator: Any, data: Data) -> Any:
    with threadpool_limits(1):
        return estimator.fit(data.X, data.y)


@cache
def pinball(name: str, quantile: float, step: str) -> tuple[float, float]:
    """Our training loss and the peer's."""
    data, n = numbers(name), 300
    ours = BoostingRegressor(
        "quantile", **plain(ALONE, quantile=quantile, n_estimators=n, max_bins=None, step=step)
    )
    peer = GradientBoostingRegressor(
        loss="quantile", alpha=quantile, max_depth=1, n_estimators=n, learning_rate=RATE,
        random_state=0,
    )  # fmt: skip
    ours, peer = fit(ours, data), fit(peer, data)
    return tuple(mean_pinball_loss(data.y, m.predict(data.X), alpha=quantile) for m in (ours, peer))


@cache
def huber_peer(name: str) -> GradientBoostingRegressor:
    peer = GradientBoostingRegressor(
        loss="huber", alpha=0.9, max_depth=1, n_estimators=300, learning_rate=RATE, random_state=0
    )
    return fit(peer, numbers(name))


@cache
def huber(name: str, step: str) -> tuple[float, float]:
    """The peer estimates delta anew each round; both are judged by that of its last residuals."""
    data, peer, n = numbers(name), huber_peer(name), 300
    loss = Huber(float(np.quantile(np.abs(data.y - peer.predict(data.X)), 0.9)))
    ours = BoostingRegressor(loss, **plain(ALONE, n_estimators=n, max_bins=None, step=step))
    fit(ours, data)
    return tuple(float(np.mean(loss.value(data.y, m.predict(data.X)))) for m in (ours, peer))


@cache
def poisson(step: str) -> tuple[float, float]:
    data, n = counts(), 100
    ours = BoostingRegressor("poisson", **plain(ALONE, n_estimators=n, step=step))
    peer = HistGradientBoostingRegressor(loss="poisson", max_iter=n, **TWO_LEAVES)
    ours, peer = fit(ours, data), fit(peer, data)
    return tuple(mean_poisson_deviance(data.y, m.predict(data.X)) for m in (ours, peer))


@cache
def squared(name: str) -> tuple[float, float]:
    data, n = numbers(name), 100
    ours = BoostingRegressor("squared", **plain(ALONE, n_estimators=n))
    peer = HistGradientBoostingRegressor(max_iter=n, **TWO_LEAVES)
    ours, peer = fit(ours, data), fit(peer, data)
    return tuple(float(np.mean((data.y - m.predict(data.X)) ** 2)) for m in (ours, peer))


@cache
def logistic(name: str) -> tuple[float, float]:
    """A round of the peer is a tree for each class; ours one stump with K values: K rounds."""
    data = Data(*CLASSES[name](return_X_y=True))
    n, n_classes = 10 if name == "digits" else 60, int(data.y.max()) + 1
    rounds = n if n_classes == 2 else n * n_classes
    ours = BoostingClassifier("logistic", **plain(ALONE, n_estimators=rounds))
    peer = HistGradientBoostingClassifier(max_iter=n, **TWO_LEAVES)
    ours, peer = fit(ours, data), fit(peer, data)
    return tuple(log_loss(data.y, m.predict_proba(data.X)) for m in (ours, peer))


OURS = {
    "logitboost": lambda: AdaBoostClassifier(variant="logit", **ALONE),
    "real adaboost": lambda: AdaBoostClassifier(**ALONE),
    **{
        name: (lambda name=name: BoostingClassifier(name, **plain(ALONE)))
        for name in ("logistic", "exponential", "squared", "truncated_squared")
    },
}
SPLITS = range(2)


@cache
def halves(seed: int) -> tuple[Data, Data]:
    X, y = load_breast_cancer(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.4, random_state=seed, stratify=y)
    return Data(X, y), Data(X_test, y_test)


def mean_accuracy(make: Any) -> float:
    pairs = [halves(seed) for seed in SPLITS]
    scores = [fit(make(), train).score(test.X, test.y) for train, test in pairs]
    return float(np.mean(scores))


@cache
def peer_accuracy() -> float:
    return mean_accuracy(lambda: HistGradientBoostingClassifier(max_iter=100, **TWO_LEAVES))


@pytest.mark.long
@pytest.mark.parametrize(("name", "quantile"), [("diabetes", 0.1), ("friedman", 0.9)])
@pytest.mark.parametrize(("step", "percent"), [("line_search", 1.0), ("leaf", 2.0)])
def test_pinball_loss_is_within_percents_of_gradient_boosting(name, quantile, step, percent):
    """Of a leaf's residuals the step of a leaf takes one, the peer a value between two."""
    ours, peer = pinball(name, quantile, step)
    assert ours <= (1.0 + percent / 100.0) * peer


@pytest.mark.parametrize("step", ["line_search", "newton"])
@pytest.mark.parametrize("name", ["diabetes", "friedman"])
def test_huber_loss_is_within_a_percent_of_gradient_boosting(name, step):
    ours, peer = huber(name, step)
    assert ours == pytest.approx(peer, rel=0.01)


@pytest.mark.parametrize("step", ["line_search", "newton"])
def test_poisson_deviance_is_within_a_percent_of_hist_gradient_boosting(step):
    ours, peer = poisson(step)
    assert ours == pytest.approx(peer, rel=0.01)


@pytest.mark.parametrize("name", ["diabetes", "friedman"])
def test_squared_error_is_within_a_percent_of_hist_gradient_boosting(name):
    ours, peer = squared(name)
    assert ours == pytest.approx(peer, rel=0.01)


def test_log_loss_of_two_classes_is_within_two_percent_of_hist_gradient_boosting():
    ours, peer = logistic("breast cancer")
    assert ours == pytest.approx(peer, rel=0.02)


@pytest.mark.parametrize("name", ["wine", "iris", "digits"])
def test_log_loss_of_many_classes_is_no_worse_than_that_of_hist_gradient_boosting(name):
    ours, peer = logistic(name)
    assert ours <= 1.02 * peer


@pytest.mark.parametrize("name", OURS)
def test_accuracy_on_new_rows_is_no_worse_than_that_of_hist_gradient_boosting(name):
    assert mean_accuracy(OURS[name]) >= peer_accuracy() - 0.02
