"""Workers whose rows are arrays of torch or JAX."""

from __future__ import annotations

import pytest

from ensemble_gpu import AdaBoostClassifier, BoostingClassifier, RandomForestClassifier
from tests.distributed.teams import team_fit
from tests.distributed.test_same_model import rows

pytestmark = pytest.mark.interop


@pytest.mark.parametrize("make", [
    lambda: AdaBoostClassifier(n_estimators=6, early_stopping=True, random_state=0),
    lambda: BoostingClassifier(n_estimators=4),
    lambda: RandomForestClassifier(n_estimators=3, random_state=0),
])  # fmt: skip
def test_the_model_is_that_of_numpy(library, make):
    X, y, w = rows("2", "whole")
    local = make().fit(X, y, w)
    shared = team_fit(make, X, y, w, put=library.put)
    assert {one.model_.fingerprint() for one in shared} == {local.model_.fingerprint()}
