"""What all three models have in common: immutable, equal by content, the same bytes everywhere."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

from ensemble_gpu.model.additive import AdditiveModel, Rounds
from ensemble_gpu.model.base import canonical_bytes
from ensemble_gpu.model.committee import Committee, Voice
from ensemble_gpu.model.forest import Forest, Nodes

LABELS = np.array([0, 1])


class Learner:
    """A fitted classifier of another package: it has classes and no fingerprint."""

    classes_ = LABELS

    def predict(self, X: Any) -> np.ndarray:
        return (X[:, 0] > 0.0).astype(np.int64)


class OwnLearner(Learner):
    """A fitted classifier whose model has a fingerprint."""

    def __init__(self, model: Any) -> None:
        self.model_ = model


def additive() -> AdditiveModel:
    values = np.array([[[-0.5, 0.25, 0.0]], [[1.0, -1.0, 0.0]]])
    rounds = Rounds(
        np.array([0, 2]), np.array([0.5, -1.25]), np.array([2, 0]), values, np.array([1.0, 0.5]),
        np.array([0.125, 0.25]),
    )  # fmt: skip
    return AdditiveModel(rounds, 3, np.array([-0.0]))


def forest() -> Forest:
    nodes = Nodes(
        np.array([1, -1, -1]), np.array([0.5, np.nan, np.nan]), np.array([True, False, False]),
        np.array([1, -1, -1]), np.array([2, -1, -1]), np.array([-1, -1, -1]),
        np.array([[0.0], [-0.5], [0.5]]), np.array([0.25, -0.0, 0.0]), np.array([4, 2, 2]),
        np.array([4.0, 2.0, 2.0]),
    )  # fmt: skip
    return Forest(nodes, np.array([0]), 2, categories={0: np.array([1.0, 3.0])})


def committee() -> Committee:
    learners = OwnLearner(forest()), OwnLearner(additive())
    return Committee(learners, np.array([0.75, 0.5]), voice=Voice(2, None), n_features=3)


def foreign_committee() -> Committee:
    return Committee([Learner()], np.array([0.75]), voice=Voice(2, None), n_features=3)


# From the commit before the models had a base in common.
FINGERPRINTS = {
    additive: "a23d59fb38cd42b6ed62b123069dd0d1fc469ee2562b006f64a20dbd07715536",
    forest: "8bdb023af40ae0cc6e5d1f4e4180301ab396d6023eeaf1c363d9416174ae4b3f",
    committee: "da92e9d352801a541677290643b801852ac09e04dc4e60d701a5e0a49192f492",
}
each_model = pytest.mark.parametrize("make", FINGERPRINTS)
each_model_or_foreign = pytest.mark.parametrize("make", [*FINGERPRINTS, foreign_committee])


@each_model
def test_the_fingerprint_is_the_one_of_earlier_versions(make):
    assert make().fingerprint() == FINGERPRINTS[make]


@each_model_or_foreign
def test_attributes_can_neither_be_set_nor_deleted(make):
    model = make()
    name = type(model).__name__
    with pytest.raises(AttributeError, match=f"{name} is immutable; cannot set 'n_features'"):
        model.n_features = 7
    with pytest.raises(AttributeError, match=f"{name} is immutable; cannot set 'anything'"):
        model.anything = 7
    with pytest.raises(AttributeError, match=f"{name} is immutable; cannot delete 'n_features'"):
        del model.n_features
    assert model.n_features == make().n_features


@each_model
def test_models_of_the_same_content_are_equal_and_have_one_hash(make):
    assert make() == make()
    assert hash(make()) == hash(make())
    assert len({make(), make()}) == 1


def test_models_of_different_kinds_and_other_things_are_not_equal():
    models = [additive(), forest(), committee(), foreign_committee(), "a string"]
    for i, one in enumerate(models):
        assert [one == other for other in models] == [i == j for j in range(len(models))]


def test_a_committee_without_fingerprint_is_equal_to_itself_alone():
    one, other = foreign_committee(), foreign_committee()
    same = one
    with pytest.raises(TypeError, match="Learner has no fingerprint"):
        one.fingerprint()
    assert one == same
    assert one != other
    assert len({one, other, one}) == 2


@each_model
@pytest.mark.parametrize(
    "copied", [lambda m: pickle.loads(pickle.dumps(m)), copy.copy, copy.deepcopy],
    ids=["pickle", "copy", "deepcopy"],
)  # fmt: skip
def test_copies_are_equal_and_immutable(make, copied):
    model = make()
    again = copied(model)
    assert again == model
    assert repr(again) == repr(model)
    with pytest.raises(AttributeError, match="immutable"):
        again.n_features = 7


@each_model_or_foreign
def test_a_negative_number_of_rounds_is_refused(make):
    with pytest.raises(ValueError, match=r"must be an integer >= 0; got -1"):
        make().first(-1)


def test_a_committee_without_rounds_says_so():
    text = "Committee(no learners; 3 features, 1 output(s))"
    assert repr(foreign_committee().first(0)) == text


GRID = np.arange(6.0).reshape(2, 3)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (GRID, np.asfortranarray(GRID)),
        (GRID, GRID[::-1][::-1]),
        (GRID, GRID.astype(">f8")),
        (GRID, GRID.astype(np.float32)),
        (np.array([0.0, np.nan]), np.array([-0.0, -np.nan])),
        (np.array([1, 0], dtype=np.int32), np.array([True, False])),
        (np.array([1, 0]), [1, 0]),
        (np.array([2**63], dtype=np.uint64), np.array([2**63], dtype=">u8")),
    ],
    ids=["order", "strides", "bytes", "precision", "zero and NaN", "integers", "list", "unsigned"],
)
def test_equal_arrays_have_equal_bytes(one, other):
    assert canonical_bytes(one) == canonical_bytes(other)


def test_bytes_are_little_endian_words_of_eight():
    assert canonical_bytes([1.0]) == bytes.fromhex("000000000000f03f")
    assert canonical_bytes([-2]) == bytes.fromhex("feffffffffffffff")
    assert canonical_bytes(np.array([2**64 - 2], np.uint64)) == bytes.fromhex("feffffffffffffff")
