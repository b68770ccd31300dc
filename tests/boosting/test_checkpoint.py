"""Checkpoints and resume: a fit that was interrupted is the fit that was not, bit for bit."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.tree import DecisionTreeClassifier as TheirTree
from sklearn.tree import DecisionTreeRegressor as TheirRegressor

from ensemble_gpu import (
    AdaBoostClassifier,
    BoostingClassifier,
    BoostingRanker,
    BoostingRegressor,
    Checkpoint,
    DecisionTreeClassifier,
    load,
    read_header,
    use_engine,
)
from ensemble_gpu.learners import Balls, HalfSpaces, Neighbours, Pool, Rectangles, Ridge
from ensemble_gpu.losses import CustomLoss
from tests.boosters import plain
from tests.boosting.replaying import FITS, problem

X, Y = problem(2)
Y3, NUMBERS = problem(3)[1], problem(0)[1]
FULL = np.nan_to_num(X)
WEIGHTS = np.random.default_rng(1).integers(0, 4, len(Y)).astype(float)


class Interrupted(Exception):
    pass


def interrupting(at: int) -> Any:
    def callback(info):
        if info.round == at:
            raise Interrupted

    return callback


def interrupted(estimator: Any, path: Path, *data: Any, at: int = 6, **more: Any) -> Any:
    """Fit until an error ends it; what is left is a checkpoint of the round before."""
    callbacks = [interrupting(at), Checkpoint(path, every=1, share=None)]
    with pytest.raises(Interrupted):
        clone(estimator).set_params(callbacks=callbacks).fit(*data, **more)


def assert_same(resumed: Any, whole: Any) -> None:
    assert resumed.model_.fingerprint() == whole.model_.fingerprint()
    for name in ("training", "validation", "weights"):
        found, expected = (getattr(e.history_, name) for e in (resumed, whole))
        np.testing.assert_array_equal(found, expected)
    for name in ("alphas_", "errors_", "n_estimators_", "stop_reason_"):
        np.testing.assert_array_equal(getattr(resumed, name), getattr(whole, name))
    assert getattr(resumed, "scale_", None) == getattr(whole, "scale_", None)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.safetensors"


FAST = (
    "real", "gram, features drawn", "one class at a time", "trees, rows and features drawn",
    "bags of stumps", "a stump a class, rows and features drawn",
)  # fmt: skip


@pytest.mark.parametrize(
    "name", [n if n in FAST else pytest.param(n, marks=pytest.mark.long) for n in FITS]
)
def test_a_fit_is_resumed_on_another_engine(name, path):
    estimator, n_classes = FITS[name]
    data = (*problem(n_classes), WEIGHTS)
    estimator = clone(estimator).set_params(n_estimators=10)
    interrupted(estimator, path, *data, at=7)
    with use_engine("reference"):
        resumed = clone(estimator).fit(*data, resume=path)
    assert_same(resumed, clone(estimator).fit(*data))
    known = load(path)
    assert known.n_estimators_ == 6
    np.testing.assert_array_equal(
        known.model_(data[0]), resumed.model_.first(6)(data[0])
    )  # fmt: skip


@pytest.mark.parametrize("engine", ["cpu", "reference"])
def test_rows_catch_up_with_more_rounds_than_until_weights_are_requantised(engine, path):
    """Rounds before the last requantising are skipped: tables alone follow them."""
    estimator = AdaBoostClassifier(n_estimators=330, calibrate=False)
    clone(estimator).set_params(n_estimators=310, callbacks=[Checkpoint(path)]).fit(X, Y)
    with use_engine(engine):
        resumed = clone(estimator).fit(X, Y, resume=path)
    assert_same(resumed, estimator.fit(X, Y))


def value(y, F):
    return (y - F) ** 2


def gradient(y, F):
    return 2.0 * (F - y)


def judged(y, prediction):
    return float(np.mean(np.abs(np.asarray(y) - np.asarray(prediction))))


PAIRS = np.stack([np.arange(100), np.arange(100) + 50], axis=1)
SETS = {"eval_set": [(X[:40], NUMBERS[:40]), (X[40:90] + 0.1, NUMBERS[40:90])]}
FRAME = pd.DataFrame(X, columns=list("abcde")).assign(
    c=pd.Categorical(np.where(X[:, 2] > 0, "up", "down"))
)
OTHERS: dict[str, tuple[Any, tuple[Any, ...], dict[str, Any]]] = {
    "early stopping": (
        BoostingClassifier(
            max_depth=3, learning_rate=0.3, early_stopping=True, n_iter_no_change=8, random_state=1
        ), (X, Y, WEIGHTS), {},
    ),
    "early stopping of AdaBoost, calibrated": (
        AdaBoostClassifier(early_stopping=True, n_iter_no_change=9, random_state=1), (X, Y), {},
    ),
    "validation sets and a metric of one's own": (
        BoostingRegressor(
            max_depth=2, learning_rate=0.3, early_stopping=True, n_iter_no_change=8, metric=judged
        ), (X, NUMBERS), SETS,
    ),
    "a loss of one's own": (
        BoostingRegressor(CustomLoss(value, gradient, name="mine"), **plain()), (X, NUMBERS), {},
    ),
    "init_score": (
        BoostingClassifier(max_depth=1, learning_rate=0.1), (X, Y),
        {"init_score": np.linspace(-1, 1, len(Y))},
    ),
    "categories and labels": (
        AdaBoostClassifier(), (FRAME, np.array(["x", "y", "z"])[Y3]), {},
    ),
    "queries": (
        BoostingRanker("lambda", max_depth=2, learning_rate=0.1), (X, Y3),
        {"qid": np.arange(len(Y)) // 8},
    ),
    "pairs": (BoostingRanker(variant="rankboost", learning_rate=0.1), (X,), {"pairs": PAIRS}),
    "our trees": (
        AdaBoostClassifier(DecisionTreeClassifier(max_depth=2), learning_rate=0.1), (X, Y), {},
    ),
    "our trees, codes": (
        AdaBoostClassifier(
            DecisionTreeClassifier(max_depth=1), multiclass="codes", variant="discrete",
            random_state=0,
        ), (X, Y3), {},
    ),
    "our trees, a class against the rest": (
        AdaBoostClassifier(
            DecisionTreeClassifier(max_depth=1), multiclass="ovr", variant="discrete"
        ), (X, Y3), {},
    ),
    "directions drawn anew": (
        AdaBoostClassifier(HalfSpaces(20, redraw="round"), random_state=0), (FULL, Y), {},
    ),
    "balls": (
        BoostingRegressor("huber", estimator=Balls(20, redraw="round"), learning_rate=0.1),
        (FULL, NUMBERS), {},
    ),
    "a pool": (AdaBoostClassifier(Pool(), variant="discrete"), (np.sign(FULL), Y), {}),
    "a pool, squared loss": (
        BoostingRegressor(estimator=Pool(), learning_rate=0.1), (np.sign(FULL), NUMBERS), {},
    ),
    "rectangles": (AdaBoostClassifier(Rectangles(8), variant="discrete"), (X, Y), {}),
    "ridge": (
        BoostingRegressor("huber", estimator=Ridge(), learning_rate=0.1), (FULL, NUMBERS), {},
    ),
    "neighbours, which are fitted again": (
        BoostingRegressor(estimator=Neighbours(9), learning_rate=0.1), (FULL, NUMBERS), {},
    ),
}  # fmt: skip
FAST_OTHERS = (
    "early stopping", "validation sets and a metric of one's own", "categories and labels",
    "our trees, codes", "directions drawn anew",
)  # fmt: skip


@pytest.mark.parametrize(
    "name", [n if n in FAST_OTHERS else pytest.param(n, marks=pytest.mark.long) for n in OTHERS]
)
def test_any_fit_is_resumed(name, path):
    estimator, data, more = OTHERS[name]
    estimator = clone(estimator).set_params(n_estimators=30 if "stop" in name else 10)
    interrupted(estimator, path, *data, **more)
    resumed = clone(estimator).set_params(n_jobs=1).fit(*data, **more, resume=path)
    assert_same(resumed, clone(estimator).fit(*data, **more))
    assert load(path).n_estimators_ <= 5  # early stopping keeps the best


@pytest.mark.parametrize(
    "estimator",
    [
        AdaBoostClassifier(TheirTree(max_depth=2, max_features=2), random_state=3),
        BoostingRegressor("huber", estimator=TheirRegressor(max_depth=2), learning_rate=0.1),
    ],
    ids=["reweigh", "descend"],
)
def test_learners_of_others_are_fitted_again(estimator, path):
    y = Y if isinstance(estimator, AdaBoostClassifier) else NUMBERS
    estimator.set_params(n_estimators=8)
    interrupted(estimator, path, FULL, y)
    resumed, whole = clone(estimator).fit(FULL, y, resume=path), clone(estimator).fit(FULL, y)
    np.testing.assert_array_equal(resumed.model_(FULL), whole.model_(FULL))
    with pytest.raises(ValueError, match="a checkpoint to resume a fit from, and holds no model"):
        load(path)


class Moody(TheirTree):
    """Another tree in every fit."""

    calls = 0

    def fit(self, X, y, sample_weight=None):
        Moody.calls += 1
        factor = np.random.default_rng(Moody.calls).uniform(0.5, 1.5, len(y))
        return super().fit(X, y, sample_weight * factor)


def test_a_learner_that_is_not_deterministic_is_noticed(path):
    estimator = AdaBoostClassifier(Moody(max_depth=1), variant="discrete", n_estimators=8)
    interrupted(estimator, path, FULL, Y)
    with pytest.raises(ValueError, match=r"round \d+ of resume=.* not deterministic"):
        estimator.fit(FULL, Y, resume=path)


def test_a_random_state_that_is_no_number_is_kept(path):
    estimator = BoostingClassifier(
        max_depth=3, n_estimators=9, learning_rate=0.1, early_stopping=True, random_state=None
    )
    np.random.seed(3)  # noqa: NPY002
    whole = clone(estimator).fit(X, Y)
    np.random.seed(3)  # noqa: NPY002
    interrupted(estimator, path, X, Y)
    assert_same(clone(estimator).fit(X, Y, resume=path), whole)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: Any) -> Path:
    """A checkpoint of five rounds."""
    path = tmp_path_factory.mktemp("kept") / "run.safetensors"
    interrupted(ESTIMATOR, path, FRAME, Y, WEIGHTS)
    return path


ESTIMATOR = BoostingClassifier(max_depth=2, n_estimators=8, learning_rate=0.1, subsample=0.7)
OTHER_FRAME = FRAME.assign(b=FRAME["b"] + np.arange(len(FRAME)) % 2)
DIFFERENCES: dict[str, tuple[dict[str, Any], tuple[Any, ...], dict[str, Any], str]] = {
    "a parameter": (
        {"subsample": 0.8}, (FRAME, Y, WEIGHTS), {}, "parameters: subsample was 0.7 and is 0.8",
    ),
    "a default that depends on n_estimators": (
        {"learning_rate": None, "n_estimators": 1000}, (FRAME, Y, WEIGHTS), {},
        "learning_rate was 0.1 and is 0.03",
    ),
    "a loss": ({"loss": "exponential"}, (FRAME, Y, WEIGHTS), {}, "loss was 'logistic' and is"),
    "a feature": ({}, (OTHER_FRAME, Y, WEIGHTS), {}, r"differs: feature 1 \('b'\) of X\."),
    "y": ({}, (FRAME, Y[::-1], WEIGHTS), {}, "differs: y"),
    "weights": ({}, (FRAME, Y, WEIGHTS + (WEIGHTS > 2)), {}, "differs: sample_weight"),
    "no weights": ({}, (FRAME, Y), {}, "differs: sample_weight"),
    "rows": ({}, (FRAME[:99], Y[:99], WEIGHTS[:99]), {}, "rows .it was 160 and is 99"),
    "names": ({}, (FRAME.rename(columns={"a": "z"}), Y, WEIGHTS), {}, "the names of the features"),
    "classes": ({}, (FRAME, Y + 1, WEIGHTS), {}, "the classes of y"),
    "a validation set": (
        {}, (FRAME, Y, WEIGHTS), {"eval_set": [(FRAME, Y)], "eval_names": ["late"]},
        "differs: eval_set 'late'",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", DIFFERENCES)
def test_the_error_names_what_differs(name, kept):
    parameters, data, more, message = DIFFERENCES[name]
    with pytest.raises(ValueError, match=message):
        clone(ESTIMATOR).set_params(**parameters).fit(*data, **more, resume=kept)


def test_rounds_threads_device_and_callbacks_may_differ(kept):
    seen = []
    changed = {"n_jobs": 1, "device": "cpu", "callbacks": [lambda info: seen.append(info.round)]}
    for n in (3, 12):
        estimator = clone(ESTIMATOR).set_params(n_estimators=n)
        whole = clone(estimator).fit(FRAME, Y, WEIGHTS)
        resumed = estimator.set_params(**changed).fit(FRAME, Y, WEIGHTS, resume=kept)
        assert resumed.model_.fingerprint() == whole.model_.fingerprint()
    assert seen == list(range(6, 13))


def test_another_estimator_is_refused(kept):
    with pytest.raises(ValueError, match="a checkpoint of BoostingClassifier, not of AdaBoost"):
        AdaBoostClassifier().fit(X, Y, resume=kept)


def test_a_file_that_does_not_exist_begins_anew_and_the_end_is_written(path):
    estimator = clone(ESTIMATOR).set_params(callbacks=[Checkpoint(path)])
    fitted = estimator.fit(FRAME, Y, resume=path)
    assert fitted.n_estimators_ == 8
    assert read_header(path)["fingerprint"] == fitted.model_.fingerprint()
    assert "run" not in read_header(path)
    np.testing.assert_array_equal(load(path).predict_proba(FRAME), fitted.predict_proba(FRAME))


def test_the_last_file_of_adaboost_is_calibrated(path):
    fitted = AdaBoostClassifier(n_estimators=5, callbacks=[Checkpoint(path)]).fit(X, Y)
    assert load(path).scale_ == fitted.scale_ != 1.0


def test_a_checkpoint_alone_computes_no_losses(path):
    estimator = clone(ESTIMATOR).set_params(callbacks=[Checkpoint(path)])
    assert len(estimator.fit(FRAME, Y).history_.training) == 0


@pytest.fixture
def interruptible():
    """Ctrl-C raises, also where the tests were started in the background of a shell."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_writes_the_rounds_so_far_and_goes_on_to_the_caller(path):
    def press(info):
        if info.round == 4:
            os.kill(os.getpid(), signal.SIGINT)

    estimator = clone(ESTIMATOR).set_params(callbacks=[press, Checkpoint(path, every=1000)])
    with pytest.raises(KeyboardInterrupt):
        estimator.fit(FRAME, Y)
    assert not hasattr(estimator, "model_")
    found = load(path).n_estimators_
    assert found in (3, 4)
    resumed = clone(ESTIMATOR).fit(FRAME, Y, resume=path)
    assert resumed.model_.fingerprint() == clone(ESTIMATOR).fit(FRAME, Y).model_.fingerprint()


def test_a_model_that_was_saved_has_no_run(path):
    AdaBoostClassifier(n_estimators=2).fit(X, Y).save(path)
    with pytest.raises(ValueError, match="holds a model and no run to resume"):
        AdaBoostClassifier(n_estimators=2).fit(X, Y, resume=path)
    with pytest.raises(TypeError, match="resume must be None or the path of a checkpoint; got 7"):
        AdaBoostClassifier(n_estimators=2).fit(X, Y, resume=7)


def test_damage_is_noticed(kept, path):
    data = bytearray(kept.read_bytes())
    n = 8 + int.from_bytes(data[:8], "little")
    begin, _ = json.loads(data[8:n])["run.rounds.values"]["data_offsets"]
    data[n + begin] ^= 1
    path.write_bytes(data)
    with pytest.raises(ValueError, match="its rounds are not those that were written"):
        clone(ESTIMATOR).fit(FRAME, Y, WEIGHTS, resume=path)
    path.write_bytes(data[:-100])
    with pytest.raises(ValueError, match="not a model file"):
        clone(ESTIMATOR).fit(FRAME, Y, WEIGHTS, resume=path)
