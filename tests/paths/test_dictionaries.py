"""Pools and drawn learners as dictionaries, weights: explicit matrices and repeated rows."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.linear_model import Lasso, lars_path
from sklearn.tree import DecisionTreeClassifier

from ensemble_gpu import regularization_path
from ensemble_gpu.arrays.namespace import locate
from ensemble_gpu.learners import Balls, Boxes, HalfSpaces, Pool, Rectangles
from ensemble_gpu.paths.columns import PathRows
from ensemble_gpu.paths.stumps import Stumps

RNG = np.random.default_rng(0)
X = RNG.normal(size=(70, 3))
Y = X[:, 0] + np.sin(3.0 * X[:, 1]) + 1.0 + 0.3 * RNG.normal(size=70)
W = RNG.integers(0, 4, size=70).astype(float)
REPEATED = np.repeat(np.arange(70), W.astype(int))
ANSWERS = np.sign(RNG.normal(size=(70, 25)))
ANSWERS[:30, 2], ANSWERS[:, 3] = 0.0, 1.0  # abstains for some rows; the same for all
DICTIONARIES = {
    "stumps": "stumps", "features": "features", "pool": Pool(ANSWERS.astype(np.int8), signed=True),
    "half-spaces": HalfSpaces(6), "balls": Balls(6), "boxes": Boxes(6),
}  # fmt: skip


def dense(path):
    out = np.zeros((len(path), len(path.dictionary.means)))
    out[:, path.columns] = path.coefficients
    return out


@pytest.mark.parametrize("intercept", ["free", "mean", "zero"])
def test_knots_over_a_pool_are_those_of_lars_path(intercept):
    path = regularization_path(X, Y, dictionary=DICTIONARIES["pool"], intercept=intercept)
    A = ANSWERS - ANSWERS.mean(axis=0) if intercept == "free" else ANSWERS
    y = Y - (0.0 if intercept == "zero" else Y.mean())
    alphas, _, coefs = lars_path(A, y, method="lasso")
    np.testing.assert_allclose(path.alphas, alphas, atol=1e-8)
    np.testing.assert_allclose(dense(path), coefs.T, atol=1e-8)
    point, model = path.at(radius=0.4), path.model(radius=0.4)
    F = point.intercept + ANSWERS[:, path.columns] @ point.coefficients
    np.testing.assert_allclose(model.of_answers(ANSWERS)[:, 0], F, atol=1e-12)
    assert path.dictionary.name(4) == "member 4"


def test_members_that_are_not_signed_have_coefficients_above_0():
    path = regularization_path(ANSWERS, Y, dictionary=Pool())
    assert path.complete
    assert (path.coefficients >= 0.0).all()
    for alpha in RNG.uniform(1e-3, path.alphas[0], size=4):
        theirs = Lasso(alpha, positive=True, tol=1e-13, max_iter=100_000).fit(ANSWERS, Y)
        ours = path.model(alpha=float(alpha))(ANSWERS)[:, 0]
        np.testing.assert_allclose(ours, theirs.predict(ANSWERS), atol=1e-8)


def test_members_are_functions_and_classifiers():
    tree = DecisionTreeClassifier(max_depth=2).fit(X, Y > 1.0)
    members = [tree, lambda x: np.where(x[:, 1] > 0.0, 1.0, -1.0)]
    path = regularization_path(X, Y > 1.0, loss="hinge", dictionary=Pool(members, signed=True))
    A = np.column_stack([np.where(tree.predict(X), 1.0, -1.0), members[1](X)])
    point = path.at(alpha=0.0)
    F = point.intercept + A[:, path.columns] @ point.coefficients
    np.testing.assert_allclose(path.model(alpha=0.0)(X)[:, 0], F, atol=1e-12)


@pytest.mark.parametrize("name", list(DICTIONARIES))
def test_whole_weights_are_repetitions_of_rows(name):
    given = {"dictionary": DICTIONARIES[name], "max_bins": 6, "max_knots": 20}
    repeated = dict(given)
    if name == "pool":  # answers of the rows that take part
        given["dictionary"] = Pool(ANSWERS[W > 0.0], signed=True)
        repeated["dictionary"] = Pool(ANSWERS[REPEATED], signed=True)
    own = regularization_path(X, Y, sample_weight=W, **given)
    other = regularization_path(X[REPEATED], Y[REPEATED], **repeated)
    np.testing.assert_array_equal(own.columns, other.columns)
    np.testing.assert_allclose(own.alphas, other.alphas, atol=1e-10)
    np.testing.assert_allclose(own.coefficients, other.coefficients, atol=1e-8)
    np.testing.assert_allclose(own.intercepts, other.intercepts, atol=1e-8)
    scaled = regularization_path(X, Y, sample_weight=7.0 * W, **given)
    np.testing.assert_allclose(scaled.alphas, own.alphas, atol=1e-10)


@pytest.mark.parametrize("intercept", ["free", "mean", "zero"])
def test_weighted_points_are_those_of_weighted_lasso(intercept):
    path = regularization_path(
        X, Y, dictionary="features", sample_weight=W + 0.3, intercept=intercept
    )
    start = np.average(Y, weights=W + 0.3) if intercept == "mean" else 0.0
    theirs = Lasso(0.05, fit_intercept=intercept == "free", tol=1e-13, max_iter=10_000)
    theirs.fit(X, Y - start, sample_weight=W + 0.3)
    F = path.model(alpha=0.05)(X)[:, 0]
    np.testing.assert_allclose(F, theirs.predict(X) + start, atol=1e-8)


@pytest.mark.parametrize("learner", [HalfSpaces(5), Balls(5), Boxes(5)])
def test_drawn_learners_are_stumps_on_what_they_draw(learner):
    path = regularization_path(X, Y, dictionary=learner, max_bins=8, max_knots=15)
    A = np.column_stack([path.dictionary.column(j) for j in path.columns])
    A = A + path.dictionary.means[path.columns]
    assert set(np.unique(A.round(12))) == {-1.0, 1.0}
    model = path.model(radius=float(path.radii[-1]))
    F = path.intercepts[-1] + A @ path.coefficients[-1]
    np.testing.assert_allclose(model(X)[:, 0], F, atol=1e-10)
    assert model.n_features == 3
    assert path.dictionary.name(0).startswith(f"{type(learner).__name__} 0 > ")
    other = regularization_path(X, Y, dictionary=learner, max_bins=8, max_knots=15, random_state=1)
    assert not np.array_equal(other.alphas, path.alphas)


@pytest.mark.parametrize("name", ["pool", "half-spaces"])
def test_the_path_is_the_same_everywhere(name, place):
    given = {"max_knots": 12, "max_bins": 10}
    learner, x = DICTIONARIES[name], X
    if name == "pool":
        learner, x = Pool(signed=True), ANSWERS
    here = regularization_path(x, Y, sample_weight=W, dictionary=learner, **given)
    there = regularization_path(
        place.put(x), place.put(Y), sample_weight=place.put(W), dictionary=learner, **given
    )
    np.testing.assert_array_equal(there.columns, here.columns)
    np.testing.assert_allclose(there.coefficients, here.coefficients, atol=1e-10)
    radius = float(here.radii[3])
    predicted = there.model(radius=radius)(place.put(x))
    place.check(predicted, "float64")
    np.testing.assert_allclose(place.host(predicted), here.model(radius=radius)(x), atol=1e-10)


@pytest.mark.interop
def test_other_libraries_have_the_same_path(library):
    for learner, loss in ((Pool(signed=True), "squared"), (Balls(5), "absolute")):
        given = {"dictionary": learner, "loss": loss, "max_knots": 8, "max_bins": 10}
        here = regularization_path(ANSWERS, Y, sample_weight=W, **given)
        x, y, w = map(library.put, (ANSWERS, Y, W))
        there = regularization_path(x, y, sample_weight=w, **given)
        np.testing.assert_allclose(there.coefficients, here.coefficients, atol=1e-10)
        library.check(there.model(radius=0.1)(x), "float64")


def test_thresholds_are_weighted_quantiles():
    rows = PathRows(X, None, W, locate(X))
    own = Stumps(rows, max_bins=5, centred=True)
    repeated = PathRows(X[REPEATED], None, None, locate(X))
    other = Stumps(repeated, max_bins=5, centred=True)
    np.testing.assert_allclose(own.means, other.means, atol=1e-14)
    np.testing.assert_allclose(own.correlations(Y), other.correlations(Y[REPEATED]), atol=1e-11)


@pytest.mark.parametrize("name", list(DICTIONARIES))
def test_paths_are_pickled(name):
    path = regularization_path(X, Y, dictionary=DICTIONARIES[name], max_bins=6, max_knots=4)
    again = pickle.loads(pickle.dumps(path))
    assert again.model(radius=0.1) == path.model(radius=0.1)
    assert again.dictionary.name(1) == path.dictionary.name(1)


def test_what_is_no_dictionary_is_named():
    for wrong in ("trees", 3, None, Rectangles()):
        with pytest.raises(ValueError, match=r"dictionary must be one of 'stumps', 'features', a"):
            regularization_path(X, Y, dictionary=wrong)
    with pytest.raises(ValueError, match="use redraw='once'"):
        regularization_path(X, Y, dictionary=HalfSpaces(5, redraw="round"))
    with pytest.raises(ValueError, match=r"at most 1917396 for a path over 70 rows"):
        regularization_path(X, Y, dictionary=HalfSpaces(1 << 21))
    with pytest.raises(ValueError, match="random_state must be"):
        regularization_path(X, Y, random_state="seed")
