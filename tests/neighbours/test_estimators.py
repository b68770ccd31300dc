"""K nearest neighbours: scikit-learn's and brute force are the oracles."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

from ensemble_gpu import NeighboursClassifier, NeighboursRegressor
from ensemble_gpu.arrays.namespace import locate
from ensemble_gpu.model import neighbours as model_of_neighbours
from tests.datasets import fitted_state
from tests.estimators.checks import assert_checks_pass, each_setting

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 4))
Q = RNG.normal(size=(50, 4))
Y = X[:, 0] ** 2 + X[:, 1] + 0.1 * RNG.normal(size=120)
LABELS = np.array(["a", "b", "c"])[np.digitize(Y, [0.3, 1.2])]


@pytest.mark.parametrize("k", [1, 5, 120])
def test_predictions_are_those_of_scikit_learn(k):
    ours, theirs = NeighboursRegressor(k).fit(X, Y), KNeighborsRegressor(k).fit(X, Y)
    np.testing.assert_allclose(ours.predict(Q), theirs.predict(Q), rtol=1e-12)
    labels, peer = NeighboursClassifier(k).fit(X, LABELS), KNeighborsClassifier(k).fit(X, LABELS)
    np.testing.assert_allclose(labels.predict_proba(Q), peer.predict_proba(Q), atol=1e-12)
    np.testing.assert_array_equal(labels.predict(Q), peer.predict(Q))
    distance, at = ours.kneighbors(Q)
    expected, theirs_at = theirs.kneighbors(Q)
    np.testing.assert_allclose(distance, expected, rtol=1e-12)
    np.testing.assert_array_equal(at, theirs_at)


def test_rows_far_from_the_origin_keep_their_order():
    far = X + 1e6
    exact = ((far[None] - (Q + 1e6)[:, None]) ** 2).sum(axis=2)
    _, at = NeighboursRegressor(7).fit(far, Y).kneighbors(Q + 1e6)
    np.testing.assert_array_equal(at, np.argsort(exact, axis=1, kind="stable")[:, :7])


def test_of_equally_distant_rows_the_first_are_taken():
    grid = RNG.integers(0, 3, size=(200, 3)).astype(float)
    ask = RNG.integers(0, 3, size=(40, 3)).astype(float)
    exact = ((grid[None] - ask[:, None]) ** 2).sum(axis=2)
    _, at = NeighboursRegressor(9).fit(grid, grid[:, 0]).kneighbors(ask)
    np.testing.assert_array_equal(at, np.argsort(exact, axis=1, kind="stable")[:, :9])


def test_every_k_is_there_at_once():
    ours, labels = NeighboursRegressor(3).fit(X, Y), NeighboursClassifier(3).fit(X, LABELS)
    each, each_label = ours.predict_each(Q, 12), labels.predict_each(Q, 12)
    assert each.shape == each_label.shape == (12, 50)
    for k in range(1, 13):
        np.testing.assert_allclose(each[k - 1], NeighboursRegressor(k).fit(X, Y).predict(Q))
        alone = NeighboursClassifier(k).fit(X, LABELS).predict(Q)
        np.testing.assert_array_equal(each_label[k - 1], alone)
    assert ours.predict_each(Q).shape == (3, 50)


def test_leave_one_out_is_a_fit_without_the_row():
    labels = NeighboursClassifier(1).fit(X, LABELS).leave_one_out(6)
    numbers = NeighboursRegressor(1).fit(X, Y).leave_one_out(6)
    for i in range(0, 120, 13):
        rest = np.arange(120) != i
        alone = NeighboursRegressor(6).fit(X[rest], Y[rest])
        np.testing.assert_allclose(numbers[:, i], alone.predict_each(X[i : i + 1])[:, 0])
        vote = NeighboursClassifier(6).fit(X[rest], LABELS[rest]).predict_each(X[i : i + 1])
        np.testing.assert_array_equal(labels[:, i], vote[:, 0])


@pytest.mark.slow
def test_the_smoother_has_the_trace_n_over_k():
    for k in (1, 4, 10):
        each = [NeighboursRegressor(k).fit(X, unit).predict(X) for unit in np.eye(120)]
        assert np.trace(np.array(each)) == pytest.approx(120 / k)


def test_features_are_measured_in_standard_deviations_where_asked():
    scaled = X * np.array([1.0, 1e3, 1.0, 1e-3])
    ours = NeighboursRegressor(5, standardise=True).fit(scaled, Y)
    Z, mean, spread = X, X.mean(axis=0), X.std(axis=0)
    plain = NeighboursRegressor(5).fit((Z - mean) / spread, Y)
    ask = Q * np.array([1.0, 1e3, 1.0, 1e-3])
    np.testing.assert_allclose(ours.predict(ask), plain.predict((Q - mean) / spread))


def test_blocks_make_no_difference(monkeypatch):
    whole = NeighboursRegressor(5).fit(X, Y)
    expected, left_out = whole.predict(Q), whole.leave_one_out()
    monkeypatch.setattr(model_of_neighbours, "BLOCK_CELLS", 700)
    np.testing.assert_array_equal(whole.predict(Q), expected)
    np.testing.assert_array_equal(whole.leave_one_out(), left_out)


def test_predictions_are_where_x_is(place):
    ours = NeighboursClassifier(5).fit(place.put(X), place.put((Y > 0.5).astype(np.int64)))
    host = NeighboursClassifier(5).fit(X, Y > 0.5)
    p = ours.predict_proba(place.put(Q))
    place.check(p, "float64")
    np.testing.assert_allclose(place.host(p), host.predict_proba(Q))
    place.check(ours.predict(place.put(Q)), "int64")
    place.check(ours.predict_each(place.put(Q), 3), "int64")


@pytest.mark.interop
def test_other_libraries_predict_the_same(library):
    ours = NeighboursRegressor(5).fit(library.put(X), library.put(Y))
    predicted = ours.predict(library.put(Q))
    library.check(predicted, "float64")
    np.testing.assert_allclose(library.host(predicted), NeighboursRegressor(5).fit(X, Y).predict(Q))


@pytest.mark.interop
def test_the_nearest_rows_are_found_by_other_libraries_themselves(library):
    """On the host their arrays are seen as NumPy's; on a device they are not."""
    there, where = library.put(X), locate(library.put(X))
    _, expected = NeighboursRegressor(7).fit(X, Y).kneighbors(Q)
    ((_, at, _),) = model_of_neighbours.Nearest(there, where).blocks(library.put(Q), 7)
    np.testing.assert_array_equal(library.host(at), expected)
    means = model_of_neighbours.means_of_each(at, library.put(Y[:, None]), where)
    each = NeighboursRegressor(7).fit(X, Y).predict_each(Q)
    np.testing.assert_allclose(library.host(means)[:, :, 0].T, each)


def test_the_model_is_equal_to_its_pickle_and_to_no_other():
    one, other = (NeighboursRegressor(k).fit(X, Y).model_ for k in (3, 4))
    assert pickle.loads(pickle.dumps(one)) == one != other
    assert repr(one) == "NeighbourModel(3 of 120 rows; 4 features, 1 output(s), 1 round(s))"


@pytest.mark.parametrize(
    ("params", "error", "says"),
    [
        ({"n_neighbors": 0}, ValueError, "n_neighbors must be an integer >= 1; got 0"),
        ({"n_neighbors": 121}, ValueError, "n_neighbors must be an integer from 1 to 120"),
        ({"n_neighbors": 2.5}, TypeError, "n_neighbors must be"),
        ({"standardise": "yes"}, ValueError, "standardise must be True or False"),
        ({"device": "gpu"}, ValueError, "device must be one of"),
    ],
)
def test_bad_parameters_are_named_and_nothing_is_half_fitted(params, error, says):
    for kind, y in ((NeighboursRegressor, Y), (NeighboursClassifier, LABELS)):
        ours = kind().fit(X, y)
        before = fitted_state(ours)
        with pytest.raises(error, match=says):
            ours.set_params(**params).fit(X, y)
        assert fitted_state(ours) == before


def test_missing_values_and_sparse_matrices_are_refused():
    import scipy.sparse

    holes = X.copy()
    holes[3, 1] = np.nan
    with pytest.raises(ValueError, match="Input X contains NaN, which NeighboursRegressor cannot"):
        NeighboursRegressor().fit(holes, Y)
    with pytest.raises(ValueError, match="Input X contains NaN"):
        NeighboursRegressor().fit(X, Y).predict(holes)
    with pytest.raises(TypeError, match="NeighboursRegressor takes dense X"):
        NeighboursRegressor().fit(scipy.sparse.csr_array(X), Y)


@each_setting(
    [NeighboursClassifier(3), NeighboursRegressor(3), NeighboursRegressor(standardise=True)]
)
def test_the_checks_of_scikit_learn_pass(estimator, first):
    assert_checks_pass(estimator, others=first)
