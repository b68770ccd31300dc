"""Several quantiles in one model: quantile=[...]."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import mean_pinball_loss

from ensemble_gpu import BoostingRegressor, use_engine
from ensemble_gpu.losses import Quantile, Quantiles
from tests.boosters import FREE, plain
from tests.places import DEVICE

LEVELS = [0.05, 0.3, 0.5, 0.95]
SHAPES: dict[str, dict[str, Any]] = {
    "stumps": {"max_depth": 1},
    "trees": {"max_depth": 4, **FREE},
    "trees as by default": {"max_depth": 6},
}


def spread(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return X, X[:, 0] + np.exp(0.5 * X[:, 1]) * rng.normal(size=n)


def pinball(y: np.ndarray, predicted: np.ndarray, levels: list[float]) -> float:
    return sum(mean_pinball_loss(y, predicted[:, k], alpha=tau) for k, tau in enumerate(levels))


def fit(X: Any, y: Any, quantile: Any = None, **params: Any) -> BoostingRegressor:
    params = {"n_estimators": 30, "learning_rate": 0.3, "early_stopping": False, **params}
    given = LEVELS if quantile is None else quantile
    return BoostingRegressor("quantile", quantile=given, **params).fit(X, y)


@pytest.mark.parametrize("shape", SHAPES)
def test_predictions_are_ascending_on_rows_seen_and_unseen(shape):
    X, y = spread(120)
    model = fit(X, y, [0.4, 0.45, 0.5, 0.55, 0.6], learning_rate=1.0, **SHAPES[shape])
    far = np.random.default_rng(1).normal(size=(2000, 4)) * 4.0
    crossed = 0
    for rows in (X, far):
        predicted = model.predict(rows)
        assert predicted.shape == (len(rows), 5)
        assert (np.diff(predicted, axis=1) >= 0.0).all()
        F = model.model_(rows)
        crossed += (np.diff(F, axis=1) < 0.0).any(axis=1).sum()
        np.testing.assert_array_equal(predicted, np.sort(F, axis=1))
    assert crossed > 0  # the outputs themselves do cross


@pytest.mark.parametrize("shape", SHAPES)
def test_sorting_never_raises_the_loss(shape):
    X, y = spread(120)
    levels = [0.4, 0.45, 0.5, 0.55, 0.6]
    model = fit(X, y, levels, learning_rate=1.0, **SHAPES[shape])
    F, predicted = model.model_(X), model.predict(X)
    loss = Quantiles(tuple(levels))
    own = loss.value(y[None, :], predicted.T).sum(axis=0)
    assert (own <= loss.value(y[None, :], F.T).sum(axis=0) + 1e-12).all()  # of every row


def test_staged_predictions_are_ascending_and_end_in_the_prediction():
    X, y = spread(150)
    model = fit(X, y, max_depth=1)
    stages = list(model.staged_predict(X))
    assert len(stages) == model.n_estimators_
    for stage in stages:
        assert stage.shape == (150, 4)
        assert (np.diff(stage, axis=1) >= 0.0).all()
    np.testing.assert_array_equal(stages[-1], model.predict(X))
    np.testing.assert_array_equal(next(model.staged_predict(X, rounds=[7])), stages[6])


@pytest.mark.parametrize("shape", SHAPES)
def test_the_training_loss_is_the_sum_and_falls(shape):
    X, y = spread(300)
    seen: list[float] = []
    model = fit(X, y, callbacks=[lambda info: seen.append(info.training_loss)], **SHAPES[shape])
    assert (np.diff(seen) <= 1e-12).all()
    F = model.model_(X)  # the loss of the outputs, of which that of the predictions is not more
    assert seen[-1] == pytest.approx(pinball(y, F, LEVELS), rel=1e-9)


def test_shares_below_the_predictions_are_the_levels():
    X, y = spread(6000)
    model = fit(X[:3000], y[:3000], max_depth=1, n_estimators=60, learning_rate=0.1)
    below = (y[3000:, None] <= model.predict(X[3000:])).mean(axis=0)
    np.testing.assert_allclose(below, LEVELS, atol=0.03)
    alone = [fit(X[:3000], y[:3000], tau, max_depth=1, n_estimators=60, learning_rate=0.1)
             for tau in LEVELS]  # fmt: skip
    each = np.stack([one.predict(X[3000:]) for one in alone], axis=1)
    joint = pinball(y[3000:], model.predict(X[3000:]), LEVELS)
    assert joint <= 1.05 * pinball(y[3000:], each, LEVELS)


@pytest.mark.parametrize("shape", SHAPES)
def test_engines_and_threads_agree_on_the_model(shape):
    X, y = spread(400)
    X[::9, 1] = np.nan
    prints = set()
    for engine, n_jobs in (("cpu", 1), ("cpu", 2), ("reference", 1)):
        with use_engine(engine):
            model = fit(X, y, n_estimators=6, n_jobs=n_jobs, **SHAPES[shape])
        prints.add(model.model_.fingerprint())
    assert len(prints) == 1


def lost(y: np.ndarray) -> float:
    """What the best constants lose."""
    constants = Quantiles(tuple(LEVELS)).best_constant(y, None)
    return pinball(y, np.tile(constants, (len(y), 1)), LEVELS)


def assert_same_in_another_library(place: Any) -> None:
    X, y = spread(200)
    expected = fit(X, y, n_estimators=5, max_depth=2).predict(X)
    rows, target = place.put(X), place.put(y)
    model = fit(rows, target, n_estimators=5, max_depth=2)
    predicted = model.predict(rows)
    place.check(predicted, "float64")
    np.testing.assert_array_equal(place.host(predicted), expected)
    score = 1.0 - pinball(y, expected, LEVELS) / lost(y)
    assert model.score(rows, target) == pytest.approx(score, rel=1e-9)


def test_predictions_come_back_as_arrays_of_the_standard():
    assert_same_in_another_library(DEVICE)


@pytest.mark.interop
def test_predictions_come_back_in_the_library_of_the_rows(library):
    assert_same_in_another_library(library)


def test_the_score_of_the_best_constants_is_zero_and_of_the_truth_one():
    X, y = spread(100)
    model = fit(np.zeros((100, 1)), y)
    assert model.score(np.zeros((100, 1)), y) == pytest.approx(0.0, abs=1e-9)
    constant = fit(X, np.full(100, 3.0))
    assert constant.score(X, np.full(100, 3.0)) == 1.0
    w = np.random.default_rng(0).integers(1, 4, 100)
    found = fit(X, y)
    repeated = np.repeat(np.arange(100), w)
    assert found.score(X, y, w) == pytest.approx(found.score(X[repeated], y[repeated]))


def test_early_stopping_goes_by_the_loss_of_the_predictions():
    X, y = spread(600)
    model = fit(X[:300], y[:300], n_estimators=8, max_depth=1, callbacks=[])
    watched = BoostingRegressor(
        "quantile", quantile=LEVELS, n_estimators=8, learning_rate=0.3, max_depth=1,
        early_stopping=False,
    ).fit(X[:300], y[:300], X_val=X[300:], y_val=y[300:])  # fmt: skip
    stages = model.staged_predict(X[300:])
    expected = [pinball(y[300:], stage, LEVELS) for stage in stages]
    np.testing.assert_allclose(watched.history_.validation, expected, rtol=1e-9)
    stopped = fit(X[:300], y[:300], n_estimators=400, early_stopping=True, n_iter_no_change=3)
    assert stopped.n_estimators_ < 400
    assert stopped.n_estimators_ == 1 + int(np.argmin(stopped.history_.validation))


def test_metrics_of_ones_own_take_all_quantiles():
    X, y = spread(200)

    def width(truth: Any, predicted: Any) -> float:
        assert predicted.shape == (len(truth), 4)
        return float((predicted[:, -1] - predicted[:, 0]).mean())

    model = BoostingRegressor("quantile", quantile=LEVELS, n_estimators=3, metric=[width, "loss"])
    model.fit(X, y, X_val=X, y_val=y)
    assert set(model.history_.evals["validation"]) == {"width", "loss"}


def test_one_quantile_is_a_column_and_a_number_is_a_vector():
    X, y = spread(150)
    number, listed = fit(X, y, 0.9, max_depth=1), fit(X, y, [0.9], max_depth=1)
    assert number.predict(X).shape == (150,)
    assert listed.predict(X).shape == (150, 1)
    np.testing.assert_array_equal(listed.predict(X)[:, 0], number.predict(X))
    assert number.model_.fingerprint() == listed.model_.fingerprint()


@pytest.mark.parametrize("given", [(0.1, 0.9), np.array([0.1, 0.9])], ids=["tuple", "array"])
def test_a_tuple_or_an_array_is_as_good_as_a_list(given):
    X, y = spread(100)
    same = [fit(X, y, one, n_estimators=3).model_.fingerprint() for one in ([0.1, 0.9], given)]
    assert same[0] == same[1]
    assert clone(fit(X, y, [0.1, 0.9], n_estimators=3)).quantile == [0.1, 0.9]


@pytest.mark.parametrize(
    "params",
    [{"n_bags": 2}, {"subsample": 0.5}, {"missing": "learn"}, {"warm_start": True}],
    ids=str,
)
@pytest.mark.parametrize("depth", [1, 3])
def test_other_parameters_go_together_with_several_quantiles(params, depth):
    X, y = spread(200)
    X[::7, 0] = np.nan
    model = fit(X, y, n_estimators=6, max_depth=depth, **params)
    assert (np.diff(model.predict(X), axis=1) >= 0.0).all()
    if model.warm_start:
        more = model.set_params(n_estimators=9).fit(X, y)
        whole = fit(X, y, n_estimators=9, max_depth=depth)
        assert more.model_.fingerprint() == whole.model_.fingerprint()


def test_an_offset_has_a_column_for_every_quantile():
    X, y = spread(200)
    first = fit(X, y, n_estimators=4, max_depth=1)
    offset = first.model_(X)
    model = BoostingRegressor("quantile", quantile=LEVELS, **plain(n_estimators=4))
    model.fit(X, y, init_score=offset)
    np.testing.assert_array_equal(model.model_.intercept, np.zeros(4))
    assert pinball(y, offset + model.model_(X), LEVELS) < pinball(y, offset, LEVELS)


def test_the_loss_is_the_sum_of_its_outputs():
    y = spread(50)[1]
    loss, F = Quantiles((0.1, 0.6)), np.random.default_rng(0).normal(size=(2, 50))
    for k, tau in enumerate(loss.quantiles):
        one = Quantile(tau)
        assert loss.output(k) == one
        np.testing.assert_array_equal(loss.value(y[None, :], F)[k], one.value(y, F[k]))
        np.testing.assert_array_equal(loss.gradient(np.stack([y, y]), F)[k], one.gradient(y, F[k]))
    constants = loss.best_constant(y, None)
    assert all(a <= b for a, b in pairwise(constants))
    np.testing.assert_array_equal(constants, np.quantile(y, loss.quantiles, method="inverted_cdf"))
