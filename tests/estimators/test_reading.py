"""The one reader: what all estimators get from X, y and sample_weight."""

from __future__ import annotations

import array_api_strict
import numpy as np
import pandas as pd
import pytest

from ensemble_gpu import BaggingRegressor, BoostingRegressor, DecisionTreeRegressor, use_engine
from ensemble_gpu.arrays.namespace import NUMPY, locate
from ensemble_gpu.estimators.reading import (
    GivenRows,
    encoded_by,
    read,
    read_validation,
    training_data,
)
from ensemble_gpu.kernels.select import engine_for
from tests.places import STRICT, Place

X = np.array([[0.0, 5.0], [1.0, 5.0], [2.0, 7.0], [3.0, np.nan]])
Y = np.array([1.0, 2.0, 3.0, 4.0])
W = np.array([1.0, 0.0, 2.0, 3.0])


def estimators():
    bagging = BaggingRegressor(DecisionTreeRegressor(categorical_features=[1]))
    bagging.estimator_ = bagging.estimator
    return [
        DecisionTreeRegressor(categorical_features=[1]),
        BoostingRegressor(categorical_features=[1], max_depth=1),
        bagging,
    ]


@pytest.mark.parametrize("estimator", estimators(), ids=lambda e: type(e).__name__)
def test_all_estimators_read_the_same_rows(estimator, place: Place):
    reading = read(estimator, place.put(X), place.put(Y), place.put(W))
    assert reading.home == reading.where == locate(place.put(X))
    rows, categories = reading.encoded(255)
    assert place.host(reading.keep).tolist() == [True, False, True, True]
    assert categories.values[1].tolist() == [5.0, 7.0]
    np.testing.assert_array_equal(place.host(rows.X)[:, 1], [0.0, 0.0, 1.0, np.nan])
    np.testing.assert_array_equal(place.host(rows.target), Y)
    np.testing.assert_array_equal(place.host(rows.weights), W)


def test_without_weights_every_row_takes_part():
    reading = read(DecisionTreeRegressor(), X, Y, None)
    assert reading.keep is None
    assert reading.rows.weights is None


def test_categories_are_those_of_the_rows_that_take_part():
    reading = read(DecisionTreeRegressor(categorical_features=[1]), X, Y, [1.0, 1.0, 0.0, 1.0])
    assert reading.encoded(255)[1].values[1].tolist() == [5.0]


def test_more_categories_than_bins_are_refused_and_none_is_no_limit():
    codes = np.arange(300.0)[:, None]
    reading = read(DecisionTreeRegressor(categorical_features=[0]), codes, codes[:, 0], None)
    assert len(reading.encoded(None)[1].values[0]) == 300
    with pytest.raises(ValueError, match="from 0 to 254"):
        reading.encoded(255)


def test_the_cpu_engine_trains_on_views_that_it_cannot_write():
    reading = read(DecisionTreeRegressor(), X, Y, W)
    engine = engine_for(reading.where)
    data = training_data(reading.seen_by(engine), engine, 255)
    assert data.where is NUMPY
    assert np.shares_memory(data.rows.X, X)
    for array in (data.rows.X, data.rows.target, data.rows.weights):
        assert not array.flags.writeable
    assert X.flags.writeable


def test_where_the_work_is_done_follows_the_engine_and_home_stays():
    place = STRICT[0]
    reading = read(DecisionTreeRegressor(), place.put(X), place.put(Y), None)
    with use_engine("cpu"):
        seen = reading.seen_by(engine_for(reading.where))
    assert seen.where is NUMPY
    assert seen.home.xp is array_api_strict


def test_validation_rows_are_read_as_training_rows_are():
    frame = pd.DataFrame({"x": [0.0, 1.0, 2.0], "c": pd.Categorical(["b", "a", "b"])})
    estimator = BoostingRegressor(max_depth=1)
    reading = read(estimator, frame, [1.0, 2.0, 3.0], None)
    categories = reading.encoded(255)[1]
    later = pd.DataFrame({"x": [4.0, 5.0], "c": pd.Categorical(["a", "new"])})
    rows = read_validation(estimator, GivenRows(later, [1.0, 2.0], [1.0, 0.5]), reading)
    found = encoded_by(categories, rows, reading.where).X
    np.testing.assert_array_equal(found, [[4.0, 0.0], [5.0, np.nan]])
    assert rows.weights.tolist() == [1.0, 0.5]
