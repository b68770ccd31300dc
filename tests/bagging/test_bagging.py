"""Bagging: the bags, what learners get of them, answers, out-of-bag estimates, bad input."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.cluster import KMeans
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, make_friedman1
from sklearn.linear_model import LinearRegression, LogisticRegression, Perceptron, Ridge
from sklearn.metrics import balanced_accuracy_score, mean_absolute_error
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from ensemble_gpu import (
    AdaBoostClassifier,
    BoostingRegressor,
    RandomForestClassifier,
    use_engine,
)
from ensemble_gpu.arrays.namespace import locate
from ensemble_gpu.bagging.bagging import BaggingClassifier, BaggingRegressor
from ensemble_gpu.bagging.learners import OneClass
from ensemble_gpu.data.bags import make_bags
from ensemble_gpu.data.keys import repetitions, row_keys
from ensemble_gpu.kernels.host.draws import bootstrap_counts, subset_counts
from tests.datasets import random_data
from tests.places import DEVICE, NARROW, STRICT

TREE = DecisionTreeClassifier(random_state=0)
STUMPS = AdaBoostClassifier(n_estimators=5)


class Recorder(ClassifierMixin, BaseEstimator):
    """Keeps what it was given; predicts the most frequent class."""

    def fit(self, X, y, sample_weight=None):
        self.X_, self.y_, self.weights_ = X, y, sample_weight
        self.classes_, counts = np.unique(y, return_counts=True)
        self.most_ = self.classes_[np.argmax(counts)]
        return self

    def predict(self, X):
        return np.full(len(X), self.most_)


class PlainRecorder(Recorder):
    """Takes no weights."""

    def fit(self, X, y):
        return super().fit(X, y)


class RecordingRegressor(RegressorMixin, BaseEstimator):
    def fit(self, X, y):
        self.X_, self.y_ = X, y
        return self

    def predict(self, X):
        return np.full(len(X), self.y_.mean())


def rows_as_text(X, y, counts) -> list:
    """The rows and labels of a bag, sorted."""
    pairs = zip(X.repeat(counts, 0), y.repeat(counts), strict=True)
    return sorted((row.tobytes(), label) for row, label in pairs)


# ---- what a learner gets


def test_a_learner_that_takes_weights_gets_counts_and_the_data_itself():
    data = random_data(n=300)
    model = BaggingClassifier(Recorder(), 3, random_state=0).fit(data.X, data.y)
    for number, learner in enumerate(model.estimators_):
        assert learner.X_ is data.X
        np.testing.assert_array_equal(learner.y_, data.y)
        np.testing.assert_array_equal(learner.weights_, model.bags_[number].counts(number))
        assert learner.weights_.sum() == 300


def test_a_learner_that_takes_none_gets_the_rows_repeated():
    data = random_data(n=300)
    weighed = BaggingClassifier(Recorder(), 3, random_state=0).fit(data.X, data.y)
    model = BaggingClassifier(PlainRecorder(), 3, random_state=0).fit(data.X, data.y)
    for learner, other in zip(model.estimators_, weighed.estimators_, strict=True):
        counts = other.weights_.astype(int)
        assert len(learner.X_) == 300
        ones = np.ones(300, dtype=int)
        assert rows_as_text(learner.X_, learner.y_, ones) == rows_as_text(data.X, data.y, counts)


def test_fractional_weights_multiply_the_counts():
    data = random_data(n=300).with_weights()
    model = BaggingClassifier(Recorder(), 3, random_state=0).fit(data.X, data.y, data.weights)
    for number, learner in enumerate(model.estimators_):
        counts = model.bags_[number].counts(number)
        np.testing.assert_array_equal(learner.weights_, counts * data.weights)
        assert counts.sum() == (data.weights > 0).sum()
        assert (counts[data.weights == 0.0] == 0).all()


@pytest.mark.parametrize("bootstrap", [True, False])
def test_a_learner_that_takes_none_gets_rows_in_proportion_to_fractional_weights(bootstrap):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 2)), np.arange(400) % 2
    weights = np.where(np.arange(400) < 200, 0.3, 1.2)
    model = BaggingClassifier(
        PlainRecorder(), 100, bootstrap=bootstrap, max_samples=0.1, random_state=0
    ).fit(X, y, weights)
    heavy = np.mean([(rows >= 200).mean() for rows in model.estimators_samples_])
    assert abs(heavy - 0.8) < 5.0 * np.sqrt(0.8 * 0.2 / 4000)


@pytest.mark.parametrize("kind", [Recorder, PlainRecorder])
@pytest.mark.parametrize("bootstrap", [True, False])
def test_integer_weights_are_repetitions_in_any_order(kind, bootstrap):
    data = random_data(3, n=80)
    rng = np.random.default_rng(0)
    weights = rng.integers(0, 4, size=80)
    mixed = rng.permutation(80)
    params = {"bootstrap": bootstrap, "max_samples": 0.8, "random_state": 0}
    weighted = BaggingClassifier(kind(), 4, **params)
    weighted.fit(data.X[mixed], data.y[mixed], weights[mixed])
    repeated = BaggingClassifier(kind(), 4, **params)
    repeated.fit(data.X.repeat(weights, 0), data.y.repeat(weights))
    for number in range(4):
        bag = rows_as_text(data.X[mixed], data.y[mixed], weighted.bags_[number].counts(number))
        counts = repeated.bags_[number].counts(number)
        assert bag == rows_as_text(data.X.repeat(weights, 0), data.y.repeat(weights), counts)
        assert len(bag) == int(0.8 * weights.sum())
        if kind is PlainRecorder:  # the same array, row for row
            pair = [model.estimators_[number].X_ for model in (weighted, repeated)]
            np.testing.assert_array_equal(*pair)


@pytest.mark.slow
@pytest.mark.parametrize("learner", [None, STUMPS], ids=str)
def test_integer_weights_give_the_model_of_the_repeated_rows(learner):
    data = random_data(3, n=15)
    weights = np.random.default_rng(0).integers(0, 5, size=15)
    for seed in range(10):
        model = BaggingClassifier(learner, 4, random_state=seed)
        found = model.fit(data.X, data.y, weights).predict_proba(data.X)
        again = model.fit(data.X.repeat(weights, 0), data.y.repeat(weights)).predict_proba(data.X)
        np.testing.assert_allclose(found, again, rtol=1e-6, atol=1e-9)


def test_heavy_integer_weights_are_factors():
    weights = np.array([1.0, 2.0, 300.0])
    repeats, factor = repetitions(weights)
    np.testing.assert_array_equal(repeats, [1, 1, 1])
    np.testing.assert_array_equal(factor, weights)


def test_the_model_does_not_depend_on_the_order_of_the_rows():
    data = random_data(3, n=200)
    mixed = np.random.default_rng(1).permutation(200)
    for learner in (STUMPS, KNeighborsClassifier(3)):
        first = BaggingClassifier(learner, 6, random_state=2).fit(data.X, data.y)
        other = BaggingClassifier(learner, 6, random_state=2).fit(data.X[mixed], data.y[mixed])
        np.testing.assert_array_equal(first.predict_proba(data.X), other.predict_proba(data.X))


# ---- bags


def test_bags_hold_sixty_three_per_cent_of_the_rows():
    X = np.random.default_rng(0).normal(size=(20_000, 1))
    model = BaggingRegressor(LinearRegression(), 10, random_state=0).fit(X, X[:, 0])
    shares = [len(np.unique(rows)) / 20_000 for rows in model.estimators_samples_]
    assert abs(np.mean(shares) - (1.0 - np.exp(-1.0))) < 0.002
    assert all(len(rows) == 20_000 for rows in model.estimators_samples_)


@pytest.mark.parametrize(("max_samples", "size"), [(0.25, 50), (30, 30), (1.0, 200), (0.001, 1)])
@pytest.mark.parametrize("bootstrap", [True, False])
def test_bags_have_the_size_asked_for(max_samples, size, bootstrap):
    data = random_data(n=200)
    model = BaggingRegressor(
        Ridge(), 5, max_samples=max_samples, bootstrap=bootstrap, random_state=0
    ).fit(data.X, data.y)
    for rows in model.estimators_samples_:
        assert len(rows) == size
        if not bootstrap:
            assert len(np.unique(rows)) == size


def test_more_draws_than_rows_are_allowed_with_replacement():
    data = random_data(n=50)
    model = BaggingRegressor(Ridge(), 2, max_samples=120).fit(data.X, data.y)
    assert len(model.estimators_samples_[0]) == 120


def test_bags_are_those_of_the_draws():
    data = random_data(n=60)
    order = np.argsort(row_keys(data.y, data.X), kind="stable")
    for replace, draw in ((True, bootstrap_counts), (False, subset_counts)):
        bags = make_bags(
            data.X, data.y, None, None, seed=5, replace=replace, max_samples=30, takes_weights=True
        )
        np.testing.assert_array_equal(bags.counts(2)[order], draw(5, 2, 60, 30))


@pytest.mark.parametrize(("max_features", "size"), [(0.5, 3), (2, 2), (1.0, 6), (0.01, 1)])
@pytest.mark.parametrize("replace", [True, False])
def test_features_are_drawn_and_learners_see_no_others(max_features, size, replace):
    data = random_data(n=100, p=6)
    model = BaggingClassifier(
        Recorder(), 8, max_features=max_features, bootstrap_features=replace, random_state=0
    ).fit(data.X, data.y)
    for learner, features in zip(model.estimators_, model.estimators_features_, strict=True):
        assert len(features) == size
        np.testing.assert_array_equal(learner.X_, data.X[:, features])
        if not replace:
            assert len(np.unique(features)) == size
    if size < 6:
        assert len({tuple(f.tolist()) for f in model.estimators_features_}) > 1


def test_all_features_once_are_no_copy():
    data = random_data(n=100)
    model = BaggingClassifier(PlainRecorder(), 2, bootstrap=False).fit(data.X, data.y)
    assert all(learner.X_ is data.X for learner in model.estimators_)


def test_learners_have_seeds_of_their_own():
    data = random_data(n=60)
    pipeline = make_pipeline(StandardScaler(), DecisionTreeClassifier())
    model = BaggingClassifier(pipeline, 4, random_state=3).fit(data.X, data.y)
    states = [learner[-1].random_state for learner in model.estimators_]
    assert len(set(states)) == 4
    again = BaggingClassifier(pipeline, 4, random_state=3).fit(data.X, data.y)
    assert states == [learner[-1].random_state for learner in again.estimators_]
    assert pipeline[-1].random_state is None


# ---- one seed, one model


@pytest.mark.slow
@pytest.mark.parametrize("learner", [STUMPS, TREE, KNeighborsClassifier(3)], ids=str)
def test_the_model_is_the_same_for_any_number_of_jobs(learner):
    data = random_data(3, n=200)
    params = {"max_features": 0.7, "oob_score": True, "random_state": 1}
    alone = BaggingClassifier(learner, 20, n_jobs=1, **params).fit(data.X, data.y)
    many = BaggingClassifier(learner, 20, n_jobs=4, **params).fit(data.X, data.y)
    np.testing.assert_array_equal(alone.predict_proba(data.X), many.predict_proba(data.X))
    np.testing.assert_array_equal(alone.oob_decision_function_, many.oob_decision_function_)


def test_another_seed_gives_other_bags():
    data = random_data()
    bags = [
        BaggingClassifier(TREE, 1, random_state=seed).fit(data.X, data.y).estimators_samples_[0]
        for seed in (0, 1, None)
    ]
    assert not np.array_equal(bags[0], bags[1])
    assert not np.array_equal(bags[0], bags[2])


@pytest.mark.slow
@pytest.mark.parametrize(
    "params", [{}, {"max_features": 0.5}, {"bootstrap": False, "max_samples": 0.5}], ids=str
)
def test_every_namespace_gives_the_model_of_numpy(place, params):
    data = random_data(3, n=80).with_missing().with_weights()
    expected = BaggingClassifier(STUMPS, 2, random_state=0, **params)
    expected.fit(data.X, data.y, data.weights)
    found = BaggingClassifier(STUMPS, 2, random_state=0, **params)
    found.fit(place.put(data.X), place.put(data.y), place.put(data.weights))
    for one, other in zip(found.estimators_, expected.estimators_, strict=True):
        assert one.model_.fingerprint() == other.model_.fingerprint()
    P = found.predict_proba(place.put(data.X))
    place.check(P, "float64")
    np.testing.assert_allclose(place.host(P), expected.predict_proba(data.X), rtol=1e-12)
    labels = found.predict(place.put(data.X))
    place.check(labels, "int64")
    np.testing.assert_array_equal(place.host(labels), expected.predict(data.X))
    assert found.score(place.put(data.X), place.put(data.y)) == expected.score(data.X, data.y)
    place.check(found.predict_proba(place.put(data.X.astype(np.float32))), "float32")


@pytest.mark.slow
def test_regression_in_every_namespace_gives_the_model_of_numpy(place):
    X, y = make_friedman1(150, random_state=0)
    learner = BoostingRegressor(n_estimators=10, max_depth=1)
    expected = BaggingRegressor(learner, 15, oob_score=True, random_state=0).fit(X, y)
    found = BaggingRegressor(learner, 15, oob_score=True, random_state=0)
    found.fit(place.put(X), place.put(y))
    np.testing.assert_allclose(found.oob_prediction_, expected.oob_prediction_, rtol=1e-12)
    prediction = found.predict(place.put(X))
    place.check(prediction, "float64")
    np.testing.assert_allclose(place.host(prediction), expected.predict(X), rtol=1e-12)


@pytest.mark.parametrize("kind", [BaggingClassifier, BaggingRegressor])
def test_the_default_is_our_tree_and_the_same_everywhere(place, kind):
    data = random_data(3, n=120).with_missing()
    expected = kind(n_estimators=4, max_features=0.5, random_state=0).fit(data.X, data.y)
    found = kind(n_estimators=4, max_features=0.5, random_state=0)
    found.fit(place.put(data.X), place.put(data.y))
    for one, other in zip(found.estimators_, expected.estimators_, strict=True):
        assert type(one).__module__ == "ensemble_gpu.trees.tree"
        assert one.model_.fingerprint() == other.model_.fingerprint()
    prediction = place.host(found.predict(place.put(data.X)))
    np.testing.assert_array_equal(prediction, expected.predict(data.X))


@pytest.mark.parametrize("engine", ["cpu", "reference"])
def test_engines_agree_also_in_threads(engine):
    data = random_data(3, n=100)
    expected = BaggingClassifier(STUMPS, 4, random_state=0).fit(data.X, data.y)
    with use_engine(engine):
        found = BaggingClassifier(STUMPS, 4, n_jobs=2, random_state=0).fit(data.X, data.y)
    for one, other in zip(found.estimators_, expected.estimators_, strict=True):
        assert one.engine_ == engine
        assert one.model_.fingerprint() == other.model_.fingerprint()


def test_a_foreign_learner_refuses_what_only_a_device_holds():
    data, place = random_data(), DEVICE
    model = BaggingClassifier(TREE, 2)
    with pytest.raises(ValueError, match="DecisionTreeClassifier works on NumPy arrays"):
        model.fit(place.put(data.X), place.put(data.y))
    assert not hasattr(model, "estimators_")
    model.fit(data.X, data.y)
    with pytest.raises(ValueError, match="device='cpu' copies X"):
        model.predict(place.put(data.X))


@pytest.mark.parametrize("kind", [BaggingClassifier, BaggingRegressor])
def test_a_foreign_learner_gets_a_copy_on_the_host_where_device_says_so(kind):
    place = DEVICE
    data = random_data(n=100).with_weights()
    learner = TREE if kind is BaggingClassifier else DecisionTreeRegressor()
    expected = kind(learner, 3, random_state=0).fit(data.X, data.y, data.weights)
    found = kind(learner, 3, device="cpu", random_state=0)
    found.fit(*(place.put(a) for a in (data.X, data.y, data.weights)))
    prediction = found.predict(place.put(data.X))
    assert locate(prediction).device == place.device
    np.testing.assert_array_equal(place.host(prediction), expected.predict(data.X))
    np.testing.assert_array_equal(found.predict(data.X), expected.predict(data.X))


def test_our_learners_work_on_the_host_where_device_says_so():
    data, place = random_data(n=100), DEVICE
    model = BaggingClassifier(n_estimators=2, device="cpu").fit(place.put(data.X), data.y)
    assert {learner.engine_ for learner in model.estimators_} == {"cpu"}
    place.check(model.predict_proba(place.put(data.X)), "float64")


@pytest.mark.parametrize("place", NARROW, ids=str)
def test_a_device_without_wide_numbers_is_served_by_the_host(place):
    data = random_data(n=100)
    X, y = place.put(data.X.astype(np.float32)), place.put(data.y.astype(np.int32))
    with pytest.warns(RuntimeWarning, match="no 64-bit numbers"):
        model = BaggingClassifier(TREE, 3, random_state=0).fit(X, y)
    with pytest.warns(RuntimeWarning, match="no 64-bit numbers"):
        P = model.predict_proba(X)
    assert (P.device, P.dtype) == (place.device, place.xp.float32)
    expected = BaggingClassifier(TREE, 3, random_state=0).fit(data.X, data.y)
    np.testing.assert_allclose(place.host(P), expected.predict_proba(data.X), rtol=1e-6)


@pytest.mark.interop
@pytest.mark.parametrize("learner", [STUMPS, TREE, KNeighborsClassifier(3)], ids=str)
def test_other_libraries_on_the_host_give_the_model_of_numpy(library, learner):
    data = random_data(3, n=150)
    expected = BaggingClassifier(learner, 4, max_features=0.7, random_state=0)
    expected.fit(data.X, data.y)
    found = BaggingClassifier(learner, 4, max_features=0.7, random_state=0)
    found.fit(library.put(data.X), library.put(data.y))
    P = found.predict_proba(library.put(data.X))
    library.check(P, "float64")
    np.testing.assert_array_equal(library.host(P), expected.predict_proba(data.X))
    library.check(found.predict(library.put(data.X)), "int64")


# ---- answers


LEARNERS = [
    STUMPS, TREE, GaussianNB(), KNeighborsClassifier(3), Perceptron(),
    LogisticRegression(max_iter=1000),
]  # fmt: skip


@pytest.mark.parametrize("voting", ["soft", "hard"])
@pytest.mark.parametrize("learner", LEARNERS, ids=str)
def test_predict_is_the_argmax_of_predict_proba(learner, voting):
    data = random_data(3, n=150)
    model = BaggingClassifier(learner, 7, voting=voting, random_state=0).fit(data.X, data.y)
    P = model.predict_proba(data.X)
    np.testing.assert_allclose(P.sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.predict(data.X), model.classes_[P.argmax(axis=1)])
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(model.predict_log_proba(data.X), np.log(P))


def test_soft_is_the_mean_of_probabilities_and_hard_the_share_of_votes():
    data = random_data(3, n=150)
    model = BaggingClassifier(GaussianNB(), 5, random_state=0).fit(data.X, data.y)
    mean = np.mean([learner.predict_proba(data.X) for learner in model.estimators_], axis=0)
    np.testing.assert_allclose(model.predict_proba(data.X), mean)
    votes = np.array([learner.predict(data.X) for learner in model.estimators_])
    shares = (votes[:, :, None] == np.arange(3)).mean(axis=0)
    model.voting = "hard"
    np.testing.assert_allclose(model.predict_proba(data.X), shares)


def test_learners_without_probabilities_vote():
    data = random_data(n=150)
    soft = BaggingClassifier(Perceptron(), 5, random_state=0).fit(data.X, data.y)
    hard = BaggingClassifier(Perceptron(), 5, voting="hard", random_state=0).fit(data.X, data.y)
    np.testing.assert_array_equal(soft.predict_proba(data.X), hard.predict_proba(data.X))
    assert set(np.round(5 * soft.predict_proba(data.X)).ravel()) <= set(range(6))


def test_decision_function_agrees_with_predict_and_is_there_if_the_learner_has_one():
    data = random_data(n=150)
    model = BaggingClassifier(STUMPS, 5, random_state=0).fit(data.X, data.y)
    F = model.decision_function(data.X)
    assert F.shape == (150,)
    np.testing.assert_array_equal(model.predict(data.X), (F > 0).astype(int))
    assert not hasattr(BaggingClassifier(KNeighborsClassifier()), "decision_function")
    data = random_data(3, n=150)
    model.fit(data.X, data.y)
    assert model.decision_function(data.X).shape == (150, 3)


def test_the_prediction_is_the_mean_of_the_learners():
    X, y = load_diabetes(return_X_y=True)
    model = BaggingRegressor(Ridge(), 6, max_features=0.5, random_state=0).fit(X, y)
    pairs = zip(model.estimators_, model.estimators_features_, strict=True)
    mean = np.mean([learner.predict(X[:, features]) for learner, features in pairs], axis=0)
    np.testing.assert_allclose(model.predict(X), mean)


@pytest.mark.parametrize(
    "learner", [STUMPS, TREE, GaussianNB(), KNeighborsClassifier(1), SVC()], ids=str
)
def test_classes_missing_from_a_bag_have_no_probability_there(learner):
    """Five classes, three draws: most bags miss some, and some hold one only."""
    data = random_data(5, n=60)
    model = BaggingClassifier(learner, 30, max_samples=3, random_state=0).fit(data.X, data.y)
    P = model.predict_proba(data.X)
    assert P.shape == (60, 5)
    np.testing.assert_allclose(P.sum(axis=1), 1.0)
    missing = {5 - len(np.unique(data.y[rows])) for rows in model.estimators_samples_}
    assert missing == {2, 3, 4}
    constant = [isinstance(member, OneClass) for member in model.estimators_]
    assert constant == [len(np.unique(data.y[rows])) == 1 for rows in model.estimators_samples_]
    np.testing.assert_array_equal(model.predict(data.X), P.argmax(axis=1))


@pytest.mark.parametrize("learner", [None, STUMPS, TREE, LogisticRegression()], ids=str)
def test_one_class_is_learned(learner):
    X = random_data(n=20).X
    model = BaggingClassifier(learner, 3).fit(X, ["a"] * 20)
    assert model.classes_.tolist() == ["a"]
    np.testing.assert_array_equal(model.predict_proba(X), np.ones((20, 1)))
    assert model.score(X, ["a"] * 20) == 1.0


@pytest.mark.parametrize("learner", [None, STUMPS, TREE, GaussianNB()], ids=str)
def test_classes_without_weight_are_classes_as_in_trees(learner):
    data = random_data(3, n=150)
    weights = np.where(data.y == 1, 0.0, 1.0)
    model = BaggingClassifier(learner, 4, random_state=0).fit(data.X, data.y, weights)
    alone = RandomForestClassifier(2).fit(data.X, data.y, weights)
    np.testing.assert_array_equal(model.classes_, alone.classes_)
    P = model.predict_proba(data.X)
    assert P.shape == (150, 3)
    assert (P[:, 1] == 0.0).all()
    np.testing.assert_allclose(P.sum(axis=1), 1.0)


@pytest.mark.parametrize(
    "labels", [["no", "yes", "maybe"], [-1, 7, 30], [2.0, 3.0, 9.0], [("a", 1), None.__class__, 3]],
    ids=["strings", "integers", "floats", "objects"],
)  # fmt: skip
def test_labels_of_any_kind_come_back(labels):
    data = random_data(3, n=100)
    kinds = np.empty(3, dtype=object)
    kinds[:] = labels
    y = kinds[data.y] if isinstance(labels[0], tuple) else np.array(labels)[data.y]
    model = BaggingClassifier(TREE, 5, random_state=0).fit(data.X, y)
    assert model.n_classes_ == 3
    assert set(model.predict(data.X).tolist()) <= set(y.tolist())
    assert np.mean(model.predict(data.X) == y) > 0.9


def test_missing_values_are_taken_where_the_learner_takes_them():
    data = random_data().with_missing()
    for learner in (STUMPS, TREE):
        model = BaggingClassifier(learner, 3).fit(data.X, data.y)
        assert np.isfinite(model.predict_proba(data.X)).all()
    refusing = BaggingClassifier(GaussianNB(), 3)
    with pytest.raises(ValueError, match=r"X contains NaN, which GaussianNB does not accept"):
        refusing.fit(data.X, data.y)
    refusing.fit(np.nan_to_num(data.X), data.y)
    with pytest.raises(ValueError, match="GaussianNB"):
        refusing.predict(data.X)


def test_bagging_trees_beats_one_tree():
    X, y = make_friedman1(600, noise=1.0, random_state=0)
    one = DecisionTreeRegressor(random_state=0).fit(X[:300], y[:300]).score(X[300:], y[300:])
    many = BaggingRegressor(DecisionTreeRegressor(), 30, random_state=0).fit(X[:300], y[:300])
    assert many.score(X[300:], y[300:]) > one + 0.1


# ---- out of bag


@pytest.mark.slow
def test_out_of_bag_score_is_close_to_the_score_on_test_rows():
    X, y = load_breast_cancer(return_X_y=True)
    gaps = []
    for seed in range(5):
        X_fit, X_test, y_fit, y_test = train_test_split(X, y, test_size=0.5, random_state=seed)
        model = BaggingClassifier(TREE, 40, oob_score=True, random_state=seed).fit(X_fit, y_fit)
        gaps.append(model.oob_score_ - model.score(X_test, y_test))
    assert abs(np.mean(gaps)) < 0.02


def test_out_of_bag_r2_is_close_to_the_score_on_test_rows():
    X, y = make_friedman1(800, noise=1.0, random_state=1)
    model = BaggingRegressor(DecisionTreeRegressor(), 60, oob_score=True, random_state=0)
    model.fit(X[:400], y[:400])
    assert abs(model.oob_score_ - model.score(X[400:], y[400:])) < 0.06
    assert model.oob_prediction_.shape == (400,)


@pytest.mark.parametrize(
    "params", [{}, {"bootstrap": False, "max_samples": 0.6}, {"max_features": 2}], ids=str
)
def test_out_of_bag_predictions_are_those_of_the_learners_that_did_not_see_the_row(params):
    iris = load_iris()
    model = BaggingClassifier(TREE, 25, oob_score=True, random_state=0, **params)
    model.fit(iris.data, iris.target)
    bags = [set(rows.tolist()) for rows in model.estimators_samples_]
    for row in range(0, 150, 10):
        blind = [
            learner.predict_proba(iris.data[row : row + 1, features])[0]
            for learner, features, bag in zip(
                model.estimators_, model.estimators_features_, bags, strict=True
            )
            if row not in bag
        ]
        np.testing.assert_allclose(model.oob_decision_function_[row], np.mean(blind, axis=0))
    right = model.oob_decision_function_.argmax(axis=1) == iris.target
    assert model.oob_score_ == pytest.approx(right.mean())


def test_out_of_bag_score_counts_weights():
    data = random_data(n=200).with_weights()
    model = BaggingClassifier(TREE, 40, oob_score=True, random_state=0)
    model.fit(data.X, data.y, data.weights)
    right = model.oob_decision_function_.argmax(axis=1) == data.y
    assert model.oob_score_ == pytest.approx(np.average(right, weights=data.weights))


def test_rows_in_every_bag_have_no_prediction_and_a_warning_says_so():
    data = random_data(n=100)
    model = BaggingClassifier(TREE, 2, oob_score=True, random_state=0)
    with pytest.warns(UserWarning, match="no out-of-bag prediction") as caught:
        model.fit(data.X, data.y)
    assert caught[0].filename == __file__
    inside = np.isin(np.arange(100), model.estimators_samples_[0])
    inside &= np.isin(np.arange(100), model.estimators_samples_[1])
    np.testing.assert_array_equal(np.isnan(model.oob_decision_function_).all(axis=1), inside)
    assert 0.0 < model.oob_score_ < 1.0
    regressor = BaggingRegressor(DecisionTreeRegressor(), 2, oob_score=True, random_state=0)
    with pytest.warns(UserWarning, match="no out-of-bag prediction"):
        regressor.fit(data.X, data.y)
    assert np.isnan(regressor.oob_prediction_).any()


def test_the_out_of_bag_score_may_be_a_callable():
    iris = load_iris()
    y = iris.target_names[iris.target]
    model = BaggingClassifier(TREE, 30, oob_score=balanced_accuracy_score, random_state=0)
    model.fit(iris.data, y)
    found = model.classes_[model.oob_decision_function_.argmax(axis=1)]
    assert model.oob_score_ == balanced_accuracy_score(y, found)
    X, y = load_diabetes(return_X_y=True)
    model = BaggingRegressor(Ridge(), 30, oob_score=mean_absolute_error, random_state=0).fit(X, y)
    assert model.oob_score_ == mean_absolute_error(y, model.oob_prediction_)


@pytest.mark.parametrize("weights", [None, [1.0, 0.0]], ids=["alike", "one has none"])
@pytest.mark.parametrize("kind", [BaggingClassifier, BaggingRegressor])
def test_no_row_out_of_the_bag_is_an_error(kind, weights):
    X, y = [[1.0], [2.0]], [0, 1]
    X, y = (X, y) if weights else (X[:1], y[:1])
    model = kind(n_estimators=3, oob_score=True, random_state=0)
    with pytest.raises(ValueError, match="oob_score needs rows out of the bag: every row is in"):
        model.fit(X, y, weights)
    assert not hasattr(model, "estimators_")


def test_no_out_of_bag_attributes_unless_asked_for():
    data = random_data()
    model = BaggingClassifier(TREE, 30, oob_score=True, random_state=0).fit(data.X, data.y)
    model.set_params(oob_score=False).fit(data.X, data.y)
    assert not hasattr(model, "oob_score_")
    assert not hasattr(model, "oob_decision_function_")


# ---- bad input


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ({"estimator": "tree"}, TypeError, "estimator must have a method fit .*; got 'tree'"),
        ({"estimator": StandardScaler()}, TypeError, "must have a method predict"),
        ({"estimator": TREE.__class__}, TypeError, "must be an instance"),
        ({"estimator": Ridge()}, TypeError, r"must be a classifier; got Ridge\(\), a regressor"),
        ({"estimator": KMeans()}, TypeError, "must be a classifier"),
        ({"n_estimators": 0}, ValueError, "n_estimators must be an integer >= 1; got 0"),
        ({"n_estimators": 2.5}, TypeError, "n_estimators"),
        ({"max_samples": 0}, ValueError, r"an integer >= 1 or a float in \(0, 1\]; got 0"),
        ({"max_samples": 1.5}, ValueError, r"an integer >= 1 or a float in \(0, 1\]; got 1.5"),
        ({"max_samples": -0.1}, ValueError, "max_samples"),
        ({"max_samples": float("nan")}, ValueError, "max_samples"),
        ({"max_samples": True}, TypeError, "max_samples"),
        ({"max_samples": "all"}, TypeError, "max_samples"),
        ({"max_samples": 251, "bootstrap": False}, ValueError, "at most .* 250.* got 251"),
        ({"max_features": 7}, ValueError, "max_features must be at most .* 6; got 7"),
        ({"max_features": 0.0}, ValueError, "max_features"),
        ({"max_features": "sqrt"}, TypeError, "max_features must be an integer >= 1 or a float"),
        ({"bootstrap": 1}, ValueError, "bootstrap must be True or False"),
        ({"bootstrap_features": None}, ValueError, "bootstrap_features"),
        ({"warm_start": "yes"}, ValueError, "warm_start"),
        ({"oob_score": "accuracy"}, ValueError, "oob_score must be True, False or a callable"),
        ({"oob_score": True, "bootstrap": False}, ValueError, "leave none out"),
        ({"voting": "loud"}, ValueError, "voting must be one of 'soft', 'hard'; got 'loud'"),
        ({"n_jobs": 0}, ValueError, "n_jobs"),
        ({"n_jobs": 1.5}, TypeError, "n_jobs"),
        ({"random_state": "seed"}, ValueError, "random_state must be None, .*; got 'seed'"),
        ({"random_state": -1}, ValueError, "random_state must be None, an integer .*; got -1"),
        ({"device": "gpu"}, ValueError, "device must be one of None, 'cpu', .*; got 'gpu'"),
    ],
    ids=str,
)
def test_bad_parameters_are_named_and_nothing_is_fitted(params, error, message):
    data = random_data()
    model = BaggingClassifier(**{"estimator": TREE, **params})
    with pytest.raises(error, match=message):
        model.fit(data.X, data.y)
    assert not [name for name in vars(model) if name.endswith("_")]


def test_a_classifier_is_no_regressor():
    data = random_data()
    with pytest.raises(TypeError, match=r"estimator must be a regressor; got .*, a cl"):
        BaggingRegressor(TREE).fit(data.X, data.y)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": np.zeros(3)}, "y has 3"),
        ({"y": None}, "requires y"),
        ({"X": np.full((250, 6), np.inf)}, "infinity"),
        ({"X": np.zeros((0, 6))}, "0 sample"),
        ({"sample_weight": np.zeros(250)}, "zero for every row"),
        ({"sample_weight": -np.ones(250)}, "must be >= 0"),
        ({"sample_weight": np.ones(3)}, "sample_weight has 3"),
    ],
)
def test_a_bad_fit_leaves_the_earlier_one(change, message):
    data = random_data()
    model = BaggingClassifier(TREE, 3, random_state=0).fit(data.X, data.y)
    before = model.predict_proba(data.X)
    with pytest.raises(ValueError, match=message):
        model.fit(**{"X": data.X, "y": data.y, "sample_weight": None, **change})
    np.testing.assert_array_equal(model.predict_proba(data.X), before)


def test_an_error_of_a_learner_is_passed_on_and_nothing_is_fitted():
    data = random_data()
    model = BaggingClassifier(DecisionTreeClassifier(max_depth=-1), 3, n_jobs=2)
    with pytest.raises(ValueError, match="max_depth"):
        model.fit(data.X, data.y)
    assert not hasattr(model, "estimators_")


def test_mixed_places_are_refused():
    data = random_data()
    with pytest.raises(ValueError, match="one array library on one device"):
        BaggingClassifier(STUMPS, 2).fit(data.X, STRICT[0].put(data.y))


def test_fit_does_not_change_its_arguments():
    data = random_data().with_weights()
    X, y, weights = data.X.copy(), data.y.copy(), data.weights.copy()
    learner = DecisionTreeClassifier()
    BaggingClassifier(learner, 3).fit(X, y, weights).predict(X)
    np.testing.assert_array_equal(X, data.X)
    np.testing.assert_array_equal(y, data.y)
    np.testing.assert_array_equal(weights, data.weights)
    assert not hasattr(learner, "tree_")


def test_a_constant_learner_answers_where_x_is(place):
    X = place.put(np.zeros((4, 2)))
    constant = OneClass(3).fit(X, None)
    place.check(constant.predict(X), "int64")
    place.check(constant.predict_proba(X), "float64")
    assert locate(constant.predict_proba(X)).device == locate(X).device
