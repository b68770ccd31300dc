"""Gradient descent with stumps: losses fall, and learner and steps are what they claim to be."""

from __future__ import annotations

from itertools import pairwise, product
from typing import Any

import array_api_strict
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from ensemble_gpu import AdaBoostClassifier, BoostingClassifier, BoostingRegressor
from ensemble_gpu.arrays.namespace import locate
from ensemble_gpu.boosting.steps import FLAT, line_search
from ensemble_gpu.data.keys import row_keys
from ensemble_gpu.data.sampling import Draws, drawn_items, items_of
from ensemble_gpu.kernels.cpu.engine import CpuEngine
from ensemble_gpu.kernels.reference.engine import ReferenceEngine
from ensemble_gpu.losses import (
    CLASSIFICATION,
    REGRESSION,
    CustomLoss,
    Huber,
    LogitBoost,
    Loss,
    Multinomial,
    Poisson,
    Quantile,
    classification_loss,
)
from tests.boosters import plain
from tests.boosting.brute_force import TIE, candidates
from tests.datasets import Data, random_data
from tests.places import ENGINES
from tests.products import every_pair

CPU = CpuEngine(1)
STUMPS = ["real", "discrete"]
REGRESSIONS: list[Loss] = [
    *(loss() for loss in REGRESSION.values()), Huber(0.2), Quantile(0.1), Quantile(0.95),
]  # fmt: skip
SMOOTH = [name for name, loss in CLASSIFICATION.items() if loss.has_hessian]


def balanced(n: int = 120, p: int = 4, seed: int = 0) -> Data:
    """Two noisy classes of equal size, whose best constant is 0."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    order = np.argsort(X[:, 0] + np.sin(2 * X[:, 1]) + rng.normal(size=n))
    y = np.zeros(n, dtype=np.int64)
    y[order[n // 2 :]] = 1
    return Data(X, y)


def regression(n: int = 150, p: int = 4, seed: int = 0) -> Data:
    """Skewed positive targets with outliers."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    return Data(X, np.exp(X[:, 0] + np.sin(X[:, 1]) + 0.5 * rng.standard_t(3, size=n)))


def fit_classes(data: Data, loss: Any, **params: Any) -> BoostingClassifier:
    params = {"n_estimators": 40, "max_bins": None, "multiclass": "shared", **params}
    return BoostingClassifier(loss, **plain(params)).fit(data.X, data.y, data.weights)


def fit_target(data: Data, loss: Any, **params: Any) -> BoostingRegressor:
    params = {"n_estimators": 40, "max_bins": None, **params}
    return BoostingRegressor(loss, **plain(params)).fit(data.X, data.y, data.weights)


def outputs(found: Any, X: np.ndarray) -> list[np.ndarray]:
    """F [rows, outputs] before the first round and after every round."""
    start = np.tile(found.model_.intercept, (len(X), 1))
    return [start, *found.model_.staged(X)]


class Risk:
    """The mean loss and its derivatives in plain NumPy, for outputs F [rows, outputs]."""

    def __init__(self, loss: Loss, data: Data, n_classes: int | None = None) -> None:
        self.loss, self.weights = loss, data.weights
        if n_classes is None or isinstance(loss, Multinomial):
            self.y = data.y
        elif n_classes == 2:
            self.y = 2.0 * data.y - 1.0
        else:
            self.y = np.where(data.y[:, None] == np.arange(n_classes), 1.0, -1.0)

    def _of(self, F: np.ndarray) -> np.ndarray:
        return F[:, 0] if F.shape[1] == 1 else F

    def __call__(self, F: np.ndarray) -> float:
        value = self.loss.value(self.y, self._of(F))
        value = value.sum(axis=1) if value.ndim == 2 else value
        return float(np.average(value, weights=self.weights))

    def derivatives(self, F: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """g, h [rows, outputs], weighted."""
        w = 1.0 if self.weights is None else self.weights[:, None]
        g, h = self.loss.derivatives(self.y, self._of(F))
        return w * g.reshape(F.shape), w * h.reshape(F.shape)


def leaves(found: Any, X: np.ndarray, t: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of the left and of the right leaf of a round."""
    x, threshold = X[:, found.model_.rounds.feature[t]], found.model_.rounds.threshold[t]
    return x <= threshold, x > threshold


# --- losses fall -------------------------------------------------------------------------------


def assert_never_rises(losses: list[float]) -> None:
    losses = np.array(losses)
    assert losses[-1] < losses[0]
    rounding = 1e-11 * np.abs(losses).max()
    assert (np.diff(losses) <= rounding).all(), np.diff(losses).max()


@pytest.mark.slow
@pytest.mark.parametrize(("rate", "weighted"), [(0.1, False), (1.0, False), (1.0, True)])
@pytest.mark.parametrize(("stump", "n_classes"), list(product(STUMPS, [2, 3])))
@pytest.mark.parametrize("name", CLASSIFICATION)
def test_line_search_never_raises_the_loss_of_classes(name, stump, n_classes, rate, weighted):
    data = random_data(n_classes, n=150)
    data = data.with_weights().with_missing() if weighted else data
    params = {"step": "line_search", "learning_rate": rate, "n_estimators": 25}
    found = fit_classes(data, name, stump=stump, **params)
    risk = Risk(classification_loss(name, n_classes), data, n_classes)
    assert risk.loss.convex
    assert_never_rises([risk(F) for F in outputs(found, data.X)])


@pytest.mark.parametrize(("rate", "weighted"), [(0.1, False), (1.0, False), (1.0, True)])
@pytest.mark.parametrize("loss", REGRESSIONS, ids=repr)
def test_line_search_never_raises_the_loss_of_a_regression(loss, rate, weighted):
    data = regression()
    data = data.with_weights().with_missing() if weighted else data
    found = fit_target(data, loss, step="line_search", learning_rate=rate, n_estimators=25)
    assert loss.convex
    assert_never_rises([Risk(loss, data)(F) for F in outputs(found, data.X)])


@pytest.mark.parametrize("size", [1e3, 1e6, 1e9])
@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
def test_line_search_never_raises_the_loss_of_large_counts(size, weighted):
    # On the way the gradient can be many times the largest one of the round's start.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = np.round(size + np.sqrt(size) * (X[:, 0] + rng.normal(size=300)))
    data = Data(X, y, rng.uniform(0.5, 1.0, size=300) if weighted else None)
    found = fit_target(data, "poisson", step="line_search", learning_rate=1.0)
    deviance = [
        float(np.average(y * (np.expm1(d) - d), weights=data.weights))
        for d in (F[:, 0] - np.log(y) for F in outputs(found, X))
    ]
    assert_never_rises(deviance)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", ["logistic", "squared", "truncated_squared"])
def test_a_constant_step_never_raises_a_loss_of_bounded_curvature(name, n_classes):
    data = random_data(n_classes, n=150)
    risk = Risk(classification_loss(name, n_classes), data, n_classes)
    for stump in STUMPS:
        found = fit_classes(data, name, stump=stump, step="constant", learning_rate=1.0)
        assert_never_rises([risk(F) for F in outputs(found, data.X)])


@pytest.mark.parametrize(("name", "n_classes"), list(product(CLASSIFICATION, [2, 3])))
def test_history_is_the_loss_of_staged_outputs(name, n_classes):
    data = random_data(n_classes, n=150).with_missing().with_weights()
    found = fit_classes(data, name, step="line_search", callbacks=[lambda info: None])
    risk = Risk(classification_loss(name, n_classes), data, n_classes)
    expected = [risk(F) for F in outputs(found, data.X)[1:]]
    np.testing.assert_allclose(found.history_.training, expected, rtol=3e-7)


@pytest.mark.parametrize("loss", REGRESSIONS, ids=repr)
def test_history_is_the_loss_of_staged_predictions(loss):
    data = regression().with_missing().with_weights()
    found = fit_target(data, loss, callbacks=[lambda info: None])
    expected = [Risk(loss, data)(F) for F in outputs(found, data.X)[1:]]
    np.testing.assert_allclose(found.history_.training, expected, rtol=1e-6)


# --- line search -------------------------------------------------------------------------------


@pytest.mark.slow
@given(
    st.floats(1e-6, 1e6), st.floats(1e-6, 1e6), st.floats(1e-3, 1e3), st.floats(0.1, 10.0)
)  # fmt: skip
def test_the_minimum_of_a_parabola_is_found_and_never_overshot(curvature, best, start, share):
    limit = best * 10.0 * share

    def slope(a: float) -> float:
        return curvature * (a - best)

    a = line_search(slope, start, limit)
    assert slope(a) <= 0.0
    assert a == pytest.approx(min(best, limit), rel=2e-3)


@pytest.mark.parametrize("start", [1e-3, 1.0, 50.0])
def test_a_kink_is_found_from_the_left(start):
    a = line_search(lambda a: -1.0 if a < 3.0 else 2.0, start, 1e6)
    assert 3.0 * (1.0 - 1e-3) <= a < 3.0


def test_among_many_kinks_the_one_where_the_slope_turns_is_found():
    kinks = np.linspace(0.1, 10.0, 100)
    a = line_search(lambda a: float(np.sum(a > kinks) - 60.5), 1.0, 1e6)
    assert a == pytest.approx(kinks[60], rel=2e-3)


def test_a_slope_that_stays_negative_goes_to_the_limit():
    assert line_search(lambda a: -1.0 / (1.0 + a), 1.0, 37.5) == 37.5
    assert line_search(lambda a: -1.0, 100.0, 37.5) == 37.5


def test_a_slope_that_vanishes_ends_the_search():
    assert 3.0 <= line_search(lambda a: min(0.0, a - 3.0), 1.0, 1e9) <= 6.0
    assert 3.0 <= line_search(lambda a: -1.0 if a < 3.0 else 0.0, 1.0, 1e9) <= 6.0


@pytest.mark.parametrize("stump", STUMPS)
@pytest.mark.parametrize("name", ["hinge", "truncated_squared"])
def test_margins_of_separable_rows_end_near_one_where_the_loss_does(name, stump):
    X = np.arange(20.0)[:, None]
    data = Data(X, (X[:, 0] > 7).astype(int))
    found = fit_classes(data, name, stump=stump, step="line_search", learning_rate=1.0)
    margins = (2 * data.y - 1) * found.decision_function(X)
    assert margins.min() == pytest.approx(1.0, abs=0.01) or margins.min() > 1.0
    assert margins.max() < 5.0


@pytest.mark.parametrize("slope", [0.0, 1.0])
def test_there_is_no_step_where_the_loss_does_not_fall(slope):
    assert line_search(lambda a: slope, 1.0, 10.0) == 0.0


def test_a_flat_minimum_ends_the_search_early():
    asked = []

    def slope(a: float) -> float:
        asked.append(a)
        return (a - 1.0) ** 3

    a = line_search(slope, 4.0, 10.0)
    assert -FLAT <= (a - 1.0) ** 3 <= 0.0
    assert len(asked) < 30


@pytest.mark.parametrize("growth", [1.0, 5.0, 50.0])
def test_a_steep_wall_behind_the_minimum_is_never_climbed(growth):
    def slope(a: float) -> float:
        return float(np.exp(min(growth * (a - 1.0), 600.0))) - 1.0

    a = line_search(slope, 8.0, 1e3)
    assert slope(a) <= 0.0
    assert a == pytest.approx(1.0, rel=1e-2)


CURVES: list[tuple[Any, str, int | None]] = [
    *((name, stump, k) for name in CLASSIFICATION for stump in STUMPS for k in (2, 3)),
    *((loss, "real", None) for loss in REGRESSIONS),
]


@pytest.mark.parametrize(("loss", "stump", "n_classes"), CURVES, ids=str)
def test_line_search_finds_the_optimum_of_scipy(loss, stump, n_classes):
    data = regression() if n_classes is None else random_data(n_classes, n=150)
    params = {"step": "line_search", "learning_rate": 1.0, "n_estimators": 4}
    if n_classes is None:
        found, risk = fit_target(data, loss, **params), Risk(loss, data)
    else:
        found = fit_classes(data, loss, stump=stump, **params)
        risk = Risk(classification_loss(loss, n_classes), data, n_classes)
    F = outputs(found, data.X)
    for before, after in pairwise(F):
        step = after - before

        def along(a: float, before=before, step=step) -> float:
            return risk(before + a * step)

        farthest = min(4.0, 1.000001 * risk.loss.longest_step / np.abs(step).max())
        best = minimize_scalar(along, bounds=(0.0, farthest), method="bounded")
        fall = risk(before) - risk(after)
        assert fall >= 0.99 * (risk(before) - best.fun)


# --- leaves ------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
@pytest.mark.parametrize(("name", "n_classes"), list(product(SMOOTH, [2, 3])))
def test_a_newton_leaf_is_minus_gradient_over_second_derivative(name, n_classes, weighted):
    data = random_data(n_classes, n=150)
    data = data.with_weights() if weighted else data
    found = fit_classes(data, name, step="newton", learning_rate=0.5, n_estimators=15)
    assert_newton_leaves(found, Risk(classification_loss(name, n_classes), data, n_classes), data)


@pytest.mark.parametrize("loss", [Poisson(), Huber(1.0)], ids=repr)
def test_a_newton_leaf_of_a_regression(loss):
    data = regression().with_weights()
    found = fit_target(data, loss, step="newton", learning_rate=0.5, n_estimators=15)
    assert_newton_leaves(found, Risk(loss, data), data)


def test_newton_steps_go_on_where_no_second_derivative_is_left():
    # Beyond delta the second derivative of Huber's loss is 0: here that is soon every row.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    data, loss = Data(X, X[:, 0] + rng.standard_t(1, size=300)), Huber(0.01)
    found = fit_target(data, loss, step="newton", n_estimators=100)
    assert found.n_estimators_ == 100
    losses = [Risk(loss, data)(F) for F in outputs(found, X)]
    assert losses[-1] < losses[len(losses) // 2] < losses[0]


def assert_newton_leaves(found: Any, risk: Risk, data: Data) -> None:
    for t, F in enumerate(outputs(found, data.X)[:-1]):
        g, h = risk.derivatives(F)
        for leaf, rows in enumerate(leaves(found, data.X, t)):
            step = -g[rows].sum(axis=0) / h[rows].sum(axis=0)
            step = 0.5 * np.clip(step, -risk.loss.longest_step, risk.loss.longest_step)
            np.testing.assert_allclose(
                found.model_.rounds.values[t, :, leaf], step, rtol=1e-5, atol=1e-7
            )


@pytest.mark.parametrize(("name", "n_classes"), list(product(CLASSIFICATION, [2, 3])))
def test_a_constant_step_is_the_mean_gradient_over_the_curvature(name, n_classes):
    data = random_data(n_classes, n=150)
    found = fit_classes(data, name, step="constant", learning_rate=0.5, n_estimators=15)
    loss = classification_loss(name, n_classes)
    assert_mean_leaves(found, Risk(loss, data, n_classes), data)


@pytest.mark.parametrize("loss", REGRESSIONS, ids=repr)
def test_a_constant_step_of_a_regression(loss):
    data = regression()
    found = fit_target(data, loss, step="constant", learning_rate=0.5, n_estimators=15)
    assert_mean_leaves(found, Risk(loss, data), data)


def assert_mean_leaves(found: Any, risk: Risk, data: Data) -> None:
    for t, F in enumerate(outputs(found, data.X)[:-1]):
        g, _ = risk.derivatives(F)
        for leaf, rows in enumerate(leaves(found, data.X, t)):
            step = -0.5 * g[rows].mean(axis=0) / (risk.loss.curvature or 1.0)
            np.testing.assert_allclose(
                found.model_.rounds.values[t, :, leaf], step, rtol=1e-5, atol=1e-7
            )


@pytest.mark.parametrize("step", ["line_search", "constant"])
@pytest.mark.parametrize("name", CLASSIFICATION)
def test_a_discrete_stump_has_the_least_error_weighted_by_the_gradient(name, step):
    data = random_data(n=100, p=3)
    found = fit_classes(data, name, stump="discrete", step=step, n_estimators=15)
    risk, sign = Risk(classification_loss(name, 2), data, 2), 2 * data.y - 1
    for t, F in enumerate(outputs(found, data.X)[:-1]):
        g, _ = risk.derivatives(F)
        assert (g[:, 0] * sign <= 0.0).all()  # -phi' y
        weight = np.abs(g[:, 0])

        def least_error(rows: np.ndarray, weight=weight) -> float:
            return min(weight[rows & (sign > 0)].sum(), weight[rows & (sign < 0)].sum())

        least = min(least_error(a) + least_error(b) for *_, a, b in candidates(data.X, "abstain"))
        values = found.model_.rounds.values[t, 0, :2]
        assert abs(values[0]) == pytest.approx(abs(values[1]), rel=1e-6)
        wrong = [weight[rows & (sign * v < 0)].sum()
                 for rows, v in zip(leaves(found, data.X, t), values, strict=True)]  # fmt: skip
        assert sum(wrong) == pytest.approx(least, rel=1e-6, abs=1e-6 * weight.sum())


# --- the algorithms that have a name -----------------------------------------------------------


@pytest.mark.parametrize("rate", [1.0, 0.3])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_exponential_loss_with_newton_steps_is_gentle_adaboost(engine, n_classes, rate):
    data = random_data(n_classes).with_weights().with_missing()
    params = {"n_estimators": 30, "learning_rate": rate}
    found = BoostingClassifier("exponential", **plain(params, step="newton"))
    gentle = AdaBoostClassifier(variant="gentle", **params)
    for estimator in (found, gentle):
        estimator.fit(data.X, data.y, data.weights)
    assert found.model_ == gentle.model_


@pytest.mark.parametrize("rate", [1.0, 0.3])
def test_exponential_loss_with_votes_and_line_search_is_discrete_adaboost(engine, rate):
    data = random_data().with_weights()
    params = {"n_estimators": 30, "learning_rate": rate}
    found = BoostingClassifier("exponential", **plain(params, stump="discrete", step="line_search"))
    discrete = AdaBoostClassifier(variant="discrete", **params)
    for estimator in (found, discrete):
        estimator.fit(data.X, data.y, data.weights)
    assert found.model_ == discrete.model_


def own_exponential() -> CustomLoss:
    """A user's exponential loss, which is not recognised: new gradients each round."""

    def value(y: Any, F: Any) -> Any:
        return locate(F).xp.exp(-y * F)

    return CustomLoss(
        value, lambda y, F: -y * value(y, F), value, task="classification", link_name="margins"
    )


@pytest.mark.parametrize("rate", [1.0, 0.3])
def test_new_gradients_of_the_exponential_loss_pick_the_stumps_of_gentle_adaboost(engine, rate):
    data = balanced()
    found = fit_classes(data, own_exponential(), n_estimators=30, learning_rate=rate)
    gentle = AdaBoostClassifier(
        variant="gentle", n_estimators=30, learning_rate=rate, max_bins=None
    ).fit(data.X, data.y)
    a, b = found.model_.rounds, gentle.model_.rounds
    np.testing.assert_array_equal(a.feature, b.feature)
    np.testing.assert_array_equal(a.threshold, b.threshold)
    np.testing.assert_allclose(a.values, b.values, rtol=1e-5, atol=1e-7)


def test_new_gradients_of_the_exponential_loss_pick_the_stumps_of_discrete_adaboost():
    data = balanced(seed=1)
    params = {"n_estimators": 12, "learning_rate": 1.0}
    loss = own_exponential()
    found = fit_classes(data, loss, stump="discrete", step="line_search", **params)
    discrete = AdaBoostClassifier(variant="discrete", max_bins=None, **params).fit(data.X, data.y)
    a, b = found.model_.rounds, discrete.model_.rounds
    np.testing.assert_array_equal(a.feature, b.feature)
    np.testing.assert_array_equal(a.threshold, b.threshold)
    np.testing.assert_allclose(a.values, b.values, rtol=5e-3)  # the search's own precision


def plain_logitboost(data: Data, n_rounds: int, rate: float):
    """Friedman, Hastie & Tibshirani (2000), algorithm 3, with the response cut at 4."""
    splits = list(candidates(data.X, "abstain"))
    left, right = (np.array([s[side] for s in splits]).astype(float) for side in (3, 4))
    w0 = np.ones(len(data.y)) if data.weights is None else data.weights
    F = np.zeros(len(data.y))
    for _ in range(n_rounds):
        p = 1.0 / (1.0 + np.exp(-2.0 * F))
        z = np.clip((data.y - p) / (p * (1.0 - p)), -4.0, 4.0)
        w = w0 * p * (1.0 - p)
        mean_left, mean_right = left @ (w * z) / (left @ w), right @ (w * z) / (right @ w)
        gain = mean_left * (left @ (w * z)) + mean_right * (right @ (w * z))
        best = int(np.argmax(gain * TIE >= gain.max()))
        values = rate * 0.5 * np.array([mean_left[best], mean_right[best]])
        F = F + left[best] * values[0] + right[best] * values[1]
        yield splits[best][0], splits[best][1], values


@every_pair("engine, rate, weighted", ENGINES, [1.0, 0.3], [False, True], indirect=["engine"])
def test_logitboost_is_that_of_the_paper(engine, rate, weighted):
    data = balanced(seed=2)
    if weighted:  # the same weights for both classes: the best constant stays 0
        weights = np.random.default_rng(3).integers(1, 4, size=60).astype(float)
        order = np.argsort(data.y, kind="stable")
        data = Data(data.X[order], data.y[order], np.concatenate([weights, weights]))
    found = AdaBoostClassifier(
        variant="logit", n_estimators=60, learning_rate=rate, max_bins=None
    ).fit(data.X, data.y, data.weights)
    rounds = found.model_.rounds
    assert found.model_.intercept[0] == 0.0
    for t, (feature, threshold, values) in enumerate(plain_logitboost(data, 60, rate)):
        assert rounds.feature[t] == feature, f"round {t}"
        assert rounds.threshold[t] == pytest.approx(threshold, rel=1e-12), f"round {t}"
        np.testing.assert_allclose(rounds.values[t, 0, :2], values, rtol=1e-5, atol=1e-7)


def test_logitboost_is_the_newton_step_of_its_loss():
    data = random_data()
    logit = AdaBoostClassifier(variant="logit", n_estimators=30, learning_rate=0.2)
    newton = BoostingClassifier(
        LogitBoost(), n_estimators=30, learning_rate=0.2, step="newton", max_depth=1
    )
    assert logit.fit(data.X, data.y).model_ == newton.fit(data.X, data.y).model_


# --- constraints -------------------------------------------------------------------------------

SIGNS = np.array([1, -1, 0, 1])
MONOTONE = [
    ("logistic", "newton"), ("logistic", "line_search"), ("exponential", "newton"),
    ("truncated_squared", "constant"), ("squared", "newton"),
]  # fmt: skip


def assert_monotone(found: Any, X: np.ndarray, predict: Any) -> None:
    for f, sign in enumerate(SIGNS):
        table = found.model_.shape_function(f)
        assert (sign * np.diff(table.values[:, 0]) >= 0.0).all()
        rows = np.repeat(X[:5], 50, axis=0)
        rows[:, f] = np.tile(np.linspace(-4.0, 4.0, 50), 5)
        along = predict(rows).reshape(5, 50)
        assert (sign * np.diff(along, axis=1) >= -1e-12 * np.abs(along).max()).all()


@pytest.mark.parametrize("missing", ["abstain", "learn"])
@pytest.mark.parametrize(("name", "step"), MONOTONE)
@pytest.mark.parametrize("stump", STUMPS)
def test_monotone_classifiers_are_monotone(name, stump, step, missing):
    data = balanced(300)
    data = Data(data.X, np.where(data.X[:, 2] > 1, 1 - data.y, data.y)).with_missing()
    params = {"stump": stump, "step": step, "missing": missing, "learning_rate": 0.3}
    free = fit_classes(data, name, **params)
    assert (np.diff(free.model_.shape_function(1).values[:, 0]) > 0.0).any()  # not of itself
    found = fit_classes(data, name, monotonic_cst=SIGNS, **params)
    assert_monotone(found, data.X, lambda X: found.predict_proba(X)[:, 1])
    assert found.score(data.X, data.y) > 0.6


@pytest.mark.parametrize("loss", REGRESSIONS, ids=repr)
def test_monotone_regressors_are_monotone(loss):
    data = regression(300)
    found = fit_target(data, loss, monotonic_cst=SIGNS, learning_rate=0.3)
    assert_monotone(found, data.X, found.predict)
    assert 0 in found.model_.tables


@pytest.mark.parametrize("stump", STUMPS)
@pytest.mark.parametrize("name", ["logistic", "truncated_squared", "squared"])
def test_a_constraint_that_holds_anyway_changes_nothing(name, stump):
    rng = np.random.default_rng(5)
    X = rng.integers(0, 2, size=(400, 3)).astype(float)
    y = (X @ [1.0, -1.5, 0.7] + rng.logistic(size=400) > 0).astype(int)
    params = {"stump": stump, "n_estimators": 25, "learning_rate": 0.1}
    free = fit_classes(Data(X, y), name, **params)
    rounds, signs = free.model_.rounds, np.array([1, -1, 1])
    rise = rounds.values[:, 0, 1] - rounds.values[:, 0, 0]
    assert (signs[rounds.feature] * rise >= 0.0).all()
    assert fit_classes(Data(X, y), name, monotonic_cst=signs, **params).model_ == free.model_


# --- sampling ----------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_about_the_share_of_the_rows_is_drawn_and_rounds_are_independent(share):
    n, rounds = 20_000, 10
    numbers = np.arange(n, dtype=np.uint64)
    drawn = np.array([drawn_items(7, t, numbers, share, CPU) for t in range(rounds)])
    deviation = np.sqrt(share * (1 - share) / n)
    assert (np.abs(drawn.mean(axis=1) - share) < 5 * deviation).all()
    assert abs(drawn.mean() - share) < 5 * deviation / np.sqrt(rounds)
    other_seed = drawn_items(8, 0, numbers, share, CPU)
    pairs = np.corrcoef([*drawn, other_seed, np.roll(drawn[0], 1)])
    assert (np.abs(pairs - np.eye(len(pairs))) < 5 / np.sqrt(n)).all()
    per_row = drawn.sum(axis=0)
    assert per_row.var() == pytest.approx(rounds * share * (1 - share), rel=0.1)


def test_the_draw_does_not_depend_on_blocks_or_namespace():
    numbers = np.arange(1000, dtype=np.uint64)
    whole = drawn_items(3, 2, numbers, 0.3, CPU)
    parts = [drawn_items(3, 2, numbers[a : a + 125], 0.3, CPU) for a in range(0, 1000, 125)]
    np.testing.assert_array_equal(np.concatenate(parts), whole)
    strict = array_api_strict.asarray(numbers)
    there = drawn_items(3, 2, strict, 0.3, ReferenceEngine(locate(strict)))
    np.testing.assert_array_equal(np.asarray(there), whole)


@pytest.mark.parametrize("name", ["logistic", "exponential", "squared"])
def test_one_seed_gives_one_model_and_another_seed_another(name):
    data = random_data()
    models = [
        fit_classes(data, name, subsample=0.5, random_state=seed).model_ for seed in (1, 1, 2)
    ]
    assert models[0] == models[1]
    assert models[0] != models[2]
    assert models[0] != fit_classes(data, name).model_


def test_a_round_is_fitted_to_the_drawn_rows():
    data = random_data(n=400)
    found = fit_classes(data, "logistic", subsample=0.4, random_state=3, learning_rate=1.0)
    risk = Risk(classification_loss("logistic", 2), data, 2)
    seed = int(np.random.RandomState(3).randint(np.iinfo(np.int32).max))
    draws = Draws(items_of(row_keys(data.y, data.X), None), 400, CPU)
    for t, F in enumerate(outputs(found, data.X)[:-1]):
        g, h = (a[:, 0] for a in risk.derivatives(F))
        drawn = draws.counts(seed, t, 0.4)
        for leaf, rows in enumerate(leaves(found, data.X, t)):
            step = -g[rows & drawn].sum() / h[rows & drawn].sum()
            step = np.clip(step, -8.0, 8.0)
            assert found.model_.rounds.values[t, 0, leaf] == pytest.approx(step, rel=1e-5, abs=1e-7)


def test_rows_in_a_last_small_block_need_not_be_drawn():
    n = 2**15 + 1  # a block of the CPU engine and one row more
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 1))
    y = (X[:, 0] + rng.normal(size=n) > 0).astype(int)
    for seed in range(3):
        found = BoostingClassifier(
            n_estimators=2, subsample=0.3, random_state=seed, max_depth=1
        ).fit(X, y)
        assert found.n_estimators_ == 2


def test_a_round_without_any_row_or_useful_feature_is_not_the_last():
    data = random_data(n=30)
    found = fit_classes(data, "logistic", subsample=0.05, random_state=0, n_estimators=60)
    assert found.n_estimators_ == 60
    X = np.column_stack([data.X[:, 0], -data.X[:, 0]])
    y = (data.X[:, 0] > 0).astype(int)
    y[:3] = 1 - y[:3]
    found = fit_classes(
        Data(X, y),
        "logistic",
        max_features=1,
        monotonic_cst=[1, 1],
        random_state=0,
        n_estimators=60,
    )  # the second feature can never help
    assert found.n_estimators_ == 60


@pytest.mark.parametrize(
    ("max_features", "p", "drawn"),
    [(1, 6, 1), (4, 8, 4), (0.25, 8, 2), ("sqrt", 9, 3), ("log2", 8, 3), (1e-9, 5, 1)],
)
def test_the_best_feature_is_used_as_often_as_it_is_drawn(max_features, p, drawn):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(200, p))
    y = 100.0 * X[:, 2] + rng.normal(size=200)
    found = fit_target(
        Data(X, y), "squared", max_features=max_features, learning_rate=1e-4, n_estimators=600,
        random_state=0,
    )  # fmt: skip
    share = np.mean(found.model_.rounds.feature == 2)
    assert share == pytest.approx(drawn / p, abs=5 * np.sqrt(0.25 / 600))
    others = np.bincount(found.model_.rounds.feature, minlength=p)
    assert (others > 0).sum() > 1


@pytest.mark.parametrize("name", ["logistic", "squared"])
def test_drawing_all_features_is_drawing_none(name):
    data = random_data()
    plain = fit_classes(data, name).model_
    for everything in (6, 1.0):
        assert fit_classes(data, name, max_features=everything).model_ == plain
    assert fit_classes(data, name, max_features=2, random_state=0).model_ != plain
