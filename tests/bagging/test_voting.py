"""Random forests that vote, and forests whose trees see some of the features only."""

from __future__ import annotations

import numpy as np
import pytest

from ensemble_gpu import RandomForestClassifier, RandomForestRegressor
from ensemble_gpu.kernels.tree_protocol import LEAF

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 6))
SCORE = X[:, 0] * X[:, 1] + X[:, 2] + 0.5 * RNG.normal(size=200)
LABELS = np.digitize(SCORE, [-0.7, 0.7])
KINDS = [(RandomForestClassifier, LABELS), (RandomForestRegressor, SCORE)]


def forest(**params):
    return RandomForestClassifier(
        **{"n_estimators": 9, "random_state": 0, "max_depth": 4, **params}
    )


def test_hard_votes_are_the_majority_of_the_trees():
    soft, hard = (forest(voting=voting).fit(X, LABELS) for voting in ("soft", "hard"))
    votes = np.array([soft.model_.tree(t)(X).argmax(axis=1) for t in range(9)])
    shares = np.array([(votes == k).mean(axis=0) for k in range(3)]).T
    np.testing.assert_allclose(hard.predict_proba(X), shares)
    np.testing.assert_array_equal(hard.predict(X), shares.argmax(axis=1))
    assert not np.allclose(soft.predict_proba(X), shares)
    np.testing.assert_array_equal(hard.apply(X), soft.apply(X))
    np.testing.assert_array_equal(hard.feature_importances_, soft.feature_importances_)


def test_votes_out_of_the_bag_are_counted():
    hard = forest(voting="hard", oob_score=True, n_estimators=40).fit(X, LABELS)
    whole = hard.oob_decision_function_.sum(axis=1)
    np.testing.assert_allclose(whole, 1.0)
    assert 0.5 < hard.oob_score_ < 1.0


def test_fully_grown_trees_of_distinct_rows_vote_as_they_share():
    soft, hard = (forest(voting=v, max_depth=None).fit(X, LABELS) for v in ("soft", "hard"))
    assert soft.model_ == hard.model_


def test_a_warm_start_keeps_the_voting():
    whole = forest(voting="hard").fit(X, LABELS)
    warm = forest(voting="hard", n_estimators=4, warm_start=True).fit(X, LABELS)
    assert warm.set_params(n_estimators=9).fit(X, LABELS).model_ == whole.model_
    with pytest.raises(ValueError, match="voting was 'hard' and is 'soft'"):
        warm.set_params(voting="soft", n_estimators=12).fit(X, LABELS)


def features_of(model, t: int) -> set[int]:
    feature = model.nodes.feature[model.span(t)]
    return set(feature[feature != LEAF].tolist())


@pytest.mark.parametrize(("kind", "y"), KINDS)
def test_a_subspace_is_drawn_for_every_tree(kind, y):
    params = {"n_estimators": 12, "max_features": 2, "random_state": 3}
    trees = kind(subspace="tree", **params).fit(X, y).model_
    used = [features_of(trees, t) for t in range(12)]
    assert max(map(len, used)) == 2
    assert len({tuple(sorted(own)) for own in used}) > 4
    assert set.union(*used) == set(range(6))
    nodes = kind(subspace="node", **params).fit(X, y).model_
    assert max(len(features_of(nodes, t)) for t in range(12)) > 2


@pytest.mark.parametrize(("kind", "y"), KINDS)
def test_nodes_of_a_subspace_try_all_of_its_features(kind, y):
    """Each tree is the one that is grown on these columns alone."""
    trees = kind(5, subspace="tree", max_features=3, random_state=1, bootstrap=False, max_depth=4)
    trees.fit(X, y)
    for t in range(5):
        own = sorted(features_of(trees.model_, t))
        alone = kind(1, max_features=None, bootstrap=False, max_depth=4).fit(X[:, own], y)
        assert len(own) == 3
        np.testing.assert_allclose(trees.model_.tree(t)(X), alone.model_(X[:, own]))


@pytest.mark.parametrize(("kind", "y"), KINDS)
def test_all_features_make_no_subspace(kind, y):
    params = {"n_estimators": 3, "max_features": None, "random_state": 3}
    one, other = (kind(subspace=s, **params).fit(X, y).model_ for s in ("node", "tree"))
    assert one == other


def test_the_model_is_the_same_on_every_engine_and_in_any_order(engine):
    params = {"subspace": "tree", "voting": "hard", "max_features": 2, "max_depth": 3}
    found = forest(**params).fit(X, LABELS).model_
    assert found.fingerprint() == EXPECTED.setdefault("print", found.fingerprint())
    order = RNG.permutation(200)
    assert forest(**params).fit(X[order], LABELS[order]).model_ == found


EXPECTED: dict[str, str] = {}


@pytest.mark.parametrize(
    ("params", "says"),
    [({"voting": "loud"}, "voting must be one of"), ({"subspace": "leaf"}, "subspace must be one")],
)
def test_unknown_choices_are_named(params, says):
    with pytest.raises(ValueError, match=says):
        forest(**params).fit(X, LABELS)
