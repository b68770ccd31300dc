"""The engine is chosen by device, and can be forced."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import ensemble_gpu
from ensemble_gpu import use_engine
from ensemble_gpu.arrays.namespace import locate
from ensemble_gpu.kernels.select import engine_for
from tests.places import STRICT, Place


def test_host_arrays_go_to_the_cpu_engine():
    assert engine_for(locate(np.zeros(1))).name == "cpu"


@pytest.mark.parametrize("place", STRICT, ids=str)
def test_unknown_devices_go_to_the_reference_engine(place: Place):
    assert engine_for(locate(place.put([0.0]))).name == "reference"


def test_use_engine_ends_with_its_block():
    where = locate(np.zeros(1))
    with use_engine("reference"):
        assert engine_for(where).name == "reference"
        with use_engine("cpu"):
            assert engine_for(where).name == "cpu"
        assert engine_for(where).name == "reference"
    assert engine_for(where).name == "cpu"


def test_use_engine_ends_when_the_block_raises():
    with pytest.raises(KeyError), use_engine("reference"):
        raise KeyError
    assert engine_for(locate(np.zeros(1))).name == "cpu"


def test_an_unknown_engine_is_refused_with_the_names_of_the_known():
    with (
        pytest.raises(ValueError, match=r"'cpu', 'cuda', 'reference'; got 'gpu'"),
        use_engine("gpu"),
    ):
        pass


def test_the_cpu_engine_sees_the_memory_of_the_array_and_cannot_write_it():
    X = np.zeros((3, 2))
    view = engine_for(locate(X)).view(X)
    assert np.shares_memory(view, X)
    assert not view.flags.writeable
    assert X.flags.writeable


def test_engines_say_how_many_work_side_by_side():
    where = locate(np.zeros(1))
    engine = engine_for(where, 3)
    assert (engine.n_workers, engine.single().n_workers) == (3, 1)
    with use_engine("reference"):
        reference = engine_for(where, 3)
    assert reference.n_workers == 1
    assert reference.single() is reference


@pytest.mark.parametrize("place", STRICT, ids=str)
def test_the_reference_engine_takes_arrays_as_they_are(place: Place):
    X = place.put([0.0])
    assert engine_for(locate(X)).view(X) is X


def test_no_algorithm_asks_for_the_name_of_an_engine():
    """It asks the engine for what it needs: where it works, a view, how many work side by side."""
    package = Path(ensemble_gpu.__file__).parent
    rooms = ("estimators", "trees", "bagging", "boosting", "learners", "data", "model")
    for path in (path for room in rooms for path in (package / room).rglob("*.py")):
        assert not re.search(r"engine\.name\s*(==|!=|in)", path.read_text()), path
