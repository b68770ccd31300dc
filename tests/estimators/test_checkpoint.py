"""When checkpoints are written, and what their parameters may be."""

from __future__ import annotations

import time

import pytest

from ensemble_gpu import Checkpoint
from ensemble_gpu.estimators.checkpoint import Checkpoints


def written(tmp_path, n_rounds, cost=0.0, earlier=0, **parameters):
    """After which of some rounds a file is written."""
    at = []

    def write(path, n):
        time.sleep(cost)
        at.append(n)

    checkpoints = Checkpoints([Checkpoint(tmp_path / "run.safetensors", **parameters)], write)
    checkpoints.begin(earlier)
    for n in range(1, n_rounds + 1):
        checkpoints(n)
    return at, checkpoints


def test_a_file_is_written_after_so_many_rounds(tmp_path):
    assert written(tmp_path, 10, every=3, share=None)[0] == [3, 6, 9]
    assert written(tmp_path, 10, every=3, share=None, earlier=5)[0] == [8]


def test_a_file_is_written_after_so_many_seconds(tmp_path):
    assert written(tmp_path, 10, every=None, seconds=1e-9, share=None)[0] == list(range(1, 11))
    assert written(tmp_path, 10, every=None, seconds=None)[0] == []


def test_writing_takes_a_share_of_the_time(tmp_path):
    at, _ = written(tmp_path, 200, cost=0.002, every=1, share=0.01)
    assert at == [1]  # the next would be due after a fifth of a second


def test_an_interrupt_writes_what_is_not_in_the_file(tmp_path):
    at, checkpoints = written(tmp_path, 7, every=5, share=None)
    checkpoints.interrupted()
    assert at == [5, 7]
    checkpoints.interrupted()
    assert at == [5, 7]


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"path": "run.json"}, ValueError, "path must be a name that ends with .safetensors"),
        ({"path": None}, ValueError, "path must be a name"),
        ({"path": "a.safetensors", "every": 0}, ValueError, "every must be an integer >= 1"),
        ({"path": "a.safetensors", "seconds": 0.0}, ValueError, "seconds must be"),
        ({"path": "a.safetensors", "share": 2.0}, ValueError, r"share must be .* in \(0, 1\]"),
    ],
)
def test_bad_parameters_are_refused(parameters, error, message):
    with pytest.raises(error, match=message):
        Checkpoint(**parameters)


def test_a_folder_that_does_not_exist_is_refused_when_the_fit_begins():
    with pytest.raises(FileNotFoundError, match="a folder that does not exist"):
        Checkpoints([Checkpoint("no/such/run.safetensors")], lambda path, n: None)
