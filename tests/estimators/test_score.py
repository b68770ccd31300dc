"""Accuracy of every classifier: labels are read as in fit, and nothing is compared by accident."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.exceptions import DataConversionWarning

from ensemble_gpu import AdaBoostClassifier, BoostingClassifier
from ensemble_gpu.bagging.bagging import BaggingClassifier
from ensemble_gpu.bagging.random_forest import RandomForestClassifier
from ensemble_gpu.trees.tree import DecisionTreeClassifier
from tests.boosting.bad import changed, on
from tests.datasets import random_data

DATA = random_data(n=60, p=3)
X, Y = DATA.X, DATA.y
NAMES = np.array(["no", "yes"])

KINDS: dict[str, Any] = {
    "adaboost": lambda: AdaBoostClassifier(n_estimators=3),
    "boosting": lambda: BoostingClassifier(n_estimators=3, max_depth=1),
    "tree": lambda: DecisionTreeClassifier(max_depth=2),
    "forest": lambda: RandomForestClassifier(3, max_depth=2, random_state=0),
    "bagging": lambda: BaggingClassifier(DecisionTreeClassifier(max_depth=2), 3, random_state=0),
}
every_kind = pytest.mark.parametrize("kind", KINDS)


def share_right(model: Any, y: np.ndarray) -> float:
    return float(np.mean(model.predict(X) == y))


@every_kind
@pytest.mark.parametrize(
    "column",
    [lambda y: y[:, None], lambda y: pd.DataFrame({"y": y}), lambda y: pl.DataFrame({"y": y})],
    ids=["array", "pandas", "polars"],
)
def test_a_column_of_labels_is_flattened_as_in_fit(kind, column):
    with pytest.warns(DataConversionWarning, match="column-vector y"):
        model = KINDS[kind]().fit(X, column(Y))
    with pytest.warns(DataConversionWarning, match="column-vector y"):
        found = model.score(X, column(Y))
    assert 0.5 < share_right(model, Y) < 1.0
    assert found == pytest.approx(share_right(model, Y))


@every_kind
def test_a_column_of_labels_on_a_device_is_refused_as_in_fit(kind):
    model, column = KINDS[kind]().fit(X, Y), on(1, Y[:, None])
    for method in (model.score, KINDS[kind]().fit):
        with pytest.raises(ValueError, match=r"y must be 1-dimensional; .* \(60, 1\)"):
            method(on(1, X), column)


@every_kind
@pytest.mark.parametrize(
    ("classes", "given", "says"),
    [
        ([0, 1], ["0", "1"], "y holds strings; labels must be numbers, as in training: 0, 1."),
        ([0, 1], [None, 1], "y contains NaN or None"),
        ([0, 1], [np.nan, 1.0], "y contains NaN"),
        (["no", "yes"], [0, 1], "y holds numbers; labels must be strings, as in training: 'no', "),
        ([False, True], ["no", "yes"], "y holds strings; labels must be numbers, as in training"),
    ],
    ids=str,
)
def test_labels_of_another_kind_than_those_of_training_are_refused(kind, classes, given, says):
    model = KINDS[kind]().fit(X, np.array(classes)[Y])
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        model.score(X, np.array(given, dtype=object)[Y].tolist())
    assert says in str(caught.value)


@every_kind
@pytest.mark.parametrize(
    ("y", "says"),
    [
        (changed(Y, np.nan), "y contains NaN"),
        (X[:, 0], "continuous"),
        (np.stack([Y, Y], axis=1), r"\(60, 2\)"),
        (Y[:4], "X has 60 rows, y has 4"),
        (None, "y is None"),
    ],
    ids=["NaN", "continuous", "2-D", "short", "None"],
)
def test_what_fit_refuses_score_refuses(kind, y, says):
    model = KINDS[kind]().fit(X, Y)
    for method in (model.score, KINDS[kind]().fit):
        with pytest.raises(ValueError, match=says):
            method(X, y)


@every_kind
def test_a_label_that_training_did_not_have_counts_as_wrong(kind):
    model = KINDS[kind]().fit(X, Y)
    y = Y.copy()
    y[:20] = 7
    assert model.score(X, y) == pytest.approx(share_right(model, y))
    assert model.score(X, y) < model.score(X, Y)


@every_kind
@pytest.mark.parametrize(
    "same", [Y * 1.0, Y == 1, Y.astype(np.int8), pd.Series(Y), Y.tolist()],
    ids=["float", "bool", "int8", "series", "list"],
)  # fmt: skip
def test_numbers_of_any_type_are_compared_by_value(kind, same):
    model = KINDS[kind]().fit(X, Y)
    assert model.score(X, same) == pytest.approx(share_right(model, Y))


@every_kind
@pytest.mark.parametrize("labels", [NAMES, NAMES.astype(object)])
@pytest.mark.parametrize("given", [NAMES, NAMES.astype(object)])
def test_strings_of_any_type_are_compared_by_value(kind, labels, given):
    model = KINDS[kind]().fit(X, labels[Y])
    assert model.score(X, given[Y]) == pytest.approx(share_right(model, NAMES[Y]))


@pytest.mark.parametrize("kind", ["adaboost", "tree"])
@pytest.mark.parametrize(
    ("classes", "given"),
    [
        ([0, 1], lambda: on(1, Y)),
        ([0, 1], lambda: on(1, Y == 1)),
        ([0, 1], lambda: Y.tolist()),
        ([0, 1], lambda: (1.0 * Y).tolist()),
        ([False, True], lambda: on(1, Y)),
        ([0.0, 1.0], lambda: on(1, Y)),
        (["no", "yes"], lambda: NAMES[Y]),
    ],
    ids=["int", "bool", "list", "floats", "bool by int", "float by int", "strings"],
)
def test_labels_are_compared_by_value_where_the_predictions_are(kind, classes, given):
    labels = np.array(classes)
    model = KINDS[kind]().fit(X, labels[Y])
    assert model.score(on(1, X), given()) == pytest.approx(share_right(model, labels[Y]))


@pytest.mark.interop
@every_kind
def test_a_column_of_another_library_is_flattened_as_in_fit(kind, library):
    column = library.put(Y[:, None])
    with pytest.warns(DataConversionWarning, match="column-vector y"):
        model = KINDS[kind]().fit(library.put(X), column)
    with pytest.warns(DataConversionWarning, match="column-vector y"):
        assert model.score(library.put(X), column) == pytest.approx(share_right(model, Y))
