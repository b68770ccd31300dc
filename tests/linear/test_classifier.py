"""Penalised linear classifiers: scikit-learn's, and the conditions of the minimum."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, RidgeClassifier

from ensemble_gpu import LinearClassifier
from ensemble_gpu.arrays.namespace import locate
from ensemble_gpu.linear.solvers import Objective, solve
from ensemble_gpu.losses import CustomLoss, classification_loss
from tests.datasets import fitted_state
from tests.estimators.checks import assert_checks_pass, each_setting

RNG = np.random.default_rng(0)
X = RNG.normal(size=(150, 6)) @ np.diag([1.0, 3.0, 0.3, 1.0, 1.0, 1.0]) + 0.5
SCORE = X[:, 0] - 0.5 * X[:, 1] + 0.5 * RNG.normal(size=150)
LABELS = {2: (SCORE > 0).astype(int), 3: np.digitize(SCORE, [-1.0, 1.0])}
W = RNG.gamma(1.0, size=150)
W[::9] = 0.0
KINKED = CustomLoss(
    lambda y, F: abs(y - F), lambda y, F: F - y, name="kinked", task="classification"
)
LOSSES = ["logistic", "exponential", "squared", "truncated_squared"]


def gradient(model: LinearClassifier, y: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Of sum w l + l2 |b|^2 with respect to (b, b0): [outputs, p + 1]."""
    K = len(model.classes_)
    loss = classification_loss(model.loss, K)
    F = model.model_(X)
    if loss.name == "multinomial":
        g = loss.gradient(y.astype(np.int64), F)
    else:
        signs = 2.0 * (y[:, None] == (np.arange(K) if K > 2 else [1])) - 1.0
        g = loss.gradient(signs, F)
    G = (w[:, None] * g).T @ np.column_stack([X, np.ones(len(X))])
    G[:, :-1] += 2.0 * model.l2 * model.coef_
    return G


@pytest.mark.parametrize("weights", [None, W], ids=["plain", "weighted"])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("l1", [0.0, 3.0])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_conditions_of_the_minimum_hold(loss, l1, n_classes, weights):
    y = LABELS[n_classes]
    ours = LinearClassifier(loss, l1=l1, l2=0.2).fit(X, y, weights)
    assert ours.converged_
    G = gradient(ours, y, np.ones(150) if weights is None else weights)
    b, tolerance = ours.coef_, 1e-4
    np.testing.assert_allclose(G[:, -1], 0.0, atol=tolerance)
    assert (np.abs(G[:, :-1][b == 0.0]) <= l1 + tolerance).all()
    np.testing.assert_allclose(G[:, :-1][b != 0.0], -l1 * np.sign(b[b != 0.0]), atol=tolerance)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("C", [0.1, 10.0])
def test_logistic_regressions_are_those_of_scikit_learn(C, n_classes):
    y = LABELS[n_classes]
    theirs = LogisticRegression(C=C, tol=1e-10, max_iter=10_000).fit(X, y, W)
    ours = LinearClassifier(l2=0.5 / C).fit(X, y, W)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-5)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    if n_classes == 2:
        np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-3, atol=1e-5)


def test_a_lasso_of_classes_is_that_of_scikit_learn():
    theirs = LogisticRegression(
        C=0.1, l1_ratio=1.0, solver="saga", tol=1e-9, max_iter=100_000, random_state=0
    ).fit(X, LABELS[2])
    ours = LinearClassifier(l1=10.0, l2=0.0).fit(X, LABELS[2])
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_squared_loss_is_a_ridge_regression_of_signs(n_classes):
    ours = LinearClassifier("squared", l2=2.0).fit(X, LABELS[n_classes])
    theirs = RidgeClassifier(2.0).fit(X, LABELS[n_classes])
    np.testing.assert_allclose(ours.coef_.ravel(), theirs.coef_.ravel(), rtol=1e-7)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
def test_large_penalties_leave_the_best_constant(loss):
    y = LABELS[2]
    constant = classification_loss(loss, 2).best_constant(2.0 * y - 1.0, None)
    for penalty in ({"l2": 1e12}, {"l1": 1e6}):
        ours = LinearClassifier(loss, **penalty).fit(X, y)
        np.testing.assert_allclose(ours.intercept_, constant, atol=1e-6)
        np.testing.assert_allclose(ours.coef_, 0.0, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["logistic", "truncated_squared"])
def test_a_path_by_warm_starts_is_the_fits_one_by_one(loss):
    penalties = [30.0, 10.0, 3.0, 1.0]
    path = LinearClassifier(loss, l2=0.1).path(X, LABELS[3], l1=penalties)
    for b, constant, l1 in zip(path.coef, path.intercept, penalties, strict=True):
        alone = LinearClassifier(loss, l1=l1, l2=0.1).fit(X, LABELS[3])
        np.testing.assert_allclose(b, alone.coef_, atol=1e-5)
        np.testing.assert_allclose(constant - constant.mean(), alone.intercept_
                                   - alone.intercept_.mean(), atol=1e-5)  # fmt: skip
    zeros = [(b == 0.0).sum() for b in path.coef]
    assert zeros == sorted(zeros, reverse=True)


def test_whole_weights_are_repeated_rows():
    w = RNG.integers(0, 4, size=150)
    rows = np.repeat(np.arange(150), w)
    for l1 in (0.0, 2.0):
        one = LinearClassifier(l1=l1).fit(X, LABELS[2], w)
        other = LinearClassifier(l1=l1).fit(X[rows], LABELS[2][rows])
        np.testing.assert_allclose(one.coef_, other.coef_, atol=1e-5)


@pytest.mark.parametrize("l1", [0.0, 2.0])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_fit_is_made_where_the_arrays_live(place, n_classes, l1):
    host = LinearClassifier(l1=l1).fit(X, LABELS[n_classes], W)
    ours = LinearClassifier(l1=l1)
    ours.fit(place.put(X), place.put(LABELS[n_classes]), place.put(W))
    np.testing.assert_allclose(ours.coef_, host.coef_, atol=1e-5)
    p = ours.predict_proba(place.put(X))
    place.check(p, "float64")
    place.check(ours.predict(place.put(X)), "int64")
    np.testing.assert_allclose(place.host(p), host.predict_proba(X), atol=1e-5)


@pytest.mark.interop
def test_other_libraries_give_the_same_fit(library):
    ours = LinearClassifier(l1=1.0).fit(library.put(X), library.put(LABELS[2]))
    np.testing.assert_allclose(ours.coef_, LinearClassifier(l1=1.0).fit(X, LABELS[2]).coef_)
    library.check(ours.decision_function(library.put(X)), "float64")


@pytest.mark.interop
@pytest.mark.parametrize("l1", [0.0, 2.0])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_other_libraries_solve_the_problem_themselves(library, n_classes, l1):
    """On the host their arrays are seen as NumPy's; on a device they are not."""
    y = 2.0 * LABELS[2] - 1.0 if n_classes == 2 else LABELS[3].astype(np.int64)
    A = library.put(np.column_stack([X, np.ones(150)]))
    outputs = 1 if n_classes == 2 else 3
    problem = Objective(
        classification_loss("logistic", n_classes), A, library.put(y), None, outputs, l1, 0.5,
        locate(A),
    )  # fmt: skip
    found = solve(problem, library.put(np.zeros((7, outputs))), 5_000, 1e-7)
    host = LinearClassifier(l1=l1).fit(X, LABELS[n_classes])
    np.testing.assert_allclose(library.host(found.B)[:-1].T, host.coef_, atol=1e-4)


@pytest.mark.parametrize(
    ("params", "error", "says"),
    [
        ({"loss": KINKED}, ValueError, "loss 'kinked' has no second derivative"),
        ({"loss": "huber"}, ValueError, "loss must be one of"),
        ({"l1": -1.0}, ValueError, "l1 must be"),
        ({"l2": "x"}, TypeError, "l2 must be"),
        ({"max_iter": 0}, ValueError, "max_iter must be"),
        ({"tol": 0.0}, ValueError, "tol must be"),
    ],
)
def test_bad_parameters_are_named_and_nothing_is_half_fitted(params, error, says):
    ours: Any = LinearClassifier().fit(X, LABELS[2])
    before = fitted_state(ours)
    with pytest.raises(error, match=says):
        ours.set_params(**params).fit(X, LABELS[2])
    assert fitted_state(ours) == before


def test_a_path_needs_penalties_of_one_length():
    for given in ({}, {"l1": [1.0], "l2": [1.0, 2.0]}, {"l1": []}):
        with pytest.raises(ValueError, match="l1 and l2 must be lists of one length"):
            LinearClassifier().path(X, LABELS[2], **given)


@each_setting([LinearClassifier(), LinearClassifier("hinge")])
def test_the_checks_of_scikit_learn_pass(estimator, first):
    assert_checks_pass(estimator, others=first)
