"""Estimators of others as learners: what is refused, and with which seeds one is cloned."""

from __future__ import annotations

import pytest
from sklearn.base import BaseEstimator
from sklearn.cluster import KMeans
from sklearn.ensemble import BaggingClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from ensemble_gpu.learners.foreign import check_learner, seeded_clone, tags_of, takes_weights


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

    made = seeded_clone(nested, seed, {"n_estimators": 5})
    assert made is not nested
    assert (made.n_estimators, nested.n_estimators) == (5, 3)
    assert (made.estimator.random_state, made.random_state) == (100, 101)
    assert asked == [0, 1]
    assert nested.random_state is None


def test_a_learner_without_random_states_is_only_cloned():
    made = seeded_clone(KNeighborsClassifier(3), pytest.fail)
    assert made.n_neighbors == 3
