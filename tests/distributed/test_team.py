"""What workers tell each other: sums, places, numbers of items, and rounds of a broken-off fit."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ensemble_gpu import (
    AdaBoostClassifier,
    Batches,
    BoostingClassifier,
    Checkpoint,
    RandomForestClassifier,
)
from ensemble_gpu.arrays.namespace import NUMPY
from ensemble_gpu.data.numbering import numbered
from ensemble_gpu.distributed import Journal, ThreadReduce, fit
from ensemble_gpu.kernels.residuals import Slots
from ensemble_gpu.kernels.team import ALONE, Team
from ensemble_gpu.kernels.teams.ranks import ranked
from ensemble_gpu.learners import HalfSpaces
from tests.distributed.teams import team_fit
from tests.distributed.test_same_model import rows


def together(function: Callable[[Team, int], Any], size: int = 3, **parts: Any) -> list[Any]:
    """function(team, rank) of every worker, each in a thread."""
    reduces, found = ThreadReduce.team(size), [None] * size

    def run(rank: int) -> None:
        team = Team(reduces[rank], **{name: value[rank] for name, value in parts.items()})
        found[rank] = function(team, rank)

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


@pytest.mark.parametrize("seed", range(3))
def test_sums_of_floats_are_those_of_fsum(seed):
    rng = np.random.default_rng(seed)
    values = rng.standard_normal(300) * 10.0 ** rng.integers(-300, 300, 300)
    values = np.concatenate([values, [5e-324, 1e308, -1e308, 0.0]])
    found = together(lambda team, rank: team.fsum(values[rank::3]))
    assert found == [math.fsum(values)] * 3


def test_the_largest_of_each_value_is_found_whatever_its_sign():
    own = [
        np.array([-1.5, 2.0, -np.inf]),
        np.array([-0.5, -3.0, -7.0]),
        np.array([-9.0, 1.0, -8.0]),
    ]
    for found in together(lambda team, rank: team.largest_of(own[rank])):
        assert found.tolist() == [-0.5, 2.0, -7.0]
    for (one,) in together(lambda team, rank: team.largest(math.nan if rank else 1.0)):
        assert math.isnan(one)


def test_places_are_those_of_the_rows_in_one_list():
    """Parts 0, 3 and 1, 2 and 4: class by class, and by position within each."""
    sizes, owners = [4, 3, 0, 5, 2], [[0, 3], [1, 2], [4]]
    label = np.array([0, 1, 1, 0, 2, 0, 1, 1, 0, 2, 2, 0, 0, 1])
    starts = np.concatenate([[0], np.cumsum(sizes)])
    listed = np.argsort(label, kind="stable")

    def own(team: Team, rank: int) -> tuple[np.ndarray, np.ndarray]:
        mine = np.concatenate([np.arange(starts[k], starts[k + 1]) for k in owners[rank]])
        order = np.argsort(label[mine], kind="stable")
        ends = np.concatenate([[0], np.cumsum(np.bincount(label[mine], minlength=3))])
        assert team.positions(np.arange(len(mine))).tolist() == mine.tolist()
        return mine[order], team.places(order, ends)

    found = together(own, numbers=owners, sizes=[[sizes[k] for k in own] for own in owners])
    rows_, places = (np.concatenate(part) for part in zip(*found, strict=True))
    assert sorted(places.tolist()) == list(range(len(label)))
    np.testing.assert_array_equal(listed[places], rows_)


@pytest.mark.parametrize("stretch", [1 << 22, 16])
@pytest.mark.parametrize("distinct", [5, 1 << 60])
def test_items_are_numbered_as_in_one_list(monkeypatch, stretch, distinct):
    monkeypatch.setattr("ensemble_gpu.data.numbering.STRETCH", stretch)
    rng = np.random.default_rng(0)
    n = 300
    keys = rng.integers(0, distinct, n).astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    ties = np.stack([rng.integers(0, 3, n), rng.permutation(n)], axis=1)
    repeats, owner = rng.integers(0, 4, n), rng.integers(0, 3, n)
    order = np.lexsort((ties[:, 1], ties[:, 0], keys))
    first = np.empty(n, dtype=np.int64)
    first[order] = np.cumsum(repeats[order]) - repeats[order]

    def own(team: Team, rank: int) -> tuple[np.ndarray, int]:
        mine = owner == rank
        return numbered(keys[mine], ties[mine], repeats[mine], team)

    for rank, (numbers, total) in enumerate(together(own)):
        np.testing.assert_array_equal(numbers, first[owner == rank])
        assert total == repeats.sum()


def test_order_statistics_of_all_workers_are_values_of_the_data():
    rng = np.random.default_rng(1)
    r = rng.standard_normal(500) * 10.0 ** rng.integers(-5, 5, 500)
    r[::50], r[::70] = 0.0, -0.0
    slot, w, owner = rng.integers(-1, 4, 500), rng.integers(0, 5, 500), rng.integers(0, 3, 500)
    ranks = np.array([1, 30, 77, 2])
    expected = []
    for k, rank in enumerate(ranks):
        at = np.flatnonzero(slot == k)
        at = at[np.argsort(r[at], kind="stable")]
        expected.append(r[at][np.searchsorted(np.cumsum(w[at]), rank)])

    def own(team: Team, rank: int) -> np.ndarray:
        mine = owner == rank
        slots = Slots(slot[mine] + 1, np.array([-1, 0, 1, 2, 3]))
        return ranked(slots, r[mine], w[mine], ranks, NUMPY, team)

    for found in together(own):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(("make", "n"), [
    (lambda: AdaBoostClassifier(n_estimators=12, calibrate=False), 5),
    (lambda: BoostingClassifier(n_estimators=8), 3),
    (lambda: BoostingClassifier(n_estimators=8, max_depth=1, early_stopping=True), 3),
    (lambda: RandomForestClassifier(n_estimators=7, random_state=0), 4),
])  # fmt: skip
def test_a_fit_goes_on_from_the_rounds_of_one_that_was_broken_off(make, n):
    X, y, w = rows("2", "whole")
    local = make().fit(X, y, w)
    whole = [Journal() for _ in range(3)]
    team_fit(make, X, y, w, journals=whole)
    known = [Journal(one.found[:n]) for one in whole]
    again = team_fit(make, X, y, w, journals=known, cuts=(0, 200, 300), owners=(2, 0, 1))
    assert {one.model_.fingerprint() for one in again} == {local.model_.fingerprint()}


def test_callbacks_are_called_once_and_end_the_fit_of_all():
    X, y, _ = rows()
    seen = []

    def note(info: Any) -> bool:
        seen.append((info.round, threading.get_ident()))
        return info.round == 4

    fitted = team_fit(lambda: BoostingClassifier(n_estimators=9, callbacks=[note]), X, y)
    assert [number for number, _ in seen] == [1, 2, 3, 4]
    assert len({thread for _, thread in seen}) == 1
    assert {one.n_estimators_ for one in fitted} == {4}


def test_an_error_of_one_worker_is_raised_and_ends_the_others():
    X, y, _ = rows()
    X[100, 0] = np.inf  # of the second worker
    with pytest.raises(ValueError, match="X contains infinity"):
        team_fit(lambda: AdaBoostClassifier(n_estimators=3), X, y)


def test_a_team_needs_weight_and_two_classes_among_all_its_rows():
    X, y, _ = rows()
    make = lambda: AdaBoostClassifier(n_estimators=3)  # noqa: E731
    with pytest.raises(ValueError, match="zero for every row"):
        team_fit(make, X, y, np.zeros(len(X)))
    with pytest.raises(ValueError, match="at least 2 classes"):
        team_fit(make, X, np.zeros(len(X), dtype=int))


def test_sums_that_are_not_finite_are_those_of_fsum():
    for values in ([1.0, math.inf, 2.0], [-math.inf, 1.0, 0.0], [math.nan, 1.0, math.inf]):
        for found in together(lambda team, rank, v=values: team.fsum(np.array([v[rank]]))):
            np.testing.assert_array_equal(found, sum(values))


def test_types_of_x_are_those_of_all_rows_together():
    X, y, _ = rows()
    wide = X.astype(np.float64)
    wide[:90] += 1e-9  # no float32 holds them
    local = AdaBoostClassifier(n_estimators=6).fit(wide, y)

    def put(array: np.ndarray) -> np.ndarray:
        narrow = array.ndim == 2 and np.array_equal(array, array.astype(np.float32), equal_nan=True)
        return array.astype(np.float32) if narrow else array

    shared = team_fit(lambda: AdaBoostClassifier(n_estimators=6), wide, y, put=put)
    assert {one.model_.fingerprint() for one in shared} == {local.model_.fingerprint()}


def test_workers_whose_rows_do_not_belong_together_are_told():
    X, y, _ = rows()

    def put(array: np.ndarray) -> np.ndarray:
        return array[:, :4] if array.ndim == 2 and len(array) == 140 else array

    with pytest.raises(ValueError, match=r"the numbers of features are \[5, 5, 4\]"):
        team_fit(lambda: AdaBoostClassifier(n_estimators=3), X, y, put=put)
    dates = np.array([np.datetime64("2024-01-01"), np.datetime64("2024-01-02")])[y]
    with pytest.raises(TypeError, match="y must hold strings, numbers or bool"):
        team_fit(lambda: AdaBoostClassifier(n_estimators=3), X, dates.astype(object))


def test_a_worker_without_rows_to_train_on_is_refused_by_name():
    X, y, w = rows("3", "real")
    order = np.argsort(y, kind="stable")
    X, y, w = X[order], y[order], w[order]
    ends = np.searchsorted(y, [0, 1, 2]).tolist()

    def make() -> Any:
        return AdaBoostClassifier(n_estimators=3, class_weight={2: 0.0})

    with pytest.raises(ValueError, match="No row is left to train on"):
        team_fit(make, X, y, w, cuts=ends, owners=(0, 1, 2))


@pytest.mark.parametrize(("numbers", "sizes", "named"), [
    ([0], None, "lists of the same length"),
    ([1, 0], [500, 20], "numbers must ascend"),
    ([0, 1], [500, 21], "add up to the 520 rows"),
])  # fmt: skip
def test_parts_that_do_not_fit_the_rows_are_refused(numbers, sizes, named):
    X, y, _ = rows()
    with pytest.raises(ValueError, match=named):
        fit(AdaBoostClassifier(), X, y, reduce=ALONE.reduce, numbers=numbers, sizes=sizes)


@pytest.mark.parametrize(("estimator", "named"), [
    (AdaBoostClassifier(HalfSpaces()), "estimator must be None"),
    (AdaBoostClassifier(warm_start=True), "warm_start must be False"),
    (RandomForestClassifier(oob_score=True), "oob_score must be False"),
    (RandomForestClassifier(capacity="max_depth"), "capacity must be None"),
    (BoostingClassifier(callbacks=[Checkpoint("run.safetensors")]), "must not hold a Checkpoint"),
])  # fmt: skip
def test_what_cannot_be_shared_is_refused_by_name(estimator, named):
    X, y, _ = rows()
    with pytest.raises(ValueError, match=named):
        fit(estimator, X, y, reduce=ALONE.reduce)
    assert not hasattr(estimator, "model_")


def test_other_estimators_are_refused_by_name():
    with pytest.raises(TypeError, match="got HalfSpaces"):
        fit(HalfSpaces(), *rows()[:2], reduce=ALONE.reduce)


def test_batches_are_read_by_one_worker_and_refused():
    X, y, _ = rows()
    with pytest.raises(TypeError, match="must be an array or a frame; got Batches"):
        fit(AdaBoostClassifier(), Batches([(X, y)]), None, reduce=ALONE.reduce)


def test_sparse_rows_are_refused():
    X, y, _ = rows()
    with pytest.raises(TypeError, match="a fit of several workers takes dense X"):
        team_fit(lambda: AdaBoostClassifier(n_estimators=3), np.nan_to_num(X), y, put=_sparse)


def _sparse(array: np.ndarray) -> Any:
    from scipy.sparse import csr_matrix

    return csr_matrix(array) if array.ndim == 2 else array
