"""L1 boosting estimators: one model everywhere, weights, radii, other functions, bad input."""

from __future__ import annotations

import numpy as np
import pytest

from ensemble_gpu import (
    L1BoostingClassifier,
    L1BoostingRegressor,
    consistent_radius,
    use_engine,
)
from ensemble_gpu.boosting.problem import Problem
from ensemble_gpu.data.categories import NO_CATEGORIES
from ensemble_gpu.data.rows import Rows, bin_rows
from ensemble_gpu.kernels.cpu.engine import CpuEngine
from ensemble_gpu.l1 import solver
from ensemble_gpu.l1.bounds import Bound, Settings
from ensemble_gpu.l1.rows import BallRows
from ensemble_gpu.l1.trees import TreeDictionary
from ensemble_gpu.learners import Balls, HalfSpaces, Pool, Rectangles
from ensemble_gpu.learners.stump import SplitConstraints
from ensemble_gpu.learners.tree import Size, Trees
from ensemble_gpu.losses import Logistic, Squared
from tests.estimators.checks import assert_checks_pass, each_setting
from tests.l1.explicit import least
from tests.learners.everywhere import the_same_everywhere
from tests.places import DEVICE

RNG = np.random.default_rng(3)
N = 160
X = RNG.normal(size=(N, 4))
SIGNAL = X[:, 0] + X[:, 1] ** 2 + 0.5 * RNG.normal(size=N) - 1.0
Y = (SIGNAL > 0.0).astype(int)
HOLES = np.where(RNG.random(X.shape) < 0.1, np.nan, X)
SIGNS = np.where(X > 0.0, 1.0, -1.0)


@pytest.mark.slow
@each_setting([
    L1BoostingClassifier(radii=[4.0], n_folds=2),
    L1BoostingRegressor(radii=[4.0], n_folds=2),
    L1BoostingClassifier(radii=[1.0, 4.0], n_folds=2),
    L1BoostingRegressor(radii=[1.0, 4.0], n_folds=2),
    L1BoostingClassifier("squared", alpha=0.02),
    L1BoostingClassifier(radius=2.0, max_depth=2),
])  # fmt: skip
def test_scikit_learns_checks_pass(estimator, first):
    assert_checks_pass(estimator, others=first)


@pytest.mark.parametrize("parameters", [
    {"missing": "learn"}, {"loss": "exponential"}, {"radius": None, "alpha": 0.02},
    {"max_depth": 2}, {"estimator": Balls(12)}, {"estimator": Rectangles(6)},
    {"radius": "cv", "radii": [0.5, 1.0], "n_folds": 2},
], ids=str)  # fmt: skip
def test_the_model_is_the_same_everywhere(parameters):
    def boosted(**more):
        own = {"radius": 2.0, "max_bins": 16, "tol": 0.02, **parameters, **more}
        return L1BoostingClassifier(**own)

    the_same_everywhere(boosted, HOLES, Y)


def test_three_classes_and_numbers_have_one_model_on_engines_and_devices():
    y = np.digitize(SIGNAL, [-0.5, 1.0])
    for make, target in (
        (lambda: L1BoostingClassifier(radius=3.0, max_bins=16), y),
        (lambda: L1BoostingRegressor("huber", radius=3.0, max_bins=16), SIGNAL),
    ):
        ours = make().fit(X, target)
        with use_engine("reference"):
            assert make().fit(X, target).model_ == ours.model_
        other = make().fit(DEVICE.put(X), DEVICE.put(target))
        assert other.model_ == ours.model_
        assert other.engine_ == "reference"
        assert ours.engine_ == "cpu"
        DEVICE.check(other.predict(DEVICE.put(X)), "int64" if target is y else "float64")


def test_whole_weights_are_repetitions_and_rows_of_weight_zero_are_absent():
    w = RNG.integers(0, 3, N)
    for estimator in (
        L1BoostingClassifier(radii=[1.0, 3.0], n_folds=3),
        L1BoostingClassifier(alpha=0.01, missing="learn"),
    ):
        weighted = estimator.fit(HOLES, Y, sample_weight=w.astype(float)).model_
        assert estimator.fit(np.repeat(HOLES, w, axis=0), np.repeat(Y, w)).model_ == weighted


def test_a_radius_is_chosen_by_the_loss_of_rows_held_out():
    ours = L1BoostingClassifier(radii=8, n_folds=4).fit(X, Y)
    scores = ours.cv_
    assert ours.radius_ == scores.best == scores.radii[np.argmin(scores.losses)]
    np.testing.assert_allclose(scores.radii, 0.25 * 2.0 ** (np.arange(len(scores.radii)) * 9 / 7))
    assert len(scores.radii) < 8
    assert scores.losses[-1] > scores.losses[-2]
    assert (scores.errors > 0.0).all()
    assert L1BoostingClassifier(radius=ours.radius_).fit(X, Y).model_ == ours.model_
    other = L1BoostingClassifier(radii=8, n_folds=4, random_state=1).fit(X, Y)
    assert not np.array_equal(other.cv_.losses[:3], scores.losses[:3])


def test_folds_know_nothing_of_the_rows_held_out():
    """Leave-one-out of two radii, against fits on the other rows."""
    few = slice(0, 12)
    ours = L1BoostingRegressor(radii=[0.5], n_folds=12, tol=1e-9, max_bins=None)
    ours.fit(X[few], SIGNAL[few])
    errors = []
    for i in range(12):
        rest = np.delete(np.arange(12), i)
        fold = L1BoostingRegressor(radius=0.5, tol=1e-9, max_bins=None).fit(X[rest], SIGNAL[rest])
        # thresholds are those of all rows: between the neighbours of the row left out
        errors.append(abs(fold.predict(X[i : i + 1])[0] - SIGNAL[i]))
    assert ours.cv_.losses[0] == pytest.approx(np.mean(np.square(errors)), rel=0.2)


def test_consistent_radii_follow_their_schedules():
    assert consistent_radius("exponential", 1000) == pytest.approx(0.25 * np.log(1000.0))
    for name in ("logistic", "hinge", "huber"):
        assert consistent_radius(name, 1000) == pytest.approx((1000.0 / np.log(1000.0)) ** 0.25)
    for name in ("truncated_squared", "squared", Squared()):
        assert consistent_radius(name, 1000) == pytest.approx((1000.0 / np.log(1000.0)) ** 0.125)
    ours = L1BoostingClassifier("exponential", radius="consistent").fit(X, Y)
    assert ours.radius_ == consistent_radius("exponential", N)
    spread = float(f"{SIGNAL.std():.2g}")
    numbers = L1BoostingRegressor(radius="consistent").fit(X, SIGNAL)
    assert numbers.radius_ == pytest.approx(spread * consistent_radius("squared", N))
    with pytest.raises(ValueError, match=r"loss must be one of 'exponential'.*got 'poisson'"):
        consistent_radius("poisson", 1000)
    with pytest.raises(ValueError, match="m must be an integer >= 3; got 2"):
        consistent_radius("logistic", 2)


def test_a_pool_reaches_the_minimum_over_its_members():
    ours = L1BoostingRegressor(estimator=Pool(), radius=0.8, tol=1e-9).fit(SIGNS, SIGNAL)
    start = ours.model_.intercept
    R = least(Squared(), SIGNAL, np.full(N, 1.0 / N), start, SIGNS, radius=0.8)
    assert ours.loss_[-1] == pytest.approx(R, abs=1e-8)
    assert ours.certified_
    assert np.abs(ours.model_.coefficients).sum() == ours.l1_norm_
    against = L1BoostingRegressor(estimator=Pool(), radius=0.8).fit(-SIGNS, SIGNAL)
    np.testing.assert_allclose(against.model_(-SIGNS), ours.model_(SIGNS), atol=0.02)  # either sign


def test_half_spaces_and_rectangles_close_the_gap():
    for learner in (HalfSpaces(30), Rectangles(8), Rectangles(8, outside="abstain")):
        ours = L1BoostingClassifier(radius=2.0, estimator=learner).fit(X, Y)
        assert ours.converged_
        assert ours.certified_
        assert ours.l1_norm_ <= 2.0
        margins = np.where(Y == 1, 1.0, -1.0) * ours.decision_function(X)
        assert ours.loss_[-1] == pytest.approx(np.log1p(np.exp(-margins)).mean())


def test_trees_have_one_sign_a_leaf_and_no_certificate():
    ours = L1BoostingClassifier(radius=2.0, max_depth=3).fit(X, Y)
    stumps = L1BoostingClassifier(radius=2.0).fit(X, Y)
    assert not ours.certified_
    assert ours.loss_[-1] < stumps.loss_[-1]
    assert len(ours.model_) == ours.n_estimators_
    for t, c in enumerate(np.abs(ours.coefficients_)):
        np.testing.assert_array_equal(np.unique(np.abs(ours.model_.tree(t)(X))), [c])


def test_trees_of_a_fold_do_not_see_the_rows_held_out():
    """Rows of weight zero with other targets change nothing."""
    engine = CpuEngine(1)
    binned = bin_rows(engine, Rows(X, Y, None), None, 16, n_ranges=None)
    size, none = Size(3, None, 1), np.zeros(4, dtype=np.int64)
    trees = Trees(engine, binned.matrix, size,
                  SplitConstraints(True, False, none, 4, 0, none > 0), NO_CATEGORIES)  # fmt: skip
    w, found = np.where(np.arange(N) < 100, 1.0, 0.0), []
    for held_out in (1.0, -1.0):
        signs = np.where(w > 0.0, 2.0 * Y - 1.0, held_out)
        ball = solver.Ball(
            BallRows(engine, Problem(Logistic(), signs, w, np.zeros(1), 1.0)),
            TreeDictionary(engine, trees, Problem(Logistic(), signs, None, np.zeros(1), 1.0)), 4.0,
        )  # fmt: skip
        ball.run(Bound.ball(2.0), Settings(4, 1e-3))
        found.append((ball.keys, ball.coefficients.tolist()))
    assert found[0] == found[1]


def test_the_model_is_a_usual_one():
    ours = L1BoostingClassifier(radius=3.0).fit(X, Y)
    F = ours.decision_function(X)
    *_, last = ours.staged_decision_function(X)
    np.testing.assert_array_equal(last, F)
    first = ours.model_.first(3)
    assert np.abs(first.rounds.alpha).sum() <= 3.0
    assert first.n_rounds == 3
    assert ours.n_estimators_ == len(ours.coefficients_) == ours.model_.n_rounds
    assert ours.feature_importances_.sum() == pytest.approx(1.0)
    assert (ours.feature_importances_[:2] > ours.feature_importances_[2:].max()).all()
    numbers = L1BoostingRegressor(radius=3.0).fit(X, SIGNAL)
    *_, last = numbers.staged_predict(X)
    np.testing.assert_array_equal(last, numbers.predict(X))


def test_constants_and_equal_columns_are_no_obstacle():
    constant = L1BoostingRegressor(radius=1.0).fit(X, np.full(N, 7.0))
    assert constant.n_estimators_ == 0
    assert (constant.predict(X) == 7.0).all()
    one = L1BoostingClassifier(radius=2.0, tol=1e-8).fit(X, Y)
    twice = L1BoostingClassifier(radius=2.0, tol=1e-8).fit(np.column_stack([X, X, 0.0 * X]), Y)
    assert twice.converged_
    np.testing.assert_allclose(twice.decision_function(np.column_stack([X, X, 0.0 * X])),
                               one.decision_function(X), atol=1e-3)  # fmt: skip
    assert twice.loss_[-1] == pytest.approx(one.loss_[-1], abs=1e-8)


@pytest.mark.slow
def test_wrong_second_derivatives_cost_rounds_but_not_the_minimum(monkeypatch):
    sharp = L1BoostingClassifier(radius=2.0, tol=1e-8).fit(X, Y)
    for factor in (0.05, 20.0):
        monkeypatch.setattr(solver, "STEEPER", factor)
        other = L1BoostingClassifier(radius=2.0, tol=1e-6).fit(X, Y)
        assert (np.diff(other.loss_) <= 1e-12).all()
        assert other.loss_[-1] == pytest.approx(sharp.loss_[-1], abs=1e-6)


@pytest.mark.parametrize(("parameters", "message"), [
    ({"radius": 0.0}, "radius must be a finite number > 0, 'cv', 'consistent' or None; got 0.0"),
    ({"radius": float("nan")}, "radius must be a finite number .*; got nan"),
    ({"alpha": -1.0}, "alpha must be a finite number > 0 or None; got -1.0"),
    ({"radius": 1.0, "alpha": 1.0}, "give radius or alpha; got radius=1.0 and alpha=1.0"),
    ({"loss": "hinge"}, "got 'hinge'. At a kink the derivative jumps: the gap .* need not close"),
    ({"step": "away"}, "step must be one of 'corrective', 'frank_wolfe'; got 'away'"),
    ({"alpha": 1.0, "step": "frank_wolfe"}, "step must be 'corrective' where alpha is given"),
    ({"init": "mean"}, "init must be one of 'constant', 'zero'; got 'mean'"),
    ({"radii": [1.0, 0.0]}, "radii must be a finite number > 0; got 0.0"),
    ({"estimator": HalfSpaces(5, redraw="round")}, "redraw must be 'once' in the L1 ball"),
    ({"estimator": Balls(5), "missing": "learn"}, "missing must be 'abstain' or 'error'"),
    ({"estimator": Balls(5), "max_depth": 3}, "max_depth and max_leaf_nodes are for the trees"),
], ids=str)  # fmt: skip
def test_bad_parameters_are_named(parameters, message):
    with pytest.raises(ValueError, match=message):
        L1BoostingClassifier(**parameters).fit(X, Y)


def test_bad_types_and_losses_with_kinks_are_named():
    with pytest.raises(TypeError, match="estimator must be None or one of Pool, Rectangles"):
        L1BoostingClassifier(estimator=L1BoostingClassifier()).fit(X, Y)
    with pytest.raises(TypeError, match="radii must be an integer or a list of radii; got 'many'"):
        L1BoostingClassifier(radii="many").fit(X, Y)
    with pytest.raises(ValueError, match=r"loss must be one of 'squared', 'huber'.*got 'absolute'"):
        L1BoostingRegressor("absolute").fit(X, SIGNAL)
    with pytest.raises(
        ValueError, match="radius='cv' needs two rows at least of each label; got 1"
    ):
        L1BoostingClassifier().fit(X[:9], np.arange(9) == 0)
