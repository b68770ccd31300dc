"""Early stopping, the validation history, callbacks and the progress bar."""

from __future__ import annotations

import io

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold, cross_val_score

from ensemble_gpu import AdaBoostClassifier, ProgressBar, RoundInfo, use_engine
from ensemble_gpu.arrays.namespace import NUMPY
from ensemble_gpu.model.link import probabilities
from tests.datasets import random_data
from tests.places import DEVICE

# Noise: validation loss turns early.
NOISY = random_data(n=300, seed=20)
NOISY.y[:120] = np.random.default_rng(21).integers(2, size=120)
OTHER = random_data(n=150, seed=20)
VARIANTS = ["real", "discrete", "gentle"]


def best_log_loss(estimator: AdaBoostClassifier, F: np.ndarray, y: np.ndarray, weights=None):
    """The log-loss of p(s F) at the s that minimises it with half a row of a wrong class added."""
    F = F[:, None] if F.ndim == 1 else F
    index, n = np.searchsorted(estimator.classes_, y), len(y)
    share = np.full(n, 1 / n) if weights is None else weights / weights.sum()

    def logs(s: float) -> np.ndarray:
        return np.log(probabilities(F, estimator.link_, NUMPY, s))

    def smoothed(log_scale: float) -> float:
        ln = logs(np.exp(log_scale))
        own, e = ln[np.arange(n), index], 0.5 / n
        rest = (ln.sum(axis=1) - own) / (ln.shape[1] - 1)
        return -float((share * ((1 - e) * own + e * rest)).sum())

    best = minimize_scalar(
        smoothed, bounds=(np.log(2.0**-20), 5.0), method="bounded", options={"xatol": 1e-9}
    )
    return -float((share * logs(np.exp(best.x))[np.arange(n), index]).sum())


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("variant", [*VARIANTS, "logit"])
def test_history_is_the_log_loss_of_the_validation_rows_at_its_best_scale(variant, n_classes):
    data, other = random_data(n_classes, seed=3), random_data(n_classes, n=90, seed=4)
    holed = other.with_missing()
    estimator = AdaBoostClassifier(variant=variant, n_estimators=15, calibrate=False)
    estimator.fit(data.X, data.y, X_val=holed.X, y_val=holed.y)
    assert estimator.n_estimators_ == 15
    if variant == "logit":  # descent on a loss watches that loss
        expected = [log_loss(holed.y, p) for p in estimator.staged_predict_proba(holed.X)]
    else:
        stages = estimator.staged_decision_function(holed.X)
        expected = [best_log_loss(estimator, F, holed.y) for F in stages]
    np.testing.assert_allclose(estimator.validation_loss_, expected, rtol=1e-6)


def test_history_is_weighted_by_the_validation_weights():
    weights = OTHER.with_weights().weights
    estimator = AdaBoostClassifier(n_estimators=10)
    estimator.fit(NOISY.X, NOISY.y, X_val=OTHER.X, y_val=OTHER.y, sample_weight_val=weights)
    stages = estimator.staged_decision_function(OTHER.X)
    expected = [best_log_loss(estimator, F, OTHER.y, weights) for F in stages]
    np.testing.assert_allclose(estimator.validation_loss_, expected, rtol=1e-6)


@pytest.mark.parametrize("patience", [1, 5])
@pytest.mark.parametrize("variant", VARIANTS)
def test_early_stopping_keeps_the_best_round(engine, variant, patience):
    estimator = AdaBoostClassifier(
        variant=variant, n_estimators=400, early_stopping=True, n_iter_no_change=patience
    )
    estimator.fit(NOISY.X, NOISY.y, X_val=OTHER.X, y_val=OTHER.y)
    history = estimator.validation_loss_
    assert estimator.n_estimators_ == history.argmin() + 1
    assert len(history) == estimator.n_estimators_ + patience
    assert "validation loss" in estimator.stop_reason_
    assert str(patience) in estimator.stop_reason_
    full = AdaBoostClassifier(variant=variant, n_estimators=estimator.n_estimators_)
    assert estimator.model_ == full.fit(NOISY.X, NOISY.y).model_
    assert len(estimator.errors_) == len(estimator.alphas_) == estimator.n_estimators_


def test_early_stopping_keeps_the_accuracy_of_all_rounds():
    """The log-loss of margins that were not scaled was lowest after 3 of 500 rounds."""
    X, y = load_breast_cancer(return_X_y=True)
    every = AdaBoostClassifier(n_estimators=500, calibrate=False)
    stopped = clone(every).set_params(early_stopping=True, random_state=0)
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    found, full = (cross_val_score(m, X, y, cv=folds).mean() for m in (stopped, every))
    assert found > full - 0.015


def test_without_early_stopping_all_rounds_are_kept_and_watched():
    estimator = AdaBoostClassifier(n_estimators=60)
    estimator.fit(NOISY.X, NOISY.y, X_val=OTHER.X, y_val=OTHER.y)
    assert estimator.n_estimators_ == len(estimator.validation_loss_) == 60
    assert estimator.validation_loss_.argmin() < 59


def test_there_is_no_history_without_validation_rows():
    assert not hasattr(AdaBoostClassifier(n_estimators=3).fit(NOISY.X, NOISY.y), "validation_loss_")


def test_held_out_rows_depend_on_the_seed_alone():
    def run(seed):
        params = {"n_estimators": 30, "early_stopping": True, "validation_fraction": 0.3}
        return AdaBoostClassifier(**params, random_state=seed).fit(NOISY.X, NOISY.y)

    first = run(0)
    np.testing.assert_array_equal(first.validation_loss_, run(0).validation_loss_)
    assert first.model_ == run(0).model_
    assert not np.array_equal(first.validation_loss_[:3], run(1).validation_loss_[:3])


def test_early_stopping_gives_the_same_model_on_a_device():
    place = DEVICE
    params = {"n_estimators": 40, "early_stopping": True, "random_state": 0}
    here = AdaBoostClassifier(**params).fit(NOISY.X, NOISY.y)
    there = AdaBoostClassifier(**params).fit(place.put(NOISY.X), place.put(NOISY.y))
    assert here.model_ == there.model_
    np.testing.assert_allclose(here.validation_loss_, there.validation_loss_, rtol=1e-12)


def test_held_out_rows_are_not_trained_on():
    """A row of every class is held out; the prior of constant features counts the others."""
    X, y = np.zeros((40, 1)), np.repeat([0, 1], [10, 30])
    estimator = AdaBoostClassifier(early_stopping=True, validation_fraction=0.5, random_state=0)
    assert estimator.fit(X, y).n_estimators_ == 0
    assert estimator.predict_proba(X[:1])[0, 1] == pytest.approx(15 / 20)


def test_a_callback_sees_every_round():
    seen: list[RoundInfo] = []
    estimator = AdaBoostClassifier(n_estimators=8, callbacks=[seen.append])
    estimator.fit(NOISY.X, NOISY.y, X_val=OTHER.X, y_val=OTHER.y)
    rounds = estimator.model_.rounds
    assert [info.round for info in seen] == list(range(1, 9))
    assert {info.n_rounds for info in seen} == {8}
    np.testing.assert_array_equal([info.feature for info in seen], rounds.feature)
    np.testing.assert_array_equal([info.threshold for info in seen], rounds.threshold)
    np.testing.assert_array_equal([info.error for info in seen], rounds.error)
    np.testing.assert_array_equal([info.alpha for info in seen], rounds.alpha)
    np.testing.assert_array_equal(
        [info.validation_loss for info in seen], estimator.validation_loss_
    )


def test_a_callback_sees_no_validation_loss_where_there_is_none():
    seen: list[RoundInfo] = []
    AdaBoostClassifier(n_estimators=2, callbacks=[seen.append]).fit(NOISY.X, NOISY.y)
    assert [info.validation_loss for info in seen] == [None, None]


def test_what_a_callback_sees_cannot_be_changed():
    seen: list[RoundInfo] = []
    AdaBoostClassifier(n_estimators=1, callbacks=[seen.append]).fit(NOISY.X, NOISY.y)
    with pytest.raises(AttributeError):
        seen[0].round = 7


def test_a_callback_that_returns_true_stops_after_its_round():
    seen: list[RoundInfo] = []
    callbacks = [lambda info: info.round == 5, seen.append]
    estimator = AdaBoostClassifier(n_estimators=50, callbacks=callbacks).fit(NOISY.X, NOISY.y)
    assert estimator.n_estimators_ == 5
    assert "callback" in estimator.stop_reason_
    assert len(seen) == 5  # the others are told of the last round too
    short = AdaBoostClassifier(n_estimators=5).fit(NOISY.X, NOISY.y)
    assert estimator.model_ == short.model_


@pytest.mark.parametrize("answer", [None, False, 1, "yes"])
def test_only_true_stops(answer):
    estimator = AdaBoostClassifier(n_estimators=4, callbacks=[lambda info: answer])
    assert estimator.fit(NOISY.X, NOISY.y).n_estimators_ == 4


def test_an_error_in_a_callback_reaches_the_user():
    def fail(info):
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        AdaBoostClassifier(callbacks=[fail]).fit(NOISY.X, NOISY.y)


def test_callbacks_do_not_change_the_model():
    plain = AdaBoostClassifier(n_estimators=20).fit(NOISY.X, NOISY.y)
    watched = AdaBoostClassifier(n_estimators=20, callbacks=[lambda info: None])
    assert plain.model_ == watched.fit(NOISY.X, NOISY.y).model_
    with use_engine("reference"):
        assert plain.model_ == watched.fit(NOISY.X, NOISY.y).model_


class Terminal(io.StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_the_progress_bar_fills_on_a_terminal_and_ends_its_line():
    stream = Terminal()
    bar = ProgressBar("train", width=10, stream=stream)
    AdaBoostClassifier(n_estimators=40, callbacks=[bar]).fit(NOISY.X, NOISY.y)
    frames = stream.getvalue().split("\r")[1:]
    assert frames[0] == "train [..........] round 1/40"
    assert frames[-1] == "train [##########] round 40/40\n"
    filled = [frame.count("#") for frame in frames]
    assert filled == sorted(filled)
    assert set(filled) == set(range(11))
    assert len(frames) <= 12  # new characters only, not every round


def test_the_progress_bar_writes_only_the_last_line_to_a_file():
    stream = io.StringIO()
    bar = ProgressBar("train", width=10, stream=stream)
    AdaBoostClassifier(n_estimators=40, callbacks=[bar]).fit(NOISY.X, NOISY.y)
    assert stream.getvalue() == "train [##########] round 40/40\n"


def test_the_progress_bar_writes_to_standard_error_by_default(capsys):
    AdaBoostClassifier(n_estimators=3, callbacks=[ProgressBar()]).fit(NOISY.X, NOISY.y)
    captured = capsys.readouterr()
    assert "fit [" in captured.err
    assert "round 3/3\n" in captured.err
    assert captured.out == ""


@pytest.mark.parametrize("stream_type", [io.StringIO, Terminal])
def test_the_progress_bar_ends_its_line_when_the_fit_stops_early(stream_type):
    stream = stream_type()
    X = np.arange(20.0)[:, None]
    bar = ProgressBar(stream=stream)
    AdaBoostClassifier(n_estimators=40, callbacks=[bar]).fit(X, X[:, 0] > 7)
    assert stream.getvalue().endswith("round 1/40\n")


@pytest.mark.parametrize("seed", range(3))
def test_rows_of_weight_zero_are_as_if_absent_for_early_stopping_too(seed):
    """Held out, they would say nothing; the rows with weight must still hold every class."""
    data = random_data(n=40, p=3)
    weights = np.zeros(40)
    weights[:8] = 1.0
    params = {"n_estimators": 5, "early_stopping": True, "random_state": seed}
    estimator = AdaBoostClassifier(**params).fit(data.X, data.y, weights)
    assert np.isfinite(estimator.validation_loss_).all()
    kept = weights > 0
    alone = AdaBoostClassifier(**params).fit(data.X[kept], data.y[kept])
    np.testing.assert_array_equal(alone.model_.rounds.feature, estimator.model_.rounds.feature)


@pytest.mark.parametrize("seed", range(4))
def test_every_class_with_weight_is_trained_on(seed):
    data = random_data(n=6, p=3)
    y, weights = [0, 0, 1, 1, 1, 1], [1.0, 1.0, 0.0, 0.0, 1.0, 1.0]
    estimator = AdaBoostClassifier(
        n_estimators=3, early_stopping=True, random_state=seed, validation_fraction=0.5
    )
    estimator.fit(data.X, y, weights)
    assert np.isfinite(estimator.decision_function(data.X)).all()


def test_the_progress_bar_ends_its_line_when_the_fit_is_interrupted():
    def interrupt(info):
        if info.round == 3:
            raise KeyboardInterrupt

    stream = Terminal()
    estimator = AdaBoostClassifier(
        n_estimators=9, callbacks=[ProgressBar(stream=stream), interrupt]
    )
    with pytest.raises(KeyboardInterrupt):
        estimator.fit(NOISY.X, NOISY.y)
    assert stream.getvalue().endswith("\n")
