"""What is kept of the rows: a byte a cell and 32 bytes a row, or a file."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from ensemble_gpu import AdaBoostClassifier, Batches, BoostingClassifier
from ensemble_gpu.batches import memory, stream
from ensemble_gpu.kernels.edges import sample_positions
from tests.batches.cases import X, Y, check_same, cut

FEW = {"n_estimators": 3}
N_BATCHES, BATCH, P = 40, 2_000, 50


def made(seed: int) -> tuple[np.ndarray, np.ndarray]:
    rows = np.random.default_rng(seed).normal(size=(BATCH, P))
    return rows, (rows[:, 0] + rows[:, 1] > 0).astype(np.int8)


def batches():
    return (made(seed) for seed in range(N_BATCHES))


@pytest.mark.parametrize(
    "estimator",
    [
        AdaBoostClassifier(**FEW),
        pytest.param(BoostingClassifier(early_stopping=True, **FEW), marks=pytest.mark.long),
        BoostingClassifier(max_depth=1, early_stopping=False, **FEW),
    ],
    ids=["AdaBoost", "trees", "stumps"],
)
def test_no_array_holds_all_features(estimator, monkeypatch):
    """Codes have pages of their own, which are not traced; edges are from a small sample here."""
    monkeypatch.setattr(stream, "sample_positions", lambda n: sample_positions(n, BATCH))
    estimator.fit(Batches(batches))  # compiled, and caches are filled
    tracemalloc.start()
    try:
        estimator.fit(Batches(batches))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < N_BATCHES * BATCH * P * 8 / 2


def test_codes_are_in_a_file_that_vanishes(tmp_path, monkeypatch):
    path, seen = tmp_path / "codes", []
    old = memory.np.memmap

    def mapped(where, **given):
        seen.append((Path(where), given["shape"]))
        return old(where, **given)

    monkeypatch.setattr(memory.np, "memmap", mapped)
    data = Batches(cut(X, Y), codes_path=path)
    check_same(AdaBoostClassifier(calibrate=False, **FEW), data, X, Y)
    assert seen == [(path, (2, 900, 8))]
    check_same(BoostingClassifier(early_stopping=True, **FEW), data, X, Y)
    check_same(AdaBoostClassifier(**FEW), data, X, Y)
    assert list(tmp_path.iterdir()) == []


def test_a_file_of_codes_that_exists_is_not_written_to(tmp_path):
    path = tmp_path / "codes"
    path.write_text("mine")
    with pytest.raises(FileExistsError, match="codes_path must be a file that does not exist"):
        AdaBoostClassifier().fit(Batches(cut(X, Y), codes_path=path))
    assert path.read_text() == "mine"


def test_a_folder_that_does_not_exist(tmp_path):
    data = Batches(cut(X, Y), codes_path=tmp_path / "nowhere" / "codes")
    with pytest.raises(FileNotFoundError, match="codes_path must be in a folder that exists"):
        AdaBoostClassifier().fit(data)


def test_a_full_disk_is_an_error(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(memory.os, "posix_fallocate", full)
    with pytest.raises(OSError, match="codes_path needs 14,400 bytes: No space left"):
        AdaBoostClassifier().fit(Batches(cut(X, Y), codes_path=tmp_path / "codes"))
    assert list(tmp_path.iterdir()) == []


def test_a_system_that_cannot_remove_a_mapped_file(tmp_path, monkeypatch):
    """Windows: the file goes with the array, and another one has another name."""
    path = tmp_path / "codes"
    codes = memory.Codebook(path)

    def refuse(_):
        raise PermissionError("in use")

    monkeypatch.setattr(memory.os, "unlink", refuse)
    first, second = (codes((2, 3), np.uint8) for _ in range(2))
    monkeypatch.undo()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["codes", "codes.1"]
    del first, second
    assert list(tmp_path.iterdir()) == []


def test_progress_has_a_bar_for_each_pass(capsys):
    AdaBoostClassifier(calibrate=False, **FEW).fit(Batches(cut(X, Y), progress=True))
    lines = capsys.readouterr().err.splitlines()
    assert [line.split()[0] for line in lines] == ["labels", "edges", "codes"]
    assert all(line.endswith("row 900/900") for line in lines)
