"""Every estimator comes back from a file as it was."""

from __future__ import annotations

import datetime
import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import ensemble_gpu as eg
from ensemble_gpu.learners import HalfSpaces
from ensemble_gpu.losses import CustomLoss
from ensemble_gpu.saving.document import fingerprint_of
from ensemble_gpu.saving.files import from_bytes, to_bytes
from tests.saving.cases import CASES, CODES, REAL, THREE, TWO, WORDS, X, fitted, rows_of

# What a fit leaves that no file keeps: it is of use during a fit only, or to a warm start.
OF_A_FIT = {"_run", "_stops_early", "_n_rounds", "_rate"}


def same(one: Any, other: Any) -> bool:
    """Whether two values are equal, however deep, with types and NaN."""
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray):
        if one.dtype != other.dtype or one.shape != other.shape:
            return False
        if one.dtype.kind == "O":
            return all(map(same, one.tolist(), other.tolist()))
        return np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
    if isinstance(one, np.random.RandomState):
        return str(one.get_state()) == str(other.get_state())
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[k], other[k]) for k in one)
    if hasattr(one, "fingerprint"):
        return one.fingerprint() == other.fingerprint()
    if hasattr(one, "__dict__") and not callable(one):
        return same(kept(one), kept(other))
    return bool(one == other) or one != one


def kept(value: Any) -> dict[str, Any]:
    return {name: one for name, one in sorted(vars(value).items()) if name not in OF_A_FIT}


def answers(estimator: Any, rows: Any) -> list[Any]:
    methods = ("predict", "predict_proba", "decision_function")
    return [getattr(estimator, name)(rows) for name in methods if hasattr(estimator, name)]


@pytest.mark.parametrize("name", CASES)
def test_loaded_estimator_is_the_saved_one(name, tmp_path):
    estimator = fitted(name)
    for suffix in ("safetensors", "json"):
        path = tmp_path / f"m.{suffix}"
        estimator.save(path)
        loaded = eg.load(path)
        assert type(loaded) is type(estimator)
        assert fingerprint_of(loaded) == fingerprint_of(estimator) != ""
        assert same(kept(loaded), kept(estimator)), suffix
        rows = rows_of(estimator)
        assert same(answers(loaded, rows), answers(estimator, rows))
        if suffix == "safetensors":  # JSON has one NaN, whatever its bits
            assert to_bytes(loaded) == to_bytes(estimator)
        header = eg.read_header(path)
        assert header["kind"] == type(estimator).__name__
        assert header["fingerprint"] == fingerprint_of(estimator)
        assert header["params"].keys() == estimator.get_params(deep=False).keys()


def test_every_public_estimator_is_among_the_cases():
    names = {type(fitted(name)).__name__ for name in CASES}
    public = {name for name in eg.__all__ if hasattr(getattr(eg, name), "fit")}
    assert public <= names


@pytest.mark.parametrize("name", ["AdaBoost, labels", "forest", "ridge", "bagging", "L1, numbers"])
def test_fit_works_again_and_gives_the_same_model(name):
    estimator = fitted(name)
    loaded = from_bytes(to_bytes(estimator))
    rows = X if estimator.n_features_in_ == 4 else CODES
    target = WORDS if hasattr(estimator, "classes_") else REAL
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        other = clone(estimator).fit(rows, target)
        assert fingerprint_of(loaded.fit(rows, target)) == fingerprint_of(other)


def test_forest_and_bag_go_on_growing_after_loading():
    for kind in (eg.RandomForestClassifier, eg.BaggingClassifier):
        whole = kind(n_estimators=5, random_state=2).fit(X, WORDS)
        begun = kind(n_estimators=2, random_state=2, warm_start=True).fit(X, WORDS)
        loaded = from_bytes(to_bytes(begun)).set_params(n_estimators=5).fit(X, WORDS)
        assert fingerprint_of(loaded) == fingerprint_of(whole)


LABELS = [
    np.array([False, True]), np.array(["a", "längeres Wort"]), np.array([1.0, -2.0]),
    *(np.array([3, 100], dtype=dtype) for dtype in "bBhHiIlL"), np.array([2**63, 5], dtype="u8"),
    np.array(["x", "y"], dtype=object),
    np.array([datetime.date(2024, 1, 31), datetime.date(1999, 5, 1)], dtype=object),
]  # fmt: skip


@pytest.mark.parametrize(
    "labels", LABELS, ids=lambda a: f"{a.dtype}-{type(a.tolist()[0]).__name__}"
)
def test_labels_of_any_type_come_back(labels):
    estimator = eg.DecisionTreeClassifier(max_depth=1).fit(X, labels[TWO])
    loaded = from_bytes(to_bytes(estimator))
    assert same(loaded.classes_, estimator.classes_)
    assert same(loaded.predict(X), estimator.predict(X))


def test_frames_with_categories_come_back_with_names_and_labels():
    pd = pytest.importorskip("pandas")
    colour = pd.Categorical(np.array(["red", "green", "blue"])[THREE])
    frame = pd.DataFrame({"size": X[:, 0], "colour": colour, "weight": X[:, 1]})
    for kind in (eg.RandomForestClassifier, eg.BoostingClassifier):
        estimator = kind(n_estimators=3, random_state=0).fit(frame, WORDS)
        loaded = from_bytes(to_bytes(estimator))
        assert loaded.feature_names_in_.tolist() == ["size", "colour", "weight"]
        assert same(loaded._categories, estimator._categories)
        assert same(answers(loaded, frame), answers(estimator, frame))
        with pytest.raises(ValueError, match="feature names"):
            loaded.predict(frame[["weight", "size", "colour"]])


def test_model_alone_can_be_saved(tmp_path):
    model = fitted("forest").model_
    eg.save(model, tmp_path / "m.safetensors")
    loaded = eg.load(tmp_path / "m.safetensors")
    assert loaded == model
    assert same(loaded(CODES), model(CODES))


def test_model_trained_on_one_library_predicts_for_others(place):
    rows, y = place.put(X), place.put(TWO)
    estimator = eg.AdaBoostClassifier(n_estimators=4).fit(rows, y)
    loaded = from_bytes(to_bytes(estimator))
    found = loaded.predict_proba(rows)
    place.check(found, "float64")
    assert same(place.host(found), place.host(estimator.predict_proba(rows)))
    assert same(
        loaded.predict_proba(X), eg.AdaBoostClassifier(n_estimators=4).fit(X, TWO).predict_proba(X)
    )


def test_custom_loss_is_refused_and_the_advice_works():
    loss = CustomLoss(lambda y, F: (y - F) ** 2, lambda y, F: 2.0 * (F - y), name="mine")
    estimator = eg.BoostingRegressor(n_estimators=2, loss=loss).fit(X, REAL)
    with pytest.raises(
        TypeError, match=r"loss=CustomLoss.*no code.*Predicting needs only the link"
    ):
        to_bytes(estimator)
    before = estimator.predict(X)
    loaded = from_bytes(to_bytes(estimator.set_params(loss="squared")))
    assert np.array_equal(loaded.predict(X), before)


@pytest.mark.parametrize("what", ["estimator", "metric", "oob_score", "subclass", "learner"])
def test_code_is_refused_by_name(what):
    from sklearn.naive_bayes import GaussianNB

    class Mine(eg.DecisionTreeClassifier):
        pass

    made = {
        "estimator": lambda: eg.BaggingClassifier(GaussianNB(), n_estimators=2).fit(X, TWO),
        "metric": lambda: eg.AdaBoostClassifier(n_estimators=2, metric=lambda y, p: 0.0).fit(
            X, TWO, X_val=X, y_val=TWO
        ),
        "oob_score": lambda: eg.RandomForestClassifier(
            30, oob_score=lambda y, p: 0.5, random_state=0
        ).fit(X, TWO),
        "subclass": lambda: Mine().fit(X, TWO),
        "learner": HalfSpaces,
    }[what]()
    name = {"subclass": "Mine", "learner": "HalfSpaces"}.get(what, what)
    with pytest.raises(TypeError, match=f"{name}.*cannot be saved.*of this package"):
        to_bytes(made)


def test_callbacks_are_not_kept():
    estimator = eg.AdaBoostClassifier(n_estimators=2, callbacks=[lambda info: None]).fit(X, TWO)
    assert from_bytes(to_bytes(estimator)).callbacks is None


def test_what_is_not_fitted_is_refused():
    with pytest.raises(NotFittedError):
        to_bytes(eg.AdaBoostClassifier())


@pytest.mark.interop
def test_model_of_torch_and_jax_is_that_of_numpy(library):
    estimator = eg.BoostingRegressor(n_estimators=3).fit(library.put(X), library.put(REAL))
    loaded = from_bytes(to_bytes(estimator))
    found = loaded.predict(library.put(X))
    library.check(found, "float64")
    assert np.array_equal(library.host(found), loaded.predict(X))
    assert np.array_equal(
        loaded.predict(X), eg.BoostingRegressor(n_estimators=3).fit(X, REAL).predict(X)
    )
