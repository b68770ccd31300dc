"""Kernels that another process compiles while a fit goes on without them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ensemble_gpu.kernels import later
from ensemble_gpu.kernels.cpu.draws import drawn
from ensemble_gpu.kernels.cpu.sharing import ALONE
from ensemble_gpu.kernels.host.hashing import mixed
from ensemble_gpu.kernels.later import WHEN, Later

BOUNDS = np.arange(3, dtype=np.int64)

# A kernel of which nothing is compiled yet: what is asked of it, and what this process compiles.
ASK = """
import sys, time
import numpy as np
import ensemble_gpu.kernels.cpu.engine
from numba.core import event
from ensemble_gpu.kernels import later
from ensemble_gpu.kernels.host.hashing import mixed

class Compiled(event.Listener):
    names = []
    def on_start(self, event): Compiled.names.append(event.data["dispatcher"].py_func.__name__)
    def on_end(self, event): pass

event.register("numba:compile", Compiled())
asked = later.Later(mixed)
later.SECONDS = 0.0
print(asked.is_at_hand(np.uint64(7)), len(later._PROCESSES))
print(asked.is_at_hand(np.uint64(7)), len(later._PROCESSES))
{then}
"""
WAIT = """
(process,) = later._PROCESSES.values()
print(process.wait(), asked.is_at_hand(np.uint64(7)))
print(mixed(np.uint64(7)), Compiled.names)
"""


def run(code: str, cache: Path, quiet: bool = True, **environment: str) -> list[str]:
    """The lines of a new process with that kernel cache; `quiet`: nothing is announced."""
    own = os.environ | {"NUMBA_CACHE_DIR": str(cache), WHEN: ""} | environment
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], env=own, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    assert done.stderr == "" or not quiet
    return done.stdout.splitlines()


@pytest.mark.slow
def test_another_process_compiles_and_this_one_loads_what_it_has_compiled(tmp_path):
    told = run(ASK.format(then=WAIT), tmp_path, NUMBA_NUM_THREADS="2")
    assert told == ["False 0", "False 1", "0 True", f"{mixed(np.uint64(7))} []"]
    # at hand from the start: nobody is asked
    assert run(ASK.format(then=""), tmp_path, NUMBA_NUM_THREADS="2") == ["True 0", "True 0"]


FIT = """
import numpy as np
from ensemble_gpu import BoostingClassifier
from ensemble_gpu.kernels import later
from ensemble_gpu.kernels.cpu.trees.whole import grow_whole

X = np.random.default_rng(0).normal(size=(3000, 5)).astype(np.float32)
model = BoostingClassifier(n_estimators=20, max_depth=3)
fit = lambda: model.fit(X, X[:, 0] + X[:, 1] ** 2 > 1.0).model_.fingerprint()
first, of_first = fit(), len(grow_whole.overloads)
for process in later._PROCESSES.values():
    assert process.wait() == 0
later.SECONDS = 0.0
print(of_first, fit() == first, len(grow_whole.overloads))
print(sum(grow_whole.stats.cache_misses.values()))
"""


@pytest.mark.long
def test_a_first_fit_goes_on_without_the_kernel_of_whole_trees_to_the_same_model(tmp_path):
    own = {"NUMBA_NUM_THREADS": "2"}
    # not compiled by the first fit, loaded by the second, never compiled here
    assert run(FIT, tmp_path, quiet=False, **own) == ["0 True 1", "0"]


@pytest.mark.parametrize("where", [{WHEN: "now"}, {"NUMBA_NUM_THREADS": "1"}], ids=str)
@pytest.mark.slow
def test_who_asks_compiles_where_it_says_so_or_has_one_core(tmp_path, where):
    assert run(ASK.format(then=""), tmp_path, **{"NUMBA_NUM_THREADS": "2", **where}) == [
        "True 0",
        "True 0",
    ]


@pytest.fixture
def waiting(monkeypatch):
    """`Later` of a kernel, arguments that it is not compiled for, and what was started."""
    started = []

    class Process:
        code = None

        def __init__(self, command, **options):
            started.append(self)
            self.stdin = open(os.devnull, "wb")  # noqa: SIM115

        def poll(self):
            return self.code

    monkeypatch.delenv(WHEN)
    monkeypatch.setattr(later, "_can_wait", lambda kernel: True)
    monkeypatch.setattr(later, "_PROCESSES", {})
    monkeypatch.setattr(later, "_MISSED", {})
    monkeypatch.setattr(later, "SECONDS", 0.0)
    monkeypatch.setattr(later.subprocess, "Popen", Process)
    asked, arguments = Later(drawn), (ALONE, BOUNDS, BOUNDS, 1j, 1j, BOUNDS)
    assert not asked.is_at_hand(*arguments)
    assert not started, "who misses it first has other kernels to compile"
    return asked, arguments, started


def test_one_process_is_started_for_all_who_ask(waiting):
    asked, arguments, started = waiting
    assert not asked.is_at_hand(*arguments)
    assert not Later(drawn).is_at_hand(*arguments)
    assert len(started) == 1


def test_who_asks_compiles_where_the_process_ended_without_a_kernel(waiting):
    asked, arguments, started = waiting
    assert not asked.is_at_hand(*arguments)
    started[0].code = 1
    assert asked.is_at_hand(*arguments)
    assert asked.here


def test_who_asks_compiles_where_no_process_can_be_started(waiting, monkeypatch):
    asked, arguments, started = waiting

    def refuse(*command, **options):
        raise OSError("no more processes")

    monkeypatch.setattr(later.subprocess, "Popen", refuse)
    assert asked.is_at_hand(*arguments)
    assert not started


def test_nobody_is_asked_while_another_process_compiles_in_the_same_folder(waiting):
    asked, arguments, started = waiting
    with later._locked(drawn._cache.cache_path, waits=True) as held:
        assert held
        assert not asked.is_at_hand(*arguments)
        assert not started
    assert not asked.is_at_hand(*arguments)
    assert len(started) == 1


def test_nobody_is_waited_for_without_end(waiting, monkeypatch):
    asked, arguments, _ = waiting
    assert not asked.is_at_hand(*arguments)
    monkeypatch.setattr(later, "PATIENCE_SECONDS", -1.0)
    assert asked.is_at_hand(*arguments)


@pytest.mark.slow
def test_the_other_process_imports_nothing_from_where_it_happens_to_start(tmp_path):
    cache, here = tmp_path / "cache", tmp_path / "here"
    cache.mkdir()
    here.mkdir()
    for name in ("json", "pickle", "atexit"):
        (here / f"{name}.py").write_text("raise SystemExit(3)")
    code = "import os, sys\nsys.path[:] = [p for p in sys.path if p]\n" + ASK.format(
        then=f"{WAIT}"
    ).replace("print(asked", f"os.chdir({str(here)!r})\nprint(asked", 1)
    told = run(code, cache, NUMBA_NUM_THREADS="2")
    assert told[2] == "0 True"


def test_the_cache_is_looked_into_now_and_then(waiting, monkeypatch):
    asked, arguments, started = waiting
    assert not asked.is_at_hand(*arguments)
    started[0].code = 0
    monkeypatch.setattr(later, "SECONDS", 1000.0)
    assert not asked.is_at_hand(*arguments), "not yet"
    monkeypatch.setattr(later, "SECONDS", 0.0)
    assert asked.is_at_hand(*arguments)


@pytest.mark.parametrize("executable", ["", None, "/usr/bin/uwsgi"])
def test_a_program_that_embeds_python_is_not_started_again(monkeypatch, executable):
    monkeypatch.delenv(WHEN)
    monkeypatch.setattr(later.sys, "executable", executable)
    assert not later._can_wait(drawn)
