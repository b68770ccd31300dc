"""Where metrics are tested: NumPy, array-api-strict's second device, and torch (interop)."""

from __future__ import annotations

import pytest

from tests.libraries import Torch
from tests.places import PLACES

WHERE = [
    *(pytest.param(place, id=str(place)) for place in PLACES),
    pytest.param(Torch(), id="torch", marks=pytest.mark.interop),
]
