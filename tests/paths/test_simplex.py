"""Paths of the hinge and the absolute loss: scipy's linear programmes are the oracle."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

from ensemble_gpu import regularization_path
from ensemble_gpu.learners import Pool
from ensemble_gpu.paths import regularization
from tests.products import every_pair

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
Y = X[:, 0] + np.sin(3.0 * X[:, 1]) + 0.5 * RNG.normal(size=40)
LABELS = np.where(Y > 0.2, "yes", "no")
W = RNG.integers(0, 4, size=40).astype(float)
LOSSES = ["absolute", "hinge"]


def target(loss, y=Y):
    return y if loss == "absolute" else np.where(y > 0.2, "yes", "no")


def mean_loss(loss, y, F, w):
    if loss == "absolute":
        return np.average(np.abs(y - F), weights=w)
    return np.average(np.maximum(0.0, 1.0 - np.where(y > 0.2, 1.0, -1.0) * F), weights=w)


def programme(path, y, w, *, free, alpha=0.0, radius=None):
    """The least mean loss + alpha |b|_1 in the ball, from the explicit columns."""
    A = np.column_stack([path.dictionary.column(j) for j in range(len(path.dictionary.means))])
    n, P = A.shape
    w, y = w[w > 0.0] / w.sum(), y[w > 0.0]
    c = np.concatenate([np.full(2 * P, alpha), [0.0], w, w])
    A = np.column_stack([A, -A, np.ones(n)])
    t = y
    if path.loss == "hinge":
        sign = np.where(y > 0.2, 1.0, -1.0)
        A, t = A * sign[:, None], np.ones(n)
        c[-n:] = 0.0
    negative = None if -1.0 in path.dictionary.signs else 0.0
    bounds = [(0.0, None)] * P + [(0.0, negative)] * P
    bounds += [(None, None) if free else (0.0, 0.0)] + [(0.0, None)] * (2 * n)
    ball = np.concatenate([np.ones(2 * P), np.zeros(1 + 2 * n)])[None, :]
    solved = linprog(
        c, A_eq=np.hstack([A, np.eye(n), -np.eye(n)]), b_eq=t, bounds=bounds,
        A_ub=None if radius is None else ball, b_ub=None if radius is None else [radius],
    )  # fmt: skip
    assert solved.status == 0
    return solved.fun


def assert_optimal(path, x, y, w, rng, *, free):
    """Losses at random radii and penalties are those of the programme."""
    assert path.complete
    assert (np.diff(path.radii) > 0.0).all()
    assert (np.diff(path.alphas) <= 1e-13).all()
    for radius in rng.uniform(1e-3, max(1.1 * path.radii[-1], 1e-2), size=2):
        point = path.at(radius=float(radius))
        assert point.radius == pytest.approx(min(radius, path.radii[-1]))
        ours = mean_loss(path.loss, y, path.model(radius=float(radius))(x)[:, 0], w)
        assert ours == pytest.approx(programme(path, y, w, free=free, radius=radius), abs=1e-9)
        # The penalty of the point: no other has a smaller loss + alpha |b|.
        whole = ours + point.alpha * point.radius
        least = programme(path, y, w, free=free, alpha=point.alpha)
        assert whole == pytest.approx(least, abs=1e-9)
    for alpha in rng.uniform(1e-3, 1.1 * max(path.alphas[0], 1e-2), size=2):
        F = path.model(alpha=float(alpha))(x)[:, 0]
        ours = mean_loss(path.loss, y, F, w) + alpha * path.at(alpha=float(alpha)).radius
        assert ours == pytest.approx(programme(path, y, w, free=free, alpha=alpha), abs=1e-9)


@every_pair("dictionary, loss, intercept", ["stumps", "features"], LOSSES, ["free", "zero"])
def test_points_are_those_of_a_linear_programme(dictionary, loss, intercept):
    """All thresholds of 40 rows: more columns than rows, and residuals that tie in hundreds."""
    for weights in (None, W):
        path = regularization_path(
            X, target(loss), loss=loss, dictionary=dictionary, intercept=intercept,
            sample_weight=weights,
        )  # fmt: skip
        w = np.ones(40) if weights is None else weights
        assert_optimal(path, X, Y, w, np.random.default_rng(1), free=intercept == "free")


@pytest.mark.slow
@pytest.mark.parametrize("loss", LOSSES)
def test_ties_and_equal_columns_are_no_circle(loss):
    for seed in range(12):
        rng = np.random.default_rng(seed)
        n, p = int(rng.integers(4, 25)), int(rng.integers(1, 12))
        x = rng.integers(-1, 2, size=(n, p)).astype(float)
        x = np.hstack([x, x[:, :1], np.ones((n, 1))])
        y = x[:, 0] + rng.integers(-1, 2, size=n)
        y[:2] = -1.0, 1.0  # both labels
        for signed in (True, False):
            path = regularization_path(
                x, target(loss, y), loss=loss, dictionary=Pool(signed=signed),
                intercept="free" if seed % 2 else "zero",
            )  # fmt: skip
            assert signed or (path.coefficients >= 0.0).all()
            assert_optimal(path, x, y, np.ones(n), rng, free=bool(seed % 2))


def test_columns_of_very_different_size_have_coefficients():
    units = np.array([1e4, 1e-4, 1.0])
    path = regularization_path(X * units, Y, loss="absolute", dictionary="features")
    plain = regularization_path(X, Y, loss="absolute", dictionary="features")
    assert path.complete
    assert path.columns.tolist() == [0, 1, 2]
    ours, theirs = (one.model(alpha=0.0) for one in (path, plain))
    np.testing.assert_allclose(ours(X * units), theirs(X), atol=1e-9)


@pytest.mark.parametrize("loss", LOSSES)
def test_coefficients_are_constant_in_alpha_and_linear_in_the_radius(loss):
    path = regularization_path(X, target(loss), loss=loss, dictionary="features")
    assert len(path) > 5
    for k in range(1, len(path)):
        low, high = path.alphas[k], path.alphas[k - 1]
        if high - low > 1e-9:
            inside = path.at(alpha=float(0.3 * low + 0.7 * high))
            np.testing.assert_array_equal(inside.coefficients, path.coefficients[k])
        middle = path.at(radius=float(path.radii[k - 1 : k + 1].mean()))
        np.testing.assert_allclose(
            middle.coefficients, path.coefficients[k - 1 : k + 1].mean(axis=0), atol=1e-12
        )
        assert middle.alpha == high
    assert path.at(alpha=10.0).radius == 0.0
    assert path.at(alpha=0.0).radius == path.radii[-1]


def test_the_first_knot_is_the_best_constant_and_the_last_the_least_loss():
    path = regularization_path(X, Y[:], loss="absolute", dictionary="features")
    assert path.intercepts[0] in np.sort(Y)[19:21]  # a median
    separable = regularization_path(X, LABELS, loss="hinge")
    assert separable.classes.tolist() == ["no", "yes"]
    F = separable.model(alpha=0.0)(X)[:, 0]
    margins = np.where(LABELS == "yes", F, -F)
    assert margins.min() == pytest.approx(1.0)
    assert (separable.classes[(F > 0.0).astype(int)] == LABELS).all()


def test_paths_end_where_asked():
    given = {"loss": "absolute", "dictionary": "features"}
    whole = regularization_path(X, Y, **given)
    few = regularization_path(X, Y, max_knots=3, **given)
    np.testing.assert_allclose(few.alphas, whole.alphas[:3])
    np.testing.assert_allclose(few.coefficients, whole.coefficients[:3][:, few.columns])
    assert not few.complete
    with pytest.raises(ValueError, match=r"radius=50\.0 is beyond the last knot"):
        few.at(radius=50.0)
    active = regularization_path(X, Y, max_active=2, **given)
    assert np.count_nonzero(active.coefficients[-1]) == 2
    radius = regularization_path(X, Y, max_radius=0.5, **given)
    assert radius.radii[-2] < 0.5 <= radius.radii[-1]


def test_the_path_is_the_same_everywhere(place):
    here = regularization_path(X, LABELS == "yes", loss="hinge", dictionary="features")
    there = regularization_path(
        place.put(X), place.put(LABELS == "yes"), loss="hinge", dictionary="features"
    )
    np.testing.assert_allclose(there.coefficients, here.coefficients, atol=1e-10)
    predicted = there.model(alpha=0.01)(place.put(X))
    place.check(predicted, "float64")
    np.testing.assert_allclose(place.host(predicted), here.model(alpha=0.01)(X), atol=1e-10)


def test_nothing_to_fit_is_one_knot():
    flat = regularization_path(X, np.full(40, 2.0), loss="absolute")
    assert len(flat) == 1
    np.testing.assert_allclose(flat.model(radius=1.0)(X), 2.0)
    constant = regularization_path(np.ones((10, 2)), Y[:10], loss="absolute")
    assert len(constant) == 1


def test_large_problems_and_bad_targets_are_refused(monkeypatch):
    with pytest.raises(ValueError, match=r"intercept must be one of 'free', 'zero'; got 'mean'"):
        regularization_path(X, Y, loss="absolute", intercept="mean")
    with pytest.raises(ValueError, match=r"loss='hinge' needs two classes; y has 3"):
        regularization_path(X, np.arange(40) % 3, loss="hinge")
    with pytest.raises(ValueError, match="loss must be one of"):
        regularization_path(X, Y, loss="logistic")
    monkeypatch.setattr(regularization, "MOST_CELLS", 4000)
    says = "40 rows x 117 columns are 4680 numbers, and at most 4000 are taken"
    with pytest.raises(ValueError, match=says):
        regularization_path(X, Y, loss="absolute")
