"""n_jobs to threads, and work shared among them."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import numba
import numpy as np
import pytest

from ensemble_gpu.kernels.cpu import threads as threads_module
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


@pytest.fixture
def four(monkeypatch):
    """As on a machine with four threads, with a crew of its own."""
    monkeypatch.setattr(threads_module, "_available", lambda: 4)
    monkeypatch.setattr(threads_module, "_CREW", threads_module._Crew())


@pytest.mark.parametrize("threads", [1, 2, 3, 4, 9])
@pytest.mark.parametrize("n", [0, 1, 2, 3, 7, 1000])
def test_every_item_is_done_once_by_one_worker(four, threads, n):
    done = np.zeros(n, dtype=int)
    seen = []

    def work(worker: int, start: int, stop: int) -> None:
        seen.append(worker)
        done[start:stop] += 1

    workers = Run(threads).share(work, n)
    assert (done == 1).all()
    assert sorted(seen) == list(range(workers))
    assert workers <= max(1, min(threads, n, 4))


def test_the_caller_works_too_and_helpers_wait_for_the_next_call(four):
    names = []
    for _ in range(20):
        Run(3).share(lambda *_: names.append(threading.get_ident()), 3)
    assert names.count(threading.get_ident()) == 20
    assert len(set(names)) == 3


@pytest.mark.parametrize("bad", [0, 1, 2])
def test_an_error_in_any_share_reaches_the_caller_after_all_have_finished(four, bad):
    finished = []

    def work(worker: int, start: int, stop: int) -> None:
        if worker == bad:
            raise ValueError(f"share {worker}")
        finished.append(worker)

    with pytest.raises(ValueError, match=f"share {bad}"):
        Run(3).share(work, 3)
    assert sorted([*finished, bad]) == [0, 1, 2]
    assert Run(3).share(lambda *_: None, 3) == 3


def test_callers_at_once_and_shares_within_shares_all_finish(four):
    totals = []

    def fit() -> None:
        done = np.zeros(12, dtype=int)

        def work(worker: int, start: int, stop: int) -> None:
            Run(4).share(lambda w, a, b: None, 4)
            done[start:stop] += 1

        for _ in range(50):
            Run(4).share(work, 12)
        totals.append(done)

    callers = [threading.Thread(target=fit) for _ in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(60.0)
    assert len(totals) == 4
    assert all((done == 50).all() for done in totals)


def test_no_more_helpers_than_the_machine_has_threads(four):
    def nested(depth: int) -> None:
        if depth:
            Run(4).share(lambda *_: nested(depth - 1), 4)

    nested(3)
    assert threads_module._CREW.started <= 3


def test_a_machine_without_more_threads_does_the_work_alone(four, monkeypatch):
    def refuse(idle: list) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threads_module, "_Helper", refuse)
    assert Run(4).share(lambda *_: None, 4) == 1


FORK = """
import os, sys
import numpy as np
import ensemble_gpu.kernels.cpu.threads as threads
threads._available = lambda: 3
from ensemble_gpu import AdaBoostClassifier
X = np.random.default_rng(0).normal(size=(20_000, 20))
y = X[:, 0] + X[:, 1] ** 2 > 1
fit = lambda: AdaBoostClassifier(n_estimators=5, n_jobs=3).fit(X, y).predict_proba(X)
before = fit()
assert threads._CREW.started == 2
child = os.fork()
if child == 0:
    os._exit(0 if (fit() == before).all() and threads._CREW.started == 2 else 1)
assert os.waitpid(child, 0)[1] == 0
print("done")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_fits_and_the_interpreter_ends():
    command = [sys.executable, "-W", "ignore", "-c", FORK]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.stdout.split() == ["done"], done.stderr


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
