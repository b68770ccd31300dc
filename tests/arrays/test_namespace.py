"""Where an array lives, how it is moved, and what may not be mixed."""

from __future__ import annotations

import pickle

import array_api_strict
import numpy as np
import pandas as pd
import polars as pl
import pytest

from ensemble_gpu.arrays.devices import check_device, from_host, to_workplace
from ensemble_gpu.arrays.namespace import (
    HOST,
    NUMPY,
    OTHER,
    check_same_place,
    is_array,
    locate,
    to_numpy,
)
from tests.places import STRICT, WITH_CUPY, Place


@pytest.mark.parametrize(
    "thing",
    [[1, 2], (1.0,), "text", 3, 3.0, None, np.float64(2.0), pd.DataFrame({"a": [1]}),
     pl.DataFrame({"a": [1]}), pd.Series([1])],
    ids=lambda thing: type(thing).__name__,
)  # fmt: skip
def test_lists_frames_and_scalars_are_no_arrays(thing):
    assert not is_array(thing)
    assert locate(thing) is NUMPY


def test_an_array_is_located_on_its_device(place: Place):
    array = place.put([1.0, 2.0])
    assert is_array(array)
    where = locate(array)
    assert where.device == place.device
    assert where.kind == {"numpy": HOST, "cupy": "cuda"}.get(place.name, OTHER)


def test_what_is_put_comes_back(place: Place):
    where = locate(place.put([0.0]))
    values = np.array([[1.5, -2.0], [np.inf, 0.0]])
    there = where.put(values)
    assert locate(there) == where
    np.testing.assert_array_equal(where.host(there), values)


def test_a_place_survives_a_pickle(place: Place):
    where = locate(place.put([0.0]))
    again = pickle.loads(pickle.dumps(where))
    assert again == where
    assert (again is NUMPY) == (where is NUMPY)


def test_what_is_put_on_a_device_is_a_copy():
    values = np.zeros(3)
    there = locate(STRICT[1].put([0.0])).put(values)
    values[:] = 7.0
    np.testing.assert_array_equal(to_numpy(there), 0.0)


def test_full_and_zeros_are_made_on_the_device(place: Place):
    where = locate(place.put([0.0]))
    place.check(where.full(2.5), "float64")
    place.check(where.zeros((2, 3), where.xp.int64), "int64")
    place.check(where.as_float64(place.put(np.array([1], dtype=np.int32))), "float64")


def test_a_numpy_array_is_not_copied():
    array = np.zeros(3)
    assert to_numpy(array) is array
    assert NUMPY.put(array) is array


def test_arrays_of_one_place_may_be_mixed(place: Place):
    where = locate(place.put([0.0]))
    check_same_place(where, y=place.put([1]), weights=None, names=["a"], frame=pd.DataFrame())


@pytest.mark.parametrize("other", [np.zeros(2), STRICT[2].put([0.0])], ids=["numpy", "device2"])
def test_arrays_of_two_places_may_not_be_mixed(other):
    where = locate(STRICT[1].put([0.0]))
    with pytest.raises(ValueError, match="X and y must be of one array library on one device"):
        check_same_place(where, y=other)


def test_host_labels_that_are_no_numbers_go_with_any_place():
    check_same_place(locate(STRICT[1].put([0.0])), y=np.array(["a", "b"]))


def test_device_none_leaves_the_array_alone(place: Place):
    array = place.put([1.0])
    assert to_workplace(array, None) is array
    assert from_host(array, None) is array


def test_device_cpu_brings_a_device_array_to_numpy():
    found = to_workplace(STRICT[1].put([1.0, 2.0]), "cpu")
    assert type(found) is np.ndarray
    np.testing.assert_array_equal(found, [1.0, 2.0])


def test_device_cpu_leaves_host_arrays_and_lists_alone():
    array, plain = np.zeros(2), [1, 2]
    assert to_workplace(array, "cpu") is array
    assert to_workplace(plain, "cpu") is plain


@pytest.mark.skipif(WITH_CUPY, reason="this machine has a GPU")
def test_without_a_gpu_auto_leaves_arrays_and_cuda_is_refused():
    array = np.zeros(2)
    assert from_host(array, "auto") is array
    check_device("auto")
    with pytest.raises(RuntimeError, match=r"ensemble_gpu\[cuda12\]"):
        check_device("cuda")


def test_a_place_reads_well_in_a_message():
    assert str(NUMPY) == "numpy on cpu"
    assert "array_api_strict" in str(locate(array_api_strict.asarray([1.0])))
