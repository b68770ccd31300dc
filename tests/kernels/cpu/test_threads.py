"""n_jobs to threads."""

from __future__ import annotations

import numba
import pytest

from ensemble_gpu.kernels.cpu.threads import Pace, Run

ALL = numba.config.NUMBA_NUM_THREADS


@pytest.mark.parametrize(
    ("n_jobs", "threads"), [(None, ALL), (-1, ALL), (1, 1), (3, 3), (-ALL, 1), (-10_000, 1)]
)
def test_n_jobs_means_threads_as_in_scikit_learn(n_jobs, threads):
    assert Run.of(n_jobs).threads == threads


def test_small_work_stays_on_one_thread():
    assert Run(4).limited_to(199, 100).threads == 1
    assert Run(4).limited_to(200, 100).threads == 4


def test_the_pool_restores_the_number_of_threads():
    before = numba.get_num_threads()
    with Run(1).pool():
        assert numba.get_num_threads() == 1
    assert numba.get_num_threads() == before


def costs_of(pace: Pace, calls: int, alone: float, together: float) -> list[bool]:
    """Run a number of calls at constant costs; which of them used all threads."""
    chosen = []
    for _ in range(calls):
        choice = pace.choose()
        pace.note(choice, together if choice else alone)
        chosen.append(choice)
    return chosen


def test_all_threads_are_kept_while_they_are_not_clearly_dearer():
    chosen = costs_of(Pace(), 2_000, alone=1.0, together=1.3)
    assert sum(chosen) > 0.98 * len(chosen)
    assert not all(chosen)  # the other way is tried now and then


def test_threads_that_wait_for_each_other_are_given_up_and_come_back():
    pace = Pace()
    costs_of(pace, 100, alone=1.0, together=0.6)
    busy = costs_of(pace, 2_000, alone=1.0, together=5.0)
    assert sum(busy[600:]) < 0.02 * len(busy[600:])
    quiet = costs_of(pace, 2_000, alone=1.0, together=0.6)
    assert sum(quiet[1_000:]) > 0.98 * len(quiet[1_000:])
