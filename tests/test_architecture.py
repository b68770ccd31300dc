"""The house rules: who may know whom, and what an import may cost."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

import ensemble_gpu

PACKAGE = Path(ensemble_gpu.__file__).parent
FILES = sorted(path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py"))
BACKEND = re.compile(r"\b(cupy|torch|jax)\b", re.IGNORECASE)
# The rooms that may name a backend; the command line tells the user what is installed.
KNOWS_BACKENDS = ("arrays/", "kernels/cuda/", "kernels/select.py", "cli/")


def without_docstrings(path: Path) -> str:
    """The code of a file: comments and docstrings may name a backend."""
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(
            node
        ):
            node.body[0].value = ast.Constant("")
    return ast.unparse(tree)


@pytest.mark.parametrize("name", [f for f in FILES if not f.startswith(KNOWS_BACKENDS)])
def test_no_backend_is_named_outside_its_rooms(name):
    found = BACKEND.findall(without_docstrings(PACKAGE / name))
    # Taking the GPU's own file from arrays/ by its path is not a dependence on the library.
    lines = without_docstrings(PACKAGE / name).splitlines()
    allowed = [line for line in lines if "ensemble_gpu.arrays" in line and BACKEND.search(line)]
    assert len(found) == len(allowed), found


@pytest.mark.parametrize(
    "name", [f for f in FILES if f.startswith(("kernels/", "data/", "model/"))]
)
def test_no_room_imports_the_rooms_behind_it(name):
    """Data walks one way: arrays, data, boosting, model; kernels know no algorithm."""
    forbidden = {
        "kernels": ("boosting", "model", "cli"),
        "data": ("boosting", "model", "cli"),
        "model": ("boosting", "cli"),
    }[name.split("/")[0]]
    imported = re.findall(r"ensemble_gpu\.(\w+)", without_docstrings(PACKAGE / name))
    assert not set(imported) & set(forbidden)


def fresh(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True, text=True, check=True, cwd=PACKAGE.parent,
    )  # fmt: skip
    return done.stdout


HEAVY = ["torch", "jax", "cupy", "numba.cuda", "numba_cuda", "pandas", "polars", "matplotlib"]


def test_importing_the_package_imports_no_array_library_and_no_gpu():
    code = f"import sys, ensemble_gpu; print([m for m in {HEAVY} if m in sys.modules])"
    assert fresh(code).strip() == "[]"


def test_importing_the_estimator_imports_no_array_library_but_numpy():
    code = (
        "import sys; from ensemble_gpu import AdaBoostClassifier;"
        f"print([m for m in {['torch', 'jax', 'cupy']} if m in sys.modules])"
    )
    assert fresh(code).strip() == "[]"


def test_importing_the_package_takes_less_than_a_second():
    took = []
    for _ in range(3):  # the best of three: other programs may be busy
        start = time.perf_counter()
        fresh("import ensemble_gpu")
        took.append(time.perf_counter() - start)
    assert min(took) < 1.0
