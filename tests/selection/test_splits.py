"""Folds: sizes, shares of labels, groups, and what is refused."""

from __future__ import annotations

from copy import deepcopy

import numpy as np
import pytest
from sklearn.model_selection import KFold, LeaveOneOut, RepeatedKFold, TimeSeriesSplit

from ensemble_gpu.selection.splits import make_folds

Y = np.arange(60) % 3
GROUPS = np.repeat(np.arange(12), 5)


def folds(cv, y=Y, stratified=True, groups=None, seed=0):
    given = {"stratified": stratified, "groups": groups, "random_state": seed}
    return make_folds(cv, y, len(y), **given)


@pytest.mark.parametrize("stratified", [True, False])
@pytest.mark.parametrize("n_folds", [2, 7])
def test_every_row_is_held_out_once_and_sizes_differ_by_one_at_most(n_folds, stratified):
    found = folds(n_folds, stratified=stratified)
    assert sorted(np.concatenate([f.test for f in found])) == list(range(60))
    sizes = [len(f.test) for f in found]
    assert max(sizes) - min(sizes) <= (2 if stratified else 1)
    for fold in found:
        assert len(fold.train) + len(fold.test) == 60
        if stratified:
            assert np.ptp(np.bincount(Y[fold.test])) <= 1


def test_folds_are_drawn_by_the_seed():
    assert all(np.array_equal(a.test, b.test) for a, b in zip(folds(5), folds(5), strict=True))
    assert not np.array_equal(folds(5)[0].test, folds(5, seed=1)[0].test)


@pytest.mark.parametrize("stratified", [True, False])
def test_groups_are_held_out_as_a_whole(stratified):
    for fold in folds(4, stratified=stratified, groups=GROUPS):
        assert not set(GROUPS[fold.train]) & set(GROUPS[fold.test])


def test_splitters_and_given_positions_are_taken_as_they_are():
    assert len(folds(LeaveOneOut(), stratified=False)) == 60
    assert len(folds(RepeatedKFold(n_splits=3, n_repeats=2, random_state=0))) == 6
    for fold in folds(TimeSeriesSplit(4), stratified=False):
        assert fold.train.max() < fold.test.min()
    mask = np.arange(60) < 20
    (fold,) = folds([(~mask, [0, 1, 2])])
    assert fold.train.tolist() == list(range(20, 60))
    assert fold.test.tolist() == [0, 1, 2]


BAD = {
    "cv must be at least 2 folds; got 1": lambda: folds(1),
    "cv must be at most the number of rows, 60; got 61": lambda: folds(61, stratified=False),
    "y has 20 rows of label 0, fewer than the 21 folds": lambda: folds(21),
    "cv must be at most the number of groups, 12": lambda: folds(13, groups=GROUPS),
    "groups has 3": lambda: folds(3, groups=[1, 2, 3]),
    "cv must have at least one fold": lambda: folds([]),
    r"cv\[0\]: no row to train on has label \[2\]": lambda: folds(
        [(np.flatnonzero(Y < 2), np.flatnonzero(Y == 2))]
    ),
    r"cv\[0\]: group 1 is on both sides": lambda: folds(KFold(7), groups=GROUPS),
    r"cv\[0\]: train and test share 1 rows": lambda: folds([(range(50), [49, 51])]),
    r"cv\[0\]: test must hold positions 0 to 59; got 60": lambda: folds([(range(50), [60])]),
    r"cv\[0\]: train must be positions": lambda: folds([([0.5], [1])]),
    "y must hold a target": lambda: make_folds(2, None, 3, stratified=False),
    "X has 3 rows, y has 60": lambda: make_folds(2, Y, 3, stratified=False),
}


@pytest.mark.parametrize("message", BAD)
def test_bad_input_is_named(message):
    with pytest.raises(ValueError, match=message):
        BAD[message]()


def test_what_are_no_folds_is_a_type_error():
    with pytest.raises(TypeError, match="cv must be a number of folds"):
        folds("five")
    with pytest.raises(TypeError, match=r"cv\[0\] must be a pair"):
        folds([3])


@pytest.mark.parametrize("seed", [0, 7, np.random.RandomState(3)], ids=str)
@pytest.mark.parametrize(("n_folds", "n"), [(5, 23), (2, 2), (7, 7), (3, 1000)])
def test_drawn_folds_are_those_of_scikit_learn(n_folds, n, seed):
    mine = make_folds(n_folds, np.zeros(n), n, stratified=False, random_state=deepcopy(seed))
    cv = KFold(n_folds, shuffle=True, random_state=deepcopy(seed))
    for found, (train, test) in zip(mine, cv.split(np.zeros(n)), strict=True):
        assert found.train.dtype == found.test.dtype == np.int64
        np.testing.assert_array_equal(found.train, train)
        np.testing.assert_array_equal(found.test, test)
