"""Bias, variance and noise: parts that add up, closed forms, curves, bad input (SPEC B16)."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier

from ensemble_gpu import (
    AdaBoostClassifier,
    BaggingRegressor,
    BoostingRegressor,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    L1BoostingRegressor,
    L2BoostRegressor,
    NeighboursRegressor,
    RandomForestRegressor,
)
from ensemble_gpu.diagnostics import bias_variance
from ensemble_gpu.smoothers import KernelRidge
from tests.places import DEVICE

SIGMA = 0.5
X_TEST = np.linspace(-0.95, 0.95, 30)[:, None]


def mean_of(X):
    return np.sin(3.0 * np.asarray(X)[:, 0])


def make_data(rng, n=60):
    X = rng.uniform(-1.0, 1.0, size=(n, 1))
    return X, mean_of(X) + SIGMA * rng.normal(size=n)


def chance_of(X):
    return 1.0 / (1.0 + np.exp(-4.0 * np.asarray(X)[:, 0]))


def make_classes(rng, n=60):
    X = rng.uniform(-1.0, 1.0, size=(n, 1))
    return X, np.where(rng.random(n) < chance_of(X), "yes", "no")


@pytest.fixture(scope="module")
def by_depth():
    return bias_variance(
        DecisionTreeRegressor(), make_data, X_test=X_TEST, truth=mean_of, sigma=SIGMA,
        vary=("max_depth", [1, 3, None]), n_replicates=30,
    )  # fmt: skip


def test_parts_of_the_squared_loss_add_up_to_the_error(by_depth):
    found = by_depth
    np.testing.assert_allclose(found.bias + found.variance + found.noise, found.error, rtol=1e-12)
    np.testing.assert_allclose(found.noise, SIGMA**2)


def test_deep_trees_have_less_bias_and_more_variance(by_depth):
    assert by_depth.bias[0] > by_depth.bias[2]
    assert by_depth.variance[0] < by_depth.variance[1] < by_depth.variance[2]


def test_the_correction_takes_the_variance_of_the_mean_out_of_the_bias(by_depth):
    R = by_depth.n_replicates
    s2 = by_depth.variance * R / (R - 1)
    np.testing.assert_allclose(by_depth.unbiased_variance, s2)
    np.testing.assert_allclose(by_depth.unbiased_bias, by_depth.bias - s2 / R)


@pytest.mark.long
def test_corrected_parts_are_unbiased():
    """The mean of n numbers: variance sigma^2 / n, bias^2 = truth^2, from 3 replicates each."""
    n, truth = 10, 0.4
    found = [
        bias_variance(
            DummyRegressor(), lambda rng: (np.zeros((n, 1)), rng.normal(size=n)),
            X_test=np.zeros((1, 1)), truth=[truth], n_replicates=3, random_state=seed,
        )
        for seed in range(400)
    ]  # fmt: skip
    variance = np.array([one.unbiased_variance[0] for one in found])
    bias = np.array([one.unbiased_bias[0] for one in found])
    for estimates, expected in ((variance, 1.0 / n), (bias, truth**2)):
        error = estimates.std() / math.sqrt(len(estimates))
        assert abs(estimates.mean() - expected) < 3.5 * error
    raw = np.array([one.bias[0] for one in found])
    assert raw.mean() - truth**2 > 0.5 * 1.0 / n / 3.0  # without the correction it is too large


def test_parts_of_the_zero_one_loss_add_up_to_the_error():
    found = bias_variance(
        KNeighborsClassifier(1), make_classes, X_test=X_TEST, truth=chance_of,
        vary=("n_neighbors", [1, 15]), n_replicates=20,
    )  # fmt: skip
    np.testing.assert_allclose(found.bias + found.variance + found.noise, found.error, rtol=1e-12)
    assert found.loss == "zero_one"
    assert found.variance[1] < found.variance[0]
    assert np.isnan(found.unbiased_bias).all()


def test_the_zero_one_error_is_that_of_the_votes():
    """By hand: two points, three replicates."""
    answers = iter([[0, 1], [1, 1], [0, 0]])

    class Says(KNeighborsClassifier):
        def predict(self, X):
            return np.array(["no", "yes"])[next(answers)]

    eta = np.array([0.8, 0.7])
    found = bias_variance(Says(), make_classes, X_test=np.zeros((2, 1)), truth=eta, n_replicates=3)
    # The first point: main "no", Bayes "yes", V = 1/3; the second: main = Bayes, V = 1/3.
    assert found.bias[0] == pytest.approx(0.5)
    assert found.variance[0] == pytest.approx((-1 / 3 + 1 / 3) / 2)
    assert found.noise[0] == pytest.approx((-1 / 3 * 0.2 + 1 / 3 * 0.3) / 2)
    error = ((2 * 0.8 + 0.2) / 3 + (2 * 0.3 + 0.7) / 3) / 2
    assert found.error[0] == pytest.approx(error)


@pytest.mark.parametrize("method", ["bootstrap", "splits"])
@pytest.mark.parametrize("classes", [False, True])
def test_one_data_set_is_judged_by_rows_that_are_left_out(method, classes):
    rng = np.random.default_rng(0)
    X, y = make_classes(rng) if classes else make_data(rng)
    model = LogisticRegression() if classes else DecisionTreeRegressor(max_depth=3)
    found = bias_variance(model, X, y, n_replicates=12, method=method)
    np.testing.assert_allclose(found.bias + found.variance, found.error, rtol=1e-12)
    assert np.isnan(found.noise).all()
    assert found.error[0] > 0.1


def test_samples_with_common_bins_are_fits_to_those_rows():
    """Values are few, so that bins of all rows and of a sample cut alike."""
    rng = np.random.default_rng(1)
    X = rng.integers(0, 6, size=(80, 3)).astype(float)
    y = X[:, 0] - X[:, 1] + rng.normal(size=80)
    model = DecisionTreeRegressor(max_depth=3)
    found = bias_variance(model, X, y, n_replicates=8, random_state=3)
    seeds = np.random.SeedSequence(3).generate_state(8) % 2**31
    losses, judged = np.zeros((8, 80)), np.zeros((8, 80), dtype=bool)
    for r, seed in enumerate(seeds):
        at = np.sort(np.random.default_rng(int(seed)).integers(80, size=80))
        judged[r] = ~np.isin(np.arange(80), at)
        losses[r] = (model.fit(X[at], y[at]).predict(X) - y) ** 2
    enough = judged.sum(axis=0) >= 2
    means = (losses * judged).sum(axis=0)[enough] / judged.sum(axis=0)[enough]
    assert found.error[0] == pytest.approx(means.mean(), rel=1e-12)


@pytest.mark.parametrize(
    ("model", "name", "values"),
    [
        (BoostingRegressor(learning_rate=0.3, max_depth=1), "n_estimators", [1, 20, 5]),
        (BoostingRegressor(n_estimators=5, max_depth=1), "learning_rate", [0.1, 1.0]),
        (RandomForestRegressor(), "n_estimators", [1, 6]),
        (NeighboursRegressor(), "n_neighbors", [1, 9]),
        (DecisionTreeRegressor(), "ccp_alpha", [0.0, 0.1]),
        (L1BoostingRegressor(tol=0.05), "radius", [0.5, 2.0]),
    ],
    ids=["rounds", "nu", "trees", "K", "pruning", "radius"],
)
def test_curves_are_single_decompositions(model, name, values):
    """Also where one fit contains all values."""
    X, y = make_data(np.random.default_rng(4))
    curve = bias_variance(model, X, y, vary=(name, values), n_replicates=4)
    for i, value in enumerate(values):
        one = bias_variance(model.set_params(**{name: value}), X, y, n_replicates=4)
        for part in ("error", "bias", "variance", "standard_error"):
            assert getattr(curve, part)[i] == pytest.approx(getattr(one, part)[0], rel=1e-12)


def test_rounds_of_a_classifier_are_stages_of_one_fit():
    rng = np.random.default_rng(5)
    X, y = make_classes(rng, 80)
    curve = bias_variance(
        AdaBoostClassifier(), X, y, vary=("n_estimators", [1, 10]), n_replicates=4
    )
    for i, n in enumerate((1, 10)):
        one = bias_variance(AdaBoostClassifier(n_estimators=n), X, y, n_replicates=4)
        assert curve.error[i] == pytest.approx(one.error[0])


@pytest.fixture(scope="module")
def ensembles():
    common = {"X_test": X_TEST, "truth": mean_of, "sigma": SIGMA, "n_replicates": 25}
    tree = bias_variance(DecisionTreeRegressor(), make_data, **common)
    bag = bias_variance(
        BaggingRegressor(DecisionTreeRegressor(), n_estimators=8), make_data, members=True, **common
    )
    forest = bias_variance(
        RandomForestRegressor(n_estimators=2), make_data, members=True,
        vary=("n_estimators", [2, 8]), **common,
    )  # fmt: skip
    return tree, bag, forest


@pytest.mark.slow
def test_bagging_keeps_the_bias_and_lowers_the_variance(ensembles):
    tree, bag, _ = ensembles
    assert bag.variance[0] < 0.7 * tree.variance[0]
    assert abs(bag.unbiased_bias[0] - tree.unbiased_bias[0]) < 0.03


def test_variance_of_an_average_follows_from_the_correlation_of_members(ensembles):
    _, bag, forest = ensembles
    for found in (bag, forest):
        s2, rho, M = found.member_variance, found.correlation, found.n_members
        np.testing.assert_allclose(rho * s2 + (1.0 - rho) * s2 / M, found.variance, rtol=1e-9)
        assert ((rho > 0.0) & (rho < 1.0)).all()
    np.testing.assert_array_equal(forest.n_members, [2, 8])
    assert forest.variance[1] < forest.variance[0]


def test_nearest_neighbours_match_their_closed_form():
    """At a point: sigma^2 / K, and the mean of f over the neighbours; X is fixed."""
    X = np.linspace(-1.0, 1.0, 40)[:, None]
    f = mean_of(X)

    def draw(rng):
        return X, f + SIGMA * rng.normal(size=40)

    found = bias_variance(
        NeighboursRegressor(), draw, X_test=X, truth=f, vary=("n_neighbors", [1, 5]),
        n_replicates=150,
    )  # fmt: skip
    for i, K in enumerate((1, 5)):
        near = np.argsort(np.abs(X - X.T), axis=1, kind="stable")[:, :K]
        bias = ((f[near].mean(axis=1) - f) ** 2).mean()
        assert found.unbiased_variance[i] == pytest.approx(SIGMA**2 / K, rel=0.1)
        assert found.unbiased_bias[i] == pytest.approx(bias, abs=2e-3)


def test_smoothers_match_their_closed_form():
    X = np.linspace(-1.0, 1.0, 30)[:, None]
    f = mean_of(X)

    def draw(rng):
        return X, f + SIGMA * rng.normal(size=30)

    model = L2BoostRegressor(KernelRidge(ridge=1.0), n_estimators=10, criterion=None)
    closed = model.fit(*draw(np.random.default_rng(0))).bias_variance(X, f, SIGMA)
    found = bias_variance(model, draw, X_test=X, truth=f, n_replicates=150)
    assert found.unbiased_variance[0] == pytest.approx(closed.variance[-1], rel=0.12)
    assert found.unbiased_bias[0] == pytest.approx(closed.bias2[-1], abs=3e-3)


def test_arrays_of_any_library_give_the_same_parts():
    X, y = make_data(np.random.default_rng(6), 40)
    model = BoostingRegressor(n_estimators=2, max_depth=1, learning_rate=0.5)
    here = bias_variance(model, X, y, n_replicates=3)
    there = bias_variance(model, DEVICE.put(X), DEVICE.put(y), n_replicates=3)
    np.testing.assert_allclose(there.error, here.error, rtol=1e-12)
    assert isinstance(there.error, np.ndarray)
    drawn = bias_variance(
        model, lambda rng: tuple(map(DEVICE.put, make_data(rng, 30))), X_test=DEVICE.put(X_TEST),
        truth=mean_of(X_TEST), n_replicates=2,
    )  # fmt: skip
    assert drawn.error[0] > 0.0


def test_tables_and_texts(by_depth):
    pytest.importorskip("pandas")
    frame = by_depth.to_frame()
    assert frame.index.name == "max_depth"
    np.testing.assert_array_equal(frame["error"], by_depth.error)
    text = str(by_depth)
    assert "max_depth" in text
    assert f"{by_depth.error[0]:.5g}" in text


def test_y_at_the_points_may_take_the_place_of_the_truth():
    y_test = mean_of(X_TEST) + 0.1
    found = bias_variance(
        DecisionTreeRegressor(max_depth=2), make_data, X_test=X_TEST, y_test=y_test, n_replicates=5
    )
    np.testing.assert_allclose(found.bias + found.variance, found.error, rtol=1e-12)
    assert np.isnan(found.noise).all()


def test_bad_input_is_refused_in_words():
    X, y = make_data(np.random.default_rng(7), 30)
    tree = DecisionTreeRegressor(max_depth=1)
    with pytest.raises(ValueError, match="n_replicates must be an integer >= 2; got 1"):
        bias_variance(tree, X, y, n_replicates=1)
    with pytest.raises(ValueError, match=r"method must be one of 'bootstrap', 'splits'; got 'jack"):
        bias_variance(tree, X, y, method="jackknife")
    with pytest.raises(ValueError, match="y must hold a target a row; got None"):
        bias_variance(tree, X)
    with pytest.raises(ValueError, match="are for training sets that a function draws"):
        bias_variance(tree, X, y, truth=y)
    with pytest.raises(ValueError, match="X_test must be given"):
        bias_variance(tree, make_data)
    with pytest.raises(ValueError, match="Give one of truth and y_test"):
        bias_variance(tree, make_data, X_test=X_TEST)
    with pytest.raises(ValueError, match=r"truth must hold a value a row of X_test, 30; got shape"):
        bias_variance(tree, make_data, X_test=X_TEST, truth=[1.0])
    with pytest.raises(ValueError, match="sigma must be >= 0; got -1"):
        bias_variance(tree, make_data, X_test=X_TEST, truth=mean_of, sigma=-1.0)
    with pytest.raises(ValueError, match=r"truth must hold probabilities in \[0, 1\]"):
        bias_variance(
            DecisionTreeClassifier(), make_classes, X_test=X_TEST, truth=lambda X: 2 * X[:, 0]
        )
    sizes = iter([30, 30, 31])
    with pytest.raises(ValueError, match=r"make_data must return X of the same shape .*\(31, 1\)"):
        bias_variance(
            tree, lambda rng: make_data(rng, next(sizes)), X_test=X_TEST, truth=mean_of,
            n_replicates=4,
        )  # fmt: skip
    with pytest.raises(ValueError, match=r"make_data must return X .* and y of shape \(2,\)"):
        bias_variance(tree, lambda rng: (X, y[:2]), X_test=X_TEST, truth=mean_of)
    with pytest.raises(TypeError, match=r"make_data must return a pair \(X, y\); got ndarray"):
        bias_variance(tree, lambda rng: X, X_test=X_TEST, truth=mean_of)
    for vary in ("max_depth", ("max_depth", []), ("max_depth", "12")):
        with pytest.raises(ValueError, match=r"vary must be a pair \(parameter, values\)"):
            bias_variance(tree, X, y, vary=vary)
    with pytest.raises(ValueError, match="decomposed for two classes; y holds 3"):
        bias_variance(LogisticRegression(), X, np.arange(30) % 3)
    with pytest.raises(ValueError, match="members=True is for regressors"):
        bias_variance(LogisticRegression(), X, y > 0, members=True)
    with pytest.raises(
        ValueError, match="members=True needs replicates that are judged by the same"
    ):
        bias_variance(RandomForestRegressor(n_estimators=2), X, y, members=True)
    with pytest.raises(TypeError, match=r"members=True needs an ensemble .*; got DecisionTreeRegr"):
        bias_variance(tree, make_data, X_test=X_TEST, truth=mean_of, members=True)
