"""Which rows of a bag trees grow from, and which judge them."""

from __future__ import annotations

import numpy as np

from ensemble_gpu.bagging.validation import Validation, kinds_of


def test_parts_of_a_bag_share_out_its_distinct_rows():
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(30, 2)), 2, axis=0)  # every row twice
    kind, counts = kinds_of(X, np.zeros(60), None), rng.integers(0, 3, size=60)
    drawn = np.bincount(kind, counts) > 0
    for by, sizes in (("holdout", [round(0.3 * drawn.sum())]), ("cv", None)):
        parts = Validation(by, 0.3, 4, 7, kind, None).parts(counts, 0)
        held = np.array([np.bincount(kind, part.judged) > 0 for part in parts])
        for part in parts:
            np.testing.assert_array_equal(part.grown + part.judged, counts)
            assert not ((part.grown > 0) & (part.judged > 0)).any()
            assert not np.isin(kind[part.grown > 0], kind[part.judged > 0]).any()
        if sizes is None:
            assert np.ptp(held.sum(axis=1)) <= 1
            np.testing.assert_array_equal(held.sum(axis=0), drawn)
        else:
            assert held.sum() == sizes[0]
    repeats = np.arange(60)
    (part,) = Validation("oob", 0.3, 4, 7, kind, repeats).parts(counts, 0)
    np.testing.assert_array_equal(part.judged, np.where(drawn[kind], 0, repeats))
    assert part.grown is counts


def test_equal_rows_are_of_one_kind_whatever_their_order():
    rng = np.random.default_rng(1)
    own = rng.integers(0, 9, size=50)
    X, y = rng.normal(size=(9, 3))[own], (own % 2).astype(float)
    X[own == 4] = np.nan
    kind = kinds_of(X, y, None)
    assert len(np.unique(kind)) == len(np.unique(own)) == kind.max() + 1
    assert all(len(np.unique(kind[own == k])) == 1 for k in np.unique(own))
    order = rng.permutation(50)
    np.testing.assert_array_equal(kinds_of(X[order], y[order], None), kind[order])
    apart = kinds_of(X, y, np.arange(50.0))
    assert len(np.unique(apart)) == 50


def test_a_bag_of_one_kind_has_no_folds_and_holds_nothing_out():
    kind, counts = np.array([0, 0, 1]), np.array([2, 1, 0])
    assert Validation("cv", 0.5, 3, 0, kind, None).parts(counts, 0) == []
    (part,) = Validation("holdout", 0.5, 3, 0, kind, None).parts(counts, 0)
    np.testing.assert_array_equal(part.grown, counts)
    assert not part.judged.any()
