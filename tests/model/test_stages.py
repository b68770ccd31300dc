"""Where staged predictions stop: one rule for all models."""

from __future__ import annotations

import numpy as np
import pytest

from ensemble_gpu.model.stages import joined_ends, stages


def test_without_rounds_every_round_is_a_stage():
    assert stages(None, 3) == [(0, 1), (1, 2), (2, 3)]
    assert stages(None, 0) == []


def test_a_stage_goes_on_where_the_last_one_ended():
    assert stages([0, 2, 2, 5], 5) == [(0, 0), (0, 2), (2, 2), (2, 5)]
    assert stages(np.array([1, 4]), 5) == [(0, 1), (1, 4)]


@pytest.mark.parametrize(
    ("rounds", "error", "says"),
    [
        ([3, 2], ValueError, "ascend from 0 to 5, the rounds of the model; got 2 after 3"),
        ([6], ValueError, "ascend from 0 to 5, the rounds of the model; got 6 after 0"),
        ([-1], ValueError, "got -1 after 0"),
        ([1.0], TypeError, r"must hold integers; got 1\.0"),
        ([True], TypeError, "must hold integers; got True"),
        (4, TypeError, "must be a list of integers; got 4"),
    ],
    ids=repr,
)
def test_other_rounds_are_refused(rounds, error, says):
    with pytest.raises(error, match=says):
        stages(rounds, 5)


def test_rounds_that_are_joined_end_where_the_last_of_them_ends():
    assert joined_ends(None, np.array([2, 3])).tolist() == [2, 3]
    assert joined_ends(np.array([2, 5, 9, 10]), np.array([1, 3, 4])).tolist() == [2, 9, 10]
    assert joined_ends(np.array([2]), np.zeros(0, dtype=np.int64)).tolist() == []
