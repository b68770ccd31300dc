"""Warm starts: learners that are kept, what must be as it was, scores that are of now."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_wine
from sklearn.tree import DecisionTreeClassifier

from ensemble_gpu import (
    AdaBoostClassifier,
    BaggingClassifier,
    BaggingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from tests.bagging.forests import bag, trees_of
from tests.datasets import random_data
from tests.products import every_pair

pandas = pytest.importorskip("pandas")

X, Y = load_wine(return_X_y=True)
X_REAL, Y_REAL = load_diabetes(return_X_y=True)
TREE = DecisionTreeClassifier(random_state=0)
STUMPS = AdaBoostClassifier(n_estimators=5)
KINDS = [RandomForestClassifier, RandomForestRegressor, BaggingClassifier, BaggingRegressor]
NO_TREE = "ignore:warm_start=True and n_estimators:UserWarning"


def table(letters: str = "abc", names: str = "cx", rows: slice = slice(None)) -> Any:
    """A column of categories and one of numbers."""
    rng = np.random.default_rng(0)
    label = rng.integers(3, size=120)
    columns = [pandas.Categorical(np.array(list(letters))[label]), rng.normal(size=120)]
    return pandas.DataFrame(dict(zip(names, columns, strict=True)))[rows]


def target(rows: slice = slice(None)) -> np.ndarray:
    """Which label, 0 or 1 for the first two; the third is like the first."""
    return (np.random.default_rng(0).integers(3, size=120) == 1).astype(int)[rows]


# ---- forests


@pytest.mark.slow
@pytest.mark.parametrize("kind", [RandomForestClassifier, RandomForestRegressor])
@pytest.mark.parametrize("random_state", [0, None])
def test_a_warm_start_continues_the_forest(kind, random_state):
    data = (X, Y) if kind is RandomForestClassifier else (X_REAL, Y_REAL)
    seed = random_state if random_state is not None else np.random.RandomState(7)
    warm = kind(25, oob_score=True, warm_start=True, random_state=seed).fit(*data)
    warm.set_params(n_estimators=40).fit(*data)
    assert warm.n_estimators_ == len(warm.model_) == 40
    seed = random_state if random_state is not None else np.random.RandomState(7)
    whole = kind(40, oob_score=True, random_state=seed).fit(*data)
    assert warm.model_ == whole.model_
    assert warm.oob_score_ == whole.oob_score_
    name = "oob_decision_function_" if kind is RandomForestClassifier else "oob_prediction_"
    np.testing.assert_array_equal(getattr(warm, name), getattr(whole, name))


def test_predictions_out_of_bag_asked_for_late_come_from_all_trees():
    warm = RandomForestClassifier(20, warm_start=True, random_state=0).fit(X, Y)
    assert not hasattr(warm, "oob_score_")
    warm.set_params(n_estimators=30, oob_score=True).fit(X, Y)
    whole = RandomForestClassifier(30, oob_score=True, random_state=0).fit(X, Y)
    np.testing.assert_array_equal(warm.oob_decision_function_, whole.oob_decision_function_)


def test_trees_keep_their_bags_where_later_ones_have_other_bags():
    warm = RandomForestClassifier(20, warm_start=True, max_samples=0.4, random_state=0).fit(X, Y)
    warm.set_params(n_estimators=40, max_samples=None, oob_score=True).fit(X, Y)
    few = round(0.4 * len(Y))
    out = np.array([bag(warm, t, X, Y, few if t < 20 else 0) == 0 for t in range(40)])
    mean = (trees_of(warm, X) * out[:, :, None]).sum(axis=0) / out.sum(axis=0)[:, None]
    np.testing.assert_allclose(warm.oob_decision_function_, mean, rtol=1e-12)


def test_a_warm_start_without_new_trees_says_so_and_changes_nothing():
    forest = RandomForestClassifier(5, warm_start=True, random_state=0).fit(X, Y)
    model = forest.model_
    with pytest.warns(UserWarning, match="n_estimators=5 as before") as caught:
        forest.fit(X, Y)
    assert caught[0].filename == __file__
    assert forest.model_ == model


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda f: f.set_params(n_estimators=2).fit(X, Y), "n_estimators must be at least 4"),
        (lambda f: f.set_params(n_estimators=6).fit(X[:, :5], Y), "warm_start=True .* features"),
        (lambda f: f.fit(X[:, :5], Y), "warm_start=True .* features"),
        (lambda f: f.set_params(n_estimators=6).fit(X, Y + 1), "warm_start=True .* classes"),
        (lambda f: f.set_params(n_estimators=6).fit(X[Y < 2], Y[Y < 2]), "warm_start=True"),
        (
            lambda f: f.set_params(n_estimators=6, oob_score=True).fit(X[:-5], Y[:-5]),
            "rows and weights of the last fit",
        ),
    ],
)
def test_a_warm_start_on_other_data_is_refused_and_leaves_the_forest(change, says):
    forest = RandomForestClassifier(4, warm_start=True, random_state=0).fit(X, Y)
    before, p = forest.model_, forest.predict_proba(X)
    with pytest.raises(ValueError, match=says):
        change(forest)
    assert forest.model_ == before
    assert forest.n_features_in_ == X.shape[1]
    np.testing.assert_array_equal(forest.predict_proba(X), p)


# ---- bagging


@pytest.mark.slow
def test_a_warm_start_gives_the_model_of_one_fit():
    data = random_data(3, n=200)
    params = {"max_features": 0.5, "oob_score": True, "random_state": 0}
    model = BaggingClassifier(STUMPS, 20, warm_start=True, **params).fit(data.X, data.y)
    first = model.estimators_[0]
    model.set_params(n_estimators=30).fit(data.X, data.y)
    assert model.estimators_[0] is first
    whole = BaggingClassifier(STUMPS, 30, **params).fit(data.X, data.y)
    np.testing.assert_array_equal(model.predict_proba(data.X), whole.predict_proba(data.X))
    assert model.oob_score_ == whole.oob_score_
    np.testing.assert_array_equal(model.estimators_samples_, whole.estimators_samples_)


def test_a_warm_start_without_a_seed_goes_on_with_its_own():
    data = random_data()
    model = BaggingClassifier(TREE, 2, warm_start=True).fit(data.X, data.y)
    model.set_params(n_estimators=4).fit(data.X, data.y)
    assert len({bags.seed for bags in model.bags_}) == 1
    assert not np.array_equal(model.estimators_samples_[0], model.estimators_samples_[2])


def test_a_warm_start_says_what_it_cannot_do():
    data, other = random_data(), random_data(3)
    model = BaggingClassifier(TREE, 20, warm_start=True, random_state=0).fit(data.X, data.y)
    with pytest.warns(UserWarning, match="nothing is added") as caught:
        model.fit(data.X, data.y)
    assert caught[0].filename == __file__
    with pytest.raises(ValueError, match="at least the 20 that are fitted"):
        model.set_params(n_estimators=3).fit(data.X, data.y)
    model.set_params(n_estimators=25)
    with pytest.raises(ValueError, match=r"warm_start=True .* classes of y were \[0, 1\] then"):
        model.fit(other.X, other.y)
    with pytest.raises(ValueError, match=r"warm_start=True .* X had 6 features then, and has 3"):
        model.fit(data.X[:, :3], data.y)
    with pytest.raises(ValueError, match="rows and weights of the earlier fits"):
        model.set_params(oob_score=True).fit(data.X + 1.0, data.y)
    assert len(model.estimators_) == 20


# ---- what must be as it was


# another table -> what is said about it
OTHERS = {
    "one label": (
        table("bcd"), r"feature 0 \('c'\) had the categories \['a'\] only then, and has \['d'\]"
    ),
    "all labels": (
        table("xyz"), r"feature 0 \('c'\) had .* \['a', 'b', 'c'\] only then, .*'x', 'y', 'z'"
    ),
    "fewer labels": (
        table("aab"), r"feature 0 \('c'\) had the categories \['c'\] only then, and has \[\]"
    ),
    "a name": (table(names="cz"), "feature 1 was 'x' then, and is 'z' now"),
    "no labels": (
        table().assign(c=0.5), r"feature 0 \('c'\) was a category then, and is a number now"
    ),
    "more labels": (
        table().assign(x=pandas.Categorical(["u"] * 120)), r"feature 1 \('x'\) was a number then"
    ),
    "order": (table()[["x", "c"]], "feature 0 was 'c' then, and is 'x' now"),
    "fewer features": (table()[["c"]], "X had 2 features then, and has 1 now"),
    "no names": (
        table()[["x", "x"]].to_numpy(), "feature 0 was 'c' then, and is without a name now"
    ),
}  # fmt: skip


@pytest.mark.slow
@every_pair("kind, more, name", KINDS, [0, 1], OTHERS)
def test_another_table_is_refused_and_the_model_stays(kind, more, name):
    other, says = OTHERS[name]
    model = kind(n_estimators=5, warm_start=True, random_state=0).fit(table(), target())
    before = model.predict(table())
    assert model.score(table(), target()) == 1.0
    model.set_params(n_estimators=5 + more)
    with pytest.raises(ValueError, match=f"warm_start=True .* the same features, .*; {says}"):
        model.fit(other, target())
    assert model.feature_names_in_.tolist() == ["c", "x"]
    np.testing.assert_array_equal(model.predict(table()), before)


def test_of_many_categories_the_error_shows_a_few():
    letters = [f"label {k:02d}" for k in range(60)]
    frames = [pandas.DataFrame({"c": pandas.Categorical(part)}) for part in (letters, letters[:9])]
    forest = RandomForestClassifier(2, warm_start=True).fit(frames[0], np.arange(60) % 2)
    with pytest.raises(ValueError, match=r"'label 09', .*'label 13', \.\.\.\] only then, .* \[\]"):
        forest.fit(frames[1], np.arange(9) % 2)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_categories_are_the_same_by_their_labels_not_by_their_numbers(kind):
    """A label of a row without weight comes first in order, and is no category."""
    model = kind(n_estimators=5, warm_start=True, random_state=0).fit(table(), target())
    other = table()
    other["c"] = other["c"].cat.add_categories("A")
    other.loc[0, "c"] = "A"
    weights = np.ones(120)
    weights[0] = 0.0
    model.set_params(n_estimators=40).fit(other, target(), weights)
    assert model.score(table(), target()) == 1.0
    alone = kind(n_estimators=40, random_state=0).fit(table()[1:], target()[1:])
    np.testing.assert_array_equal(model.predict(table()[1:]), alone.predict(table()[1:]))


# ---- scores out of bag


@pytest.mark.slow
@pytest.mark.filterwarnings(NO_TREE)
@pytest.mark.parametrize("kind", KINDS)
def test_the_score_out_of_bag_is_that_of_this_fit(kind):
    rows, y = (X, Y) if "Classifier" in kind.__name__ else (X_REAL, Y_REAL)
    model = kind(n_estimators=30, warm_start=True, oob_score=True, random_state=0).fit(rows, y)
    for n_estimators in (30, 35):
        model.set_params(n_estimators=n_estimators, oob_score=False).fit(rows, y)
        assert not [name for name in vars(model) if name.startswith("oob_") and name[-1] == "_"]
        model.set_params(oob_score=True).fit(rows, y)
        whole = kind(n_estimators=n_estimators, oob_score=True, random_state=0).fit(rows, y)
        assert model.oob_score_ == whole.oob_score_
