"""The line that says that kernels are being compiled."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ensemble_gpu.kernels.compiling import MESSAGE

pytestmark = pytest.mark.slow

# A few small kernels, with less patience; importing the engine begins to listen.
COMPILE = """
from ensemble_gpu.kernels import compiling

compiling.PATIENCE_SECONDS = {patience}
import ensemble_gpu.kernels.cpu.engine
from ensemble_gpu.kernels.host.scalar import exp, log

log(exp(1.0))
log(exp(1))
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
