"""Categories: labels to numbers to codes, from frames and arrays, and what is refused."""

from __future__ import annotations

import datetime
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from ensemble_gpu.arrays.namespace import locate
from ensemble_gpu.arrays.positions import encode
from ensemble_gpu.data.categories import Categories, Chosen, choose, learn, number
from tests.places import NARROW, NUMPY, Place

nan = np.nan
CITY = ["rome", None, "oslo", "rome", "bonn"]
SIZE = [0.5, 1.5, nan, 2.5, 3.5]


def numbers_of(frame, labels) -> np.ndarray:
    """What an estimator makes of a frame."""
    return validate_data(
        BaseEstimator(), number(frame, labels), dtype=np.float64, ensure_all_finite=False
    )


def categories_of(X, features, max_bins=255) -> Categories:
    return learn(X, Chosen(features, {}), max_bins, locate(X))


def pandas_frame(dtype="category") -> pd.DataFrame:
    return pd.DataFrame({"city": pd.Series(CITY, dtype=dtype), "size": SIZE})


def polars_frame(dtype=pl.Categorical) -> pl.DataFrame:
    return pl.DataFrame({"city": pl.Series(CITY, dtype=dtype), "size": pl.Series(SIZE)})


FRAMES = {
    "pandas category": pandas_frame(),
    "pandas ordered": pandas_frame(pd.CategoricalDtype(["rome", "oslo", "bonn"], ordered=True)),
    "pandas unused": pandas_frame(pd.CategoricalDtype(["zug", "rome", "ava", "oslo", "bonn"])),
    "pandas string": pandas_frame("string"),
    "pandas object": pandas_frame(object),
    "polars Categorical": polars_frame(),
    "polars Enum": polars_frame(pl.Enum(["zug", "rome", "oslo", "bonn"])),
    "polars String": polars_frame(pl.String),
    "objects": np.array(list(zip(CITY, SIZE, strict=True)), dtype=object),
    "lists": [list(row) for row in zip(CITY, SIZE, strict=True)],
}


@pytest.mark.parametrize("kind", FRAMES)
def test_labels_become_their_sorted_position_whatever_holds_them(kind):
    chosen = choose(FRAMES[kind], [0])
    assert chosen.features == [0]
    assert chosen.labels == {0: ["bonn", "oslo", "rome"]}
    X = numbers_of(FRAMES[kind], chosen.labels)
    np.testing.assert_array_equal(X, np.column_stack([[2.0, nan, 1.0, 2.0, 0.0], SIZE]))
    found = learn(X, chosen, 255, locate(X))
    np.testing.assert_array_equal(found.values[0], [0.0, 1.0, 2.0])
    assert found.names(0) == ["bonn", "oslo", "rome"]


@pytest.mark.parametrize("fitted", FRAMES)
@pytest.mark.parametrize(
    "later",
    [
        pd.DataFrame({"city": pd.Categorical(["ulm", "oslo", None]), "size": [1.0, 2.0, 3.0]}),
        pd.DataFrame({"city": ["ulm", "oslo", pd.NA], "size": [1, 2, 3]}),
        pl.DataFrame({"city": ["ulm", "oslo", None], "size": [1.0, 2.0, 3.0]}),
        pl.DataFrame({"city": ["ulm", "oslo", None], "size": [1.0, 2.0, 3.0]}).with_columns(
            pl.col("city").cast(pl.Categorical)
        ),
        np.array([["ulm", 1.0], ["oslo", 2.0], [pd.NA, 3.0]], dtype=object),
        [["ulm", 1.0], ["oslo", 2.0], [nan, 3.0]],
    ],
    ids=["category", "string", "polars", "Categorical", "objects", "lists"],
)
def test_unknown_and_missing_labels_become_nan(fitted, later):
    X = numbers_of(later, choose(FRAMES[fitted], [0]).labels)
    np.testing.assert_array_equal(X, [[nan, 1.0], [1.0, 2.0], [nan, 3.0]])


@pytest.mark.parametrize("kind", ["pandas category", "polars Categorical", "polars Enum"])
def test_the_column_type_of_a_frame_says_what_is_categorical(kind):
    assert choose(FRAMES[kind], "from_dtype").features == [0]
    assert choose(FRAMES[kind], None) == Chosen([], {})


@pytest.mark.parametrize("kind", ["pandas string", "polars String", "objects", "lists"])
def test_strings_are_categorical_only_where_listed(kind):
    assert choose(FRAMES[kind], "from_dtype").features == []


def test_from_dtype_finds_nothing_in_arrays(place: Place):
    assert choose(place.put(np.zeros((3, 2))), "from_dtype") == Chosen([], {})


@pytest.mark.parametrize(
    "given",
    [
        [2, 0],
        (2, 0),
        np.array([0, 2], dtype=np.uint8),
        [True, False, True],
        np.array([True, False, True]),
        pd.Series([True, False, True]),
    ],
)
def test_indices_and_masks_give_ascending_features(given, place: Place):
    assert choose(place.put(np.zeros((4, 3))), given).features == [0, 2]
    assert choose(pd.DataFrame(np.zeros((4, 3))), given).features == [0, 2]


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize("given", [["c", "a"], np.array(["a", "c"]), pd.Index(["c", "a"])])
def test_names_give_ascending_features(frame, given):
    chosen = choose(frame({"a": [0, 1], "b": [1, 2], "c": [1, 0]}), given)
    assert chosen == Chosen([0, 2], {}, ["a", "b", "c"])


@pytest.mark.parametrize("given", [[], np.array([]), [False, False], None])
def test_no_feature_may_be_chosen(given):
    assert choose(np.zeros((4, 2)), given).features == []


def test_category_labels_that_are_numbers_stay_what_they_are():
    """So an array of the same numbers means the same to the model."""
    frame = pd.DataFrame({"x": SIZE, "zip": pd.Categorical([500, None, -3, 500, 10])})
    chosen = choose(frame, "from_dtype")
    assert chosen.labels == {1: [-3, 10, 500]}
    X = numbers_of(frame, chosen.labels)
    np.testing.assert_array_equal(X[:, 1], [500.0, nan, -3.0, 500.0, 10.0])
    found = learn(X, chosen, 3, locate(X))
    np.testing.assert_array_equal(found.values[1], [-3.0, 10.0, 500.0])
    assert found.names(1) == [-3.0, 10.0, 500.0]
    assert number(X, chosen.labels) is X
    unseen = pd.DataFrame({"x": [1.0], "zip": [11]})
    assert np.isnan(numbers_of(unseen, chosen.labels)[0, 1])


@pytest.mark.parametrize("dtype", ["int64", "float64", "Int64", "bool"])
def test_columns_of_plain_numbers_have_no_labels(dtype):
    frame = pd.DataFrame({"a": pd.Series([1, 0, 1], dtype=dtype), "b": ["u", "v", "u"]})
    chosen = choose(frame, ["a", "b"])
    assert chosen.labels == {1: ["u", "v"]}
    X = numbers_of(frame, chosen.labels)
    np.testing.assert_array_equal(X, [[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    np.testing.assert_array_equal(learn(X, chosen, 2, locate(X)).values[0], [0.0, 1.0])


def test_polars_booleans_and_integers_are_plain_numbers():
    frame = pl.DataFrame({"a": [True, False, None], "b": [2, None, 0]})
    assert choose(frame, [0, 1]).labels == {}


def test_dates_are_labels():
    days = [datetime.datetime(2024, 5, 1), datetime.datetime(2020, 2, 29)]
    for frame in (pd.DataFrame({"day": days}), pl.DataFrame({"day": days})):
        labels = choose(frame, [0]).labels
        assert labels == {0: days[::-1]}
        np.testing.assert_array_equal(numbers_of(frame, labels)[:, 0], [1.0, 0.0])


def test_labels_of_several_types_are_sorted_by_type_and_text():
    X = np.array([["b"], [2], ["a"], [1], [None]], dtype=object)
    assert choose(X, [0]).labels == {0: [1, 2, "a", "b"]}
    np.testing.assert_array_equal(
        number(X, choose(X, [0]).labels)[:, 0].astype(float), [3.0, 1.0, 2.0, 0.0, nan]
    )


@pytest.mark.parametrize("kind", FRAMES)
def test_numbering_leaves_the_users_table_as_it_is(kind):
    X = FRAMES[kind]
    before = np.array(X, dtype=object)
    number(X, {0: ["oslo", "rome"]})
    assert [repr(v) for v in np.array(X, dtype=object).ravel()] == [repr(v) for v in before.ravel()]


@pytest.mark.parametrize("frame", [pandas_frame(), polars_frame()], ids=["pandas", "polars"])
def test_a_numbered_frame_keeps_its_names(frame):
    estimator = BaseEstimator()
    numbered = number(frame, choose(frame, "from_dtype").labels)
    assert type(numbered) is type(frame)
    validate_data(estimator, numbered, ensure_all_finite=False)
    assert estimator.feature_names_in_.tolist() == ["city", "size"]


def test_columns_of_the_same_name_are_told_apart_by_position():
    frame = pd.DataFrame([["u", "x"], ["v", "y"]], columns=["a", "a"])
    chosen = choose(frame, [0, 1])
    np.testing.assert_array_equal(number(frame, chosen.labels), [[0.0, 0.0], [1.0, 1.0]])
    with pytest.raises(ValueError, match=r"columns that X has once; got \['a'\]"):
        choose(frame, ["a"])


def test_a_column_with_no_label_at_all():
    frame = pd.DataFrame({"a": pd.Series([None, None], dtype="category")})
    chosen = choose(frame, "from_dtype")
    X = numbers_of(frame, chosen.labels)
    found = learn(X, chosen, 255, locate(X))
    assert found.names(0) == []
    assert np.isnan(X).all()
    assert np.isnan(encode(X, found.values, locate(X))).all()
    assert np.isnan(numbers_of(pd.DataFrame({"a": ["new"]}), chosen.labels)).all()


@pytest.mark.parametrize("X", [np.zeros(3), [[1.0], [1.0, 2.0]], 3.0, pd.DataFrame()], ids=repr)
def test_what_is_no_table_is_left_to_the_checks_of_X(X):
    assert choose(X, [] if isinstance(X, pd.DataFrame) else [0]).features == []
    assert number(X, {0: ["a"]}) is X


def test_a_frame_with_too_few_columns_is_left_to_the_checks_of_X():
    frame = pd.DataFrame({"a": ["u"]})
    assert number(frame, {3: ["u"]}) is frame


@pytest.mark.slow
def test_an_array_needs_no_frame_library():
    code = (
        "import sys, numpy as np\n"
        "from ensemble_gpu.data.categories import choose, number\n"
        "X = np.array([['a', 1.0], ['b', 2.0]], dtype=object)\n"
        "assert number(X, choose(X, [0]).labels).tolist() == [[0.0, 1.0], [1.0, 2.0]]\n"
        "print([m for m in ('pandas', 'polars') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


X3 = np.zeros((4, 3))
WRONG_LISTS = [
    (X3, "from_type", "must be None, 'from_dtype', or a 1-dimensional array .* got 'from_type'"),
    (X3, 1, "must be None, 'from_dtype', or a 1-dimensional array .* got 1"),
    (X3, [[0, 1]], r"1-dimensional .* got \[\[0, 1\]\]"),
    (X3, {0: "a"}, "must be None, 'from_dtype'"),
    (X3, [0.0, 1.0], r"of feature indices, of column names, or of bool .* got \[0.0, 1.0\]"),
    (X3, [0, "a"], r"got \[0, 'a'\]"),
    (X3, [True, 1, 0], r"got \[True, 1, 0\]"),
    (X3, [0, 3], r"indices that X does not have: \[3\]; X has 3 features, so 0 to 2 are allowed"),
    (X3, [-1], r"indices that X does not have: \[-1\]"),
    (X3, [True, False], "mask of 2 values; it must have one for each of the 3 features"),
    (X3, ["a"], r"holds names, \['a'\], but X has no column names; give indices or a mask"),
    (X3, [1, 2, 1], r"more than once: \[1\]"),
    (pandas_frame(), ["town"], r"got \['town'\], X has \['city', 'size'\]"),
    (polars_frame(), ["town", "city"], r"got \['town'\], X has \['city', 'size'\]"),
    (polars_frame(), ["city", "city"], r"more than once: \['city'\]"),
    (pd.DataFrame(X3), ["0"], r"got \['0'\], X has \[0, 1, 2\]"),
    (pandas_frame(), [2], r"does not have: \[2\]; X has 2 features"),
    (pandas_frame(), "city", "got 'city'"),
]


@pytest.mark.parametrize(("X", "given", "message"), WRONG_LISTS)
def test_a_list_that_names_no_column_is_refused(X, given, message):
    with pytest.raises(ValueError, match=r"^categorical_features .*" + message):
        choose(X, given)


@pytest.mark.parametrize("wrong", [-1.0, 255.0, 300.0, 0.5])
def test_codes_out_of_range_are_refused(wrong, place: Place):
    X = place.put(np.array([[0.0, 1.0], [0.0, wrong], [0.0, nan]]))
    message = (
        f"Categorical feature 1 holds {wrong:g}, which is out of range: category codes must be "
        "integers from 0 to 254 (max_bins=255) or NaN; raise max_bins (None is up to 65,534)"
    )
    with pytest.raises(ValueError, match=re.escape(message)):
        categories_of(X, [0, 1])


def test_the_widest_range_offers_no_more_bins():
    with pytest.raises(ValueError, match=r"from 0 to 65533 \(max_bins=65534\) or NaN, or give"):
        categories_of(np.array([[65534.0]]), [0], 65534)
    assert len(categories_of(np.array([[65533.0]]), [0], 65534).values[0]) == 1


def test_too_many_labels_are_refused():
    frame = pd.DataFrame({"x": range(6), "id": pd.Categorical(list("abcdef"))})
    chosen = choose(frame, "from_dtype")
    X = numbers_of(frame, chosen.labels)
    assert len(learn(X, chosen, 6, locate(X)).values[1]) == 6
    message = (
        r"feature 1 \('id'\) has 6 categories, but at most max_bins=5 are allowed; raise max_bins"
    )
    with pytest.raises(ValueError, match=message):
        learn(X, chosen, 5, locate(X))


@pytest.mark.parametrize(
    "X",
    [
        pd.DataFrame({"a": [[1], [2]]}),
        pl.DataFrame({"a": [[1], [2]]}),
        np.array([[{}], [{}]], dtype=object),
    ],
    ids=["pandas", "polars", "objects"],
)
def test_labels_that_cannot_be_told_apart_are_refused(X):
    with pytest.raises(ValueError, match=r"feature 0 .*must hold labels that can be told apart"):
        choose(X, [0])


def test_numbers_in_place_of_labels_are_refused(place: Place):
    message = r"feature 0{} was fitted with labels such as 'oslo'; got numbers. Labels as in train"
    with pytest.raises(ValueError, match=message.format("")):
        number(place.put(np.zeros((2, 2))), {0: ["oslo", "rome"]})
    with pytest.raises(ValueError, match=message.format(r" \('a'\)")):
        number(pd.DataFrame({"a": [1.0, nan]}), {0: ["oslo", "rome"]})
    with pytest.raises(ValueError, match=message.format("")):
        number([[1.0], [2.0]], {0: ["oslo", "rome"]})


def test_labels_in_place_of_numbers_are_refused():
    message = r"feature 0 \('a'\) was fitted with labels such as 3; got '3', which is no number"
    for frame in (pd.DataFrame({"a": ["3", None]}), pl.DataFrame({"a": ["3", None]})):
        with pytest.raises(ValueError, match=message):
            number(frame, {0: [3, 4]})


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_a_column_of_missing_numbers_is_no_mistake(frame):
    X = numbers_of(frame({"a": [nan, nan]}), {0: ["oslo", "rome"]})
    assert np.isnan(X).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_learn_and_encode_where_X_lives(place: Place, dtype):
    host = np.array([[7.0, 0.5, 2.0], [nan, 1.5, 0.0], [3.0, nan, 2.0], [7.0, 2.5, -0.0]])
    X = place.put(host.astype(dtype))
    found = categories_of(X, [0, 2])
    assert list(found.values) == [0, 2]
    for f, expected in ((0, [3.0, 7.0]), (2, [0.0, 2.0])):
        np.testing.assert_array_equal(found.values[f], expected)
        assert found.values[f].dtype == np.float64
    codes = encode(X, found.values, locate(X))
    place.check(codes, dtype)
    expected = [[1.0, 0.5, 1.0], [nan, 1.5, 0.0], [0.0, nan, 1.0], [1.0, 2.5, 0.0]]
    np.testing.assert_array_equal(place.host(codes), expected)
    np.testing.assert_array_equal(place.host(X), host.astype(dtype))


@pytest.mark.parametrize("place", [NUMPY, NARROW[0]], ids=str)
def test_float32_is_encoded_without_float64(place: Place):
    values = {1: np.array([-1e300, 0.1, 0.5, 16_777_217.0, 1e300])}
    host = np.array([[0.1, 0.5], [0.1, 0.1], [0.1, 16_777_216.0], [0.1, nan]], dtype=np.float32)
    X = place.put(host)
    codes = encode(X, values, locate(X))
    assert codes.dtype == place.xp.float32
    assert codes.device == place.device
    np.testing.assert_array_equal(place.host(codes)[:, 1], [2.0, nan, nan, nan])
    np.testing.assert_array_equal(place.host(codes)[:, 0], host[:, 0])


def test_values_of_other_rows_than_those_of_training_are_unknown(place: Place):
    X = place.put(np.array([[4.0], [0.0], [4.0], [2.0]]))
    where = locate(X)
    found = learn(X, Chosen([0], {}), 255, where, place.put(np.array([1, 3])))
    np.testing.assert_array_equal(found.values[0], [0.0, 2.0])
    np.testing.assert_array_equal(
        place.host(encode(X, found.values, where)), [[nan], [0.0], [nan], [1.0]]
    )


def test_labels_of_other_rows_than_those_of_training_are_unknown():
    frame = pandas_frame()
    chosen = choose(frame, "from_dtype")
    X = numbers_of(frame, chosen.labels)
    found = learn(X, chosen, 255, locate(X), np.array([0, 4]))
    assert found.names(0) == ["bonn", "rome"]
    np.testing.assert_array_equal(
        encode(X, found.values, locate(X))[:, 0], [1.0, nan, nan, 1.0, 0.0]
    )


def test_without_categories_X_is_returned_itself(place: Place):
    X = place.put(np.ones((2, 2)))
    assert encode(X, {}, locate(X)) is X
    assert number(X, {}) is X


@pytest.mark.parametrize("dtype", ["int8", "int64", "uint16"])
def test_integers_are_encoded_as_float64(place: Place, dtype):
    X = place.put(np.array([[7, 1], [3, 5]], dtype=dtype))
    codes = encode(X, {0: np.array([0.0, 7.0])}, locate(X))
    place.check(codes, "float64")
    np.testing.assert_array_equal(place.host(codes), [[1.0, 1.0], [nan, 5.0]])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_arrays_that_may_not_be_written_to_are_encoded(dtype):
    X = np.asfortranarray(np.array([[2.0, 1.0], [0.0, 2.0]], dtype=dtype))
    X.setflags(write=False)
    np.testing.assert_array_equal(
        encode(X, categories_of(X, [0, 1]).values, locate(X)), [[1.0, 0.0], [0.0, 1.0]]
    )


@given(
    known=st.sets(st.floats(allow_nan=False, allow_infinity=False), max_size=9),
    rows=st.lists(st.integers(0, 8), min_size=1, max_size=20),
    unknown=st.floats(),
    narrow=st.booleans(),
)
def test_decoding_gives_back_what_was_known_and_nan_for_the_rest(known, rows, unknown, narrow):
    dtype = np.float32 if narrow else np.float64
    with np.errstate(over="ignore"):
        values = np.unique(np.array(sorted(known)).astype(dtype)).astype(np.float64) + 0.0
        values = values[np.isfinite(values)]
        column = np.append([values[i] for i in rows if i < len(values)], unknown).astype(dtype)
    X = column[:, None]
    codes = encode(X, {0: values}, locate(X))[:, 0]
    assert codes.dtype == dtype
    for x, code in zip(column.tolist(), codes.tolist(), strict=True):
        if x in values.tolist():
            assert values[int(code)] == x
        else:
            assert np.isnan(code)


@pytest.mark.slow
@given(st.lists(st.one_of(st.none(), st.text(max_size=3)), min_size=1, max_size=30))
def test_codes_of_labels_decode_to_the_labels_in_every_frame(column):
    for frame in (
        pd.DataFrame({"a": pd.Categorical(column)}),
        pl.DataFrame({"a": pl.Series(column, dtype=pl.Categorical)}),
        np.array([[label] for label in column], dtype=object),
    ):
        chosen = choose(frame, [0])
        X = numbers_of(frame, chosen.labels)
        found = learn(X, chosen, 255, locate(X))
        codes = encode(X, found.values, locate(X))[:, 0]
        assert column == [None if np.isnan(c) else found.names(0)[int(c)] for c in codes]


@pytest.mark.interop
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_other_libraries_learn_and_encode(library, dtype):
    host = np.array([[7.0, 0.5], [nan, 1.5], [3.0, nan], [9.0, 2.5]]).astype(dtype)
    X = library.put(host)
    found = learn(X, Chosen([0], {}), 255, locate(X), library.put(np.array([0, 1, 2])))
    np.testing.assert_array_equal(found.values[0], [3.0, 7.0])
    codes = encode(X, found.values, locate(X))
    library.check(codes, dtype)
    np.testing.assert_array_equal(
        library.host(codes), [[1.0, 0.5], [nan, 1.5], [0.0, nan], [nan, 2.5]]
    )
    np.testing.assert_array_equal(library.host(X), host)
