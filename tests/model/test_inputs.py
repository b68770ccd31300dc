"""What a model can be called with, and what it says of the rest."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from ensemble_gpu import AdaBoostClassifier
from ensemble_gpu.trees.tree import DecisionTreeClassifier as Stump
from tests.model.trees import random_forest, rows_for
from tests.places import Place

FOREST = random_forest()
X = rows_for(FOREST)


@cache
def boosted(of_trees: bool) -> Any:
    ada = AdaBoostClassifier(Stump(max_depth=1) if of_trees else None, n_estimators=3)
    return ada.fit(np.nan_to_num(X), X[:, 0] > 0).model_


METHODS = {
    "call": FOREST,
    "apply": FOREST.apply,
    "stumps": lambda X: boosted(of_trees=False)(X),
    "learners": lambda X: boosted(of_trees=True)(X),
    "staged": lambda X: next(FOREST.staged(X, [len(FOREST)])),
    "decision_path": lambda X: FOREST.decision_path(X)[0].toarray(),
}
every_method = pytest.mark.parametrize("method", METHODS)


@every_method
def test_a_list_of_rows_is_read_as_an_array(method):
    found = METHODS[method](X[:9].tolist())
    np.testing.assert_array_equal(found, METHODS[method](X[:9]))
    assert type(found) is np.ndarray
    rows = tuple(tuple(row) for row in X[:9].tolist())
    np.testing.assert_array_equal(METHODS[method](rows), found)


@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.uint16, bool, np.float32])
def test_numbers_of_any_type_are_taken(dtype, place: Place):
    whole = np.nan_to_num(X, posinf=3.0).clip(0, 100).astype(dtype)
    np.testing.assert_array_equal(
        place.host(FOREST(place.put(whole))), FOREST(whole.astype(np.float64))
    )


@every_method
@pytest.mark.parametrize(
    ("wrong", "name"),
    [
        (pd.DataFrame(X), "DataFrame"),
        (pl.DataFrame(X), "DataFrame"),
        (pd.Series(X[:, 0]), "Series"),
        ("rows", "str"),
        (None, "NoneType"),
        (3.0, "float"),
    ],
    ids=["pandas", "polars", "series", "text", "None", "number"],
)
def test_what_is_no_array_is_refused_and_the_estimator_named(method, wrong, name):
    message = rf"^X must be an array of NumPy .* or a list of rows; got {name}\. Frames are taken"
    with pytest.raises(TypeError, match=message):
        METHODS[method](wrong)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ([["a"] * 7], r"^X must hold numbers, rows of one length: could not convert string .* 'a'"),
        ([[1.0] * 7, [1.0]], r"^X must hold numbers, rows of one length: "),
        (X.astype(object), r"^X must hold floats, integers or bool; got dtype object"),
        (X.astype(complex), r"^X must hold floats, integers or bool; got dtype complex128"),
        (X.astype(str), r"^X must hold floats, integers or bool; got dtype <U"),
    ],
    ids=["strings", "ragged", "objects", "complex", "an array of strings"],
)
def test_what_is_no_number_is_refused(wrong, says):
    with pytest.raises(TypeError, match=says) as caught:
        FOREST(wrong)
    assert not str(caught.value).endswith("..")


@pytest.mark.parametrize("wrong", [X[0], X[0].tolist(), X[:, :3], [[1.0]], []], ids=np.shape)
def test_rows_of_another_shape_are_refused(wrong):
    with pytest.raises(ValueError, match=r"^X must have shape \(rows, 7\); got \("):
        FOREST(wrong)
