"""What X may be: columns that hold no numbers are named, and so is X where it has no rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from ensemble_gpu import AdaBoostClassifier, BoostingClassifier
from ensemble_gpu.bagging.bagging import BaggingClassifier
from ensemble_gpu.bagging.random_forest import RandomForestClassifier
from ensemble_gpu.trees.tree import DecisionTreeClassifier
from tests.boosters import plain
from tests.datasets import fitted_state

N = 30
SIZE = np.random.default_rng(0).normal(size=N)
Y = (SIZE > 0).astype(int)
CITY = ["oslo", "rome", "bonn"] * 10
DAYS = pd.date_range("2024-01-01", periods=N)

KINDS: dict[str, Any] = {
    "adaboost": lambda **p: AdaBoostClassifier(n_estimators=2, **p),
    "boosting": lambda **p: BoostingClassifier(**plain(p, n_estimators=2)),
    "boosted trees": lambda **p: BoostingClassifier(**plain(p, max_depth=2, n_estimators=2)),
    "tree": DecisionTreeClassifier,
    "forest": lambda **p: RandomForestClassifier(2, **p),
    "bagging": lambda **p: BaggingClassifier(n_estimators=2, **p),
}
every_kind = pytest.mark.parametrize("kind", KINDS)

# (frame, what the message says of column "c"); none of them is found by its dtype.
COLUMNS: dict[str, tuple[Any, str]] = {
    "pandas strings": (pd.DataFrame({"a": SIZE, "c": CITY}), "'c' (dtype "),
    "pandas objects": (pd.DataFrame({"a": SIZE, "c": np.array(CITY, object)}, dtype=object), "'c'"),
    "pandas dates": (pd.DataFrame({"a": SIZE, "c": DAYS}), "'c' (dtype datetime64["),
    "pandas dates alone": (pd.DataFrame({"c": DAYS}), "'c' (dtype datetime64["),
    "pandas periods": (pd.DataFrame({"c": DAYS.to_period("M")}), "'c' (dtype period[M])"),
    "pandas durations": (pd.DataFrame({"a": SIZE, "c": DAYS - DAYS[0]}), "'c' (dtype timedelta"),
    "polars strings": (pl.DataFrame({"a": SIZE, "c": CITY}), "'c' (dtype String)"),
    "polars dates": (
        pl.DataFrame({"a": SIZE, "c": DAYS.to_pydatetime().tolist()}), "'c' (dtype Datetime",
    ),
    "polars lists": (pl.DataFrame({"c": [[1, 2]] * N}), "'c' (dtype List(Int64))"),
    "polars decimals": (
        pl.DataFrame({"c": pl.Series(["1.5"] * N).cast(pl.Decimal(10, 2))}), "'c' (dtype Decimal(",
    ),
}  # fmt: skip
CATEGORIES: dict[str, tuple[Any, str]] = {
    "pandas": (pd.DataFrame({"a": SIZE, "c": pd.Categorical(CITY)}), "'c' (dtype category)"),
    "polars": (
        pl.DataFrame({"a": SIZE, "c": pl.Series(CITY, dtype=pl.Categorical)}),
        "'c' (dtype Categorical)",
    ),
}


def take_no_categories(estimator: Any) -> None:
    if "categorical_features" in estimator.get_params():
        estimator.set_params(categorical_features=None)
    if isinstance(estimator, BaggingClassifier):
        estimator.set_params(estimator=DecisionTreeClassifier(categorical_features=None))


def assert_column_named(estimator: Any, frame: Any, says: str) -> None:
    with pytest.raises(ValueError, match=r"^X must hold numbers") as caught:
        estimator.fit(frame, Y)
    message = str(caught.value)
    assert says in message
    assert "\n" not in message
    can = "categorical_features" in estimator.get_params()
    assert ("in categorical_features" in message) == can
    assert ("OrdinalEncoder" in message) != can
    assert not fitted_state(estimator)


@every_kind
@pytest.mark.parametrize("case", COLUMNS)
def test_a_column_that_holds_no_numbers_is_named_with_its_type(kind, case):
    assert_column_named(KINDS[kind](), *COLUMNS[case])


@every_kind
@pytest.mark.parametrize("case", CATEGORIES)
def test_a_column_of_categories_that_are_not_asked_for_is_named(kind, case):
    estimator = KINDS[kind]()
    take_no_categories(estimator)
    assert_column_named(estimator, *CATEGORIES[case])


def test_many_columns_are_named_and_the_rest_is_counted():
    frame = pd.DataFrame(dict.fromkeys("abcdef", CITY))
    with pytest.raises(ValueError, match=r"columns 'a' \(.*'d' \(dtype \w+\), 2 more\. "):
        DecisionTreeClassifier().fit(frame, Y)


@every_kind
@pytest.mark.parametrize(
    ("column", "same"),
    [
        (pd.Categorical([1, 2, 3] * 10), [1.0, 2.0, 3.0] * 10),
        (pd.array([1, None, 3] * 10, dtype="Int64"), [1.0, np.nan, 3.0] * 10),
        (pd.Series([0.5, None, 3] * 10, dtype=object), [0.5, np.nan, 3.0] * 10),
        ([True, False, True] * 10, [1.0, 0.0, 1.0] * 10),
    ],
    ids=["categories that are numbers", "nullable", "objects", "bool"],
)
def test_columns_that_can_be_read_as_numbers_are(kind, column, same):
    estimator = KINDS[kind]()
    if "random_state" in estimator.get_params():
        estimator.set_params(random_state=0)
    take_no_categories(estimator)
    frame = pd.DataFrame({"a": SIZE, "c": column})
    found = estimator.fit(frame, Y).predict_proba(frame)
    X = np.column_stack([SIZE, same])
    np.testing.assert_array_equal(found, estimator.fit(X, Y).predict_proba(X))


@every_kind
@pytest.mark.parametrize("case", ["pandas strings", "polars strings"])
def test_labels_where_fit_had_numbers_are_named_at_predict(kind, case):
    frame, says = COLUMNS[case]
    numbers = type(frame)({"a": SIZE, "c": SIZE})
    estimator = KINDS[kind]().fit(numbers, Y)
    with pytest.raises(ValueError, match=r"^X must hold numbers .*They were numbers") as caught:
        estimator.predict(frame)
    assert says in str(caught.value)


@every_kind
def test_objects_that_are_no_numbers_name_X(kind):
    X = np.array([[day] for day in DAYS], dtype=object)
    with pytest.raises(TypeError, match=r"^X must hold numbers .* not 'Timestamp'\.$"):
        KINDS[kind]().fit(X, Y)


@every_kind
@pytest.mark.parametrize(
    ("X", "says"),
    [
        (np.zeros((0, 3)), r"^Found array X with 0 sample\(s\) \(shape=\(0, 3\)\) while a minimum"),
        (pd.DataFrame(np.zeros((0, 3))), r"^Found array X with 0 sample\(s\) \(shape=\(0, 3\)\)"),
        (np.zeros((N, 0)), r"^Found array X with 0 feature\(s\) \(shape=\(30, 0\)\) while a mini"),
        (SIZE, r"^Expected 2D array X \(rows, features\), got 1D array instead: shape \(30,\)"),
        (np.zeros((N, 3, 1)), r"^Found array X with dim 3 \(shape=\(30, 3, 1\)\)"),
        (3.0, "^Expected 2D array X .*, got 0D array"),
        (np.array([["2024-01-01"]] * N, dtype="M8[D]"), r"^X has dtype datetime64\[D\]; floats, "),
    ],
    ids=["no rows", "no rows in a frame", "no features", "1-D", "3-D", "a number", "dates"],
)  # fmt: skip
def test_an_X_of_the_wrong_shape_or_type_is_called_by_its_name(kind, X, says):
    with pytest.raises(ValueError, match=says) as caught:
        KINDS[kind]().fit(X, Y)
    assert "\n" not in str(caught.value)
    assert "Complex" not in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        ("adaboost", "missing='abstain' or missing='learn' takes it"),
        ("boosting", "missing='abstain' or missing='learn' takes it"),
        ("tree", "refuses; missing='learn' takes it"),
        ("forest", "refuses; missing='learn' takes it"),
    ],
)
def test_nan_where_it_is_refused_says_what_this_estimator_could_do_instead(kind, says):
    X = np.column_stack([SIZE, np.full(N, np.nan)])
    with pytest.raises(ValueError, match=r"^Input X contains NaN") as caught:
        KINDS[kind](missing="error").fit(X, Y)
    assert says in str(caught.value)
