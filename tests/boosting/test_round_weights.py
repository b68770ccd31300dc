"""What is on record of AdaBoost's rounds: shares of the weight, Z, the loss, the bound."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.tree import DecisionTreeClassifier as TheirTree

from ensemble_gpu import AdaBoostClassifier, BoostingClassifier, use_engine
from ensemble_gpu.diagnostics import staged_errors, training_error_bound

# Weights are integers of 26 to 29 bits: what they say of the loss is right to about 1e-8 a round.
RESOLUTION = 1e-6


def with_holes(X: np.ndarray, share: float) -> np.ndarray:
    X = X.astype(np.float64)
    X[np.random.default_rng(0).random(X.shape) < share] = np.nan
    return X


def small(seed: int, n_classes: int, missing: float) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    X = np.round(generator.normal(size=(40, 3)), 1)
    y = generator.integers(0, n_classes, 40)
    y[:n_classes] = np.arange(n_classes)
    X[generator.random(X.shape) < missing] = np.nan
    return X, y


def mean_exponential_loss(clf: AdaBoostClassifier, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Mean of exp(-y F) after each round."""
    sign = 2.0 * (y == clf.classes_[1]) - 1.0
    return np.array([np.mean(np.exp(-sign * F)) for F in clf.staged_decision_function(X)])


def samme_loss(clf: AdaBoostClassifier, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Mean of exp(-F_y): a round answers b for its class, -b / (K - 1) for the others.

    With b = alpha (K - 1) / K and votes V_k = sum of alpha over the rounds for k that is
    F_y = V_y - mean_k V_k.
    """
    own = np.searchsorted(clf.classes_, y)
    rows = np.arange(len(y))
    return np.array([
        np.mean(np.exp(V.mean(axis=1) - V[rows, own])) for V in clf.staged_decision_function(X)
    ])  # fmt: skip


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("variant", ["real", "discrete", "gentle"])
@pytest.mark.parametrize("rate", [1.0, 0.4])
def test_the_product_of_Z_is_the_mean_exponential_loss(variant, missing, rate):
    X, y = load_breast_cancer(return_X_y=True)
    X = with_holes(X, missing)
    clf = AdaBoostClassifier(variant=variant, n_estimators=60, learning_rate=rate).fit(X, y)
    loss = mean_exponential_loss(clf, X, y)
    np.testing.assert_allclose(clf.history_.training, loss, rtol=RESOLUTION)
    np.testing.assert_allclose(np.cumprod(clf.history_.Z), loss, rtol=RESOLUTION)


@pytest.mark.parametrize("engine", ["cpu", "reference"])
def test_abstaining_rows_are_in_the_weights_of_a_discrete_round(engine):
    """Shares counted by hand in the first round; Z by the formula in every round."""
    X, y = small(3, 2, 0.4)
    with use_engine(engine):
        clf = AdaBoostClassifier(variant="discrete", n_estimators=8).fit(X, y)
    W0, right, wrong, Z = clf.history_.weights.T
    np.testing.assert_allclose(W0 + right + wrong, 1.0, rtol=1e-12)
    alpha = clf.alphas_
    np.testing.assert_allclose(Z, W0 + right * np.exp(-alpha) + wrong * np.exp(alpha), rtol=1e-12)
    np.testing.assert_allclose(Z, W0 + 2.0 * np.sqrt(right * wrong), rtol=1e-12)
    np.testing.assert_allclose(clf.errors_, wrong / (right + wrong), rtol=1e-12)
    first = clf.model_.first(1)
    vote = np.sign(first(X)[:, 0])
    sign = 2.0 * y - 1.0
    assert W0[0] == pytest.approx(np.mean(vote == 0.0), rel=1e-6)
    assert right[0] == pytest.approx(np.mean(vote == sign), rel=1e-6)
    assert W0[0] > 0.0


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("variant", ["real", "discrete", "gentle"])
def test_the_bound_is_above_the_training_error_also_where_rows_abstain(variant, n_classes):
    for seed in range(30):
        X, y = small(seed, n_classes, 0.4 if n_classes == 2 or variant != "discrete" else 0.0)
        clf = AdaBoostClassifier(variant=variant, n_estimators=15).fit(X, y)
        if not clf.n_estimators_:
            continue
        error, bound = staged_errors(clf, X, y), training_error_bound(clf)
        assert (error <= bound * (1.0 + RESOLUTION)).all(), seed


def test_samme_with_abstaining_rows_has_no_bound_and_says_so():
    X, y = small(1, 3, 0.4)
    clf = AdaBoostClassifier(variant="discrete", n_estimators=5).fit(X, y)
    with pytest.raises(ValueError, match=r"no bound for SAMME.*abstain.*missing='learn'"):
        training_error_bound(clf)


@pytest.mark.slow
@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_samme_reports_the_loss_that_it_lowers(missing):
    X, y = load_digits(return_X_y=True)
    X = with_holes(X, missing)
    clf = AdaBoostClassifier(variant="discrete", n_estimators=60).fit(X, y)
    reported = clf.history_.training
    np.testing.assert_allclose(reported, samme_loss(clf, X, y), rtol=RESOLUTION)
    if not missing:
        assert (np.diff(reported) < 0.0).all()
        assert reported[0] == pytest.approx(0.964, abs=5e-3)
        assert reported[-1] == pytest.approx(0.0065, abs=5e-4)


def test_samme_with_weights_and_abstaining_rows_reports_the_weighted_loss():
    X, y = load_digits(n_class=4, return_X_y=True)
    X, weights = with_holes(X, 0.2), np.random.default_rng(0).random(len(y)) + 0.1
    clf = AdaBoostClassifier(variant="discrete", n_estimators=20).fit(X, y, weights)
    own, rows = np.searchsorted(clf.classes_, y), np.arange(len(y))
    V = clf.decision_function(X)
    loss = np.average(np.exp(V.mean(axis=1) - V[rows, own]), weights=weights)
    assert clf.history_.training[-1] == pytest.approx(loss, rel=RESOLUTION)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_rounds_of_any_classifier_have_weights_too(n_classes):
    X, y = small(5, n_classes, 0.0)
    learner = TheirTree(max_depth=2, random_state=0)
    clf = AdaBoostClassifier(learner, variant="discrete", n_estimators=6).fit(X, y)
    loss = (mean_exponential_loss if n_classes == 2 else samme_loss)(clf, X, y)
    np.testing.assert_allclose(clf.history_.training, loss, rtol=1e-9)
    np.testing.assert_allclose(clf.history_.weights[:, :3].sum(axis=1), 1.0, rtol=1e-12)


def test_one_class_at_a_time_has_shares_of_all_classes():
    X, y = load_digits(n_class=3, return_X_y=True)
    clf = AdaBoostClassifier(multiclass="single", n_estimators=10).fit(X, y)
    W0, right, wrong, Z = clf.history_.weights.T
    np.testing.assert_allclose(W0 + right + wrong, 1.0, rtol=1e-12)
    np.testing.assert_allclose(Z, clf.errors_, rtol=0.0)
    assert (W0 > 0.0).all()


def test_losses_without_such_weights_have_none_on_record():
    X, y = small(5, 2, 0.0)
    assert BoostingClassifier(n_estimators=3, max_depth=1).fit(X, y).history_.weights.shape == (
        0,
        4,
    )
