"""Rounds in blocks are the rounds of single steps, to the last bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ensemble_gpu import AdaBoostClassifier
from ensemble_gpu.boosting import blocks as blocks_of_rounds
from ensemble_gpu.boosting.loop import boost, replay
from ensemble_gpu.boosting.rescale import Rescale
from ensemble_gpu.boosting.rescale_rounds import RescaleRounds
from ensemble_gpu.kernels.cpu.weights import CpuHistograms
from tests.boosting.replaying import plans
from tests.products import every_pair

VARIANTS = ["real", "discrete", "gentle"]


def problem(n_classes: int, missing: float, n: int = 400) -> tuple[Any, Any, Any]:
    """Features with few and with many values; weights of different sizes."""
    generator = np.random.default_rng(3)
    X = generator.normal(size=(n, 9))
    X[:, :3] = np.round(X[:, :3], 1)
    y = X[:, 0] - X[:, 4] ** 2 + generator.normal(size=n)
    y = np.digitize(y, np.quantile(y, np.arange(1, n_classes) / n_classes))
    X[generator.random(X.shape) < missing] = np.nan
    return X, y, generator.uniform(0.1, 5.0, n)


def one_step_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CpuHistograms, "rounds", lambda *_: None)


def fitted(X: Any, y: Any, weights: Any, **parameters: Any) -> AdaBoostClassifier:
    model = AdaBoostClassifier(
        **{"n_estimators": 60, "calibrate": False, "early_stopping": False, **parameters}
    )
    return model.fit(X, y, weights)


def assert_same_fit(found: AdaBoostClassifier, expected: AdaBoostClassifier) -> None:
    assert found.n_estimators_ == expected.n_estimators_
    assert found.stop_reason_ == expected.stop_reason_
    assert found.model_.fingerprint() == expected.model_.fingerprint()
    for name in ("training", "weights", "validation"):
        ours, theirs = getattr(found.history_, name), getattr(expected.history_, name)
        np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(found.alphas_, expected.alphas_)
    np.testing.assert_array_equal(found.errors_, expected.errors_)


@every_pair(
    "variant, n_classes, missing, weighted, n_jobs",
    VARIANTS,
    [2, 4],
    [None, "abstain", "learn"],
    [False, True],
    [1, 2],
)
def test_blocks_and_single_steps_give_the_same_fit(
    monkeypatch, variant, n_classes, missing, weighted, n_jobs
):
    X, y, weights = problem(n_classes, 0.1 if missing else 0.0)
    given = {"variant": variant, "missing": missing or "abstain", "n_jobs": n_jobs}
    in_blocks = fitted(X, y, weights if weighted else None, **given)
    one_step_at_a_time(monkeypatch)
    assert_same_fit(in_blocks, fitted(X, y, weights if weighted else None, **given))


@pytest.mark.parametrize("variant", ["real", "gentle"])
def test_one_class_at_a_time_gives_the_same_fit(monkeypatch, variant):
    X, y, weights = problem(4, 0.1)
    given = {"variant": variant, "multiclass": "single"}
    in_blocks = fitted(X, y, weights, **given)
    one_step_at_a_time(monkeypatch)
    assert_same_fit(in_blocks, fitted(X, y, weights, **given))


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_threads_share_a_block_of_many_rows(monkeypatch, n_jobs):
    X, y, weights = problem(2, 0.05, 30_000)
    in_blocks = fitted(X, y, weights, n_jobs=n_jobs)
    one_step_at_a_time(monkeypatch)
    assert_same_fit(in_blocks, fitted(X, y, weights, n_jobs=1))


@pytest.mark.parametrize("variant", VARIANTS)
def test_offsets_of_the_rows_give_the_same_fit(monkeypatch, variant):
    X, y, weights = problem(2, 0.0)
    offset = np.sin(X[:, 1])

    def fit() -> AdaBoostClassifier:
        model = AdaBoostClassifier(variant=variant, n_estimators=30, calibrate=False)
        return model.fit(X, y, weights, init_score=offset)

    in_blocks = fit()
    one_step_at_a_time(monkeypatch)
    assert_same_fit(in_blocks, fit())


@pytest.mark.parametrize("variant", VARIANTS)
def test_validation_rows_end_the_fit_in_the_same_round(monkeypatch, variant):
    X, y, _ = problem(2, 0.0)
    given = {"variant": variant, "early_stopping": True, "n_iter_no_change": 3, "random_state": 0}
    in_blocks = fitted(X, y, None, n_estimators=200, **given)
    assert "has not improved" in in_blocks.stop_reason_
    one_step_at_a_time(monkeypatch)
    assert_same_fit(in_blocks, fitted(X, y, None, n_estimators=200, **given))


@pytest.mark.parametrize("case", ["perfect", "nothing to split", "chance"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_fits_end_for_the_same_reason(monkeypatch, variant, case):
    X, y = np.arange(40.0)[:, None] % 20, np.repeat([0, 1], 20)
    if case == "perfect":
        X = np.arange(40.0)[:, None]
    elif case == "nothing to split":
        X = np.zeros((40, 2))
    in_blocks = fitted(X, y, None, variant=variant)
    words = {"perfect": "correctly", "nothing to split": "two different values", "chance": "chance"}
    assert words[case] in in_blocks.stop_reason_
    one_step_at_a_time(monkeypatch)
    assert_same_fit(in_blocks, fitted(X, y, None, variant=variant))


def strategies(monkeypatch: pytest.MonkeyPatch, variant: str, n_classes: int) -> tuple[Any, Any]:
    """Makers of the strategy in blocks, and of the one in single steps, of the same fit."""
    X, y, weights = problem(n_classes, 0.1)
    make = plans(AdaBoostClassifier(variant=variant, missing="learn"), X, y, weights)

    def single() -> Rescale:
        with monkeypatch.context() as patch:
            one_step_at_a_time(patch)
            return make().strategy

    return lambda: make().strategy, single


def assert_same_rounds(found: list[Any], expected: list[Any]) -> None:
    assert len(found) == len(expected)
    for ours, theirs in zip(found, expected, strict=True):
        assert ours[:3] == theirs[:3]
        assert (ours.alpha, ours.error, ours.perfect) == (theirs.alpha, theirs.error, False)
        np.testing.assert_array_equal(ours.values, theirs.values)
        assert ours.weights == theirs.weights
        for a, b in zip(ours.trail, theirs.trail, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("variant", VARIANTS)
def test_a_round_holds_the_same_whoever_has_found_it(monkeypatch, variant, n_classes):
    blocks, single = strategies(monkeypatch, variant, n_classes)
    assert isinstance(blocks(), RescaleRounds)
    assert isinstance(single(), Rescale)
    expected = boost(single(), 80, []).rounds
    assert_same_rounds(boost(blocks(), 80, []).rounds, expected)
    strategy, found = blocks(), []
    for _ in range(80):
        found.append(strategy.best())
        strategy.follow(found[-1])
    assert_same_rounds(found, expected)


@pytest.mark.parametrize("variant", VARIANTS)
def test_rounds_of_one_are_followed_by_the_other(monkeypatch, variant):
    """More than 256, so that all weights are requantised in between."""
    blocks, single = strategies(monkeypatch, variant, 2)
    expected = boost(single(), 300, []).rounds
    for other in (blocks(), single()):
        replay(other, expected[:280])
        assert_same_rounds(boost(other, 20, []).rounds, expected[280:])


def test_the_size_of_blocks_changes_nothing(monkeypatch):
    blocks, single = strategies(monkeypatch, "real", 2)
    expected = boost(single(), 60, []).rounds
    for first, seconds in ((1, 0.0), (7, 0.0), (60, 100.0)):
        monkeypatch.setattr(blocks_of_rounds, "FIRST_BLOCK", first)
        monkeypatch.setattr(blocks_of_rounds, "BLOCK_SECONDS", seconds)
        assert_same_rounds(boost(blocks(), 60, []).rounds, expected)


def test_looking_twice_and_following_late_change_nothing(monkeypatch):
    blocks, single = strategies(monkeypatch, "gentle", 2)
    ours, theirs = blocks(), single()
    for _ in range(12):
        found = [ours.best(), ours.best(), theirs.best()]
        assert_same_rounds(found[:1], found[2:])
        assert_same_rounds(found[1:2], found[2:])
        assert ours.training_loss(found[0]) == theirs.training_loss(found[2])
        ours.follow(found[1])
        theirs.follow(found[2])
        assert ours.loss == theirs.loss
