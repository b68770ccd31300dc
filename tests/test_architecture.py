"""The house rules: who may know whom, and what an import may cost."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import time
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import ensemble_gpu

PACKAGE = Path(ensemble_gpu.__file__).parent
ROOT = PACKAGE.parent
FILES = sorted(path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py"))
BACKEND = re.compile(r"\b(cupy|torch|jax|array_api_strict|array_api_compat)\b", re.IGNORECASE)
# The rooms that may name a backend; the command line tells the user what is installed.
KNOWS_BACKENDS = ("arrays/", "kernels/cuda/", "kernels/select.py", "cli/")
# What may import every room: the public names and the command line's entry.
ENTRANCES = ("__init__", "__main__")
# Inside kernels/: the contract and `host` know no engine, `reference` no compiled one.
ENGINES: dict[str, set[str]] = {
    "host": set(), "reference": {"host"}, "cpu": {"host", "reference"},
    "teams": {"host", "reference"},
    "cuda": {"host", "reference", "cpu"},
}  # fmt: skip


def parsed(name: str) -> ast.Module:
    return ast.parse((PACKAGE / name).read_text())


def in_code(words: re.Pattern[str], name: str) -> list[str]:
    """The lines of a file's code with such a word; comments and docstrings may have it."""
    if not words.search((PACKAGE / name).read_text()):
        return []
    tree = parsed(name)
    for node in ast.walk(tree):
        documented = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        if documented and ast.get_docstring(node):
            node.body[0].value = ast.Constant("")
    return [line for line in ast.unparse(tree).splitlines() if words.search(line)]


@cache
def imported(name: str) -> set[tuple[str, ...]]:
    """Modules of this package that a file imports, wherever in the file, as paths."""
    found = set()
    for node in ast.walk(parsed(name)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    ours = (path.split(".")[1:] for path in found if path.split(".")[0] == "ensemble_gpu")
    return {tuple(path) for path in ours if path}


def room_of(name: str) -> str:
    return name.split("/")[0].removesuffix(".py")


ROOMS = {room_of(name) for name in FILES} - set(ENTRANCES)


@cache
def edges() -> dict[str, dict[str, list[str]]]:
    """room -> room that it imports -> files that do."""
    found: dict[str, dict[str, list[str]]] = {room: {} for room in ROOMS}
    for name in FILES:
        for path in imported(name) if room_of(name) in ROOMS else ():
            other = path[0]
            if other in ROOMS and other != room_of(name):
                found[room_of(name)].setdefault(other, []).append(name)
    return found


@cache
def allowed() -> dict[str, set[str]]:
    """The list in CONTRIBUTING.md."""
    lines = re.findall(r"^    (\w+):(.*)$", (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE)
    return {room: set(others.split()) for room, others in lines}


def test_the_list_of_rooms_names_every_room_and_no_other():
    assert set(allowed()) == ROOMS
    assert {other for others in allowed().values() for other in others} <= ROOMS


def test_rooms_import_only_what_the_list_allows():
    wrong = {
        (room, other): files
        for room, others in edges().items()
        for other, files in others.items()
        if other not in allowed()[room]
    }
    assert not wrong


def test_the_list_has_no_edge_that_nothing_uses():
    assert {room: others - set(edges()[room]) for room, others in allowed().items()} == {
        room: set() for room in ROOMS
    }


def test_no_room_is_imported_by_a_room_that_it_imports():
    TopologicalSorter(allowed()).prepare()  # raises CycleError
    TopologicalSorter({room: set(others) for room, others in edges().items()}).prepare()


def test_engines_are_in_rooms_of_their_own():
    for name in (f for f in FILES if f.startswith("kernels/")):
        inner = name.split("/")[1].removesuffix(".py")
        if name == "kernels/select.py":  # chooses the engine, when it is asked for one
            continue
        known = {path[1] for path in imported(name) if path[0] == "kernels" and len(path) > 1}
        assert known & set(ENGINES) <= ENGINES.get(inner, set()) | {inner}, name


def test_every_engine_has_the_same_nouns():
    """What the reference engine does, the others do in files of the same names."""

    def nouns(engine: str) -> set[str]:
        folder = PACKAGE / "kernels" / engine
        return {path.relative_to(folder).as_posix() for path in folder.rglob("*.py")}

    for engine in ("cpu", "cuda"):
        assert nouns("reference") - nouns(engine) == set(), engine


def test_compiled_loops_are_in_kernels_alone():
    compiled = re.compile(r"\b(njit|jit|vectorize|guvectorize|numba)\b")
    outside = [
        name
        for name in FILES
        if not name.startswith(("kernels/", "cli/")) and in_code(compiled, name)
    ]
    assert not outside


def test_no_backend_is_named_outside_its_rooms():
    for name in (f for f in FILES if not f.startswith(KNOWS_BACKENDS)):
        # taking the GPU's own file from arrays/ by its path is not a dependence on the library
        lines = [line for line in in_code(BACKEND, name) if "ensemble_gpu.arrays" not in line]
        assert not lines, name


def test_readme_and_contributing_name_files_that_exist():
    folders = "|".join(sorted(ROOMS))
    for document in ("README.md", "CONTRIBUTING.md"):
        text = (ROOT / document).read_text()
        for path in re.findall(rf"(?<![\w/])((?:{folders})/[\w/]+\.py)\b", text):
            assert (PACKAGE / path).exists(), f"{document}: {path}"


def fresh(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True, text=True, check=True, cwd=ROOT,
    )  # fmt: skip
    return done.stdout


HEAVY = ["torch", "jax", "cupy", "numba.cuda", "numba_cuda", "pandas", "polars", "matplotlib"]


@pytest.mark.parametrize(
    ("code", "heavy"),
    [
        ("import ensemble_gpu", HEAVY),
        (
            "from ensemble_gpu import AdaBoostClassifier, plot_tree",
            ["torch", "jax", "cupy", "matplotlib"],
        ),
    ],
)
def test_importing_imports_no_array_library_but_numpy_and_no_gpu(code, heavy):
    code = f"import sys; {code}; print([m for m in {heavy} if m in sys.modules])"
    assert fresh(code).strip() == "[]"


def test_importing_the_package_takes_less_than_a_second():
    took = []
    for _ in range(3):  # the best of three: other programs may be busy
        start = time.perf_counter()
        fresh("import ensemble_gpu")
        took.append(time.perf_counter() - start)
    assert min(took) < 1.0
