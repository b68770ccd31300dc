"""The L1 path: scikit-learn's lars_path and Lasso on explicit matrices, and the KKT conditions."""

from __future__ import annotations

import warnings
from itertools import pairwise

import numpy as np
import pytest
from scipy.linalg import hadamard
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lasso, lars_path

from ensemble_gpu import regularization_path
from ensemble_gpu.arrays.namespace import locate
from ensemble_gpu.paths.columns import PathRows
from ensemble_gpu.paths.stumps import Stumps

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 4))
Y = X[:, 0] + np.sin(3.0 * X[:, 1]) + 1.0 + 0.3 * RNG.normal(size=120)
INTERCEPTS = ["free", "mean", "zero"]


def rows_of(X, weights=None):
    return PathRows(X, None, weights, locate(X))


def explicit(X):
    """Stumps +-1 between all distinct values."""
    columns = []
    for x in X.T:
        values = np.unique(x)
        for low, high in pairwise(values):
            columns.append(np.where(x > 0.5 * (low + high), 1.0, -1.0))
    return np.array(columns).T


def centred(A, y, intercept):
    A = A - A.mean(axis=0) if intercept == "free" else A
    return A, y - (0.0 if intercept == "zero" else y.mean())


def dense(path, P):
    out = np.zeros((len(path), P))
    out[:, path.columns] = path.coefficients
    return out


def violation(path, A, y):
    """By how much the KKT conditions are missed, at knots and between them."""
    worst = 0.0
    for alpha in [*path.alphas, *(0.5 * (path.alphas[1:] + path.alphas[:-1]))]:
        b = np.zeros(A.shape[1])
        b[path.columns] = path.at(alpha=float(alpha)).coefficients
        g = A.T @ (y - A @ b) / len(y)
        worst = max(worst, np.abs(g).max() - alpha)
        worst = max(worst, np.abs(g - alpha * np.sign(b))[b != 0.0].max(initial=0.0))
    return worst


@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_knots_over_stumps_are_those_of_lars_path(intercept):
    coarse = np.round(X, 0)  # fewer stumps than rows: scikit-learn drops dependent columns
    path = regularization_path(coarse, Y, intercept=intercept)
    A, y = centred(explicit(coarse), Y, intercept)
    alphas, _, coefs = lars_path(A, y, method="lasso")
    np.testing.assert_allclose(path.alphas, alphas, atol=1e-8)
    np.testing.assert_allclose(dense(path, A.shape[1]), coefs.T, atol=1e-8)
    np.testing.assert_allclose(path.radii, np.abs(coefs).sum(axis=0), atol=1e-8)
    assert path.complete
    exact = A @ np.linalg.lstsq(A, y, rcond=None)[0]  # least squares in the end
    np.testing.assert_allclose(A @ dense(path, A.shape[1])[-1], exact, atol=1e-8)


def test_thresholds_at_quantiles_are_a_part_of_all():
    path = regularization_path(X, Y, max_bins=12, intercept="mean")
    stumps = path.dictionary
    assert np.bincount(stumps.feature).tolist() == [11] * 4
    A = np.column_stack([
        np.where(X[:, f] > t, 1.0, -1.0)
        for f, t in zip(stumps.feature, stumps.threshold, strict=True)
    ])  # fmt: skip
    alphas, _, coefs = lars_path(A, Y - Y.mean(), method="lasso")
    np.testing.assert_allclose(path.alphas, alphas, atol=1e-8)
    np.testing.assert_allclose(dense(path, 44), coefs.T, atol=1e-8)


@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_more_columns_than_rows_and_dependent_columns_satisfy_kkt(intercept):
    """All thresholds of 40 rows: lars_path gives up here, the conditions do not."""
    path = regularization_path(X[:40], Y[:40], intercept=intercept)
    A, y = centred(explicit(X[:40]), Y[:40], intercept)
    assert A.shape == (40, 156)
    assert path.complete
    assert violation(path, A, y) < 1e-11
    assert (np.diff(path.radii) >= -1e-12).all()
    assert (np.diff(path.alphas) < 0.0).all()
    np.testing.assert_allclose(A @ dense(path, 156)[-1], y, atol=1e-9)


def test_features_are_those_of_lars_path_with_more_columns_than_rows():
    wide = RNG.normal(size=(20, 50))
    path = regularization_path(wide, Y[:20], dictionary="features")
    A, y = centred(wide, Y[:20], "free")
    alphas, _, coefs = lars_path(A, y, method="lasso")
    np.testing.assert_allclose(path.alphas, alphas, atol=1e-8)
    np.testing.assert_allclose(dense(path, 50), coefs.T, atol=1e-8)


def test_points_are_those_of_lasso():
    path = regularization_path(X, Y, dictionary="features")
    for alpha in RNG.uniform(0.01, path.alphas[0], size=5):
        theirs = Lasso(alpha, tol=1e-12, max_iter=100_000).fit(X, Y)
        point = path.at(alpha=float(alpha))
        np.testing.assert_allclose(point.coefficients, theirs.coef_[path.columns], atol=1e-8)
        assert point.intercept == pytest.approx(theirs.intercept_)
        assert point.alpha == pytest.approx(alpha)
        again = path.at(radius=point.radius)
        np.testing.assert_allclose(again.coefficients, point.coefficients, atol=1e-9)
        np.testing.assert_allclose(path.model(alpha=float(alpha))(X)[:, 0], theirs.predict(X))


@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_models_of_stumps_are_the_columns_times_their_coefficients(intercept):
    path = regularization_path(X[:40], Y[:40], intercept=intercept)
    A = explicit(X[:40])
    for radius in (0.3, 1.0, 2.5):
        point = path.at(radius=radius)
        assert point.radius == pytest.approx(radius)
        F = point.intercept + A[:, path.columns] @ point.coefficients
        model = path.model(radius=radius)
        np.testing.assert_allclose(model(X[:40])[:, 0], F, atol=1e-10)
        assert model.n_features == 4


@pytest.mark.slow
def test_tied_and_equal_columns_satisfy_kkt():
    H = hadamard(8).astype(float)[:, 1:]
    for y in (H.sum(axis=1), H[:, 0] + H[:, 1], H @ [1, 1, -1, 2, 2, 0, 0]):
        path = regularization_path(H, y, dictionary="features", intercept="zero")
        assert violation(path, H, y) < 1e-12
    for seed in range(60):
        rng = np.random.default_rng(seed)
        n, p = int(rng.integers(4, 14)), int(rng.integers(1, 5))
        x, y = rng.integers(0, 3, size=(n, p)).astype(float), rng.integers(-2, 3, size=n) * 1.0
        x = np.hstack([x, x[:, :1]])
        for intercept in ("free", "zero"):
            A, t = centred(x, y, intercept)
            path = regularization_path(x, y, dictionary="features", intercept=intercept)
            assert path.complete
            assert violation(path, A, t) < 1e-10
            if (x.max(axis=0) > x.min(axis=0)).any():
                A, t = centred(explicit(x), y, intercept)
                path = regularization_path(x, y, intercept=intercept)
                assert path.complete
                assert violation(path, A, t) < 1e-10


def test_paths_end_where_asked():
    whole = regularization_path(X, Y)
    few = regularization_path(X, Y, max_knots=7)
    assert len(few) == 7
    np.testing.assert_allclose(few.alphas, whole.alphas[:7])
    assert not few.complete
    active = regularization_path(X, Y, max_active=5)
    assert [np.count_nonzero(b) for b in active.coefficients[-2:]] == [4, 5]
    radius = regularization_path(X, Y, max_radius=1.0)
    assert radius.radii[-2] < 1.0 <= radius.radii[-1]
    with pytest.raises(ValueError, match=r"radius=50.0 is beyond the last knot"):
        few.at(radius=50.0)
    with pytest.raises(ValueError, match=r"alpha=0.0 is beyond the last knot"):
        few.at(alpha=0.0)
    assert whole.at(radius=1e9).alpha == 0.0
    assert whole.at(alpha=1e9).radius == 0.0


@pytest.mark.parametrize("max_bins", [2, 5, 255])
def test_correlations_are_those_of_the_explicit_columns(max_bins):
    uneven = np.column_stack([X[:, 0], np.round(X[:, 1]), X[:, 2] > 1.5, np.ones(120), X[:, 3]])
    for centre in (False, True):
        stumps = Stumps(rows_of(uneven), max_bins=max_bins, centred=centre)
        A = np.column_stack([
            np.where(uneven[:, f] > t, 1.0, -1.0)
            for f, t in zip(stumps.feature, stumps.threshold, strict=True)
        ])  # fmt: skip
        A = A - A.mean(axis=0) if centre else A
        np.testing.assert_allclose(stumps.correlations(Y), A.T @ Y, atol=1e-11)
        np.testing.assert_allclose(stumps.column(1), A[:, 1], atol=1e-14)


def test_nothing_to_fit_is_one_knot():
    flat = regularization_path(X, np.full(120, 2.0))
    assert len(flat) == 1
    np.testing.assert_allclose(flat.model(alpha=0.1)(X), 2.0)
    constant = regularization_path(np.ones((10, 2)), Y[:10])
    assert len(constant) == 1
    np.testing.assert_allclose(constant.model(radius=1.0)(np.ones((3, 2))), Y[:10].mean())


@pytest.mark.parametrize("dictionary", ["stumps", "features"])
def test_the_path_is_the_same_everywhere(dictionary, place):
    here = regularization_path(X, Y, dictionary=dictionary, max_knots=25)
    there = regularization_path(place.put(X), place.put(Y), dictionary=dictionary, max_knots=25)
    np.testing.assert_array_equal(there.columns, here.columns)
    np.testing.assert_allclose(there.alphas, here.alphas, atol=1e-10)
    np.testing.assert_allclose(there.coefficients, here.coefficients, atol=1e-10)
    radius = float(here.radii[3])
    predicted = there.model(radius=radius)(place.put(X))
    place.check(predicted, "float64")
    np.testing.assert_allclose(place.host(predicted), here.model(radius=radius)(X), atol=1e-10)


@pytest.mark.interop
def test_other_libraries_correlate_the_stumps_themselves(library):
    there = library.put(X)
    own = Stumps(rows_of(there), max_bins=20, centred=True)
    here = Stumps(rows_of(X), max_bins=20, centred=True)
    np.testing.assert_array_equal(own.threshold, here.threshold)
    c = here.correlations(Y)
    np.testing.assert_allclose(own.correlations(library.put(Y)), c, atol=1e-10)
    np.testing.assert_allclose(library.host(own.column(3)), here.column(3))


def test_a_path_is_drawn():
    pytest.importorskip("matplotlib").use("Agg")
    import matplotlib.pyplot as plt

    path = regularization_path(X, Y, max_knots=20)
    ax = path.plot()
    assert len(ax.get_lines()) == len(path.columns) + 1
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert len(names) == 5
    assert all(name.startswith("feature ") and ">" in name for name in names)
    assert "feature 0" in regularization_path(X, Y, dictionary="features").plot().get_legend(
    ).get_texts()[0].get_text()  # fmt: skip
    named = {f"x{f}": X[:, f] for f in range(4)}
    frame = pytest.importorskip("pandas").DataFrame(named)
    first = regularization_path(frame, Y, max_knots=4).plot().get_legend().get_texts()[0]
    assert first.get_text().startswith("x0 > ")
    assert regularization_path(X, np.ones(120)).plot().get_legend() is None
    plt.close("all")
    assert "20 knots" in repr(path)


@pytest.mark.parametrize(
    ("given", "error", "says"),
    [
        ({"dictionary": "trees"}, ValueError, "dictionary must be one of"),
        ({"intercept": True}, ValueError, "intercept must be one of"),
        ({"max_bins": 1}, ValueError, "max_bins must be"),
        ({"max_active": 0}, ValueError, "max_active must be"),
        ({"max_knots": 1.5}, TypeError, "max_knots must be"),
        ({"max_radius": float("nan")}, ValueError, "max_radius must be"),
        ({"max_radius": -1.0}, ValueError, "max_radius must be"),
        ({"device": "gpu"}, ValueError, "device must be one of"),
    ],
)
def test_bad_input_is_named(given, error, says):
    with pytest.raises(error, match=says):
        regularization_path(X, Y, **given)


def test_bad_rows_and_points_are_named():
    with pytest.raises(ValueError, match="contains NaN, which RegularizationPath cannot take"):
        regularization_path(np.where(X > 2.0, np.nan, X), Y)
    path = regularization_path(X, Y, max_knots=3)
    with pytest.raises(ValueError, match="give radius or alpha"):
        path.at()
    with pytest.raises(ValueError, match="give radius or alpha"):
        path.model(radius=1.0, alpha=1.0)
    with pytest.raises(ValueError, match="radius must be"):
        path.at(radius=0.0)
    with pytest.raises(ValueError, match="alpha must be"):
        path.at(alpha=-1.0)


def test_scikit_learn_warns_where_we_go_on():
    """That it does is why the conditions, and not its knots, are held against our path there."""
    A, y = centred(explicit(X[:40]), Y[:40], "mean")
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        lars_path(A, y, method="lasso")
    assert any(issubclass(one.category, ConvergenceWarning) for one in found)
