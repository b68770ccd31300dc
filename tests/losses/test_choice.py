"""Names, instances, errors; losses are values: frozen, comparable, picklable."""

from __future__ import annotations

import pickle
from copy import deepcopy
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest

from ensemble_gpu.losses import (
    CLASSIFICATION,
    CLASSIFICATION_ALIASES,
    REGRESSION,
    REGRESSION_ALIASES,
    Absolute,
    Exponential,
    Huber,
    Logistic,
    LogitBoost,
    Multinomial,
    Quantile,
    Squared,
    SquaredMargin,
    classification_loss,
    for_classes,
    regression_loss,
)
from tests.losses.cases import ALL, CUSTOM


def test_names_are_those_of_the_losses():
    for table, task in ((CLASSIFICATION, "classification"), (REGRESSION, "regression")):
        for name, loss in table.items():
            assert (loss.name, loss.task) == (name, task)


def test_a_name_gives_its_loss_and_an_instance_itself():
    assert classification_loss("squared", 2) == SquaredMargin()
    assert regression_loss("squared") == Squared()
    for loss in (Huber(3.0), CUSTOM):
        assert regression_loss(loss) is loss
    loss = Exponential()
    assert classification_loss(loss, 2) is loss


def test_names_of_scikit_learn_and_lightgbm_are_aliases():
    for name in ("log_loss", "binary", "multiclass", "softmax"):
        assert classification_loss(name, 2) == Logistic()
        assert classification_loss(name, 3) == Multinomial(3)
    for name in ("squared_error", "l2", "mse", "regression"):
        assert regression_loss(name) == Squared()
    for name in ("absolute_error", "l1", "mae"):
        assert regression_loss(name) == Absolute()


@pytest.mark.parametrize(
    ("resolve", "names", "aliases"),
    [
        (lambda loss: classification_loss(loss, 2), CLASSIFICATION, CLASSIFICATION_ALIASES),
        (regression_loss, REGRESSION, REGRESSION_ALIASES),
    ],
    ids=["classification", "regression"],
)
def test_the_message_of_an_unknown_loss_lists_all_names_and_aliases(resolve, names, aliases):
    assert not set(names) & set(aliases)
    with pytest.raises(ValueError, match="got 'nonsense'") as caught:
        resolve("nonsense")
    for name in [*names, *aliases]:
        assert repr(name) in str(caught.value)


def test_logistic_losses_of_several_classes_are_multinomial():
    for loss in (Logistic(exp=np.exp), LogitBoost(exp=np.exp), Multinomial(exp=np.exp)):
        found = for_classes(loss, 4)
        assert found == Multinomial(4)
        assert found.exp is np.exp
    assert classification_loss("logistic", 3) == Multinomial(3)
    assert classification_loss("logistic", 2) == Logistic()
    assert for_classes(LogitBoost(), 2) == LogitBoost()


def test_multinomial_of_two_classes_is_logistic_in_the_difference_of_outputs():
    F = np.random.default_rng(0).normal(size=(9, 2))
    y = np.arange(9) % 2
    pair = for_classes(Multinomial(), 2)
    assert pair == Logistic()
    one = pair.value(2.0 * y - 1.0, F[:, 1] - F[:, 0])
    np.testing.assert_allclose(one, Multinomial().value(y, F), rtol=1e-13)


def test_other_losses_of_the_margin_stay_for_several_classes():
    for name in set(CLASSIFICATION) - {"logistic"}:
        assert classification_loss(name, 5) == CLASSIFICATION[name]()


@pytest.mark.parametrize(
    ("loss", "kind", "message"),
    [
        ("huber", ValueError, "loss must be one of 'exponential', .*got 'huber'"),
        (Huber(), ValueError, r"loss must be .*got Huber\(delta=1.0\), which is for regression"),
        (CUSTOM, ValueError, "loss must be .*which is for regression"),
        (Logistic, TypeError, "loss must be one of .*a Loss for classification; got <class"),
        (None, TypeError, "loss must be .*got None"),
        (Multinomial(3), ValueError, r"loss is Multinomial\(n_classes=3\), but y holds 2"),
    ],
)
def test_wrong_losses_of_a_classifier_are_named(loss, kind, message):
    with pytest.raises(kind, match=message):
        classification_loss(loss, 2)


@pytest.mark.parametrize(
    ("loss", "kind", "message"),
    [
        ("logistic", ValueError, "loss must be one of 'squared', .*got 'logistic'"),
        (Logistic(), ValueError, r"loss must be .*got Logistic\(\), which is for classification"),
        (1.0, TypeError, "loss must be .*a Loss for regression; got 1.0"),
    ],
)
def test_wrong_losses_of_a_regressor_are_named(loss, kind, message):
    with pytest.raises(kind, match=message):
        regression_loss(loss)


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (lambda: Huber(0.0), ValueError, "delta must be a finite number > 0; got 0.0"),
        (lambda: Huber("1"), TypeError, "delta must be a number > 0; got '1'"),
        (lambda: Quantile(1.0), ValueError, r"quantile must be a number in \(0, 1\); got 1.0"),
        (lambda: Quantile(None), TypeError, r"quantile must be a number in \(0, 1\); got None"),
    ],
)
def test_wrong_parameters_are_named(make, kind, message):
    with pytest.raises(kind, match=message):
        make()


@pytest.mark.parametrize("loss", [*ALL, CUSTOM], ids=lambda loss: loss.name)
def test_losses_are_values(loss):
    with pytest.raises(FrozenInstanceError):
        loss.exp = np.exp
    for copy in (pickle.loads(pickle.dumps(loss)), deepcopy(loss), replace(loss, exp=np.exp)):
        assert copy == loss
        assert hash(copy) == hash(loss)
    assert Huber(1.0) != Huber(2.0)
    assert Squared() != SquaredMargin()
