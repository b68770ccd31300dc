"""Learners that are told of single features, and see some of them only."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn import tree as peer
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ensemble_gpu import (
    BaggingClassifier,
    BaggingRegressor,
    BoostingRegressor,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    RandomForestClassifier,
)
from ensemble_gpu.bagging.columns import Columns
from tests.places import Place

pandas = pytest.importorskip("pandas")
polars = pytest.importorskip("polars")

N = 240
RNG = np.random.default_rng(0)
CODES = RNG.integers(6, size=(N, 4)).astype(float)
LABELS = np.array(["red", "green", "blue", "grey", "pink", "black"])[CODES[:, 1].astype(int)]
Y = (CODES[:, 1] % 2).astype(int)
NAMES = ["a", "b", "c", "d"]


def hist(**params: Any) -> Any:
    return HistGradientBoostingClassifier(max_iter=3, min_samples_leaf=2, **params)


def forest(**params: Any) -> Any:
    return RandomForestClassifier(5, **params)


def frame(library: Any = pandas) -> Any:
    """Column b holds labels, declared as categories."""
    columns = {name: CODES[:, f] for f, name in enumerate(NAMES)} | {"b": LABELS}
    if library is pandas:
        return pandas.DataFrame(columns).astype({"b": "category"})
    return polars.DataFrame(columns).with_columns(polars.col("b").cast(polars.Categorical))


def round_info(model: Any, name: str) -> list[dict]:
    """Of every learner: what `name` says of the features that it saw."""
    found = []
    for learner, features in zip(model.estimators_, model.estimators_features_, strict=True):
        value = getattr(learner, name)
        if name == "monotonic_cst":
            found.append(dict(zip(features.tolist(), value, strict=True)))
        else:
            found.append({f: place in value for place, f in enumerate(features.tolist())})
    return found


@pytest.mark.slow
@pytest.mark.parametrize("kind", [DecisionTreeClassifier, forest, hist])
@pytest.mark.parametrize(
    ("given", "rows"),
    [
        ([1], CODES),
        (np.array([False, True, False, False]), CODES),
        ([1], frame()),
        (["b"], frame()),
        ("from_dtype", frame()),
        (["b"], frame(polars)),
        ("from_dtype", frame(polars)),
    ],
    ids=lambda value: str(value) if isinstance(value, list | str) else type(value).__module__,
)
def test_a_learner_has_the_categories_of_the_features_that_it_sees(kind, given, rows):
    learner = kind(categorical_features=given)
    model = BaggingClassifier(learner, 8, max_features=2, random_state=0).fit(rows, Y)
    expected = [{f: f == 1 for f in drawn.tolist()} for drawn in model.estimators_features_]
    assert round_info(model, "categorical_features") == expected
    assert any(1 in own for own in expected)
    assert not all(1 in own for own in expected)
    assert learner.categorical_features is given


@pytest.mark.parametrize("kind", [DecisionTreeClassifier, hist])
@pytest.mark.parametrize("given", [["b"], [1], "from_dtype"], ids=str)
@pytest.mark.parametrize("library", [pandas, polars], ids=lambda library: library.__name__)
def test_bags_of_all_rows_and_features_are_the_learner_alone(kind, given, library):
    learner, rows = kind(categorical_features=given), frame(library)
    model = BaggingClassifier(learner, 2, bootstrap=False, random_state=0).fit(rows, Y)
    alone = learner.fit(rows, Y)
    assert alone.score(rows, Y) > 0.9
    np.testing.assert_allclose(model.predict_proba(rows), alone.predict_proba(rows), rtol=1e-12)


def test_the_default_tree_takes_a_frame_as_it_does_alone():
    model = BaggingClassifier(n_estimators=5, random_state=0).fit(frame(), Y)
    assert model.score(frame(), Y) == 1.0
    unknown = frame().astype({"b": str}).assign(b="unheard of")
    assert np.isfinite(model.predict_proba(unknown)).all()
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame()[["b", "a", "c", "d"]])
    with pytest.raises(ValueError, match="was fitted with labels such as 'black'; got numbers"):
        model.predict(frame().assign(b=1.0))


def test_labels_may_be_numbers_of_any_size():
    rows = frame().assign(b=pandas.Categorical(CODES[:, 1] * 1e6 - 0.5))
    for learner in (DecisionTreeClassifier(), hist(categorical_features="from_dtype")):
        model = BaggingClassifier(learner, 5, random_state=0).fit(rows, Y)
        assert model.score(rows, Y) > 0.9


@pytest.mark.slow
def test_categories_on_every_device_give_the_model_of_numpy(place: Place):
    learner = DecisionTreeClassifier(categorical_features=[1, 3])
    params = {"max_features": 3, "oob_score": True, "random_state": 0}
    expected = BaggingClassifier(learner, 15, **params).fit(CODES, Y)
    found = BaggingClassifier(learner, 15, **params).fit(place.put(CODES), place.put(Y))
    for one, other in zip(found.estimators_, expected.estimators_, strict=True):
        assert one.model_.fingerprint() == other.model_.fingerprint()
    assert found.oob_score_ == expected.oob_score_
    P = place.host(found.predict_proba(place.put(CODES)))
    np.testing.assert_array_equal(P, expected.predict_proba(CODES))


@pytest.mark.parametrize(
    "learner",
    [
        DecisionTreeRegressor(),
        peer.DecisionTreeRegressor(),
        HistGradientBoostingRegressor(max_iter=3),
        BoostingRegressor(n_estimators=5, max_depth=1),
    ],
    ids=str,
)
@pytest.mark.parametrize("given", [[0, 1, 0, -1], {"b": 1, "d": -1}], ids=str)
@pytest.mark.parametrize("share", [0.5, 1.0])
def test_a_learner_has_the_signs_of_the_features_that_it_sees(learner, given, share):
    rows = pandas.DataFrame(CODES, columns=NAMES)
    learner.set_params(monotonic_cst=given)
    y = CODES[:, 1] - CODES[:, 3] + RNG.normal(size=N)
    model = BaggingRegressor(
        learner, 6, max_features=share, bootstrap_features=True, random_state=0
    ).fit(rows, y)
    signs = {0: 0, 1: 1, 2: 0, 3: -1}
    expected = [{f: signs[f] for f in drawn.tolist()} for drawn in model.estimators_features_]
    assert round_info(model, "monotonic_cst") == expected
    higher = rows.assign(b=rows["b"] + 1.0, d=rows["d"] - 1.0)
    assert (model.predict(higher) >= model.predict(rows) - 1e-12).all()


def test_a_feature_that_is_drawn_twice_is_told_of_twice():
    drawn = np.array([0, 2, 2, 3])
    columns = Columns([2], [1, 0, -1, 0], [[0, 1], [1], [2, 3]])
    assert columns.seen(drawn) == {
        "categorical_features": [1, 2],
        "monotonic_cst": [1, -1, -1, 0],
        "interaction_cst": [[0], [1, 2, 3]],
    }


def test_a_learner_may_mix_the_features_that_were_said_to_mix():
    model = BaggingClassifier(
        hist(interaction_cst=[{0, 2}, [3]]), 6, max_features=3, random_state=0
    ).fit(CODES, Y)
    for learner, drawn in zip(model.estimators_, model.estimators_features_, strict=True):
        groups = [drawn[group].tolist() for group in learner.interaction_cst]
        assert groups == [g for g in ([f for f in (0, 2) if f in drawn], [3] if 3 in drawn else [])
                          if g]  # fmt: skip
    model = BaggingClassifier(hist(interaction_cst="pairwise"), 2, max_features=3).fit(CODES, Y)
    assert all(learner.interaction_cst == "pairwise" for learner in model.estimators_)


@pytest.mark.parametrize(
    ("learner", "says"),
    [
        (DecisionTreeClassifier(categorical_features=[4]), "categorical_features .*4.* 0 to 3"),
        (DecisionTreeClassifier(categorical_features=[True]), "categorical_features is a mask"),
        (DecisionTreeClassifier(categorical_features=["q"]), "categorical_features .*'q'"),
        (DecisionTreeClassifier(categorical_features="all"), "categorical_features .*'all'"),
        (hist(categorical_features=[4]), "categorical_features .*4.* 0 to 3"),
        (DecisionTreeClassifier(monotonic_cst=[1]), "monotonic_cst .* each of the 4 features"),
        (DecisionTreeClassifier(monotonic_cst={"q": 1}), "monotonic_cst .*'q'"),
        (DecisionTreeClassifier(monotonic_cst=[2, 0, 0, 0]), "monotonic_cst must hold -1, 0 or"),
        (hist(interaction_cst=[[0, 4]]), "interaction_cst .* from 0 to 3; got 4"),
        (hist(interaction_cst=[0]), r"interaction_cst .* from 0 to 3; got \[0\]"),
        (DecisionTreeClassifier(categorical_features=[0, 1], max_bins=5), "'a'.* holds 5.* 0 to 4"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)  # fmt: skip
def test_what_is_wrong_of_the_whole_is_said_of_the_whole(learner, says):
    model = BaggingClassifier(learner, 3, max_features=2, random_state=0)
    with pytest.raises(ValueError, match=says):
        model.fit(frame(), Y)
    assert not [name for name in vars(model) if name.endswith("_")]


def test_what_is_within_a_pipeline_is_left_alone():
    inner = DecisionTreeClassifier(categorical_features=[0])
    pipeline = make_pipeline(StandardScaler(with_mean=False, with_std=False), inner)
    model = BaggingClassifier(pipeline, 3, max_features=2, random_state=0).fit(CODES, Y)
    assert all(learner[-1].categorical_features == [0] for learner in model.estimators_)
