"""Estimators of others as learners: what is refused, and with which seeds one is cloned."""

from __future__ import annotations

import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.cluster import KMeans
from sklearn.ensemble import BaggingClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from ensemble_gpu.learners.foreign import Clones, check_learner, tags_of, takes_weights


class Untyped(BaseEstimator):
    """Says nothing of what it is."""

    def fit(self, X, y):
        return self

    def predict(self, X):
        return X[:, 0]


@pytest.mark.parametrize(
    ("estimator", "says"),
    [
        ("tree", r"have a method fit \(a classifier .*, or None for a stump\); got 'tree'"),
        (
            DecisionTreeClassifier,
            r"be an instance of a class.*write DecisionTreeClassifier\(\)",
        ),
        (Ridge(), r"be a classifier; got Ridge\(\), a regressor"),
        (KMeans(), "be a classifier; got .*, a clusterer"),
        (Untyped(), "be a classifier; got .*, which does not say what it is"),
    ],
    ids=str,
)
def test_what_is_no_classifier_is_refused_with_what_is_allowed(estimator, says):
    with pytest.raises(TypeError, match=f"estimator must {says}"):
        check_learner(estimator, ("classifier",), "a stump")


def test_an_estimator_that_does_not_say_what_it_is_passes_where_that_is_allowed():
    check_learner(Untyped(), ("regressor", None), "a tree")
    check_learner(Ridge(), ("regressor",), "a tree")
    assert tags_of(object()) is None


def test_whether_weights_are_taken_is_known():
    assert takes_weights(LogisticRegression())
    assert not takes_weights(KNeighborsClassifier())


def test_random_states_get_seeds_in_the_order_of_their_names():
    nested = BaggingClassifier(DecisionTreeClassifier(), n_estimators=3)
    asked = []

    def seed(number: int) -> int:
        asked.append(number)
        return 100 + number

    made = Clones(nested)(seed, {"n_estimators": 5})
    assert made is not nested
    assert (made.n_estimators, nested.n_estimators) == (5, 3)
    assert (made.estimator.random_state, made.random_state) == (100, 101)
    assert asked == [0, 1]
    assert nested.random_state is None


def test_a_learner_without_random_states_is_only_cloned():
    made = Clones(KNeighborsClassifier(3))(pytest.fail)
    assert made.n_neighbors == 3


@pytest.mark.parametrize(
    "estimator",
    [
        DecisionTreeClassifier(max_depth=3, random_state=5),
        BaggingClassifier(DecisionTreeClassifier(max_depth=2)),
        DecisionTreeClassifier(class_weight={0: 2.0, 1: 1.0}),
    ],
)
def test_clones_hold_what_clones_of_sklearn_hold(estimator):
    made, expected = Clones(estimator)(lambda number: number), clone(estimator)
    assert type(made) is type(expected)
    assert vars(made).keys() == vars(expected).keys()
    given = {name: value for name, value in made.get_params().items() if "estimator" not in name}
    for name, value in given.items():
        if name != "random_state":
            assert value == expected.get_params()[name], name


def test_what_a_constructor_makes_is_not_shared_by_clones():
    class Counting(DecisionTreeClassifier):
        def __init__(self, random_state=None):
            super().__init__(random_state=random_state)
            self.seen = []

    clones = Clones(Counting())
    one, other = clones(int), clones(int)
    assert one.seen is not other.seen
    assert one is not other
