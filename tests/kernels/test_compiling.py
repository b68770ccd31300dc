"""The line that says that kernels are being compiled."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from ensemble_gpu.kernels.compiling import MESSAGE

FIT = """
import numpy as np
from ensemble_gpu import AdaBoostClassifier
X = np.arange(40.0).reshape(20, 2)
AdaBoostClassifier(n_estimators=2, n_jobs=1).fit(X, X[:, 0] % 3 > 1)
"""


def first_fit(cache: Path) -> str:
    """Standard error of a fit in a new process with that kernel cache."""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(cache)}
    done = subprocess.run(
        [sys.executable, "-c", FIT], env=environment, capture_output=True, text=True, check=True
    )
    return done.stderr


def test_a_long_compilation_is_announced_once_and_never_again_from_the_cache(tmp_path):
    assert first_fit(tmp_path).count(MESSAGE) == 1
    assert MESSAGE not in first_fit(tmp_path)
