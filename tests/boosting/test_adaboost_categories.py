"""Categories in AdaBoost's stumps: sets of them, scored as thresholds are."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

from ensemble_gpu import AdaBoostClassifier, BoostingClassifier, DecisionTreeClassifier, use_engine
from ensemble_gpu.model.forest import Forest
from tests.boosting.replaying import plans, whole_and_resumed
from tests.places import PLACES

VARIANTS = ["real", "gentle", "discrete"]
SPLITS = ["subset", "single"]


def mixed(n: int = 300, n_classes: int = 2, missing: bool = False, seed: int = 0):
    """Column 0 a number, column 1 six categories, column 2 three; y depends on sets of them."""
    rng = np.random.default_rng(seed)
    C, D, x = rng.integers(6, size=n), rng.integers(3, size=n), np.round(rng.normal(size=n), 1)
    score = 1.2 * np.isin(C, [1, 4]) + 0.6 * x + 0.5 * (D == 1) + rng.normal(size=n)
    y = np.digitize(score, np.quantile(score, np.arange(1, n_classes) / n_classes))
    X = np.column_stack([x, C, D]).astype(np.float64)
    if missing:
        X[rng.random(X.shape) < 0.15] = np.nan
    return X, y


def made(**params: Any) -> AdaBoostClassifier:
    given: dict[str, Any] = {"categorical_features": [1, 2], "calibrate": False} | params
    return AdaBoostClassifier(**given)


# --- brute force -------------------------------------------------------------------------------


def leaf_cost(w: np.ndarray, y: np.ndarray, K: int, variant: str) -> float:
    """Z / 2, a quarter of the squared error, or the weight of the wrong rows of one leaf."""
    by_class = np.array([w[y == k].sum() for k in range(K)])
    if variant == "discrete":
        return by_class.sum() - by_class.max()
    cost = 0.0
    for plus in by_class if K > 2 else by_class[1:]:
        minus = by_class.sum() - plus
        if variant == "real":
            cost += np.sqrt(plus * minus)
        elif plus + minus > 0:
            cost += plus * minus / (plus + minus)
    return cost


def every_split(X: np.ndarray, split: str):
    """(feature, rows that go left) of every threshold and every set; missing on either side."""
    for f in range(X.shape[1]):
        x = X[:, f]
        absent, values = np.isnan(x), np.unique(x[~np.isnan(x)])
        sides = [False, True] if absent.any() else [False]
        if f == 0:
            sets = [values[: k + 1] for k in range(len(values) - 1)]
        else:
            most = 1 if split == "single" else len(values) - 1
            sets = [s for k in range(1, most + 1) for s in combinations(values, k)]
        if absent.any():
            sets.append(values)
        for chosen in sets:
            for side in sides:
                yield f, np.isin(x, chosen) | (absent & side)


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("variant", VARIANTS)
def test_every_round_takes_the_best_of_all_sets(variant, split, missing):
    X, y = mixed(150, missing=missing)
    model = made(variant=variant, categorical_split=split, n_estimators=6).fit(X, y)
    forest, w = model.model_, np.full(150, 1 / 150)
    for t in range(6):
        h = forest.tree(t)(X)[:, 0]
        leaf = forest.tree(t).apply(X)[:, 0]
        found = sum(leaf_cost(w[leaf == k], y[leaf == k], 2, variant) for k in (1, 2))
        best = min(
            leaf_cost(w[left], y[left], 2, variant) + leaf_cost(w[~left], y[~left], 2, variant)
            for _, left in every_split(X, split)
        )
        assert found <= best * (1.0 + 1e-5)
        w = w * np.exp(-(2 * y - 1) * h)
        w /= w.sum()


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_first_split_of_single_categories_of_several_classes_is_the_best(variant):
    X, y = mixed(200, n_classes=3)
    model = made(variant=variant, categorical_split="single", n_estimators=1).fit(X, y)
    leaf, w = model.model_.apply(X)[:, 0], np.full(200, 1 / 200)
    found = sum(leaf_cost(w[leaf == k], y[leaf == k], 3, variant) for k in (1, 2))
    best = min(
        leaf_cost(w[left], y[left], 3, variant) + leaf_cost(w[~left], y[~left], 3, variant)
        for _, left in every_split(X, "single")
    )
    assert found <= best * (1.0 + 1e-5)


@pytest.mark.parametrize("variant", VARIANTS)
def test_leaf_values_are_those_of_the_formulas(variant):
    X, y = mixed(120)
    model = made(variant=variant, n_estimators=1).fit(X, y)
    leaf = model.model_.apply(X)[:, 0]
    for k in (1, 2):
        plus, minus = ((y[leaf == k] == c).sum() / 120 for c in (1, 0))
        value = model.model_.nodes.value[k, 0]
        if variant == "real":
            s = 1 / 240
            assert value == pytest.approx(0.5 * np.log((plus + s) / (minus + s)), rel=1e-6)
        elif variant == "gentle":
            assert value == pytest.approx((plus - minus) / (plus + minus), rel=1e-6)
        else:
            assert np.sign(value) == np.sign(plus - minus)


# --- the same model everywhere -----------------------------------------------------------------


# stumps of one class are for real and gentle; their scale is learnt in one form
@pytest.mark.slow
@pytest.mark.parametrize(
    ("variant", "n_classes", "multiclass", "calibrate"),
    [
        ("real", 2, "shared", True),
        ("real", 3, "shared", False),
        ("real", 3, "single", False),
        ("gentle", 3, "single", True),
        ("gentle", 2, "shared", False),
        ("discrete", 3, "shared", False),
        ("discrete", 2, "shared", False),
        ("logit", 2, "shared", False),
        ("logit", 3, "shared", False),
        pytest.param("gentle", 3, "shared", True, marks=pytest.mark.long),
        pytest.param("gentle", 2, "single", True, marks=pytest.mark.long),
        pytest.param("real", 2, "single", True, marks=pytest.mark.long),
        pytest.param("discrete", 3, "shared", True, marks=pytest.mark.long),
        pytest.param("logit", 3, "shared", True, marks=pytest.mark.long),
    ],
)
def test_the_model_is_the_same_on_every_engine_and_library(
    variant, n_classes, multiclass, calibrate
):
    X, y = mixed(150, n_classes, missing=True)
    model = made(variant=variant, multiclass=multiclass, n_estimators=8, calibrate=calibrate)
    expected = model.fit(X, y)
    forest, scale, p = expected.model_, expected.scale_, expected.predict_proba(X)
    assert isinstance(forest, Forest)
    assert len(forest) == 8
    with use_engine("reference"):
        assert model.fit(X, y).model_ == forest
    for place in PLACES:
        model.fit(place.put(X), place.put(y))
        assert model.model_ == forest
        assert model.scale_ == scale
        np.testing.assert_allclose(place.host(model.predict_proba(place.put(X))), p, rtol=1e-12)


@pytest.mark.parametrize("variant", VARIANTS)
def test_many_rounds_follow_the_weights(variant):
    """Rescaled and requantised weights are those of the model: Z and errors of later rounds."""
    X, y = mixed(200, missing=True)
    model = made(variant=variant, n_estimators=300).fit(X, y)
    loss = np.mean(np.exp(-(2 * y - 1) * model.decision_function(X)))
    assert model.history_.training[-1] == pytest.approx(loss, rel=1e-6)
    for F, expected in zip(
        model.staged_decision_function(X, rounds=[1, 50, 300]),
        model.history_.training[[0, 49, 299]],
        strict=True,
    ):
        assert np.mean(np.exp(-(2 * y - 1) * F)) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("engine", ["cpu", "reference"])
@pytest.mark.parametrize(
    ("variant", "multiclass", "n_classes"),
    [("real", "shared", 2), ("gentle", "single", 3), ("discrete", "shared", 3)],
)
def test_replayed_rounds_leave_the_state_that_the_run_had(variant, multiclass, n_classes, engine):
    with use_engine(engine):
        make = plans(
            made(variant=variant, multiclass=multiclass), *mixed(150, n_classes, missing=True)
        )
        whole, resumed = whole_and_resumed(make, 14)
    assert len(whole[0]) == 14
    assert resumed[1].fingerprint() == whole[1].fingerprint()
    assert resumed[2] == whole[2]


def test_gentle_is_newton_descent_on_the_exponential_loss_with_trees_of_depth_one():
    X, y = mixed(250)  # as many rows of either class: both begin at 0
    assert y.sum() == 125
    ours = made(variant="gentle", n_estimators=8).fit(X, y)
    peer = BoostingClassifier(
        "exponential", learning_rate=1.0, n_estimators=8, categorical_features=[1, 2], max_depth=1,
    ).fit(X, y)  # fmt: skip
    np.testing.assert_allclose(ours.decision_function(X), peer.decision_function(X), atol=1e-5)


def test_sets_do_better_than_codes_taken_for_numbers():
    X, y = mixed(600)
    sets, codes = made(n_estimators=20), made(n_estimators=20, categorical_features=None)
    assert sets.fit(X, y).history_.training[-1] < codes.fit(X, y).history_.training[-1]


def test_without_categories_the_model_is_a_table_as_before():
    X, y = mixed()
    assert not isinstance(AdaBoostClassifier(n_estimators=3).fit(X, y).model_, Forest)


# --- frames, unknown categories, callbacks, validation rows --------------------------------------


def test_frames_say_which_columns_are_categories():
    pd = pytest.importorskip("pandas")
    X, y = mixed()
    frame = pd.DataFrame({"x": X[:, 0], "c": pd.Categorical.from_codes(
        X[:, 1].astype(int), list("abcdef")), "d": X[:, 2]})  # fmt: skip
    model = AdaBoostClassifier(n_estimators=15).fit(frame, y)
    plain = AdaBoostClassifier(n_estimators=15, categorical_features=[1]).fit(X, y)
    np.testing.assert_array_equal(model.decision_function(frame), plain.decision_function(X))
    assert model.scale_ == plain.scale_


def test_unknown_categories_are_missing():
    X, y = mixed(missing=True)
    model = made(n_estimators=10).fit(X, y)
    unknown, absent = X.copy(), X.copy()
    unknown[:, 1], absent[:, 1] = 17.0, np.nan
    np.testing.assert_array_equal(model.decision_function(unknown), model.decision_function(absent))


def test_callbacks_are_told_of_sets_and_validation_follows_them():
    X, y = mixed(400, missing=True)
    seen: list[Any] = []
    model = made(n_estimators=15, callbacks=[seen.append])
    model.fit(X[:300], y[:300], X_val=X[300:], y_val=y[300:])
    told = [info for info in seen if info.categories is not None]
    assert told
    assert all(np.isnan(info.threshold) and set(info.categories) <= set(range(6)) for info in told)
    again = made(n_estimators=15).fit(X[:300], y[:300])
    assert again.model_ == model.model_
    assert len(model.validation_loss_) == 15


def test_features_of_stumps_are_important_by_what_they_are_worth():
    X, y = mixed(500)
    importances = made(n_estimators=10).fit(X, y).feature_importances_
    assert importances.sum() == pytest.approx(1.0)
    assert importances.argmax() == 1


def test_an_estimator_that_takes_categories_is_told_of_them():
    X, y = mixed(300)
    for learner in (
        DecisionTreeClassifier(max_depth=2, random_state=0),
        HistGradientBoostingClassifier(max_iter=2, random_state=0),
    ):
        model = AdaBoostClassifier(
            learner, n_estimators=4, categorical_features=[1, 2], random_state=0
        ).fit(np.add(X, [0.0, 1.0, 0.0]), y)
        given = model.estimators_[0].get_params()["categorical_features"]
        assert list(given) == [1, 2]
        assert model.score(np.add(X, [0.0, 1.0, 0.0]), y) > 0.7


def test_an_estimator_that_takes_no_categories_refuses_them():
    X, y = mixed(50)
    with pytest.raises(ValueError, match=r"categorical_features.*LogisticRegression"):
        AdaBoostClassifier(LogisticRegression(), categorical_features=[1]).fit(X, y)


def test_bad_values_are_named():
    X, y = mixed(50)
    with pytest.raises(ValueError, match="categorical_split"):
        AdaBoostClassifier(categorical_split="best").fit(X, y)
    with pytest.raises(ValueError, match="categorical_features"):
        AdaBoostClassifier(categorical_features=[7]).fit(X, y)
