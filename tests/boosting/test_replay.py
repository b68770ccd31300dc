"""A round is all that is needed to go on: rounds are replayed into a fresh strategy."""

from __future__ import annotations

import array_api_strict
import numpy as np
import pytest

from ensemble_gpu import BoostingClassifier, BoostingRegressor, use_engine
from ensemble_gpu.boosting.loop import boost
from tests.boosters import plain
from tests.boosting.replaying import FITS, FOREIGN, plans, problem, whole_and_resumed


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["cpu", "reference"])
@pytest.mark.parametrize("name", FITS)
def test_replayed_rounds_leave_the_state_that_the_run_had(name, engine):
    estimator, n_classes = FITS[name]
    with use_engine(engine):
        make = plans(estimator, *problem(n_classes))
        whole, resumed = whole_and_resumed(make, 14)
    assert len(whole[0]) == 14
    assert resumed[1].fingerprint() == whole[1].fingerprint()
    assert resumed[2] == whole[2]


@pytest.mark.parametrize("name", ["real", "gram", "newton", "trees"])
def test_rounds_are_replayed_with_weights_and_on_another_device(name):
    estimator, n_classes = FITS[name]
    X, y = problem(n_classes)
    weights = np.random.default_rng(1).integers(0, 4, len(y)).astype(float)
    device = array_api_strict.Device("device1")
    arrays = [array_api_strict.asarray(a, device=device) for a in (X, y, weights)]
    whole, resumed = whole_and_resumed(plans(estimator, *arrays), 8)
    assert resumed[1].fingerprint() == whole[1].fingerprint()


@pytest.mark.parametrize("name", ["real", "gentle, MH", "newton"])
def test_more_rounds_than_until_all_weights_are_requantised_are_replayed(name):
    """Requantising is decided by the rounds as well: after 256, or when weights are worn."""
    estimator, n_classes = FITS[name]
    whole, resumed = whole_and_resumed(plans(estimator, *problem(n_classes)), 700)
    assert resumed[1].fingerprint() == whole[1].fingerprint()


def test_rounds_are_replayed_without_memory_for_tables_of_pairs(monkeypatch):
    monkeypatch.setattr("ensemble_gpu.boosting.gram.MEMORY", 0)
    whole, resumed = whole_and_resumed(plans(FITS["gram"][0], *problem(0)), 14)
    assert resumed[1].fingerprint() == whole[1].fingerprint()


@pytest.mark.parametrize("name", FOREIGN)
def test_rounds_of_any_classifier_are_replayed(name):
    estimator, n_classes = FOREIGN[name]
    X, y = problem(n_classes)
    X = np.nan_to_num(X)
    whole, resumed = whole_and_resumed(plans(estimator, X, y), 8)
    assert len(whole[0]) == len(resumed[0])
    np.testing.assert_array_equal(resumed[1].alphas, whole[1].alphas)
    np.testing.assert_array_equal(resumed[1](X), whole[1](X))


@pytest.mark.parametrize("name", FITS)
def test_asking_for_the_training_loss_changes_nothing(name):
    """However often it is asked: today's watchers, and any number of others."""
    estimator, n_classes = FITS[name]
    make = plans(estimator, *problem(n_classes))
    asked: list[tuple[float, float]] = []
    strategy = make().strategy

    def watch(_, round_):
        asked.append((strategy.training_loss(round_), strategy.training_loss(round_)))

    watched, unwatched = boost(strategy, 10, [watch, watch]), boost(make().strategy, 10, [])
    learner, start = make().learner, make().start
    models = [learner.outcome(t.rounds, start, start).model for t in (watched, unwatched)]
    assert models[0].fingerprint() == models[1].fingerprint()
    assert all(len({*pair}) == 1 for pair in asked)


@pytest.mark.parametrize("name", ["newton", "kinks", "line search", "trees", "gram"])
def test_the_loss_on_record_is_that_of_the_model(name):
    """What a watcher is told after each round is the loss of the model of these rounds."""
    estimator, n_classes = FITS[name]
    X, y = problem(n_classes)
    plan = plans(estimator, X, y)()
    losses: list[float] = []
    trace = boost(
        plan.strategy, 10, [lambda _, round_: losses.append(plan.strategy.training_loss(round_))]
    )
    target = y.astype(float) if n_classes == 0 else y
    for t in range(1, 11):
        model = plan.learner.outcome(trace.rounds[:t], plan.start, plan.constant).model
        assert losses[t - 1] == pytest.approx(plan.loss(model(X), target, None), rel=1e-9)


@pytest.mark.parametrize(
    "estimator",
    [
        BoostingClassifier(n_estimators=20, callbacks=[lambda info: None], max_depth=1),
        BoostingRegressor("absolute", n_estimators=20, callbacks=[lambda info: None], max_depth=1),
        BoostingClassifier(**plain(n_estimators=20, max_depth=3, callbacks=[lambda info: None])),
    ],
    ids=lambda e: type(e).__name__ + str(e.max_depth),
)
def test_history_and_model_agree_whoever_watches(estimator):
    X, y = problem(2)
    seen: list[float] = []
    estimator.set_params(callbacks=[lambda info: seen.append(info.training_loss)]).fit(X, y)
    np.testing.assert_array_equal(estimator.history_.training, seen)
    unwatched = estimator.set_params(callbacks=None).fit(X, y)
    again = type(estimator)(**unwatched.get_params()).fit(X, y)
    assert again.model_.fingerprint() == unwatched.model_.fingerprint()
