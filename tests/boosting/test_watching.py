"""Early stopping on a loss or a metric, the history, callbacks and progress bars."""

from __future__ import annotations

import io
import sys
from contextlib import suppress
from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import log_loss, mean_absolute_error

from ensemble_gpu import (
    AdaBoostClassifier,
    BoostingClassifier,
    BoostingRegressor,
    ProgressBar,
    RoundInfo,
    TqdmBar,
)
from ensemble_gpu.arrays.namespace import NUMPY
from ensemble_gpu.boosting.rows import hold_out
from ensemble_gpu.data.rows import Rows
from ensemble_gpu.losses import (
    CLASSIFICATION,
    REGRESSION,
    Exponential,
    Hinge,
    SquaredMargin,
    TruncatedSquared,
    regression_loss,
)
from tests.boosters import plain
from tests.datasets import Data, random_data
from tests.libraries import Jax, Torch
from tests.places import Place


def noisy(seed: int, n: int = 160, n_classes: int = 2) -> Data:
    """A third of the labels is chance: the validation loss turns early."""
    data = random_data(n_classes, n=n, seed=20)
    rng = np.random.default_rng(seed)
    X = data.X + 0.3 * rng.normal(size=data.X.shape)
    wrong = rng.random(n) < 0.35
    return Data(X, np.where(wrong, rng.integers(n_classes, size=n), data.y))


def noisy_numbers(seed: int, n: int = 160) -> Data:
    data = noisy(seed, n)
    noise = np.random.default_rng(seed + 50).gamma(1.0, 2.0, size=n)
    return Data(data.X, np.abs(data.X[:, 0]) + noise)


TRAIN, OTHER = noisy(1), noisy(2, 90)
NUMBERS, OTHER_NUMBERS = noisy_numbers(1), noisy_numbers(2, 90)
VALIDATION = {"X_val": OTHER.X, "y_val": OTHER.y}
VALIDATION_NUMBERS = {"X_val": OTHER_NUMBERS.X, "y_val": OTHER_NUMBERS.y}


def classifier(loss: str = "logistic", **params: Any) -> BoostingClassifier:
    step = "newton" if CLASSIFICATION[loss].has_hessian else "line_search"
    return BoostingClassifier(loss, **plain({"n_estimators": 10, "step": step, **params}))


# --- the validation loss is the estimator's ---------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
@pytest.mark.parametrize("loss", REGRESSION)
def test_both_histories_of_a_regressor_are_the_mean_of_its_loss(loss, weighted):
    weights = NUMBERS.with_weights().weights if weighted else None
    weights_val = OTHER_NUMBERS.with_weights().weights if weighted else None
    estimator = BoostingRegressor(loss, n_estimators=10, max_depth=1)
    estimator.fit(
        NUMBERS.X, NUMBERS.y, weights, **VALIDATION_NUMBERS, sample_weight_val=weights_val
    )
    value = regression_loss(loss).value
    for data, w, history in (
        (NUMBERS, weights, estimator.history_.training),
        (OTHER_NUMBERS, weights_val, estimator.history_.validation),
    ):
        outputs = [F[:, 0] for F in estimator.model_.staged(data.X)]
        expected = [np.average(value(data.y, F), weights=w) for F in outputs]
        np.testing.assert_allclose(history, expected, rtol=1e-8)
    np.testing.assert_array_equal(estimator.validation_loss_, estimator.history_.validation)


MARGIN = {
    "exponential": Exponential(), "squared": SquaredMargin(),
    "truncated_squared": TruncatedSquared(), "hinge": Hinge(),
}  # fmt: skip


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("loss", MARGIN)
def test_the_validation_loss_of_margins_is_summed_over_one_against_rest(loss, n_classes):
    train, other = noisy(1, n_classes=n_classes), noisy(2, 90, n_classes)
    estimator = classifier(loss).fit(train.X, train.y, X_val=other.X, y_val=other.y)
    own = other.y[:, None] == (np.arange(n_classes) if n_classes > 2 else np.ones(1))
    sign = np.where(own, 1.0, -1.0)
    stages = estimator.model_.staged(other.X)
    expected = [MARGIN[loss].value(sign, F).sum(axis=1).mean() for F in stages]
    np.testing.assert_allclose(estimator.history_.validation, expected, rtol=1e-10)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_logistic_validation_loss_is_the_log_loss(n_classes):
    train, other = noisy(1, n_classes=n_classes), noisy(2, 90, n_classes)
    for estimator in (
        classifier(),
        AdaBoostClassifier(variant="logit", n_estimators=10, calibrate=False),
    ):
        estimator.fit(train.X, train.y, X_val=other.X, y_val=other.y)
        expected = [log_loss(other.y, p) for p in estimator.staged_predict_proba(other.X)]
        np.testing.assert_allclose(estimator.history_.validation, expected, rtol=1e-9)


# --- early stopping ---------------------------------------------------------------------------


@pytest.mark.parametrize("patience", [1, 6])
@pytest.mark.parametrize(
    ("estimator", "train", "validation"),
    [
        (BoostingClassifier(learning_rate=1.0, max_depth=1), TRAIN, VALIDATION),
        (BoostingClassifier("squared", learning_rate=1.0, max_depth=1), TRAIN, VALIDATION),
        (BoostingRegressor(learning_rate=1.0, max_depth=1), NUMBERS, VALIDATION_NUMBERS),
        (BoostingRegressor("huber", learning_rate=1.0, max_depth=1), NUMBERS, VALIDATION_NUMBERS),
    ],
    ids=["logistic", "squared margin", "squared", "huber"],
)
def test_early_stopping_keeps_the_best_round(estimator, train, validation, patience):
    estimator.set_params(n_estimators=300, early_stopping=True, n_iter_no_change=patience)
    estimator.fit(train.X, train.y, **validation)
    history = estimator.history_
    best = int(history.validation.argmin()) + 1
    assert estimator.n_estimators_ == len(estimator.model_.rounds) == best
    assert len(history.training) == len(history.validation) == best + patience < 300
    assert f"not improved for {patience} rounds" in estimator.stop_reason_
    short = type(estimator)(estimator.loss, learning_rate=1.0, n_estimators=best, max_depth=1)
    assert estimator.model_ == short.fit(train.X, train.y).model_


def test_without_early_stopping_all_rounds_are_kept_and_watched():
    estimator = BoostingRegressor(learning_rate=1.0, n_estimators=60, max_depth=1)
    estimator.fit(NUMBERS.X, NUMBERS.y, **VALIDATION_NUMBERS)
    assert estimator.n_estimators_ == len(estimator.history_.validation) == 60
    assert estimator.history_.validation.argmin() < 59


@pytest.mark.parametrize("kind", [BoostingClassifier, BoostingRegressor])
def test_held_out_rows_depend_on_the_seed_alone(kind):
    data = TRAIN if kind is BoostingClassifier else NUMBERS

    def run(seed: int) -> Any:
        params = {"n_estimators": 8, "early_stopping": True, "validation_fraction": 0.3}
        return kind(**params, max_depth=1, random_state=seed).fit(data.X, data.y)

    first = run(0)
    assert first.model_ == run(0).model_
    np.testing.assert_array_equal(first.history_.validation, run(0).history_.validation)
    assert not np.array_equal(first.history_.validation, run(1).history_.validation)


def test_held_out_rows_are_not_trained_on():
    """Half of 40 targets are held out, whatever their values: the constant is of the others."""
    y = np.arange(40.0)
    estimator = BoostingRegressor(
        early_stopping=True, validation_fraction=0.5, random_state=0, max_depth=1
    )
    X = np.zeros((40, 1))
    estimator.fit(X, y)
    held_out = hold_out(Rows(X, y, None), 1, 0.5, 0, NUMPY)[0].target
    assert len(np.unique(held_out)) == 20
    assert estimator.predict([[0.0]])[0] == pytest.approx((y.sum() - held_out.sum()) / 20)
    seen: list[np.ndarray] = []
    watcher = BoostingRegressor(
        n_estimators=1, early_stopping=True, validation_fraction=0.5, random_state=0,
        metric=lambda truth, prediction: seen.append(truth) or 0.0,max_depth=1
    )  # fmt: skip
    watcher.fit(y[:, None], y)
    held_out = hold_out(Rows(y[:, None], y, None), 1, 0.5, 0, NUMPY)[0].target
    np.testing.assert_array_equal(seen[0], held_out)


# --- a metric of the user ---------------------------------------------------------------------


class Recorder:
    """A metric that keeps what it is given; `answers` are what it says, round by round."""

    def __init__(self, answers: Any = None) -> None:
        self.calls: list[tuple[Any, Any, dict[str, Any]]] = []
        self.answers = iter(answers) if answers is not None else None

    def __call__(self, y: Any, prediction: Any, **more: Any) -> float:
        self.calls.append((y, prediction, more))
        return float(next(self.answers)) if self.answers else 1.0


def test_the_lowest_metric_wins():
    answers = [5.0, 4.0, 4.5, 2.0, 3.0, 3.0, 3.0, 3.0]
    estimator = BoostingRegressor(
        metric=Recorder(answers),
        early_stopping=True,
        n_iter_no_change=3,
        n_estimators=50,
        max_depth=1,
    )
    estimator.fit(NUMBERS.X, NUMBERS.y, **VALIDATION_NUMBERS)
    assert estimator.n_estimators_ == 4
    np.testing.assert_array_equal(estimator.history_.validation, answers[:7])


def test_a_metric_of_scikit_learn_is_watched():
    estimator = BoostingRegressor(
        "squared", metric=mean_absolute_error, early_stopping=True, n_iter_no_change=4,
        n_estimators=40,max_depth=1
    )  # fmt: skip
    estimator.fit(NUMBERS.X, NUMBERS.y, **VALIDATION_NUMBERS)
    stages = estimator.staged_predict(OTHER_NUMBERS.X)
    expected = [mean_absolute_error(OTHER_NUMBERS.y, p) for p in stages]
    kept = len(expected)
    np.testing.assert_allclose(estimator.history_.validation[:kept], expected, rtol=1e-12)
    assert len(estimator.history_.training) == len(estimator.history_.validation)


@pytest.mark.parametrize("given", ["validation rows", "a fraction"])
def test_a_metric_gets_labels_and_probabilities_where_x_lives(place: Place, given):
    metric = Recorder()
    estimator = classifier(n_estimators=2, metric=metric, early_stopping=True, random_state=0)
    X, y = place.put(TRAIN.X), place.put(3 * TRAIN.y + 1)
    more = {}
    if given == "validation rows":
        more = {"X_val": place.put(OTHER.X), "y_val": place.put(3 * OTHER.y + 1)}
    estimator.fit(X, y, **more)
    (truth, p, weights), n = metric.calls[0], 90 if more else 16
    place.check(truth, "int64")
    place.check(p, "float64")
    assert (truth.shape, p.shape, weights) == ((n,), (n, 2), {})
    assert set(place.host(truth).tolist()) == {1, 4}
    if more:
        np.testing.assert_array_equal(place.host(truth), 3 * OTHER.y + 1)
        stages = estimator.staged_predict_proba(place.put(OTHER.X), rounds=[1])
        np.testing.assert_allclose(place.host(p), place.host(next(stages)), rtol=1e-14)


def test_a_metric_of_a_regressor_gets_numbers_where_x_lives(place: Place):
    metric = Recorder()
    estimator = BoostingRegressor("poisson", n_estimators=2, metric=metric, max_depth=1)
    validation = {name: place.put(a) for name, a in VALIDATION_NUMBERS.items()}
    weights = OTHER_NUMBERS.with_weights().weights
    estimator.fit(
        place.put(NUMBERS.X), place.put(NUMBERS.y), **validation,
        sample_weight_val=place.put(weights),
    )  # fmt: skip
    truth, prediction, more = metric.calls[-1]
    place.check(truth, "float64")
    place.check(prediction, "float64")
    place.check(more["sample_weight"], "float64")
    np.testing.assert_array_equal(place.host(truth), OTHER_NUMBERS.y)
    np.testing.assert_array_equal(place.host(more["sample_weight"]), weights)
    expected = place.host(estimator.predict(place.put(OTHER_NUMBERS.X)))
    np.testing.assert_allclose(place.host(prediction), expected, rtol=1e-13)


def test_a_metric_gets_string_labels_as_they_were_given(place: Place):
    metric, names = Recorder(), np.array(["no", "yes"])
    estimator = classifier(n_estimators=2, metric=metric)
    estimator.fit(
        place.put(TRAIN.X), names[TRAIN.y], X_val=place.put(OTHER.X), y_val=names[OTHER.y]
    )
    np.testing.assert_array_equal(metric.calls[0][0], names[OTHER.y])
    place.check(metric.calls[0][1], "float64")


def test_a_metric_gets_the_weights_of_held_out_training_rows():
    metric, weights = Recorder(), TRAIN.with_weights().weights
    estimator = classifier(metric=metric, early_stopping=True, random_state=0)
    estimator.fit(TRAIN.X, TRAIN.y, weights)
    given = metric.calls[0][2]["sample_weight"]
    assert len(given) == len(metric.calls[0][0])
    assert (given > 0.0).all()
    assert set(given) <= set(weights)


@pytest.mark.interop
@pytest.mark.parametrize("name", ["torch", "jax"])
def test_a_metric_gets_arrays_of_another_library(name):
    library: Any = {"torch": Torch, "jax": Jax}[name]()
    classes, numbers = Recorder(), Recorder()
    wide = "float64" if name == "torch" else "float32"  # JAX without 64-bit numbers
    X, X_val = (library.put(data.X.astype(np.float32)) for data in (TRAIN, OTHER))
    estimator = classifier(n_estimators=2, metric=classes)
    estimator.fit(X, library.put(TRAIN.y), X_val=X_val, y_val=library.put(OTHER.y))
    library.check(classes.calls[0][0], "int64" if name == "torch" else "int32")
    library.check(classes.calls[0][1], wide)
    np.testing.assert_array_equal(library.host(classes.calls[0][0]), OTHER.y)
    BoostingRegressor(n_estimators=2, metric=numbers, max_depth=1).fit(
        X, library.put(NUMBERS.y), X_val=X_val, y_val=library.put(OTHER_NUMBERS.y),
        sample_weight_val=library.put(np.ones(90)),
    )  # fmt: skip
    truth, prediction, more = numbers.calls[0]
    for array in (truth, prediction, more["sample_weight"]):
        library.check(array, wide)


# --- the history ------------------------------------------------------------------------------


def test_the_training_loss_is_recorded_where_somebody_watches():
    """Always with the squared loss and AdaBoost, which know it for nothing."""
    X, y = NUMBERS.X, NUMBERS.y
    for estimator, length in [
        (BoostingRegressor("huber", n_estimators=5, max_depth=1), 0),
        (BoostingRegressor("huber", n_estimators=5, callbacks=[lambda info: None], max_depth=1), 5),
        (BoostingRegressor(n_estimators=5, max_depth=1), 5),
    ]:
        history = estimator.fit(X, y).history_
        assert (len(history.training), len(history.validation)) == (length, 0)
        assert not hasattr(estimator, "validation_loss_")
    assert len(AdaBoostClassifier(n_estimators=5).fit(X, y > 3.0).history_.training) == 5


def test_watching_does_not_change_the_model():
    plain = BoostingRegressor("huber", n_estimators=8, max_depth=1).fit(NUMBERS.X, NUMBERS.y)
    watched = BoostingRegressor("huber", n_estimators=8, callbacks=[lambda info: None], max_depth=1)
    assert watched.fit(NUMBERS.X, NUMBERS.y, **VALIDATION_NUMBERS).model_ == plain.model_


def test_training_losses_of_a_subsample_are_those_of_all_rows():
    estimator = BoostingRegressor(
        "huber", n_estimators=6, subsample=0.5, random_state=0, max_depth=1
    )
    estimator.set_params(callbacks=[lambda info: None]).fit(NUMBERS.X, NUMBERS.y)
    value = regression_loss("huber").value
    stages = estimator.model_.staged(NUMBERS.X)
    expected = [value(NUMBERS.y, F[:, 0]).mean() for F in stages]
    np.testing.assert_allclose(estimator.history_.training, expected, rtol=1e-10)


# --- callbacks --------------------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_callback_sees_round_stump_and_both_losses(n_classes):
    seen: list[RoundInfo] = []
    train, other = noisy(1, n_classes=n_classes), noisy(2, 90, n_classes)
    estimator = classifier(n_estimators=7, callbacks=[seen.append], multiclass="shared")
    estimator.fit(train.X, train.y, X_val=other.X, y_val=other.y)
    rounds = estimator.model_.rounds
    assert [info.round for info in seen] == list(range(1, 8))
    assert {info.n_rounds for info in seen} == {7}
    np.testing.assert_array_equal([info.feature for info in seen], rounds.feature)
    np.testing.assert_array_equal([info.threshold for info in seen], rounds.threshold)
    np.testing.assert_array_equal([info.values for info in seen], rounds.values)
    assert seen[0].values.shape == (1 if n_classes == 2 else 3, 3)
    history = estimator.history_
    np.testing.assert_array_equal([info.training_loss for info in seen], history.training)
    np.testing.assert_array_equal([info.validation_loss for info in seen], history.validation)
    with pytest.raises(FrozenInstanceError):
        seen[0].round = 3


def test_a_callback_sees_a_training_loss_but_no_validation_loss_without_rows_for_it():
    seen: list[RoundInfo] = []
    BoostingRegressor("huber", n_estimators=2, callbacks=[seen.append], max_depth=1).fit(
        NUMBERS.X, NUMBERS.y
    )
    assert [info.validation_loss for info in seen] == [None, None]
    assert seen[1].training_loss < seen[0].training_loss


def test_what_a_callback_does_to_the_values_does_not_reach_the_model():
    def spoil(info: RoundInfo) -> None:
        with suppress(ValueError):  # read-only is as good
            info.values[:] = 0.0

    plain = BoostingRegressor("huber", n_estimators=4, max_depth=1).fit(NUMBERS.X, NUMBERS.y)
    spoilt = BoostingRegressor("huber", n_estimators=4, callbacks=[spoil], max_depth=1)
    assert spoilt.fit(NUMBERS.X, NUMBERS.y).model_ == plain.model_


@pytest.mark.parametrize("kind", [BoostingClassifier, BoostingRegressor])
def test_a_callback_that_returns_true_stops_after_its_round(kind):
    data = TRAIN if kind is BoostingClassifier else NUMBERS
    estimator = kind(max_depth=1, n_estimators=50, callbacks=[lambda info: info.round == 5])
    estimator.fit(data.X, data.y)
    assert estimator.n_estimators_ == len(estimator.history_.training) == 5
    assert estimator.stop_reason_ == "a callback asked to stop"
    assert estimator.model_ == kind(max_depth=1, n_estimators=5).fit(data.X, data.y).model_


class Closing:
    """A callback that counts how often it is closed, and does something in round 3."""

    def __init__(self, act: Any = None) -> None:
        self.closed, self.act = 0, act

    def __call__(self, info: RoundInfo) -> Any:
        return self.act() if self.act and info.round == 3 else None

    def close(self) -> None:
        self.closed += 1


def fail() -> None:
    raise OSError("disk full")


@pytest.mark.parametrize(
    ("act", "error"), [(None, None), (lambda: True, None), (fail, OSError)],
    ids=["all rounds", "stopped", "an error"],
)  # fmt: skip
def test_every_callback_is_closed_once_however_the_fit_ends(act, error):
    callbacks = [Closing(), Closing(act), Closing()]
    estimator = BoostingRegressor("huber", n_estimators=6, callbacks=callbacks, max_depth=1)
    if error is None:
        estimator.fit(NUMBERS.X, NUMBERS.y)
    else:
        with pytest.raises(error, match="disk full"):
            estimator.fit(NUMBERS.X, NUMBERS.y)
    assert [callback.closed for callback in callbacks] == [1, 1, 1]


def test_a_callback_is_closed_when_the_metric_fails():
    callback = Closing()
    estimator = classifier(callbacks=[callback], metric=lambda y, p: fail())
    with pytest.raises(OSError, match="disk full"):
        estimator.fit(TRAIN.X, TRAIN.y, **VALIDATION)
    assert callback.closed == 1


# --- progress bars ----------------------------------------------------------------------------


def test_the_tqdm_bar_counts_the_rounds_and_shows_the_losses():
    stream = io.StringIO()
    bar = TqdmBar(file=stream, desc="boost", mininterval=0, ncols=100)
    BoostingRegressor(n_estimators=20, callbacks=[bar], max_depth=1).fit(
        NUMBERS.X, NUMBERS.y, **VALIDATION_NUMBERS
    )
    frames = [frame for frame in stream.getvalue().split("\r") if frame.strip()]
    assert any("1/20" in frame for frame in frames[:3])
    assert frames[-1].startswith("boost: 100%")
    assert "20/20" in frames[-1]
    assert "train=" in frames[-1]
    assert "validation=" in frames[-1]
    assert frames[-1].endswith("\n")
    assert bar.bar is None


def test_the_tqdm_bar_stays_where_the_fit_stopped_and_serves_the_next_fit():
    stream = io.StringIO()
    bar = TqdmBar(file=stream, mininterval=0)
    stop = [bar, lambda info: info.round == 3]
    BoostingRegressor(n_estimators=20, callbacks=stop, max_depth=1).fit(NUMBERS.X, NUMBERS.y)
    assert "3/20" in stream.getvalue().split("\r")[-1]
    assert stream.getvalue().endswith("\n")
    BoostingRegressor(n_estimators=4, callbacks=[bar], max_depth=1).fit(NUMBERS.X, NUMBERS.y)
    assert "4/4" in stream.getvalue().split("\r")[-1]


def test_without_tqdm_the_bar_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    estimator = BoostingRegressor(n_estimators=2, callbacks=[TqdmBar()], max_depth=1)
    with pytest.raises(ImportError, match=r"pip install 'ensemble_gpu\[progress\]'"):
        estimator.fit(NUMBERS.X, NUMBERS.y)


@pytest.mark.parametrize("kind", [BoostingClassifier, BoostingRegressor])
def test_the_plain_progress_bar_writes_its_last_line_to_a_file(kind):
    data, stream = TRAIN if kind is BoostingClassifier else NUMBERS, io.StringIO()
    kind(max_depth=1, n_estimators=20, callbacks=[ProgressBar("boost", 10, stream)]).fit(
        data.X, data.y
    )
    assert stream.getvalue() == "boost [##########] round 20/20\n"
