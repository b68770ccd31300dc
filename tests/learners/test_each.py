"""A stump or a tree for every class in a round: multiclass="each"."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.ensemble import HistGradientBoostingClassifier

from ensemble_gpu import BoostingClassifier, use_engine
from ensemble_gpu.boosting.integers import FINE_ROWS
from ensemble_gpu.learners.each import EachLeaves, EachRound, stacked
from ensemble_gpu.learners.stump import Stump
from ensemble_gpu.losses import CLASSIFICATION
from ensemble_gpu.model.additive import AdditiveModel
from ensemble_gpu.model.forest import Forest
from tests.boosters import plain
from tests.boosting.replaying import problem
from tests.datasets import random_data
from tests.libraries import Torch
from tests.places import DEVICE
from tests.products import every_pair

ROUNDS = 5


def each(**params: Any) -> BoostingClassifier:
    return BoostingClassifier(**plain(params, multiclass="each"))


def softmax(F: np.ndarray) -> np.ndarray:
    E = np.exp(F - F.max(axis=1, keepdims=True))
    return E / E.sum(axis=1, keepdims=True)


def test_a_round_with_other_values_keeps_the_tests_of_every_output():
    stump = Stump(3, 1, 2, np.array([[1.0, -2.0, 0.0]]), 0.5, 0.1)
    round_ = EachRound((stump, None, stump._replace(feature=4)), 0.5, 0.2, trail="trail")
    found = round_.with_values(-3.0 * round_.values, 0.25)
    np.testing.assert_array_equal(found.values, -3.0 * round_.values)
    assert [part and (part.feature, part.alpha) for part in found.parts] == [
        (3, 0.25), None, (4, 0.25),
    ]  # fmt: skip
    assert (found.alpha, found.error, found.trail) == (0.25, 0.2, "trail")


# --- as written in the book ----------------------------------------------------------------------


def best_stump(X: np.ndarray, S: np.ndarray, H: np.ndarray) -> tuple[int, float, float, float]:
    """(feature, threshold, left value, right value) of the largest S^2 / H; NaN abstains."""
    best, found = 0.0, (0, 0.0, 0.0, 0.0)
    for f in range(X.shape[1]):
        x = X[:, f]
        for a, b in itertools.pairwise(sorted(set(x[~np.isnan(x)].tolist()))):
            t = (a + b) / 2
            left, right = x <= t, x > t
            values = [S[side].sum() / H[side].sum() for side in (left, right)]
            gain = sum(S[side].sum() ** 2 / H[side].sum() for side in (left, right))
            if gain > best * (1.0 + 1e-6):
                best, found = gain, (f, t, *values)
    return found


@every_pair("engine, n_classes, weighted", ["cpu", "reference"], [3, 5], [False, True])
def test_stumps_are_those_of_plain_numpy(engine, n_classes, weighted):
    X, y = problem(n_classes, n=90)
    w = np.random.default_rng(2).uniform(0.5, 2.0, len(y)) if weighted else np.ones(len(y))
    with use_engine(engine):
        ours = each(n_estimators=ROUNDS, learning_rate=0.4, max_bins=None).fit(X, y, w)
    rounds = ours.model_.rounds
    assert len(rounds) == ROUNDS * n_classes
    own = (y[:, None] == np.arange(n_classes)).astype(float)
    F = np.tile(np.log(np.average(own, axis=0, weights=w)), (len(y), 1))
    for t in range(ROUNDS):
        p, before = softmax(F), F.copy()
        for k in range(n_classes):
            S, H = w * (own - p)[:, k], w * (p * (1.0 - p))[:, k]
            f, threshold, left, right = best_stump(X, S, H)
            at = t * n_classes + k
            assert (rounds.feature[at], rounds.threshold[at]) == (f, pytest.approx(threshold))
            assert not np.delete(rounds.values[at], k, axis=0).any()
            found = rounds.values[at, k, :2]
            np.testing.assert_allclose(found, [0.4 * left, 0.4 * right], atol=1e-6)
            F[:, k] += np.where(
                np.isnan(X[:, f]), 0.0, 0.4 * np.where(X[:, f] <= threshold, left, right)
            )
        assert not np.array_equal(F, before)
    np.testing.assert_allclose(ours.decision_function(X), F, atol=1e-5)


def few_values(n_classes: int, n: int = 500) -> tuple[np.ndarray, np.ndarray]:
    """Features that are binned exactly by everybody."""
    rng = np.random.default_rng(3)
    X = rng.integers(0, 40, size=(n, 4)).astype(np.float64)
    score = X[:, 0] / 10 + (X[:, 1] > 20) * (X[:, 2] > 9) + rng.normal(size=n)
    return X, np.digitize(score, np.quantile(score, np.arange(1, n_classes) / n_classes))


@pytest.mark.parametrize("l2", [0.0, 5.0])
@pytest.mark.parametrize("n_classes", [3, 6])
@pytest.mark.parametrize("size", [{"max_depth": 3}, {"max_leaf_nodes": 6}], ids=str)
def test_trees_are_those_of_hist_gradient_boosting(l2, n_classes, size):
    X, y = few_values(n_classes)
    w = np.random.default_rng(4).uniform(0.5, 2.0, len(y))  # without them splits tie
    shared = {"min_samples_leaf": 20, "l2_regularization": l2}
    theirs = HistGradientBoostingClassifier(
        **{"max_leaf_nodes": None, **size}, **shared, max_iter=5, early_stopping=False
    ).fit(X, y, w)
    ours = each(**size, **shared, n_estimators=5, min_hessian=1e-3).fit(X, y, w)
    F, G = ours.decision_function(X), theirs.decision_function(X)
    # the peer starts from logarithms of the shares less their mean
    F, G = (a - a.mean(axis=1, keepdims=True) for a in (F, G))
    np.testing.assert_allclose(F, G, atol=2e-5)


# --- the same model everywhere -------------------------------------------------------------------

FORMS: dict[str, dict[str, Any]] = {
    "stumps": {},
    "stumps, drawn": {"subsample": 0.6, "max_features": 2},
    "stumps, learn": {"missing": "learn"},
    "stumps, votes": {"stump": "discrete", "step": "line_search"},
    "trees": {"max_depth": 3},
    "trees, drawn": {"max_depth": 2, "subsample": 0.6, "max_features": 2},
    "best first": {"max_leaf_nodes": 5, "l2_regularization": 1.0},
    "interactions": {"max_depth": 3, "interaction_cst": "no_interactions"},
    "bags": {"n_bags": 2, "max_depth": 2},
}


# with weights or without in turn
@pytest.mark.slow
@pytest.mark.parametrize(
    ("form", "weighted"),
    [
        pytest.param(form, weighted, marks=() if weighted == number % 2 else pytest.mark.long)
        for number, form in enumerate(FORMS)
        for weighted in (False, True)
    ],
)
def test_the_model_is_the_same_on_every_engine_thread_and_order(form, weighted):
    X, y = problem(4)
    w = np.random.default_rng(1).uniform(0.1, 2.0, len(y)) if weighted else np.ones(len(y))
    model = each(**FORMS[form], n_estimators=4)
    expected = model.fit(X, y, w).model_.fingerprint()
    for n_jobs in (1, 2):
        assert clone(model).set_params(n_jobs=n_jobs).fit(X, y, w).model_.fingerprint() == expected
    with use_engine("reference"):
        found = clone(model).fit(X, y, w)
        assert (found.engine_, found.model_.fingerprint()) == ("reference", expected)
    found = clone(model).fit(*(DEVICE.put(a) for a in (X, y, w)))
    assert (found.engine_, found.model_.fingerprint()) == ("reference", expected)
    mixed = np.random.default_rng(0).permutation(len(y))
    assert clone(model).fit(X[mixed], y[mixed], w[mixed]).model_.fingerprint() == expected


@pytest.mark.parametrize("form", ["stumps", "trees"])
def test_many_rows_have_packed_gradients_and_the_same_model(form):
    data = random_data(n_classes=3, n=FINE_ROWS + 500, p=3)
    model = each(**FORMS[form], n_estimators=2, n_jobs=2)
    expected = model.fit(data.X, data.y).model_.fingerprint()
    with use_engine("reference"):
        assert clone(model).fit(data.X, data.y).model_.fingerprint() == expected


@pytest.mark.interop
@pytest.mark.parametrize("form", ["stumps", "trees"])
def test_torch_gives_the_model_of_numpy(form):
    X, y = problem(3)
    model = each(**FORMS[form], n_estimators=4)
    expected = model.fit(X, y).model_.fingerprint()
    found = clone(model).fit(Torch().put(X), Torch().put(y))
    assert found.model_.fingerprint() == expected
    Torch().check(found.predict_proba(Torch().put(X)), "float64")


# --- a round is a round --------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
def test_rounds_hold_a_learner_for_every_class(form):
    X, y = problem(4)
    model = each(**FORMS[form], n_estimators=6).fit(X, y)
    assert model.n_estimators_ == model.model_.n_rounds == 6
    assert isinstance(model.model_, AdditiveModel if form.startswith("stumps") else Forest)
    held = len(model.model_.rounds) if form.startswith("stumps") else len(model.model_)
    assert held == 6 * 4 * FORMS[form].get("n_bags", 1)
    assert len(model.alphas_) == len(model.errors_) == 6
    assert model.feature_importances_.sum() == pytest.approx(1.0)
    stages = list(model.staged_decision_function(X))
    assert len(stages) == 6
    for n, F in enumerate(stages, 1):
        np.testing.assert_array_equal(F, model.model_.first(n)(X))
    np.testing.assert_array_equal(stages[-1], model.decision_function(X))
    np.testing.assert_array_equal(stages[2], clone(model).set_params(n_estimators=3).fit(X, y)
                                  .decision_function(X))  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_a_warm_start_gives_the_model_of_a_single_run(form):
    X, y = problem(3)
    model = each(**FORMS[form], n_estimators=3, warm_start=True).fit(X, y)
    model.set_params(n_estimators=7).fit(X, y)
    whole = each(**FORMS[form], n_estimators=7).fit(X, y)
    assert model.model_ == whole.model_
    np.testing.assert_array_equal(model.errors_, whole.errors_)


def test_to_spell_what_auto_means_is_no_change_for_a_warm_start():
    X, y = problem(3)
    stumps = BoostingClassifier(max_depth=1, n_estimators=2, warm_start=True).fit(X, y)
    stumps.set_params(n_estimators=4, multiclass="each").fit(X, y)
    stumps.set_params(n_estimators=6, multiclass="shared")
    with pytest.raises(ValueError, match="multiclass was 'each' and is 'shared'"):
        stumps.fit(X, y)


@pytest.mark.parametrize("form", FORMS)
def test_validation_rows_see_the_model_and_early_stopping_keeps_the_best_round(form):
    X, y = problem(3, n=240)
    seen: list[Any] = []
    model = each(
        **FORMS[form], n_estimators=60, learning_rate=1.0, early_stopping=True,
        n_iter_no_change=3, callbacks=[seen.append],
    )  # fmt: skip
    model.fit(X[:160], y[:160], X_val=X[160:], y_val=y[160:])
    kept = model.n_estimators_
    assert kept == model.history_.best_round == len(seen) - 3 < 60
    assert {info.feature for info in seen} == {None}
    p = model.predict_proba(X[160:])[np.arange(80), y[160:]]
    assert model.history_.validation[kept - 1] == pytest.approx(-np.log(p).mean())
    if "n_bags" not in FORMS[form]:
        p = model.predict_proba(X[:160])[np.arange(160), y[:160]]
        assert model.history_.training[kept - 1] == pytest.approx(-np.log(p).mean())


@pytest.mark.parametrize("form", ["stumps", "trees"])
def test_an_offset_is_trained_on_top_of(form):
    X, y = problem(3)
    first = each(**FORMS[form], n_estimators=3).fit(X, y)
    score = first.decision_function(X)
    second = each(**FORMS[form], n_estimators=3).fit(X, y, init_score=score)
    whole = each(**FORMS[form], n_estimators=6).fit(X, y)
    np.testing.assert_allclose(
        score + second.decision_function(X), whole.decision_function(X), atol=1e-5
    )


# --- every loss, every step ----------------------------------------------------------------------


# the hinge has no second derivative
@every_pair(
    "loss, step, size",
    CLASSIFICATION, ["newton", "line_search", "constant"], [{}, {"max_depth": 2}],
    makes_sense=lambda loss, step, _: (loss, step) != ("hinge", "newton"),
)  # fmt: skip
def test_every_loss_falls_with_every_step(loss, step, size):
    X, y = problem(4)
    seen: list[Any] = []
    each(
        loss=loss, step=step, **size, n_estimators=10, learning_rate=0.3, callbacks=[seen.append]
    ).fit(X, y)
    losses = [info.training_loss for info in seen]
    assert losses[-1] < losses[0]
    if step == "line_search":
        assert (np.diff(losses) <= 1e-9).all()


def test_classes_whose_gradients_vanish_have_no_part():
    """The squared loss of a class that is fitted exactly has nothing left to learn."""
    X = np.array([[0.0], [1.0], [2.0], [3.0]] * 5)
    y = np.array([0, 0, 1, 2] * 5)
    model = each(loss="squared", max_depth=1, n_estimators=3, learning_rate=1.0).fit(X, y)
    assert model.model_.ends.tolist() == [3, 4, 5]  # class 0 after one stump, the others later
    learnt = [np.flatnonzero(v.any(axis=1)).tolist() for v in model.model_.rounds.values]
    assert learnt[:3] == [[0], [1], [2]]
    assert all(one == [1] for one in learnt[3:])


def test_leaves_of_outputs_that_stay_are_copied():
    class Plus:
        def moved(self, F, rows, values, out=None):
            out[...] = F + values[0, 0]
            return out

        def sums(self, q, rows):
            return q.sum(axis=1, keepdims=True)

    leaves = EachLeaves(None, (None, Plus(), None))  # type: ignore[arg-type]
    F, out = np.arange(12.0).reshape(3, 4), np.full((3, 4), np.nan)
    found = leaves.moved(F, slice(0, 4), np.array([[7.0], [1.0], [7.0]]), out)
    assert found is out
    np.testing.assert_array_equal(out, F + np.array([[0.0], [1.0], [0.0]]))
    np.testing.assert_array_equal(leaves.sums(F, slice(0, 4)), [[0.0], [22.0], [0.0]])


def test_rows_of_several_lengths_are_filled_up_with_zeros():
    found = stacked([np.array([[1, 2, 3]]), None, np.array([[4]])])
    np.testing.assert_array_equal(found, [[1, 2, 3], [0, 0, 0], [4, 0, 0]])


@pytest.mark.parametrize("depth", [1, 3])
def test_categories_split_by_sets_of_one_class(depth):
    rng = np.random.default_rng(0)
    names = rng.choice(list("abcdefgh"), size=300)
    y = np.where(np.isin(names, ["a", "d", "g"]), 0, np.where(np.isin(names, ["b", "h"]), 1, 2))
    frame = pd.DataFrame({"x": rng.normal(size=300), "c": pd.Categorical(names)})
    model = each(max_depth=depth, n_estimators=12, learning_rate=0.5).fit(frame, y)
    assert model.score(frame, y) == 1.0
    with use_engine("reference"):
        assert clone(model).fit(frame, y).model_ == model.model_


# --- the parameter -------------------------------------------------------------------------------


def test_two_classes_have_one_output_whatever_multiclass_says():
    X, y = problem(2)
    for size in ({}, {"max_depth": 3}):
        models = [
            BoostingClassifier(**plain(size, n_estimators=4, multiclass=form)).fit(X, y).model_
            for form in ("auto", "shared", "each")
        ]
        assert models[0] == models[1] == models[2]
        assert models[0].n_outputs == 1


@pytest.mark.parametrize(
    ("params", "form"),
    [
        ({"max_depth": 1}, "each"),
        ({"max_leaf_nodes": 2}, "each"),
        ({"max_depth": 3}, "shared"),
        ({"max_depth": 1, "loss": "squared"}, "shared"),
        ({"max_depth": 1, "loss": "exponential"}, "shared"),
    ],
    ids=str,
)
def test_auto_gives_each_class_its_own_stump_of_the_logistic_loss(params, form):
    X, y = problem(3)
    found = BoostingClassifier(**plain(params, n_estimators=3)).fit(X, y)
    spelled = BoostingClassifier(**plain(params, n_estimators=3, multiclass=form)).fit(X, y)
    assert found.model_ == spelled.model_


def test_stumps_of_each_class_lower_the_loss_faster_than_shared_ones():
    X, y = load_iris(return_X_y=True)
    losses = {}
    for form in ("shared", "each"):
        model = BoostingClassifier(**plain(n_estimators=20, multiclass=form)).fit(X, y)
        losses[form] = -np.log(model.predict_proba(X)[np.arange(len(y)), y]).mean()
    assert losses["each"] < 0.65 * losses["shared"]


def test_an_unknown_form_is_refused():
    with pytest.raises(ValueError, match="multiclass must be one of 'auto', 'shared', 'each'"):
        BoostingClassifier(multiclass="single").fit([[0.0], [1.0]], [0, 1])


def test_monotone_features_are_for_two_classes():
    X, y = problem(3)
    with pytest.raises(ValueError, match="monotonic_cst is for two classes"):
        each(monotonic_cst=[1, 0, 0, 0, 0]).fit(X, y)
