"""In this room arrays are made and moved: `place` is every namespace and device."""

from __future__ import annotations

import pytest

from tests.places import EVERY_PLACE, Place


@pytest.fixture(params=EVERY_PLACE, ids=str)
def place(request: pytest.FixtureRequest) -> Place:
    return request.param
