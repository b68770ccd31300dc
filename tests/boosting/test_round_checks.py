"""Rounds of a file that do not fit are refused before compiled code sees them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ensemble_gpu import AdaBoostClassifier, BoostingClassifier, BoostingRegressor, Checkpoint
from ensemble_gpu.boosting.rescale import WeightTrail
from ensemble_gpu.boosting.round_records import read_rounds, written_rounds
from ensemble_gpu.learners import Pool
from ensemble_gpu.saving.runs import read_run, write_run
from tests.boosters import plain
from tests.boosting.replaying import problem

X, Y = problem(2)
NUMBERS = problem(0)[1]
FITS = {
    "stumps": (AdaBoostClassifier(calibrate=False), (X, Y)),
    "gram": (BoostingRegressor(**plain()), (X, NUMBERS)),
    "trees": (BoostingClassifier(**plain(max_depth=2)), (X, Y)),
    "bags": (BoostingRegressor(**plain(n_bags=2)), (X, NUMBERS)),
    "pool": (
        BoostingRegressor(estimator=Pool(), learning_rate=0.1),
        (np.sign(np.nan_to_num(X)), NUMBERS),
    ),
}


def with_nodes(tree: Any, **arrays: Any) -> Any:
    return replace(tree, grown=replace(tree.grown, **arrays))


def at(array: np.ndarray, k: int, value: Any) -> np.ndarray:
    out = array.copy()
    out[k] = value
    return out


CHANGES: dict[str, tuple[str, Any]] = {
    "a feature that X does not have": ("stumps", lambda r: r._replace(feature=5)),
    "a negative feature": ("stumps", lambda r: r._replace(feature=-1)),
    "a bin too many": ("stumps", lambda r: r._replace(bin=2**31)),
    "a leaf too many": ("stumps", lambda r: r._replace(missing_leaf=3)),
    "values of other outputs": ("stumps", lambda r: r._replace(values=np.zeros((2, 3)))),
    "totals of no group": (
        "stumps",
        lambda r: r._replace(trail=WeightTrail(np.zeros(0, np.int64), np.zeros(0, np.int64))),
    ),
    "a trail of another strategy": ("stumps", lambda r: r._replace(trail=None)),
    "units of other leaves": (
        "gram", lambda r: r._replace(trail=r.trail._replace(units=np.zeros((1, 2), np.int64))),
    ),
    "a tree of other features": (
        "trees", lambda r: with_nodes(r, feature=at(r.grown.feature, 0, 99)),
    ),
    "a tree with a cycle": ("trees", lambda r: with_nodes(r, left=at(r.grown.left, 0, 0))),
    "a child that there is not": (
        "trees", lambda r: with_nodes(r, left=at(r.grown.left, 0, len(r.grown.left) - 1)),
    ),
    "a bin of a tree": ("trees", lambda r: with_nodes(r, bin=at(r.grown.bin, 0, 9999))),
    "a set of categories": ("trees", lambda r: with_nodes(r, bin=at(r.grown.bin, 0, -1))),
    "arrays of several lengths": ("trees", lambda r: with_nodes(r, left=r.grown.left[:-1])),
    "values of fewer nodes": ("trees", lambda r: replace(r, values=r.values[:, :-1])),
    "a round of one bag": ("bags", lambda r: replace(r, rounds=r.rounds[:1])),
    "a member that there is not": ("pool", lambda r: replace(r, key=5)),
    "a round of another learner": ("pool", lambda r: replace(r, key="all")),
}  # fmt: skip


@pytest.fixture(scope="module")
def files(tmp_path_factory: Any) -> dict[str, Any]:
    """A checkpoint of each fit."""
    folder, found = tmp_path_factory.mktemp("rounds"), {}
    for name, (estimator, data) in FITS.items():
        found[name] = folder / f"{name}.safetensors"
        estimator.set_params(n_estimators=3, callbacks=[Checkpoint(found[name])]).fit(*data)
        estimator.set_params(callbacks=None)
    return found


@pytest.mark.parametrize("name", CHANGES)
def test_a_round_that_does_not_fit_is_refused(name, files, tmp_path):
    fit, change = CHANGES[name]
    estimator, data = FITS[fit]
    told, arrays = read_run(files[fit])
    rounds = read_rounds(told["rounds"], arrays)
    rounds[1] = change(rounds[1])
    told["rounds"], own = written_rounds(rounds)
    path = tmp_path / "changed.safetensors"
    others = {key: array for key, array in arrays.items() if not key.startswith("rounds")}
    write_run(path, estimator, told, others | own)
    with pytest.raises(ValueError, match="of this fit"):
        estimator.fit(*data, resume=path)


def test_rounds_come_back_as_they_were(files):
    told, arrays = read_run(files["trees"])
    rounds = read_rounds(told["rounds"], arrays)
    again, own = written_rounds(rounds)
    assert again == told["rounds"]
    assert {name: array.tobytes() for name, array in own.items()} == {
        name: array.tobytes() for name, array in arrays.items() if name.startswith("rounds")
    }
