"""Digests: equal for equal data wherever they are, and another for any value that differs."""

from __future__ import annotations

import array_api_strict
import numpy as np
import pytest

from ensemble_gpu.arrays.namespace import NUMPY, locate
from ensemble_gpu.data.digests import array_digest, column_digests, feature_digests, row_numbers
from ensemble_gpu.data.rows import Rows, bin_rows
from ensemble_gpu.kernels.select import engine_for, use_engine

X = np.round(np.random.default_rng(0).normal(size=(300, 4)), 1)
Y = np.arange(300) % 3


def digests(X, engine="cpu", n_ranges=3):
    with use_engine(engine):
        engine = engine_for(NUMPY, 1)
    return feature_digests(
        engine, bin_rows(engine, Rows(X, Y, None), None, 32, n_ranges=n_ranges).matrix
    )


@pytest.mark.parametrize("n_ranges", [3, 1, None], ids=["classes", "one range", "trees"])
def test_codes_have_one_digest_on_every_engine(n_ranges):
    assert digests(X, "reference", n_ranges) == digests(X, "cpu", n_ranges)


def test_one_value_changes_the_digest_of_its_feature_alone():
    other = X.copy()
    other[[17, 30], 2] = other[[30, 17], 2] + [0.0, 1.0]
    same = [a == b for a, b in zip(digests(X), digests(other), strict=True)]
    assert same == [True, True, False, True]


def test_the_order_of_rows_matters():
    assert digests(X) != digests(X[::-1])
    assert array_digest(Y) != array_digest(Y[::-1])


def test_digests_of_arrays_do_not_depend_on_their_type_or_memory():
    there = array_api_strict.asarray(X.astype(np.float32).astype(float))
    narrow = X.astype(np.float32)
    expected = column_digests(narrow)
    assert column_digests(np.asfortranarray(narrow.astype(float))) == expected
    assert column_digests(locate(there).host(there)) == expected
    assert array_digest(Y) == array_digest(Y.astype(float)) != array_digest(Y[:-1])


def test_numbers_of_rows_are_odd_and_distinct():
    q = row_numbers(40_000)
    assert (q % 2 == 1).all()
    assert len(np.unique(q)) == len(q)
