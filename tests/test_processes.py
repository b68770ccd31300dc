"""Programs of users: processes that fork after a fit, and that are interrupted."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

FORK = """
import multiprocessing
import numpy as np
import ensemble_gpu.kernels.cpu.threads as threads
threads._available = lambda: 3
from ensemble_gpu import (
    AdaBoostClassifier, BaggingClassifier, BoostingClassifier, DecisionTreeClassifier,
    RandomForestClassifier,
)
X = np.random.default_rng(0).normal(size=(40_000, 10))
y = (X[:, 0] + X[:, 1] ** 2 > 1).astype(int)
ESTIMATORS = [
    AdaBoostClassifier(n_estimators=5, n_jobs=3, calibrate=False),
    BoostingClassifier(n_estimators=3, max_depth=3, n_jobs=3, random_state=0),
    DecisionTreeClassifier(max_depth=6, n_jobs=3),
    RandomForestClassifier(4, max_depth=6, random_state=0, n_jobs=3),
    BaggingClassifier(DecisionTreeClassifier(max_depth=4), 4, random_state=0, n_jobs=3),
]

def fit(estimator):
    p = estimator.fit(X, y).predict_proba(X)
    assert len(threads._TEAM.helpers) == 2  # its own, not those of its parent
    return p

def predict(number):
    return FITTED[number].predict_proba(X)

def shared(_):
    return BINNED.engine._map(lambda k: k * k, range(10))

before = [fit(estimator) for estimator in ESTIMATORS]
FITTED = ESTIMATORS

# Rows that were binned before the fork, with an engine whose threads have worked.
from ensemble_gpu.data.rows import Rows, bin_rows
from ensemble_gpu.kernels.cpu.engine import CpuEngine
BINNED = bin_rows(CpuEngine(3), Rows(X, y, None), None, 255, n_ranges=None)
assert shared(None) == [k * k for k in range(10)]

with multiprocessing.get_context("fork").Pool(2) as pool:
    for outputs in (pool.map(fit, ESTIMATORS), pool.map(predict, range(len(ESTIMATORS)))):
        assert all((a == b).all() for a, b in zip(before, outputs))
    assert pool.map(shared, range(2)) == 2 * [[k * k for k in range(10)]]
again = [fit(estimator) for estimator in ESTIMATORS]  # and the parent goes on
assert all((a == b).all() for a, b in zip(before, again))
print("done")
"""

INTERRUPTED = """
import signal
import sys
import threading
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where a shell started the tests
import numpy as np
from ensemble_gpu import BaggingClassifier, DecisionTreeClassifier, RandomForestClassifier
rng = np.random.default_rng(0)
X = rng.normal(size=(2_000, 5))
y = rng.integers(0, 2, 2_000)
estimator = {estimator}
n_estimators = estimator.n_estimators
estimator.set_params(n_estimators=2).fit(X, y)  # compiled by now
estimator.set_params(n_estimators=n_estimators)
for _ in range(2):
    print("ready", flush=True)
    try:
        estimator.fit(X, y)
    except KeyboardInterrupt:
        left = [thread.name for thread in threading.enumerate() if "ThreadPool" in thread.name]
        print("interrupted", left, flush=True)
sys.exit(7)
"""
MANY = {
    "forest": "RandomForestClassifier(500_000, n_jobs=2, random_state=0)",
    "forest on one thread": "RandomForestClassifier(500_000, n_jobs=1, random_state=0)",
    "bagging on one thread": "BaggingClassifier(DecisionTreeClassifier(n_jobs=1), 500_000)",
}


@pytest.mark.slow
def test_a_pool_of_forked_processes_fits_and_predicts_after_a_fit():
    command = [sys.executable, "-W", "ignore", "-c", FORK]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.stdout.split() == ["done"], done.stderr


@pytest.mark.long
@pytest.mark.parametrize("name", MANY)
def test_an_interrupt_at_once_or_later_ends_a_fit_of_very_many_learners_within_seconds(name):
    code = INTERRUPTED.format(estimator=MANY[name])
    running = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert running.stdout is not None
        for delay in (0.05, 1.5):
            assert running.stdout.readline() == "ready\n"
            time.sleep(delay)
            running.send_signal(signal.SIGINT)
            started = time.monotonic()
            assert running.stdout.readline() == "interrupted []\n"
            # of a busy machine; all learners would take hours
            assert time.monotonic() - started < 20.0
        _, errors = running.communicate(timeout=60)
    finally:
        running.kill()
    assert running.returncode == 7, errors
