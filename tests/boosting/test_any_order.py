"""Draws that do not depend on the order of the rows: subsampling, held-out rows, whole weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from ensemble_gpu import AdaBoostClassifier, BoostingClassifier, BoostingRegressor
from ensemble_gpu.model.additive import AdditiveModel
from tests.boosters import plain
from tests.datasets import random_data
from tests.places import PLACES
from tests.products import every_pair

# Few distinct values, so that repeated rows have the same bins; noise, so that losses turn.
DATA = random_data(n=260, seed=11)
X, NOISE = np.round(DATA.X, 1), np.random.default_rng(12)
Y = np.where(NOISE.random(260) < 0.25, NOISE.integers(3, size=260), DATA.y)
MIXED = np.random.default_rng(13).permutation(260)
WEIGHTS = np.random.default_rng(14).integers(0, 4, size=260)

STOPPED: dict[str, Any] = {
    "early_stopping": True, "n_estimators": 40, "n_iter_no_change": 5, "validation_fraction": 0.25,
}  # fmt: skip
FITS = {
    "subsample, stumps": BoostingClassifier(subsample=0.5, n_estimators=12, max_depth=1),
    "subsample, trees": BoostingClassifier(**plain(subsample=0.5, n_estimators=8, max_depth=3)),
    "a stump a class": BoostingClassifier(
        subsample=0.5, n_estimators=6, max_depth=1, multiclass="each"
    ),
    "a tree a class": BoostingClassifier(
        **plain(subsample=0.5, n_estimators=4, max_depth=2, multiclass="each")
    ),
    "subsample, numbers": BoostingRegressor(subsample=0.6, n_estimators=12, max_depth=1),
    "subsample, line search": BoostingRegressor(
        "huber", **plain(subsample=0.6, n_estimators=6, max_depth=2)
    ),
    "stopped": BoostingClassifier(**plain(STOPPED)),
    "stopped, numbers": BoostingRegressor(**plain(STOPPED, max_depth=2)),
    "stopped, subsample": BoostingClassifier(**plain(STOPPED, subsample=0.7, max_depth=2)),
    "stopped, AdaBoost": AdaBoostClassifier(**STOPPED),
    "stopped, SAMME": AdaBoostClassifier(variant="discrete", **STOPPED),
}


def made(name: str) -> Any:
    return clone(FITS[name]).set_params(random_state=3)


@pytest.fixture(params=list(FITS))
def estimator(request):
    return made(request.param)


def fitted(estimator: Any, *given: Any) -> tuple[str, int]:
    model = estimator.fit(*given)
    return model.model_.fingerprint(), model.n_estimators_


@pytest.mark.slow
@every_pair("name, place, weighted", FITS, PLACES, [False, True], ids=str)
def test_permuted_rows_give_the_same_model(name, place, weighted):
    estimator = made(name)
    weights = NOISE.random(260) + 0.5 if weighted else None
    given = (X, Y) if weights is None else (X, Y, weights)
    expected = fitted(estimator, *given)
    assert fitted(estimator, *(place.put(a[MIXED]) for a in given)) == expected
    assert fitted(estimator, *(place.put(a) for a in given)) == expected


def test_whole_weights_give_the_model_of_the_repeated_rows(estimator):
    """Trees count their rows, so that fingerprints differ; AdaBoost's weights are rounded."""
    repeated = np.repeat(np.arange(260), WEIGHTS)
    expected = clone(estimator).fit(X[repeated], Y[repeated])
    found = clone(estimator).fit(X, Y, WEIGHTS.astype(np.float64))
    assert found.n_estimators_ == expected.n_estimators_
    if isinstance(estimator, AdaBoostClassifier):
        assert found.model_.rounds.feature.tolist() == expected.model_.rounds.feature.tolist()
        np.testing.assert_allclose(found.model_(X), expected.model_(X), rtol=0, atol=1e-6)
        assert found.scale_ == pytest.approx(expected.scale_, rel=1e-5)
        return
    np.testing.assert_array_equal(found.model_(X), expected.model_(X))
    if isinstance(found.model_, AdditiveModel):
        assert found.model_ == expected.model_
    shuffled = repeated[np.random.default_rng(0).permutation(len(repeated))]
    assert clone(estimator).fit(X[shuffled], Y[shuffled]).model_ == expected.model_


def test_equal_rows_of_different_weights_may_change_places():
    X2, y2 = np.tile(X[:30], (4, 1)), np.tile(Y[:30], 4)
    weights = np.random.default_rng(5).integers(1, 5, size=120).astype(np.float64)
    mixed = np.random.default_rng(6).permutation(120)
    for name in ("subsample, trees", "stopped, AdaBoost"):
        model = FITS[name].set_params(random_state=3)
        expected = fitted(model, X2, y2, weights)
        assert fitted(model, X2[mixed], y2[mixed], weights[mixed]) == expected


def test_many_rows_in_another_order_give_the_same_model():
    rng = np.random.default_rng(0)
    n = 40_000  # packed gradients, several blocks
    big = rng.normal(size=(n, 3)).astype(np.float32)
    y = (big[:, 0] + rng.normal(size=n) > 0).astype(int)
    mixed = rng.permutation(n)
    for weights in (None, rng.integers(1, 4, size=n).astype(np.float64)):
        model = BoostingClassifier(
            **plain(n_estimators=4, subsample=0.3, random_state=0, max_depth=2)
        )
        expected = fitted(model, big, y, weights)
        other = None if weights is None else weights[mixed]
        assert fitted(model, big[mixed], y[mixed], other) == expected
