"""Every barrier is needed: without it, and with one thread late, the result is wrong.

The simulator's threads usually hide a missing barrier. So each case makes one thread sleep before
the step that the barrier protects: with the barrier the result must not change (the control), with
the barrier taken out of the source it must. What this cannot show: reordering of memory accesses
inside a warp, which only hardware has.
"""

from __future__ import annotations

import re
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from ensemble_gpu.kernels.cuda import histogram, requantise, scan, score
from ensemble_gpu.kernels.cuda._numba import simulator_handle
from ensemble_gpu.kernels.cuda.launch import launch
from ensemble_gpu.kernels.cuda.trees import splits, sums
from ensemble_gpu.kernels.cuda.trees.best import FOUND
from ensemble_gpu.kernels.protocol import CONFIDENCE
from ensemble_gpu.kernels.tree_protocol import VARIANCE

THREADS = 4
LATE = 0.1  # seconds; the other threads need a few milliseconds
CHECKED = (histogram, requantise, scan, score, splits, sums)
MODULES = {m.__name__.rsplit(".", 1)[1]: m for m in CHECKED}
SOURCES = {name: Path(str(m.__file__)).read_text() for name, m in MODULES.items()}


@dataclass(frozen=True)
class Barrier:
    """Barrier `number` of a function; `thread` comes late to the line that starts with `step`."""

    module: str
    function: str
    number: int
    step: str
    thread: int
    run: Callable[[Any], np.ndarray]

    def __str__(self) -> str:
        return f"{self.module}.{self.function}-{self.number}"


def changed(barrier: Barrier, removed: bool) -> ModuleType:
    """The module with a late thread, and with the barrier taken out where `removed`."""
    source = SOURCES[barrier.module]
    start = source.index(f"def {barrier.function}(")
    stop = source.find("\n\n\n", start)
    body = source[start:stop]
    late = re.sub(
        rf"^( +)({re.escape(barrier.step)})",
        r"\1late(cuda.threadIdx.x)\n\1\2",
        body, count=1, flags=re.MULTILINE,
    )  # fmt: skip
    assert late != body
    if removed:
        line = rf"^ +cuda\.syncthreads\(\)  # \({barrier.number}\)\n"
        late, n = re.subn(line, "", late, flags=re.MULTILINE)
        assert n == 1
    text = (source[:start] + late + source[stop:]).replace("(cache=True)", "")
    module = ModuleType(f"changed_{barrier.module}")

    def sleep(thread: int) -> None:
        if thread == barrier.thread:
            time.sleep(LATE)

    vars(module)["late"] = sleep
    exec(compile(text, barrier.module, "exec"), vars(module))
    return module


# One class of four rows; row i belongs to thread i. One feature: code = i mod 2.
PARTS = np.array([[0, 0, 4]], dtype=np.int32)
CODES = np.array([[0, 1, 0, 1]], dtype=np.uint64)
GROUP_OF = np.zeros((1, 1), dtype=np.int32)


def run_build(module: Any) -> np.ndarray:
    q, sums = np.array([[1, 2, 4, 8]], dtype=np.int32), np.zeros((1, 2048), dtype=np.int64)
    _launch(module.build, CODES, PARTS, GROUP_OF, q, sums)
    return sums


def run_update(module: Any) -> np.ndarray:
    q, sums = np.array([[1, 2, 4, 8]], dtype=np.int32), np.zeros((1, 2048), dtype=np.int64)
    factors, largest = np.full((1, 2), 3.0), np.zeros(1, dtype=np.int32)
    _launch(
        module.update, CODES, PARTS, GROUP_OF, np.int32(0), np.uint64(0), factors, q, sums, largest
    )
    return np.concatenate([sums[0], largest])


def run_heaviest(module: Any) -> np.ndarray:
    top = np.zeros(1, dtype=np.int64)
    logs = np.array([1, 2, 3, 4], dtype=np.int64)
    used, tables = np.zeros((1, 2), dtype=np.int32), np.zeros((1, 1, 2), dtype=np.int64)
    _launch(
        module.heaviest,
        CODES,
        PARTS,
        GROUP_OF,
        used,
        np.int32(0),
        np.uint32(255),
        tables,
        logs,
        top,
    )
    return top


class _Split:
    """Four thresholds, two groups; the best split is the last, which thread 3 scores."""

    def __init__(self) -> None:
        self.sums = np.zeros((2, 2048), dtype=np.int64)
        self.sums[0, :5], self.sums[1, :5] = [1, 1, 1, 1, 50], [9, 9, 9, 9, 0]
        self.running, self.lowest = np.zeros((2, 5), dtype=np.int64), np.zeros(1)
        sizes = (np.int32(v) for v in (CONFIDENCE, 1, 5, 256))
        self.args = (
            self.sums,
            self.running,
            np.array([4], dtype=np.int32),
            np.ones((2, 2)),
            *sizes,
        )

    def score(self, module: Any) -> None:
        _launch(module.score, *self.args, np.int32(2), self.lowest)


def run_score(module: Any) -> np.ndarray:
    split = _Split()
    split.score(module)
    return np.concatenate([split.running.ravel(), split.lowest])


def run_choose(module: Any) -> np.ndarray:
    split = _Split()
    split.score(score)
    record, largest = np.zeros(score.record_length(2), dtype=np.int64), np.ones(2, dtype=np.int32)
    _launch(module.choose, split.lowest, *split.args, largest, record, record.view(np.float64))
    return record


class _Tree:
    """A node of eight rows, two a thread, and six features of four codes and the missing one."""

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        lanes = rng.integers(5, size=(8, 8)).astype(np.uint8)
        h, g = np.ones(8, dtype=np.int64), rng.integers(-9, 9, size=8)
        self.rows = (
            lanes.view(np.uint64), np.arange(8, dtype=np.int32), np.zeros(0, dtype=np.int32),
            np.stack([h, g], axis=1),
        )  # fmt: skip
        self.features = np.arange(6, dtype=np.int32)[None, :]
        self.best = np.zeros((1, 6)), np.zeros((1, 6, FOUND + 2), dtype=np.int64)
        self.search = (
            *(np.int32(v) for v in (VARIANCE, 2, 1)), np.int64(0), np.float64(0.0), np.int32(0),
            np.zeros(6, dtype=np.int32), np.zeros((1, 2)), np.zeros((1, 1), dtype=np.uint64),
            np.int32(2), *self.best,
        )  # fmt: skip

    def sums(self, module: Any) -> np.ndarray:
        parts, sums = np.array([[0, 0, 8]], dtype=np.int32), np.zeros((1, 60), dtype=np.int64)
        sizes = (np.int32(v) for v in (3, 5, 2, 0, 6))
        _launch(module.sum_parts, *self.rows, parts, self.features, *sizes, sums)
        return sums

    def found(self) -> np.ndarray:
        return np.concatenate([a.ravel() for a in self.best])


def run_sum_parts(module: Any) -> np.ndarray:
    return _Tree().sums(module)


def run_split_rows(module: Any) -> np.ndarray:
    tree, ranges = _Tree(), np.array([[0, 8]], dtype=np.int32)
    sizes = np.int32(3), np.int32(5)
    _launch(module.split_rows, *tree.rows, ranges, tree.features, *sizes, *tree.search)
    return tree.found()


def run_split_sums(module: Any) -> np.ndarray:
    tree, slots = _Tree(), np.zeros(1, dtype=np.int32)
    _launch(module.split_sums, tree.sums(sums), slots, tree.features, np.int32(5), *tree.search)
    return tree.found()


def with_scan(name: str, changed_scan: Any) -> Any:
    """A module that scans with a changed scan.py."""
    module = ModuleType(f"scanning_{name}")
    with patch.dict(sys.modules, {scan.__name__: changed_scan}):
        exec(compile(SOURCES[name].replace("(cache=True)", ""), name, "exec"), vars(module))
    return module


def run_scan_of_sums(module: Any) -> np.ndarray:
    return run_score(with_scan("score", module))


def run_scan_of_words(module: Any) -> np.ndarray:
    return run_split_sums(with_scan("splits", module))


def _launch(kernel: Any, *args: Any) -> None:
    handles = [simulator_handle(a) if isinstance(a, np.ndarray) else a for a in args]
    launch(kernel, 1, THREADS, 0, *handles)


BARRIERS = [
    Barrier("sums", "sum_parts", 1, "clear(", 1, run_sum_parts),
    Barrier("sums", "sum_parts", 2, "i = np.int32(parts", 1, run_sum_parts),
    Barrier("splits", "split_rows_with", 1, "clear(", 1, run_split_rows),
    Barrier("splits", "split_rows_with", 2, "i = np.int32(ranges", 1, run_split_rows),
    Barrier("splits", "split_rows_with", 3, "_write(", 1, run_split_rows),
    Barrier("splits", "split_sums_with", 1, "k = np.int32(cuda", 0, run_split_sums),
    Barrier("splits", "split_sums_with", 2, "_write(", 1, run_split_sums),
    Barrier("scan", "scan_with", 1, "scratch[tid] = total", 0, run_scan_of_words),
    Barrier("scan", "scan_with", 2, "while other < tid:", 1, run_scan_of_words),
    Barrier("splits", "_block_best", 1, "scores[tid] = score", 2, run_split_sums),
    Barrier("splits", "_block_best", 2, "if tid < half:", 1, run_split_sums),
    Barrier("histogram", "build", 1, "_clear(", 1, run_build),
    Barrier("histogram", "build", 2, "i = np.int32(parts", 1, run_build),
    Barrier("histogram", "update", 1, "_clear(", 1, run_update),
    Barrier("histogram", "update", 2, "i = np.int32(parts", 1, run_update),
    Barrier("histogram", "update", 3, "if cuda.threadIdx.x == 0:", 0, run_update),
    Barrier("histogram", "update", 4, "cuda.atomic.max(cells", 3, run_update),
    Barrier("requantise", "_block_max", 1, "scratch[tid] = value", 3, run_heaviest),
    Barrier("requantise", "_block_max", 2, "if tid < half:", 1, run_heaviest),
    Barrier("scan", "scan_with", 1, "scratch[tid] = total", 0, run_scan_of_sums),
    Barrier("scan", "scan_with", 2, "while other < tid:", 1, run_scan_of_sums),
    Barrier("score", "_block_min", 1, "scratch[tid] = value", 3, run_score),
    Barrier("score", "_block_min", 2, "if tid < half:", 1, run_score),
    Barrier("score", "_block_min", 3, "result = scratch[0]", 3, run_choose),
]


def is_wrong(barrier: Barrier, expected: np.ndarray) -> bool:
    """Whether the kernel without the barrier gives another result, or one that cannot be used.

    A sum that was never written may be an index outside of an array, or a negative weight.
    """
    try:
        return bool((barrier.run(changed(barrier, removed=True)) != expected).any())
    except (IndexError, ValueError):
        # The simulator leaves the other threads of a failed block to themselves; they would
        # disturb the next launch.
        for thread in threading.enumerate():
            if type(thread).__name__ == "BlockThread":
                thread.join()
        return True


@pytest.mark.long
@pytest.mark.parametrize("barrier", BARRIERS, ids=str)
def test_a_late_thread_is_waited_for(barrier: Barrier) -> None:
    expected = barrier.run(MODULES[barrier.module])
    np.testing.assert_array_equal(barrier.run(changed(barrier, removed=False)), expected)
    assert is_wrong(barrier, expected)


def test_every_barrier_has_a_case() -> None:
    written = set()
    for module, source in SOURCES.items():
        for part in re.split(r"^def ", source, flags=re.MULTILINE)[1:]:
            numbers = re.findall(r"cuda\.syncthreads\(\)  # \((\d)\)", part)
            assert len(numbers) == part.count("cuda.syncthreads()")
            written |= {(module, part[: part.index("(")], int(n)) for n in numbers}
    assert written == {(b.module, b.function, b.number) for b in BARRIERS}
