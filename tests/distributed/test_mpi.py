"""Workers that are processes of an MPI program."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ensemble_gpu import BoostingClassifier
from tests.distributed.test_same_model import rows

pytestmark = pytest.mark.dask

PROGRAM = """
import numpy as np
from mpi4py import MPI
from ensemble_gpu import BoostingClassifier
from ensemble_gpu.distributed import MPIReduce, fit
from tests.distributed.test_same_model import rows

comm = MPI.COMM_WORLD
X, y, w = rows("2", "whole")
own = slice(0, 300) if comm.Get_rank() == 0 else slice(300, None)
reduce = MPIReduce(comm)
every = reduce.gather(np.arange(comm.Get_rank(), dtype=np.float32), to_all=False)
assert [len(one) for one in every] == ([0, 1] if comm.Get_rank() == 0 else [])
clf = BoostingClassifier(n_estimators=4, n_jobs=1)
fit(clf, X[own], y[own], w[own], reduce=reduce)
print(clf.model_.fingerprint(), flush=True)
"""


def launcher() -> str | None:
    beside = Path(sys.executable).with_name("mpiexec")
    return str(beside) if beside.exists() else shutil.which("mpiexec")


def test_two_processes_of_mpi_have_the_model_of_one():
    pytest.importorskip("mpi4py")
    if launcher() is None:
        pytest.skip("no mpiexec")
    command = [str(launcher()), "-n", "2", sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    X, y, w = rows("2", "whole")
    local = BoostingClassifier(n_estimators=4, n_jobs=1).fit(X, y, w)
    # the launcher may put the lines of two processes into one
    assert re.findall("[0-9a-f]{64}", done.stdout) == [local.model_.fingerprint()] * 2
