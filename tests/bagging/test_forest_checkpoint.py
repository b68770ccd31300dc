"""Checkpoints of forests: trees that are finished are kept."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from ensemble_gpu import (
    Checkpoint,
    RandomForestClassifier,
    RandomForestRegressor,
    RoundInfo,
    load,
    use_engine,
)
from tests.boosting.replaying import problem

X, Y = problem(3)
NUMBERS = problem(0)[1]
WEIGHTS = np.random.default_rng(1).integers(0, 4, len(Y)).astype(float)


class Interrupted(Exception):
    pass


def stopping(at: int, error: type[BaseException] | None) -> Any:
    def callback(info):
        if info.round == at and error is not None:
            raise error
        return info.round == at

    return callback


FORESTS = {
    "out of bag": (RandomForestClassifier(random_state=0, oob_score=True, max_depth=4), Y),
    "capacities": (RandomForestClassifier(random_state=0, capacity="max_depth"), Y),
    "random thresholds": (RandomForestRegressor(random_state=0, splitter="random"), NUMBERS),
    "a metric of one's own": (
        RandomForestRegressor(random_state=0, oob_score=lambda y, p: 0.5, max_samples=0.6), NUMBERS,
    ),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:oob_score_ is optimistic")
@pytest.mark.filterwarnings("ignore:Some rows have no prediction")
@pytest.mark.parametrize("name", FORESTS)
def test_trees_that_are_missing_are_added_on_another_engine(name, tmp_path):
    estimator, y = FORESTS[name]
    estimator, path = clone(estimator).set_params(n_estimators=9), tmp_path / "f.safetensors"
    callbacks = [stopping(6, Interrupted), Checkpoint(path, every=2, share=None)]
    with pytest.raises(Interrupted):
        clone(estimator).set_params(callbacks=callbacks).fit(X, y, WEIGHTS)
    assert load(path).n_estimators_ == 4
    load(path).predict(X)
    with use_engine("reference"):
        resumed = (
            clone(estimator)
            .set_params(callbacks=[Checkpoint(path)])
            .fit(X, y, WEIGHTS, resume=path)
        )
    whole = clone(estimator).fit(X, y, WEIGHTS)
    assert resumed.model_.fingerprint() == whole.model_.fingerprint()
    for attribute in ("oob_score_", "capacities_"):
        assert getattr(resumed, attribute, None) == getattr(whole, attribute, None)
    assert load(path).model_.fingerprint() == whole.model_.fingerprint()
    fewer = clone(estimator).set_params(n_estimators=3).fit(X, y, WEIGHTS, resume=path)
    assert fewer.model_.fingerprint() == whole.model_.first(3).fingerprint()


def test_ctrl_c_keeps_the_finished_trees(tmp_path):
    path = tmp_path / "f.safetensors"
    estimator = RandomForestRegressor(8, random_state=0, n_jobs=1)
    callbacks = [stopping(5, KeyboardInterrupt), Checkpoint(path)]
    with pytest.raises(KeyboardInterrupt):
        clone(estimator).set_params(callbacks=callbacks).fit(X, NUMBERS)
    assert load(path).n_estimators_ == 5
    resumed = clone(estimator).fit(X, NUMBERS, resume=path)
    assert resumed.model_.fingerprint() == estimator.fit(X, NUMBERS).model_.fingerprint()


def test_the_error_names_what_differs(tmp_path):
    path = tmp_path / "f.safetensors"
    estimator = RandomForestClassifier(3, random_state=0, max_depth=2)
    clone(estimator).set_params(callbacks=[Checkpoint(path)]).fit(X, Y)
    with pytest.raises(ValueError, match="max_depth was 2 and is 3"):
        clone(estimator).set_params(max_depth=3).fit(X, Y, resume=path)
    other = X.copy()
    other[7, 3] = 55.0
    with pytest.raises(ValueError, match="what differs: feature 3 of X"):
        clone(estimator).fit(other, Y, resume=path)
    with pytest.raises(ValueError, match="what differs: sample_weight"):
        clone(estimator).fit(X, Y, WEIGHTS, resume=path)


def test_callbacks_see_every_tree_and_may_end_the_fit():
    seen: list[RoundInfo] = []
    forest = RandomForestRegressor(
        9, random_state=0, n_jobs=1, callbacks=[seen.append, stopping(4, None)]
    ).fit(X, NUMBERS)
    whole = RandomForestRegressor(9, random_state=0).fit(X, NUMBERS)
    assert [(info.round, info.n_rounds) for info in seen] == [(k, 9) for k in range(1, 5)]
    assert seen[0].feature == int(whole.model_.nodes.feature[0])
    assert forest.model_.fingerprint() == whole.model_.first(4).fingerprint()
    with pytest.raises(TypeError, match="callbacks must be None or a list of callables; got 7"):
        RandomForestRegressor(callbacks=[7]).fit(X, NUMBERS)
