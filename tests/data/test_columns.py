"""Lists of records as columns, and back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

from ensemble_gpu.data.columns import NotStorableError, Packer, Unpacker


class Pair(NamedTuple):
    first: Any
    second: Any


@dataclass(frozen=True)
class Thing:
    value: Any


RECORDS = {"Pair": Pair, "Thing": Thing}
VALUES = {
    "numbers": [1, 2, -3],
    "floats": [0.1, float("nan"), -float("inf")],
    "flags": [True, False],
    "large integers": [2**127 + 5, -(2**64), 0],
    "texts": ["b", "a", "b"],
    "nothing": [None, None],
    "no values": [],
    "arrays": [np.arange(6.0).reshape(2, 3), np.ones((2, 3))],
    "arrays of several shapes": [np.arange(3), np.arange(0), np.arange(5)],
    "matrices without columns": [np.zeros((2, 0)), np.zeros((5, 0))],
    "tuples": [(1, 2), (), (3,)],
    "dicts": [{"a": 1, "b": {"c": 0.5}}, {"a": 2, "b": {"c": 1.5}}],
    "records": [Pair(1, Thing(0.5)), Pair(2, Thing(1.5))],
    "of several kinds": [None, 1, 0.5, Pair(None, "x"), Thing((None, 2)), None],
}


def packed(values):
    packer = Packer(RECORDS)
    return packer("x", values), packer.arrays


def same(a, b):
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and np.array_equal(a, b)
    if isinstance(a, tuple | list) and not isinstance(a, str):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, Thing):
        return type(b) is Thing and same(a.value, b.value)
    return type(a) is type(b) and (a == b or (a != a and b != b))


@pytest.mark.parametrize("name", VALUES)
def test_values_come_back(name):
    told, arrays = packed(VALUES[name])
    found = Unpacker(RECORDS, arrays)("x", told, len(VALUES[name]))
    assert same(found, VALUES[name])


def test_what_is_code_is_not_packed():
    with pytest.raises(NotStorableError, match="function is not stored"):
        packed([lambda: None])


@pytest.mark.parametrize(
    ("told", "arrays", "message"),
    [
        (7, {}, "is described by"),
        ({"kind": "call"}, {}, "unknown kind 'call'"),
        ({"kind": "__class__"}, {}, "unknown kind"),
        ({"kind": "int"}, {}, "'x' is missing"),
        ({"kind": "int"}, {"x": np.zeros(3)}, "dtype float64"),
        ({"kind": "int"}, {"x": np.zeros(2, np.int64)}, r"shape \(2,\)"),
        ({"kind": "text", "values": ["a"]}, {"x": np.array([0, 0, 1])}, "from 1 on"),
        ({"kind": "record", "name": "os", "of": {}}, {}, "record 'os'"),
        ({"kind": "record", "name": "Pair", "of": {"first": {"kind": "none"}}}, {}, "the fields"),
        (
            {"kind": "ragged"},
            {"x": np.zeros(4), "x.shapes": np.ones((3, 1), np.int64)},
            "4 entries",
        ),
        ({"kind": "tuple", "of": {"kind": "none"}}, {"x.lengths": np.full(3, 2**40)}, "from"),
        ({"kind": "mixed", "of": []}, {"x.which": np.zeros(3, np.uint8)}, "from 0 on"),
    ],
)
def test_descriptions_that_do_not_fit_are_refused(told, arrays, message):
    with pytest.raises(ValueError, match=message):
        Unpacker(RECORDS, arrays)("x", told, 3)


def test_deep_descriptions_are_refused():
    told: dict = {"kind": "none"}
    for _ in range(50):
        told = {"kind": "dict", "of": {"a": told}}
    with pytest.raises(ValueError, match="is described by"):
        Unpacker(RECORDS, {})("x", told, 3)
