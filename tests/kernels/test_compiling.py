"""The line that says that kernels are being compiled."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from ensemble_gpu.kernels.compiling import MESSAGE, Announcer

pytestmark = pytest.mark.slow

# A few small kernels, with less patience; importing the engine begins to listen.
COMPILE = """
from ensemble_gpu.kernels import compiling

compiling.PATIENCE_SECONDS = {patience}
import ensemble_gpu.kernels.cpu.engine
import numpy as np
from ensemble_gpu.kernels.cpu.rowwise import pack
from ensemble_gpu.kernels.host.criteria import times_log

times_log(np.ones(2))
pack(np.ones((1, 2)), np.ones((1, 2)), 1.0, 1.0, np.zeros((1, 2), dtype=np.int64))
"""


def run(code: str, cache: Path) -> subprocess.CompletedProcess[str]:
    """A new process with that kernel cache."""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(cache)}
    return subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )


def test_a_long_compilation_is_announced_once_and_never_again_from_the_cache(tmp_path):
    long = COMPILE.format(patience=0.01)
    assert run(long, tmp_path).stderr.count(MESSAGE) == 1
    assert MESSAGE not in run(long, tmp_path).stderr


def test_a_short_compilation_is_not_announced(tmp_path):
    assert MESSAGE not in run(COMPILE.format(patience=1000.0), tmp_path).stderr


def ours() -> SimpleNamespace:
    """As numba tells of a function of this package."""
    dispatcher = SimpleNamespace(py_func=Announcer.on_start)
    return SimpleNamespace(data={"dispatcher": dispatcher})


def theirs() -> SimpleNamespace:
    return SimpleNamespace(data={"dispatcher": SimpleNamespace(py_func=os.path.join)})


@pytest.mark.parametrize("enabled", [True, False])
def test_no_garbage_is_collected_while_our_functions_are_compiled(enabled):
    before = gc.isenabled()
    listener = Announcer()
    try:
        gc.enable() if enabled else gc.disable()
        for event in (ours(), ours()):
            listener.on_start(event)
            assert not gc.isenabled()
        for event in (ours(), ours()):
            assert not gc.isenabled()
            listener.on_end(event)
        assert gc.isenabled() == enabled
    finally:
        gc.enable() if before else gc.disable()


def test_functions_of_others_are_none_of_our_business():
    listener = Announcer()
    listener.on_start(theirs())
    assert gc.isenabled()
    assert listener.depth == 0
    listener.on_end(theirs())
    assert listener.depth == 0
