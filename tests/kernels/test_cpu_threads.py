"""n_jobs to threads."""

from __future__ import annotations

import numba
import pytest

from ensemble_gpu.kernels.cpu.threads import Run

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
