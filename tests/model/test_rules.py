"""Rules of a tree: exactly one fires for every row, and it says what the tree predicts."""

from __future__ import annotations

import numpy as np
import pytest

from ensemble_gpu import (
    BoostingRegressor,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    RandomForestClassifier,
    rules,
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 4))
X[RNG.random(X.shape) < 0.1] = np.nan
X[:, 3] = RNG.integers(0, 7, size=300)
SCORE = np.nan_to_num(X[:, 0]) * np.nan_to_num(X[:, 1]) + (X[:, 3] % 3 == 0)
LABELS = np.array(["low", "mid", "high"])[np.digitize(SCORE, [0.0, 0.8])]


def unseen() -> np.ndarray:
    """Rows with missing values and categories that were not there."""
    more = RNG.normal(size=(200, 4)) * 2.0
    more[RNG.random(more.shape) < 0.2] = np.nan
    more[:, 3] = RNG.integers(-2, 10, size=200)
    return more


@pytest.mark.parametrize("split", ["subset", "single"])
@pytest.mark.parametrize("categorical", [None, [3]], ids=["numbers", "categories"])
def test_exactly_one_rule_fires_for_every_row_and_gives_the_prediction(categorical, split):
    tree = DecisionTreeClassifier(
        max_depth=6, categorical_features=categorical, categorical_split=split
    ).fit(X, LABELS)
    found = rules(tree)
    assert len(found) == tree.model_.n_leaves()
    for rows in (X, unseen()):
        fired = np.array([rule.fires(rows) for rule in found])
        np.testing.assert_array_equal(fired.sum(axis=0), 1)
        at = fired.argmax(axis=0)
        np.testing.assert_array_equal([found[i].label for i in at], tree.predict(rows))
        np.testing.assert_array_equal([found[i].leaf for i in at], tree.apply(rows))
        shares = [found[i].confidence for i in at]
        np.testing.assert_allclose(shares, tree.predict_proba(rows).max(axis=1))


def test_tests_of_a_feature_are_merged():
    tree = DecisionTreeRegressor(max_depth=8).fit(X[:, :2], SCORE)
    for rule in rules(tree):
        assert [test.feature for test in rule.tests] == sorted({t.feature for t in rule.tests})
    assert max(len(rule.tests) for rule in rules(tree)) <= 2 < tree.model_.depth()


def test_support_is_the_share_of_the_weight_in_the_leaf():
    w = RNG.gamma(1.0, size=300)
    tree = DecisionTreeClassifier(max_depth=3).fit(X, LABELS, w)
    found = rules(tree)
    assert sum(rule.support for rule in found) == pytest.approx(1.0)
    assert sum(rule.n_rows for rule in found) == 300
    for rule in found:
        fired = rule.fires(X)
        assert rule.support == pytest.approx(w[fired].sum() / w.sum(), rel=1e-6)
        own = w[fired & (rule.label == LABELS)].sum() / w[fired].sum()
        assert rule.confidence == pytest.approx(own, rel=1e-6)


def test_rules_of_regressions_and_boosted_trees_give_values():
    tree = DecisionTreeRegressor(max_depth=3).fit(X, SCORE)
    for rule in rules(tree):
        np.testing.assert_allclose(tree.predict(X[rule.fires(X)]), rule.values[0])
        assert rule.label is rule.confidence is None
    forest = BoostingRegressor(n_estimators=3, max_depth=2).fit(X, SCORE)
    total = np.full(300, forest.model_.intercept[0])
    for t in range(3):
        for rule in rules(forest, t):
            total[rule.fires(X)] += rule.values[0]
    np.testing.assert_allclose(forest.predict(X), total)


def test_a_rule_in_words():
    Z = np.array([[0.0, 0.0], [1.0, 0.0], [2.0, 1.0], [3.0, 1.0]] * 5)
    y = np.array(["a", "b", "b", "a"] * 5)
    tree = DecisionTreeClassifier().fit(Z, y)
    texts = [str(rule) for rule in rules(tree, feature_names=["size", "kind"], decimals=1)]
    assert sorted(text.replace(" or missing", "").replace("(", "").replace(")", "")
                  for text in texts) == [
        "if 0.5 < size <= 2.5 then class b",
        "if size <= 0.5 then class a",
        "if size > 2.5 then class a",
    ]  # fmt: skip
    (only,) = rules(DecisionTreeRegressor(max_depth=1).fit(Z, np.ones(20)))
    assert str(only) == "if always then value 1.000"
    assert only.fires(Z).all()


def test_what_has_no_trees_has_no_rules():
    with pytest.raises(TypeError, match="model must be a Forest"):
        rules(BoostingRegressor(max_depth=1, n_estimators=2).fit(X, SCORE))
    forest = RandomForestClassifier(2, random_state=0).fit(X, LABELS)
    assert rules(forest, 1)[0].values.shape == (3,)
    with pytest.raises(ValueError, match="tree must be an integer from 0 to 1"):
        rules(forest, 2)
