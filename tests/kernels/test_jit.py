"""How kernels are compiled and cached."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numba import types

import ensemble_gpu
from ensemble_gpu.kernels import jit, linking
from ensemble_gpu.kernels.jit import cached_kernels, inner, kernel

PACKAGE = Path(ensemble_gpu.__file__).parent
SOLVE = """
import numpy as np
from ensemble_gpu.kernels.host.weights import stump_of
from ensemble_gpu.kernels.jit import cache_is_missing
from ensemble_gpu.kernels.protocol import CONFIDENCE
sums, values = np.array([[3, 1, 0], [1, 3, 0]]), np.zeros((1, 3))
place, cumulated, totals = (0, 0, 2), np.ones((1, 1, 3), dtype=np.int64), np.zeros(2, dtype=int)
z = stump_of(
    CONFIDENCE, sums, np.ones(2), 1.0, 0.0, 1.0, place, cumulated, values, np.zeros(3), totals
)[2]
hits = sum(stump_of.stats.cache_hits.values())
print(round(z, 9), hits, cache_is_missing())
"""
# sum of 2 sqrt(W+ W-) over the leaves, of a whole weight of 8
Z, TWICE_Z = "0.866025404", "1.732050808"


@inner
def twice(x):
    return 2.0 * x


@inner(forceinline=True)
def reciprocal(x):
    return 1.0 / x


@inner(inline="always")
def increased(x):
    return x + 1.0


@inner(fastmath={"nnan"})
def positive(x):
    if x < 0.0:
        raise ValueError("x is negative")
    return twice(x)


def _formula(x):
    return positive(x) + increased(reciprocal(x))


formula = kernel(_formula)


def test_a_kernel_calls_inner_functions_of_every_kind():
    assert formula(4.0) == 8.0 + 1.25


def test_division_by_zero_follows_numpy():
    assert formula(0.0) == np.inf


def test_an_error_in_an_inner_function_reaches_python():
    with pytest.raises(ValueError, match="x is negative"):
        formula(-1.0)


def test_inner_functions_have_no_machine_code():
    fresh = inner(twice.py_func)
    fresh.compile((types.float64,))
    (result,) = fresh.overloads.values()
    assert isinstance(result.library, linking.InnerLibrary)
    with pytest.raises(RuntimeError, match="no compiled object"):
        result.library._get_compiled_object()


def test_without_what_the_compilers_rest_on_numba_compiles_in_its_own_way(monkeypatch):
    monkeypatch.setattr(jit, "PIPELINES", {})
    again = inner(twice.py_func)

    @kernel
    def plain(x):
        return again(x)

    assert plain(4.0) == 8.0


def test_kernels_work_without_brackets_and_with():
    assert kernel()(_formula)(4.0) == 9.25


def test_the_cache_lists_the_files_of_kernels_that_are_compiled():
    formula(4.0)
    names = [path.name for path in cached_kernels()]
    assert any(name.startswith("test_jit._formula-") for name in names)
    assert all(f"-{jit.digest()}." in name for name in names)


def copy_of_the_package(folder: Path, without: str = "*.nb?") -> Path:
    """The sources and their bytecode; compiled kernels are not copied."""
    shutil.copytree(PACKAGE, folder / "ensemble_gpu", ignore=shutil.ignore_patterns(without))
    return folder / "ensemble_gpu"


def solved(folder: Path, before: str = "", **environment: str) -> list[str]:
    """Z of a stump, how often the cache was hit, and whether there is none, of a new process."""
    done = subprocess.run(
        [sys.executable, "-c", before + SOLVE], cwd=folder, capture_output=True, text=True,
        check=True, env=os.environ | {"PYTHONPATH": str(folder)} | environment,
    )  # fmt: skip
    return done.stdout.split()


@pytest.mark.slow
def test_an_edit_in_the_file_of_a_callee_is_seen(tmp_path):
    package = copy_of_the_package(tmp_path)
    own = {"NUMBA_CACHE_DIR": ""}
    assert solved(tmp_path, **own) == [Z, "0", "False"]
    assert solved(tmp_path, **own) == [Z, "1", "False"]
    callee = package / "kernels" / "host" / "scalar.py"
    text = callee.read_text()
    assert text.count("ldexp(series, int(k))") == 1
    callee.write_text(text.replace("ldexp(series, int(k))", "ldexp(series, int(k) + 1)"))
    assert solved(tmp_path, **own) == [TWICE_Z, "0", "False"]
    files = [path.name for path in tmp_path.rglob("weights.stump_of-*.nb?")]
    assert len(files) == 2, "files of the old sources are left"


NOWHERE = {"NUMBA_CACHE_DIR": "", "HOME": os.devnull, "XDG_CACHE_HOME": os.devnull}


def read_only_copy(folder: Path) -> None:
    """A copy of the package beside which nothing can be written, not even by root."""
    package = copy_of_the_package(folder, without="__pycache__")
    for place in {path.parent for path in package.rglob("*.py")}:
        (place / "__pycache__").write_text("in the way of a folder")


@pytest.mark.slow
@pytest.mark.long
def test_without_a_writable_folder_kernels_are_kept_in_a_private_temporary_one(tmp_path):
    read_only_copy(tmp_path)
    (tmp_path / "tmp").mkdir()
    own = NOWHERE | {"TMPDIR": str(tmp_path / "tmp")}
    assert solved(tmp_path, **own) == [Z, "0", "False"]
    assert solved(tmp_path, **own) == [Z, "1", "False"]
    (made,) = (tmp_path / "tmp").iterdir()
    assert made.name == f"ensemble_gpu-{os.getuid()}"
    assert made.stat().st_mode & 0o777 == 0o700


@pytest.mark.slow
def test_without_any_writable_folder_kernels_are_compiled_and_not_kept(tmp_path):
    read_only_copy(tmp_path)
    no_temporary = "import os, tempfile\ntempfile.tempdir = os.devnull\n"
    assert solved(tmp_path, no_temporary, **NOWHERE) == [Z, "0", "True"]


FIT = """
import numpy as np
from ensemble_gpu.kernels import compiling
compiling.PATIENCE_SECONDS = 0.01
from ensemble_gpu import BoostingClassifier
X = np.random.default_rng(0).normal(size=(200, 3))
estimator = BoostingClassifier("squared", n_estimators=3, max_depth=1)
print(estimator.fit(X, X[:, 0] > 0).score(X, X[:, 0] > 0))
"""


@pytest.mark.long
def test_a_read_only_install_without_a_home_fits_and_says_where_kernels_are(tmp_path):
    read_only_copy(tmp_path)
    (tmp_path / "tmp").mkdir()
    environment = os.environ | NOWHERE | {"TMPDIR": str(tmp_path / "tmp")}
    environment["PYTHONPATH"] = str(tmp_path)

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *arguments], cwd=tmp_path, capture_output=True, text=True,
            check=True, env=environment,
        )  # fmt: skip

    done = run("-c", FIT)
    folder = tmp_path / "tmp" / f"ensemble_gpu-{os.getuid()}"
    assert done.stdout.split() == ["1.0"]
    assert done.stderr.count("\n") == 1, "one line a process, not one a kernel"
    assert f"kept in {folder}; set NUMBA_CACHE_DIR" in done.stderr
    assert run("-c", FIT).stderr == ""
    said = " ".join(run("-m", "ensemble_gpu", "doctor").stdout.split())
    assert "numpy host cpu (numba kernels on all cores)" in said
    assert "can be written: compiled kernels are kept among the temporary files" in said
    assert str(folder) in said
    assert "force-reinstall" not in said


@pytest.mark.slow
def test_without_a_compiler_the_error_says_so(tmp_path):
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1"}

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *arguments], capture_output=True, text=True, env=environment,
            check=False,
        )  # fmt: skip

    done = run("-c", "import ensemble_gpu; ensemble_gpu.RandomForestClassifier")
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("ImportError: ensemble_gpu needs numba's compiler")
    assert "Unset NUMBA_DISABLE_JIT" in last
    told = run("-m", "ensemble_gpu", "doctor")
    assert told.returncode == 1
    assert "fix: unset NUMBA_DISABLE_JIT" in told.stdout
    assert "force-reinstall" not in told.stdout
