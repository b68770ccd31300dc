"""n_jobs to threads, and work shared among them."""

from __future__ import annotations

import threading
import time

import numba
import numpy as np
import pytest

from ensemble_gpu.kernels.cpu import threads as threads_module
from ensemble_gpu.kernels.cpu.sharing import OPEN, PIECES_PER_WORKER, share
from ensemble_gpu.kernels.cpu.threads import Pace, Run
from ensemble_gpu.kernels.jit import inner, kernel

ALL = numba.config.NUMBA_NUM_THREADS


@pytest.mark.parametrize(
    ("n_jobs", "threads"), [(None, ALL), (-1, ALL), (1, 1), (3, 3), (-ALL, 1), (-10_000, 1)]
)
def test_n_jobs_means_threads_as_in_scikit_learn(n_jobs, threads):
    assert Run.of(n_jobs).threads == threads


def test_small_work_stays_on_one_thread():
    assert Run(4).limited_to(199, 100).threads == 1
    assert Run(4).limited_to(200, 100).threads == 4


@pytest.fixture
def four(monkeypatch):
    """As on a machine with four threads, with helpers of its own."""
    monkeypatch.setattr(threads_module, "_available", lambda: 4)
    monkeypatch.setattr(threads_module, "_TEAM", threads_module._Team())


@inner
def _count(worker, start, stop, done, by_worker, pieces):
    for i in range(start, stop):
        done[i] += 1
    by_worker[worker] += stop - start
    pieces[start] = stop


@kernel
def count(crew, done, by_worker, pieces):
    share(crew, done.shape[0], _count, (done, by_worker, pieces))


@inner
def _sum(worker, start, stop, x, out):
    for i in range(start, stop):
        for j in range(x.shape[0]):
            out[i] += x[j] * i


@kernel
def twice(crew, x, out):
    """The second step needs all of the first."""
    share(crew, out.shape[0], _sum, (x, out))
    total = out.sum()
    share(crew, out.shape[0], _sum, (np.full(1, total), out))
    return total


@inner
def _fail(worker, start, stop, done, bad):
    done[start:stop] += 1
    if start <= bad < stop:
        raise ValueError("a bad item")


@kernel
def fail(crew, done, bad):
    share(crew, done.shape[0], _fail, (done, bad))


@pytest.mark.parametrize("threads", [1, 2, 3, 4, 9])
@pytest.mark.parametrize("n", [0, 1, 2, 3, 7, 1000])
def test_every_item_is_done_once_in_contiguous_pieces(four, threads, n):
    workers = min(threads, 4)
    for _ in range(50):
        done, by_worker = np.zeros(n, dtype=int), np.zeros(workers, dtype=int)
        pieces = np.zeros(n + 1, dtype=int)
        Run(threads).call(count, done, by_worker, pieces)
        assert (done == 1).all()
        assert by_worker.sum() == n
        assert np.count_nonzero(pieces) == (
            1 if n and threads == 1 else min(n, PIECES_PER_WORKER * workers)
        )


def test_a_step_sees_all_that_the_one_before_has_done(four):
    x, n = np.ones(3), 500
    for _ in range(200):
        out = np.zeros(n)
        total = Run(4).call(twice, x, out)
        assert total == 3 * n * (n - 1) / 2
        np.testing.assert_array_equal(out, (3 + total) * np.arange(n))


def test_helpers_take_part_and_wait_for_the_next_call(four):
    helped, deadline = False, time.monotonic() + 60.0
    while not helped and time.monotonic() < deadline:  # other processes may want the cores
        by_worker, n = np.zeros(3, dtype=int), 200_000
        Run(3).call(twice, np.ones(50), np.zeros(2_000))
        Run(3).call(count, np.zeros(n, dtype=int), by_worker, np.zeros(n + 1, dtype=int))
        helped = bool((by_worker[1:] > 0).any())
    assert helped
    assert len(threads_module._TEAM.helpers) == 2


@pytest.mark.parametrize("bad", [0, 1, 500, 999])
def test_an_error_in_any_piece_reaches_the_caller_after_all_are_done(four, bad):
    done = np.zeros(1000, dtype=int)
    with pytest.raises(MemoryError, match="share of the work failed"):
        Run(3).call(fail, done, bad)
    assert (done == 1).all()
    Run(3).call(fail, done, -1)
    assert (done == 2).all()


def test_callers_at_once_all_finish(four):
    totals = []

    def fit() -> None:
        out = np.zeros(300)
        for _ in range(200):
            Run(4).call(twice, np.zeros(2), out)
        done = np.zeros(12, dtype=int)
        for _ in range(200):
            Run(4).call(count, done, np.zeros(4, dtype=int), np.zeros(13, dtype=int))
        totals.append(done)

    callers = [threading.Thread(target=fit) for _ in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(60.0)
    assert len(totals) == 4
    assert all((done == 200).all() for done in totals)
    assert len(threads_module._TEAM.helpers) <= 3


@pytest.mark.slow
def test_helpers_that_sleep_come_back(four):
    for _ in range(3):
        done = np.zeros(100, dtype=int)
        Run(2).call(count, done, np.zeros(2, dtype=int), np.zeros(101, dtype=int))
        helper = threads_module._TEAM.helpers[0]
        deadline = time.monotonic() + 60.0
        while not helper.asleep and time.monotonic() < deadline:
            time.sleep(0.001)
        assert helper.asleep


def test_a_machine_without_more_threads_does_the_work_alone(four, monkeypatch):
    def refuse(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threads_module, "_Helper", refuse)
    done, by_worker = np.zeros(100, dtype=int), np.zeros(4, dtype=int)
    Run(4).call(count, done, by_worker, np.zeros(101, dtype=int))
    assert by_worker.tolist() == [100, 0, 0, 0]


def costs_of(pace: Pace, calls: int, alone: float, together: float) -> list[bool]:
    """Run a number of calls at constant costs; which of them used all threads."""
    chosen = []
    for _ in range(calls):
        choice = pace.choose()
        pace.note(choice, together if choice else alone)
        chosen.append(choice)
    return chosen


def test_all_threads_are_kept_while_they_are_not_clearly_dearer():
    chosen = costs_of(Pace(), 2_000, alone=1.0, together=1.2)
    assert sum(chosen) > 0.98 * len(chosen)
    assert not all(chosen)  # the other way is tried now and then


def test_threads_that_cost_a_third_more_are_given_up():
    chosen = costs_of(Pace(), 2_000, alone=1.0, together=1.33)
    assert sum(chosen[100:]) < 0.02 * len(chosen[100:])


def test_threads_that_wait_for_each_other_are_given_up_and_come_back():
    pace = Pace()
    costs_of(pace, 100, alone=1.0, together=0.6)
    busy = costs_of(pace, 2_000, alone=1.0, together=5.0)
    assert sum(busy[600:]) < 0.02 * len(busy[600:])
    quiet = costs_of(pace, 2_000, alone=1.0, together=0.6)
    assert sum(quiet[1_000:]) > 0.98 * len(quiet[1_000:])


def test_helpers_do_not_wait_at_work_while_a_kernel_is_compiled():
    team = threads_module._TEAM
    with team.free:
        team.gather(2)
        assert team.crew[OPEN] == 1

        @numba.njit
        def new(x):
            return x + 1

        assert new(1) == 2
        assert team.crew[OPEN] == 0
