"""AdditiveModel: immutable, hashable by content, one table a feature."""

from __future__ import annotations

import pickle
from dataclasses import fields, replace

import numpy as np
import pytest

from ensemble_gpu import AdditiveModel, BoostingClassifier, BoostingRegressor, use_engine
from ensemble_gpu.model import additive
from ensemble_gpu.model.additive import Rounds
from tests.datasets import fit, random_data
from tests.places import STRICT, Place

VARIANTS = ["real", "discrete", "gentle"]


def model_of(n_classes: int = 2, variant: str = "real", missing: str = "abstain") -> AdditiveModel:
    data = random_data(n_classes).with_missing()
    return fit(data, variant=variant, missing=missing, n_estimators=25).model_


@pytest.fixture(scope="module")
def model() -> AdditiveModel:
    return model_of()


def test_attributes_cannot_be_set(model):
    for name in ("rounds", "n_features", "intercept", "tables", "anything"):
        with pytest.raises(AttributeError, match="immutable"):
            setattr(model, name, None)


def test_attributes_cannot_be_deleted():
    model = model_of()
    with pytest.raises(AttributeError):
        del model.intercept


@pytest.mark.parametrize("copied", [False, True], ids=["fitted", "unpickled"])
def test_arrays_cannot_be_written(model, copied):
    model = pickle.loads(pickle.dumps(model)) if copied else model
    arrays = [model.intercept, *vars(model.rounds).values()]
    for table in model.tables.values():
        arrays += vars(table).values()
    for array in arrays:
        assert not array.flags.writeable


def test_tables_cannot_be_replaced():
    model = model_of()
    with pytest.raises(TypeError):
        model.tables[0] = None


def test_repr_tells_rounds_features_and_fingerprint(model):
    text = repr(model)
    assert text.startswith("AdditiveModel(25 rounds on ")
    assert "of 6 features" in text
    assert model.fingerprint()[:12] in text


def test_equal_models_have_equal_hashes_and_fingerprints(model):
    again = model_of()
    assert again is not model
    assert again == model
    assert hash(again) == hash(model)
    assert again.fingerprint() == model.fingerprint()
    assert model != "another thing"
    assert model_of(variant="gentle") != model


def _nudged(rounds: Rounds, name: str) -> Rounds:
    array = getattr(rounds, name).copy()
    if array.dtype.kind == "f":
        array.flat[4] = np.nextafter(array.flat[4], np.inf)
    else:
        array.flat[4] = (array.flat[4] + 1) % 3
    return replace(rounds, **{name: array})


@pytest.mark.parametrize("name", [field.name for field in fields(Rounds)])
def test_the_fingerprint_changes_with_any_value_of_a_round(model, name):
    changed = AdditiveModel(_nudged(model.rounds, name), 6, model.intercept)
    assert changed.fingerprint() != model.fingerprint()


def test_the_fingerprint_changes_with_intercept_width_and_length(model):
    found = {
        model.fingerprint(),
        AdditiveModel(model.rounds, 6, model.intercept + 1e-300).fingerprint(),
        AdditiveModel(model.rounds, 7, model.intercept).fingerprint(),
        model.first(24).fingerprint(),
    }
    assert len(found) == 4


def test_the_fingerprint_is_a_sha256_in_hexadecimal(model):
    assert len(model.fingerprint()) == 64
    int(model.fingerprint(), 16)


def test_the_fingerprint_does_not_see_the_sign_of_zero(model):
    values = np.where(model.rounds.values == 0.0, -0.0, model.rounds.values)
    changed = AdditiveModel(replace(model.rounds, values=values), 6, -model.intercept)
    assert changed.fingerprint() == model.fingerprint()


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("missing", ["abstain", "learn"])
def test_shape_functions_sum_to_the_decision_function(variant, n_classes, missing):
    model = model_of(n_classes, variant, missing)
    X = random_data(n_classes, seed=3).with_missing().X
    total = model.intercept + sum(model.shape_function(f)(X[:, f]) for f in range(6))
    np.testing.assert_allclose(model(X), total, rtol=1e-12, atol=1e-12)


def test_the_shape_function_of_an_unused_feature_is_zero():
    data = random_data()
    data.X[:, 3] = 1.0
    table = fit(data).model_.shape_function(3)
    assert len(table.thresholds) == 0
    np.testing.assert_array_equal(table(np.array([-5.0, np.nan, 5.0])), 0.0)


def test_a_table_is_the_sum_of_its_stumps(model):
    X = random_data(seed=8).with_missing().X
    expected = np.zeros((len(X), 1)) + model.intercept
    rounds = model.rounds
    for t in range(len(rounds)):
        x = X[:, rounds.feature[t]]
        value = np.where(x <= rounds.threshold[t], rounds.values[t, 0, 0], rounds.values[t, 0, 1])
        value[np.isnan(x)] = rounds.values[t, 0, rounds.missing_leaf[t]]
        expected[:, 0] += value
    np.testing.assert_allclose(model(X), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("feature", [-1, 6, 100])
def test_a_feature_out_of_range_is_refused(model, feature):
    with pytest.raises(ValueError, match=f"from 0 to 5; got {feature}"):
        model.shape_function(feature)


def test_a_model_takes_arrays_of_any_namespace_and_device(model, place: Place):
    X = random_data(seed=3).with_missing().X
    found = model(place.put(X))
    place.check(found, "float64")
    np.testing.assert_array_equal(place.host(found), model(X))


def test_a_model_is_evaluated_alike_by_both_engines():
    X = random_data(4, n=3000, seed=3).with_missing().X
    model = model_of(4)
    expected = model(X, n_jobs=1)
    with use_engine("reference"):
        np.testing.assert_array_equal(model(X), expected)
    np.testing.assert_array_equal(model(X, n_jobs=4), expected)


@pytest.mark.parametrize("convert", [np.asfortranarray, lambda X: X[:, ::-1][:, ::-1]])
def test_a_model_takes_any_memory_layout(model, convert):
    X = random_data(seed=3).X
    np.testing.assert_array_equal(model(convert(X)), model(X))


@pytest.mark.parametrize("move", ["numpy", "device"])
def test_a_model_refuses_the_wrong_number_of_columns(model, move):
    X = random_data().X[:, :2]
    with pytest.raises(ValueError, match="6"):
        model(X if move == "numpy" else STRICT[0].put(X))


@pytest.mark.parametrize("n", [0, 1, 10, 25])
def test_first_n_rounds_are_the_model_of_n_rounds(model, n):
    short = model.first(n)
    assert len(short.rounds) == n
    X = random_data(seed=3).X
    stages = [model.intercept + np.zeros((len(X), 1)), *model.staged(X)]
    np.testing.assert_allclose(short(X), stages[n], rtol=1e-12, atol=1e-12)


def test_all_rounds_are_the_model_itself(model):
    assert model.first(25) == model


def test_first_refuses_a_negative_number_of_rounds(model):
    with pytest.raises(ValueError, match="-1"):
        model.first(-1)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_a_pickle_keeps_the_fingerprint_and_the_predictions(n_classes):
    model = model_of(n_classes)
    copy = pickle.loads(pickle.dumps(model))
    assert copy.fingerprint() == model.fingerprint()
    X = random_data(n_classes).X
    np.testing.assert_array_equal(copy(X), model(X))


def test_a_model_that_has_predicted_can_be_pickled():
    model = model_of()
    model(random_data().X)
    assert pickle.loads(pickle.dumps(model)) == model


def test_stages_end_with_the_model(model, place: Place):
    X = random_data(seed=3).with_missing().X
    stages = list(model.staged(place.put(X)))
    assert len(stages) == 25
    place.check(stages[-1], "float64")
    np.testing.assert_allclose(place.host(stages[-1]), model(X), rtol=1e-12, atol=1e-12)


def gradient_model(n_classes: int = 1) -> AdditiveModel:
    """Values that are multiples of one quantum, so that sums are exact in any order."""
    data = random_data(max(2, n_classes)).with_missing()
    if n_classes == 1:
        return (
            BoostingRegressor("huber", n_estimators=25, max_depth=1)
            .fit(data.X, data.X[:, 0])
            .model_
        )
    return (
        BoostingClassifier(n_estimators=25, missing="learn", max_depth=1).fit(data.X, data.y).model_
    )


@pytest.mark.parametrize("n_classes", [1, 2, 4])
def test_chosen_stages_are_those_of_all_stages_bit_for_bit(place: Place, n_classes):
    model, X = gradient_model(n_classes), random_data(seed=3).with_missing().X
    every = [place.host(F) for F in model.staged(place.put(X))]
    rounds = [0, 1, 2, 9, 9, 24, 25]
    chosen = list(model.staged(place.put(X), rounds))
    assert len(chosen) == len(rounds)
    for t, F in zip(rounds, chosen, strict=True):
        place.check(F, "float64")
        expected = every[t - 1] if t else np.zeros_like(every[0]) + model.intercept
        np.testing.assert_array_equal(place.host(F), expected)
    np.testing.assert_array_equal(place.host(chosen[-1]), model(X))


def test_chosen_stages_of_adaboost_are_those_of_the_first_rounds(model):
    X = random_data(seed=3).with_missing().X
    for t, F in zip([3, 25], model.staged(X, [3, 25]), strict=True):
        np.testing.assert_allclose(F, model.first(t)(X), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_stages_together_are_those_one_by_one_bit_for_bit(model, n_classes, monkeypatch):
    """Of AdaBoost too, whose sums of values are rounded."""
    X, rounds = random_data(seed=3).with_missing().X, [3, 7, 7, 8, 12, 20, 25]
    for one in (model, gradient_model(n_classes)):
        monkeypatch.setattr(additive, "MOST_STAGES", 1)
        alone = list(one.staged(X, rounds))
        for most in (2, 16):
            monkeypatch.setattr(additive, "MOST_STAGES", most)
            for F, expected in zip(one.staged(X, rounds), alone, strict=True):
                np.testing.assert_array_equal(F, expected)


@pytest.mark.parametrize("rounds", [range(0, 26, 5), np.array([5, 20]), (7,), []], ids=repr)
def test_chosen_stages_come_in_any_sequence_of_integers(model, rounds):
    X = random_data(seed=3).X
    assert len(list(model.staged(X, rounds))) == len(rounds)


def test_a_stage_that_was_handed_out_does_not_change(model):
    X = random_data(seed=3).X
    stages, copies = [], []
    for F in model.staged(X, [4, 4, 5, 9]):
        stages.append(F)
        copies.append(F.copy())
    for F, copy in zip(stages, copies, strict=True):
        np.testing.assert_array_equal(F, copy)


@pytest.mark.parametrize(
    ("rounds", "error", "says"),
    [
        ([2, 1], ValueError, "rounds must ascend from 0 to 25, .*got 1 after 2"),
        ([26], ValueError, "rounds must ascend from 0 to 25, .*got 26"),
        ([-1], ValueError, "rounds must ascend from 0 to 25, .*got -1"),
        ([2.0], TypeError, r"rounds must hold integers; got 2\.0"),
        ([True], TypeError, "rounds must hold integers; got True"),
        (7, TypeError, "rounds .*7"),
    ],
    ids=repr,
)
def test_bad_rounds_are_named(model, rounds, error, says):
    with pytest.raises(error, match=says):
        list(model.staged(random_data().X, rounds))


def test_bad_rounds_are_refused_before_the_first_stage(model):
    with pytest.raises(ValueError, match="got 1 after 20"):
        next(model.staged(random_data().X, [20, 1]))
