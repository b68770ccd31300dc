"""The L1 ball: minima of another solver, certificates, rates, the penalised form, the path."""

from __future__ import annotations

import numpy as np
import pytest

from ensemble_gpu import L1BoostingClassifier, L1BoostingRegressor, regularization_path
from ensemble_gpu.arrays.namespace import NUMPY
from ensemble_gpu.losses import classification_loss, regression_loss
from ensemble_gpu.losses.targets import class_target
from tests.l1.explicit import least, stumps, value

RNG = np.random.default_rng(0)
N = 90
X = np.round(2.0 * RNG.normal(size=(N, 3)))  # few values: the other solver takes its time
SIGNAL = X[:, 0] - 0.6 * np.abs(X[:, 1]) + 1.2 * RNG.normal(size=N)
LABELS = (SIGNAL > 0.0).astype(int)
CLASSES = np.digitize(SIGNAL, [-1.5, 1.0])
W = RNG.integers(1, 4, N).astype(float)
HOLES = X.copy()
HOLES[RNG.random(X.shape) < 0.1] = np.nan
MARGINS = ["logistic", "exponential", "squared", "truncated_squared"]
# (loss, y, X, missing, weights) of small problems.
PROBLEMS = {
    **{name: (name, LABELS, X, "abstain", None) for name in MARGINS},
    "weights": ("logistic", LABELS, X, "abstain", W),
    "abstain": ("exponential", LABELS, HOLES, "abstain", None),
    "learn": ("logistic", LABELS, HOLES, "learn", W),
    "three classes": ("logistic", CLASSES, X, "abstain", None),
    "three against the rest": ("truncated_squared", CLASSES, X, "abstain", None),
    "regression": ("squared", SIGNAL, X, "abstain", W),
    "huber": ("huber", SIGNAL, X, "abstain", None),
}


def made(problem, **parameters):
    """An estimator of the problem, fitted to the last digits."""
    loss, y, rows, missing, w = PROBLEMS[problem]
    kind = L1BoostingRegressor if y.dtype.kind == "f" else L1BoostingClassifier
    parameters = {"tol": 1e-9, "missing": missing, **parameters}
    return kind(loss, **parameters).fit(rows, y, sample_weight=w)


def explicitly(problem, fitted):
    """Loss, target, weights, start and dictionary of the same problem, and its outputs."""
    name, y, rows, missing, w = PROBLEMS[problem]
    w = np.ones(N) if w is None else w
    A, K = stumps(rows, learn=missing == "learn"), fitted.model_.n_outputs
    if y.dtype.kind == "f":
        loss, target = regression_loss(name), y
    else:
        loss = classification_loss(name, len(np.unique(y)))
        target = class_target(loss, y, len(np.unique(y)), NUMPY)
    return loss, target, w / w.sum(), fitted.model_.intercept, A, K


@pytest.fixture(scope="module")
def fits():
    """At radius 2.5."""
    return {problem: made(problem, radius=2.5) for problem in PROBLEMS}


@pytest.mark.parametrize("problem", PROBLEMS)
def test_the_minimum_in_the_ball_is_that_of_another_solver(problem, fits):
    ours = fits[problem]
    R = least(*explicitly(problem, ours), radius=2.5)
    assert ours.converged_
    assert ours.certified_
    assert ours.loss_[-1] == pytest.approx(R, abs=1e-6)
    assert np.abs(ours.coefficients_).sum() == ours.l1_norm_ <= ours.radius_ == 2.5


@pytest.mark.parametrize("problem", PROBLEMS)
def test_the_gap_is_that_of_the_whole_dictionary(problem, fits):
    """Recomputed in plain floats, from the outputs of the model."""
    ours = fits[problem]
    loss, y, w, start, A, K = explicitly(problem, ours)
    rows = PROBLEMS[problem][2]
    F = ours.model_(rows).T
    a = np.linalg.lstsq(A, (F - start[:, None]).T, rcond=None)[0].T
    R, g = value(loss, y, w, start, A, a.ravel(), K)
    assert ours.loss_[-1] == pytest.approx(R, rel=1e-9)
    assert ours.penalty_ == pytest.approx(np.abs(g).max(), rel=1e-6)
    gap = 2.5 * np.abs(g).max() + g @ a.ravel()
    assert -1e-9 <= gap <= ours.gap_[-1] + 1e-8
    assert ours.gap_[-1] <= 1e-8 * R + gap + 1e-8


@pytest.mark.parametrize("step", ["corrective", "frank_wolfe"])
@pytest.mark.parametrize(("loss", "M"), [("logistic", 0.25), ("exponential", np.exp(2.5)),
                                         ("truncated_squared", 2.0)])  # fmt: skip
def test_rounds_certify_the_minimum_and_keep_to_the_rate(loss, M, step):
    """R_t - gap_t <= R* <= R_t, R falls, and R_t - R* <= 8 radius^2 M / (t + 2)."""
    best = made(loss, radius=2.5, init="zero")
    ours = made(loss, radius=2.5, init="zero", step=step, n_estimators=60)
    R, t = best.loss_[-1], np.arange(len(ours.loss_))
    assert (ours.loss_ - ours.gap_ <= R + 1e-12).all()
    assert (ours.loss_ >= R - 1e-9 * R).all()
    assert (np.diff(ours.loss_) <= 1e-12).all()
    assert (ours.loss_ - R <= 8.0 * 2.5**2 * M / (t + 2.0)).all()
    assert ours.l1_norm_ <= 2.5
    assert ours.n_iter_ == len(t) - 1
    if step == "frank_wolfe":
        assert not ours.converged_
        assert ours.stop_reason_ == "all 60 rounds were run"
        assert ours.gap_[-1] < 0.1 * ours.gap_[0]


@pytest.mark.parametrize("problem", ["logistic", "squared", "learn", "three classes", "huber"])
def test_the_penalised_minimum_is_that_of_another_solver_and_of_the_ball(problem, fits):
    ball = fits[problem]
    ours = made(problem, alpha=ball.penalty_)
    parts = explicitly(problem, ours)
    P = ours.loss_[-1] + ball.penalty_ * ours.l1_norm_
    assert abs(P - least(*parts, alpha=ball.penalty_)) <= 1e-6
    assert ours.penalty_ == pytest.approx(ball.penalty_, rel=1e-6)
    assert ours.l1_norm_ == ours.radius_ == pytest.approx(2.5, rel=1e-4)
    rows = PROBLEMS[problem][2]
    np.testing.assert_allclose(ours.model_(rows), ball.model_(rows), atol=2e-4)


@pytest.mark.parametrize("problem", ["logistic", "exponential", "regression", "three classes"])
def test_the_conditions_of_the_penalised_minimum_hold(problem):
    largest = made(problem, alpha=1e6)
    assert largest.n_estimators_ == 0
    assert largest.converged_
    alpha = 0.1 * largest.penalty_
    ours = made(problem, alpha=alpha)
    loss, y, w, start, A, K = explicitly(problem, ours)
    a = np.linalg.lstsq(A, (ours.model_(X) - start).reshape(N, K), rcond=None)[0].T
    _, g = value(loss, y, w, start, A, a.ravel(), K)
    scale = 1e-6 * largest.penalty_
    assert np.abs(g).max() <= alpha + scale
    # columns of the model, by what they answer
    for stump, c in zip(zip(*vars(ours.model_.rounds).values(), strict=True), ours.coefficients_,
                        strict=True):  # fmt: skip
        feature, threshold, _, values = stump[:4]
        k = int(np.flatnonzero(np.abs(values).sum(axis=1))[0])
        h = np.where(X[:, feature] > threshold, 1.0, -1.0)
        own = next(j for j in range(A.shape[1]) if (A[:, j] == h).all())
        assert g.reshape(K, -1)[k, own] == pytest.approx(-alpha * np.sign(c), abs=2.0 * scale)


def test_the_minimum_falls_with_the_radius_and_is_convex_in_it():
    radii = np.array([1e-6, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0])
    found = [made("logistic", radius=float(r)) for r in radii]
    R = np.array([one.loss_[-1] for one in found])
    slope = np.diff(R) / np.diff(radii)
    assert (slope < 0.0).all()
    assert (np.diff(slope) > 0.0).all()
    assert R[0] == pytest.approx(found[0].loss_[0], abs=1e-6)
    # the penalty is -dR*/dradius: between the slopes on both sides
    penalties = np.array([one.penalty_ for one in found])[1:-1]
    assert (penalties <= -slope[:-1] + 1e-9).all()
    assert (penalties >= -slope[1:] - 1e-9).all()


@pytest.mark.slow
def test_beyond_the_norm_of_least_squares_nothing_is_penalised():
    ours = made("regression", radius=1e4, tol=1e-8)
    A = np.column_stack([np.ones(N), stumps(X)])
    root = np.sqrt(W / W.sum())
    start = ours.model_.intercept[0]
    b = np.linalg.lstsq(A[:, 1:] * root[:, None], (SIGNAL - start) * root, rcond=None)[0]
    assert ours.l1_norm_ < 1e3
    assert ours.penalty_ < 1e-6
    assert ours.loss_[-1] == pytest.approx((W / W.sum()) @ (SIGNAL - start - A[:, 1:] @ b) ** 2)


def test_the_path_of_the_squared_loss_goes_through_the_same_functions():
    path = regularization_path(X, SIGNAL, intercept="mean")
    for radius in (0.7, 2.0):
        ours = L1BoostingRegressor(radius=radius, tol=1e-10).fit(X, SIGNAL)
        point = path.at(radius=radius)
        assert ours.penalty_ == pytest.approx(2.0 * point.alpha, rel=1e-5)
        np.testing.assert_allclose(ours.model_(X), path.model(radius=radius)(X), atol=1e-5)


def test_many_rows_have_a_sampled_metric_and_a_certified_gap():
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(9000, 4))
    y = rows[:, 0] + rows[:, 1] ** 2 + rng.normal(size=9000) > 1.0
    ours = L1BoostingClassifier(radius=5.0, max_bins=32, n_jobs=1).fit(rows, y)
    sharp = L1BoostingClassifier(radius=5.0, max_bins=32, tol=1e-7, n_jobs=1).fit(rows, y)
    assert ours.converged_
    assert sharp.converged_
    assert (ours.loss_ - ours.gap_ <= sharp.loss_[-1]).all()
    assert sharp.loss_[-1] <= ours.loss_[-1] <= sharp.loss_[-1] + ours.gap_[-1]
