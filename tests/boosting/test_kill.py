"""A process that is killed with SIGKILL while it fits: the resumed fit is the whole one."""

from __future__ import annotations

import random

import pytest

from bench.kills import LONGEST, kill, resumed_and_whole

FAST = "trees, rows and features drawn"
LONG = ("rescale", "rebuild", "forest")


@pytest.mark.slow
@pytest.mark.parametrize("name", [FAST, *(pytest.param(n, marks=pytest.mark.long) for n in LONG)])
def test_a_killed_fit_is_resumed(name, tmp_path):
    path = tmp_path / "run.safetensors"
    kill(name, path, random.uniform(0.0, LONGEST))
    _, resumed, whole = resumed_and_whole(name, path)
    assert resumed == whole
