"""Masked arrays, and types that NumPy does not know itself."""

from __future__ import annotations

import numpy as np
import pytest

from ensemble_gpu import (
    AdaBoostClassifier,
    BaggingClassifier,
    BoostingRegressor,
    DecisionTreeClassifier,
    RandomForestRegressor,
)
from ensemble_gpu.arrays.plain import unmasked
from tests.datasets import fitted_state, random_data

DATA = random_data(n=80, p=3)
HIDDEN = np.random.default_rng(0).random(DATA.X.shape) < 0.2
MASKED = np.ma.array(DATA.X, mask=HIDDEN)
WITH_NAN = np.where(HIDDEN, np.nan, DATA.X)


@pytest.mark.slow
@pytest.mark.parametrize(
    "estimator",
    [AdaBoostClassifier(n_estimators=5), DecisionTreeClassifier(),
     BoostingRegressor(max_depth=2, n_estimators=5),
     RandomForestRegressor(3, random_state=0), BaggingClassifier(n_estimators=3, random_state=0)],
    ids=lambda estimator: type(estimator).__name__,
)  # fmt: skip
def test_masked_cells_are_missing_in_fit_and_prediction(estimator):
    expected = estimator.fit(WITH_NAN, DATA.y).predict(WITH_NAN)
    found = estimator.fit(MASKED, DATA.y)
    np.testing.assert_array_equal(found.predict(MASKED), expected)
    if hasattr(found, "model_"):
        np.testing.assert_array_equal(found.model_(MASKED), found.model_(WITH_NAN))


def test_masked_validation_rows_are_missing_as_well():
    ada = AdaBoostClassifier(n_estimators=5)
    expected = ada.fit(DATA.X, DATA.y, X_val=WITH_NAN, y_val=DATA.y).validation_loss_
    found = ada.fit(DATA.X, DATA.y, X_val=MASKED, y_val=DATA.y).validation_loss_
    np.testing.assert_array_equal(found, expected)


def test_masked_cells_are_refused_where_nan_is():
    ada = AdaBoostClassifier(missing="error")
    with pytest.raises(ValueError, match="X contains NaN, which missing='error' refuses"):
        ada.fit(MASKED, DATA.y)
    assert not fitted_state(ada)


def test_an_array_whose_mask_hides_nothing_is_an_array():
    nothing = np.ma.array(DATA.X)
    labels, weights = np.ma.array(DATA.y), np.ma.array(np.ones(80))
    found = AdaBoostClassifier(n_estimators=5).fit(nothing, labels, weights)
    assert found.model_ == AdaBoostClassifier(n_estimators=5).fit(DATA.X, DATA.y).model_


@pytest.mark.slow
@pytest.mark.parametrize(
    "estimator", [AdaBoostClassifier(), BoostingRegressor(n_estimators=5)], ids=str
)
def test_masked_targets_and_weights_are_refused_in_score_as_in_fit(estimator):
    hidden = np.arange(80) == 7
    y, weights = np.ma.array(DATA.y, mask=hidden), np.ma.array(np.ones(80), mask=hidden)
    with pytest.raises(ValueError, match="y is a masked array with 1 masked values"):
        estimator.fit(DATA.X, y)
    assert not fitted_state(estimator)
    estimator.fit(DATA.X, DATA.y)
    with pytest.raises(ValueError, match="y is a masked array"):
        estimator.score(DATA.X, y)
    with pytest.raises(ValueError, match="sample_weight is a masked array"):
        estimator.score(DATA.X, DATA.y, weights)


def test_masked_labels_and_integers_are_missing():
    words = np.ma.array([["a", "b"], ["c", "a"]], mask=[[False, True], [False, False]])
    assert unmasked(words).tolist() == [["a", None], ["c", "a"]]
    numbers = unmasked(np.ma.array([[1, 2]], mask=[[True, False]]))
    np.testing.assert_array_equal(numbers, [[np.nan, 2.0]])
    assert unmasked(np.ma.array([[1.5]], mask=True, dtype=np.float32)).dtype == np.float32


@pytest.mark.interop
@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "int4"])
def test_types_of_ml_dtypes_are_read_exactly(name):
    import ml_dtypes

    dtype = np.dtype(getattr(ml_dtypes, name))
    X = np.round(DATA.X).astype(dtype)
    plain = X.astype(np.float32)
    for estimator in (AdaBoostClassifier(n_estimators=5), RandomForestRegressor(2, random_state=0)):
        expected = estimator.fit(plain, DATA.y).model_
        found = estimator.fit(X, DATA.y)
        assert found.model_ == expected
        np.testing.assert_array_equal(found.predict(X), found.predict(plain))
        np.testing.assert_array_equal(found.model_(X), found.model_(plain))
    weights = np.ones(80, dtype=dtype)
    assert AdaBoostClassifier(n_estimators=5).fit(X, DATA.y, weights).score(X, DATA.y) > 0.5


@pytest.mark.interop
def test_bfloat16_of_jax_is_read_exactly():
    import jax.numpy as jnp

    X = jnp.asarray(DATA.X, dtype=jnp.bfloat16)
    plain = np.asarray(X.astype(jnp.float32))
    found = AdaBoostClassifier(n_estimators=5).fit(X, jnp.asarray(DATA.y))
    assert found.model_ == AdaBoostClassifier(n_estimators=5).fit(plain, DATA.y).model_
    np.testing.assert_array_equal(np.asarray(found.predict(X)), found.predict(plain))


@pytest.mark.interop
def test_inside_of_a_function_that_jax_traces_the_error_says_so():
    import jax
    import jax.numpy as jnp

    X = jnp.asarray(DATA.X)
    for estimator in (AdaBoostClassifier(n_estimators=3), RandomForestRegressor(2)):
        estimator.fit(DATA.X, DATA.y)
        for function in (estimator.predict, estimator.model_):
            for traced in (jax.jit(function), jax.vmap(lambda x, f=function: f(x[None, :]))):
                with pytest.raises(TypeError, match=r"cannot be traced: .* JAX"):
                    traced(X)
        with pytest.raises(TypeError, match="cannot be traced"):
            jax.jit(lambda y, e=estimator: e.fit(DATA.X, y))(jnp.asarray(DATA.y))
