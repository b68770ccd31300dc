"""The algorithm is AdaBoost: against brute force, against published errors, against its theory."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_hastie_10_2

from ensemble_gpu import AdaBoostClassifier
from tests.boosting.brute_force import BruteForce
from tests.datasets import Data, fit, random_data
from tests.places import ENGINES
from tests.products import every_pair

VARIANTS = ["real", "discrete", "gentle"]
SIDE = {0: "left", 1: "right", 2: "abstain"}


def assert_same_rounds(found: AdaBoostClassifier, truth: BruteForce) -> None:
    rounds = found.model_.rounds
    assert len(rounds) == len(truth.stumps)
    for t, stump in enumerate(truth.stumps):
        assert rounds.feature[t] == stump.feature, f"round {t}"
        assert rounds.threshold[t] == pytest.approx(stump.threshold, rel=1e-12), f"round {t}"
        np.testing.assert_allclose(rounds.values[t, :, 0], stump.left, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(rounds.values[t, :, 1], stump.right, rtol=1e-6, atol=1e-6)
        np.testing.assert_array_equal(rounds.values[t, :, 2], 0.0)
        assert rounds.error[t] == pytest.approx(stump.error, rel=1e-6)
        assert rounds.alpha[t] == pytest.approx(stump.alpha, rel=1e-6)


@every_pair(
    "engine, variant, n_classes, rate, weighted",
    ENGINES, VARIANTS, [2, 4], [1.0, 0.3], [False, True],
    indirect=["engine"],
)  # fmt: skip
def test_stumps_and_alphas_are_those_of_brute_force(engine, variant, n_classes, rate, weighted):
    data = random_data(n_classes, n=50, p=3, seed=11)
    weights = np.random.default_rng(12).uniform(0.2, 3.0, size=50) if weighted else None
    truth = BruteForce(variant, 15, rate).fit(data.X, data.y, weights)
    found = fit(
        Data(data.X, data.y, weights),
        variant=variant, n_estimators=15, learning_rate=rate, max_bins=None,
    )  # fmt: skip
    assert_same_rounds(found, truth)


@pytest.mark.slow
@every_pair(
    "engine, variant, n_classes, missing",
    ENGINES, VARIANTS, [2, 4], ["abstain", "learn"],
    indirect=["engine"],
)  # fmt: skip
def test_missing_values_are_treated_as_by_brute_force(engine, variant, n_classes, missing):
    data = random_data(n_classes, n=50, p=3, seed=13).with_missing(0.25)
    truth = BruteForce(variant, 12, missing=missing).fit(data.X, data.y)
    found = fit(data, variant=variant, n_estimators=12, missing=missing, max_bins=None)
    assert_same_rounds(found, truth)
    holed = np.isnan(data.X).any(axis=0)
    for t, stump in enumerate(truth.stumps):
        if holed[stump.feature]:
            assert SIDE[found.model_.rounds.missing_leaf[t]] == stump.missing


@pytest.mark.long
@pytest.mark.parametrize("seed", range(6))
def test_brute_force_agrees_on_more_random_data(seed):
    data = random_data(n=40, p=4, seed=100 + seed)
    for variant in VARIANTS:
        truth = BruteForce(variant, 10).fit(data.X, data.y)
        found = fit(data, variant=variant, n_estimators=10, max_bins=None)
        assert_same_rounds(found, truth)


def test_a_row_of_weight_three_equals_three_rows():
    data = random_data(n=60)
    repeats = np.random.default_rng(14).integers(1, 4, size=60)
    repeats[0] = 1
    weighted = fit(Data(data.X, data.y, repeats.astype(float)), max_bins=None)
    repeated = fit(Data(data.X.repeat(repeats, axis=0), data.y.repeat(repeats)), max_bins=None)
    np.testing.assert_array_equal(weighted.model_.rounds.feature, repeated.model_.rounds.feature)
    np.testing.assert_allclose(
        weighted.model_.rounds.values, repeated.model_.rounds.values, rtol=1e-6, atol=1e-7
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("variant", "published", "margin"), [("real", 5.8, 1.0), ("discrete", 12.0, 2.0)]
)
def test_ten_dimensional_gaussian_gives_the_published_error(variant, published, margin):
    errors = []
    for seed in range(4):
        X, y = make_hastie_10_2(12_000, random_state=seed)
        found = AdaBoostClassifier(variant=variant, n_estimators=400).fit(X[:2000], y[:2000])
        errors.append(100 * (1 - found.score(X[2000:], y[2000:])))
    assert abs(np.mean(errors) - published) < margin, errors


@every_pair("variant, missing, rate", ["real", "gentle"], ["abstain", "learn"], [1.0, 0.5])
def test_product_of_z_is_the_mean_exponential_loss_and_bounds_the_error(variant, missing, rate):
    data = random_data(n=400).with_missing()
    found = fit(data, variant=variant, n_estimators=100, missing=missing, learning_rate=rate)
    sign = 2.0 * data.y - 1.0
    bound = np.cumprod(found.errors_)
    for t, F in enumerate(found.staged_decision_function(data.X)):
        assert np.exp(-sign * F).mean() == pytest.approx(bound[t], rel=1e-6)
        assert np.mean(sign * F <= 0) <= bound[t]


def test_discrete_training_error_stays_below_its_bound():
    data = random_data(n=400)
    found = fit(data, variant="discrete", n_estimators=100)
    bound = np.cumprod(2.0 * np.sqrt(found.errors_ * (1.0 - found.errors_)))
    for t, predicted in enumerate(found.staged_predict(data.X)):
        assert np.mean(predicted != data.y) <= bound[t]


@pytest.mark.parametrize("variant", ["real", "gentle"])
def test_multiclass_training_error_stays_below_its_bound(variant):
    # A wrong argmax has exp(-F_y) + exp(F_k) >= 2, so error <= K / 2 prod Z.
    data = random_data(4, n=400)
    found = fit(data, variant=variant, n_estimators=100)
    bound = 2.0 * np.cumprod(found.errors_)
    for t, predicted in enumerate(found.staged_predict(data.X)):
        assert np.mean(predicted != data.y) <= bound[t]


@pytest.mark.parametrize("variant", VARIANTS)
def test_xor_stops_at_chance_without_a_round(engine, variant):
    X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]).repeat(5, axis=0)
    y = np.array([0, 1, 1, 0]).repeat(5)
    found = fit(Data(X, y), variant=variant)
    assert found.n_estimators_ == 0
    assert "chance" in found.stop_reason_
    np.testing.assert_array_equal(found.predict_proba(X), 0.5)


def test_samme_stops_at_one_minus_one_over_k(engine):
    # Every feature value holds every class equally often: error 1 - 1/K at best.
    X = np.tile([[0.0], [1.0]], (15, 1))
    y = np.repeat([0, 1, 2], 10)
    found = fit(Data(X, y), variant="discrete")
    assert found.n_estimators_ == 0
    assert "chance" in found.stop_reason_


@pytest.mark.parametrize("n_classes", [2, 5])
@pytest.mark.parametrize("variant", VARIANTS)
def test_errors_of_every_round_beat_chance(variant, n_classes):
    found = fit(random_data(n_classes), variant=variant, n_estimators=200)
    chance = 1.0 - 1.0 / n_classes if variant == "discrete" else 1.0
    assert (found.errors_ < chance).all()


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_perfect_stump_ends_the_run_with_a_bounded_value(engine, variant):
    X = np.arange(20.0)[:, None]
    found = fit(Data(X, (X[:, 0] > 7).astype(int)), variant=variant)
    assert found.n_estimators_ == 1
    assert "correctly" in found.stop_reason_
    assert found.model_.rounds.threshold[0] == 7.5
    assert 0 < np.abs(found.decision_function(X)).max() < 20
    assert found.score(X, X[:, 0] > 7) == 1.0


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_constant_features_predict_the_prior(engine, variant, weighted, n_classes):
    y = np.array([0] * 3 + [1] * 5) if n_classes == 2 else np.array([0] * 3 + [1] * 5 + [2] * 2)
    weights = np.arange(1.0, len(y) + 1) if weighted else None
    X = np.full((len(y), 2), 3.0)
    found = fit(Data(X, y, weights), variant=variant)
    shares = np.bincount(y, weights) / np.bincount(y, weights).sum()
    assert found.n_estimators_ == 0
    assert "two different values" in found.stop_reason_
    assert set(found.predict(X)) == {shares.argmax()}
    np.testing.assert_allclose(found.predict_proba(X), np.tile(shares, (len(y), 1)), rtol=1e-12)


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_column_of_nothing_but_missing_values_is_never_used(variant):
    data = random_data()
    data.X[:, 0] = np.nan
    assert 0 not in fit(data, variant=variant).model_.tables


def test_missing_learn_can_split_present_from_absent():
    X = np.array([[1.0]] * 6 + [[np.nan]] * 4)
    y = np.array([1] * 6 + [0] * 4)
    found = fit(Data(X, y), missing="learn")
    assert found.model_.rounds.threshold[0] == np.inf
    assert found.score(X, y) == 1.0


def test_a_smaller_learning_rate_raises_the_factor_to_its_power():
    data = random_data()
    whole = fit(data, variant="discrete", n_estimators=1)
    half = fit(data, variant="discrete", n_estimators=1, learning_rate=0.5)
    assert half.alphas_[0] == pytest.approx(0.5 * whole.alphas_[0], rel=1e-12)


@pytest.mark.parametrize("rate", [1e-6, 30.0, 1e4])
@pytest.mark.parametrize("variant", VARIANTS)
def test_an_unusual_learning_rate_gives_finite_models(engine, variant, rate):
    data = random_data()
    found = fit(data, variant=variant, learning_rate=rate)
    assert np.isfinite(found.errors_).all()
    assert np.isfinite(found.decision_function(data.X)).all()
    assert np.isfinite(found.predict_proba(data.X)).all()
