"""Values that JSON has no form for."""

from __future__ import annotations

import datetime
import json
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from ensemble_gpu.saving.reading import Reader
from ensemble_gpu.saving.writing import CannotBeSavedError, Writer


def back(value: Any) -> Any:
    """A value written to JSON, as text, and read again."""
    writer = Writer()
    text = json.dumps(writer.value(value, "v"), allow_nan=False)
    return Reader(writer.arrays).value(json.loads(text), "v")


VALUES = [
    None, True, 3, 2**70, -0.0, 0.1, float("inf"), "ä\n", ("a", 1, (2.5,)), [1, [2]], {1, 2},
    frozenset({"x"}), {"a": 1, 2: [None]}, {"type": "tuple"}, np.float32(0.1), np.int8(-3),
    np.bool_(True), np.datetime64("2024-01-31"), datetime.date(2024, 1, 31), b"\x00\xff",
    datetime.datetime(2024, 1, 31, 12, 30), Decimal("0.10"), 1 + 2j,
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_value_comes_back_with_its_type(value):
    found = back(value)
    assert type(found) is type(value)
    assert repr(found) == repr(value)


def test_nan_and_generators_come_back():
    assert back(float("nan")) != back(float("nan"))
    generator = np.random.RandomState(5)
    generator.normal(size=3)
    assert back(generator).normal(size=4).tolist() == generator.normal(size=4).tolist()


def test_arrays_of_labels_come_back():
    mixed = np.empty(4, dtype=object)
    mixed[:] = [("a", 1), Decimal("0.10"), 2**70, datetime.date(2024, 1, 2)]
    arrays = [
        mixed, np.array(["2024-01-31", "NaT"], dtype="M8[D]"), np.array(["a", "bcd"]),
        np.array([b"a", b"bcd"]), np.array(["p", "q" * 40], dtype=np.dtypes.StringDType()),
    ]  # fmt: skip
    for array in arrays:
        found = back(array)
        assert found.dtype == array.dtype
        assert list(map(str, found)) == list(map(str, array))


def test_labels_of_very_different_lengths_take_no_more_memory_than_they_need():
    array = np.array(["x" * 10_000, *("abc" for _ in range(99))])
    found = back(array)
    assert found.dtype == object
    assert found.tolist() == array.tolist()


def test_objects_that_are_in_a_list_several_times_are_written_once():
    from ensemble_gpu.data.bags import Bags

    bags = Bags(0, True, 3, 3, np.arange(3), None, None, None)
    writer = Writer()
    entry = writer.value([bags, bags, bags], "bags")
    assert list(writer.arrays) == ["bags.0.rows"]
    found = Reader(writer.arrays).value(entry, "bags")
    assert found[0] is found[2]


@pytest.mark.parametrize("value", [print, object(), np.zeros(2, dtype=complex), range(3), type])
def test_other_values_are_refused_with_their_place(value):
    with pytest.raises(CannotBeSavedError, match=r"a\.1=.*cannot be saved\. A file holds data"):
        Writer().value([0, value], "a")
