"""A loss from plain functions is a loss like the others."""

from __future__ import annotations

from dataclasses import replace

import array_api_compat
import numpy as np
import pytest

from ensemble_gpu.losses import CustomLoss, Logistic, Poisson, Squared
from tests.losses.cases import rows_of, some_targets


def cauchy(y, F):
    return array_api_compat.array_namespace(F).log1p((F - y) * (F - y))


def cauchy_gradient(y, F):
    r = F - y
    return 2.0 * r / (1.0 + r * r)


def test_the_functions_are_the_methods():
    loss = CustomLoss(cauchy, cauchy_gradient)
    y, F = rows_of(loss).y, rows_of(loss).F
    np.testing.assert_array_equal(loss.value(y, F), np.log1p((F - y) ** 2))
    g, h = loss.derivatives(y, F)
    np.testing.assert_array_equal(g, cauchy_gradient(y, F))
    np.testing.assert_array_equal(h, 1.0)


def test_without_a_second_derivative_it_says_so_and_stays_so():
    for loss in (CustomLoss(cauchy, cauchy_gradient),
                 replace(CustomLoss(cauchy, cauchy_gradient), exp=np.exp)):  # fmt: skip
        assert not loss.has_hessian
        with pytest.raises(NotImplementedError, match="no second derivative"):
            loss.hessian(np.zeros(1), np.zeros(1))
    assert CustomLoss(cauchy, cauchy_gradient, lambda y, F: 2.0 + 0.0 * F).has_hessian


@pytest.mark.parametrize("known", [Logistic(), Squared(), Poisson()], ids=lambda loss: loss.name)
@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
def test_the_functions_of_a_known_loss_give_its_constant_and_link(known, weighted):
    loss = CustomLoss(
        known.value, known.gradient, known.hessian, task=known.task, link_name=known.link_name
    )
    y, weights = some_targets(known)
    weights = weights if weighted else None
    expected = known.best_constant(y, weights)
    np.testing.assert_allclose(loss.best_constant(y, weights), expected, rtol=1e-12)
    np.testing.assert_array_equal(loss.inverse_link(expected), known.inverse_link(expected))


def test_one_class_only_gives_a_bounded_constant():
    known = Logistic()
    loss = CustomLoss(known.value, known.gradient, task="classification")
    assert loss.link_name == "logistic"
    assert loss.best_constant(np.ones(3), None)[0] == 36.0
    assert loss.best_constant(-np.ones(3), None)[0] == -36.0


def test_a_constant_of_a_loss_that_is_not_convex_is_where_the_gradient_vanishes():
    loss = CustomLoss(cauchy, cauchy_gradient)
    y = np.concatenate([np.random.default_rng(0).normal(size=50), [400.0, 500.0]])
    c = loss.best_constant(y, None)
    assert abs(np.mean(cauchy_gradient(y, c))) < 1e-12
    assert abs(c[0]) < 0.5


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        ({"value": 1.0}, TypeError, r"value must be a function of \(y, F\); got 1.0"),
        ({"hessian": "no"}, TypeError, r"hessian must be a function of \(y, F\); got 'no'"),
        ({"task": "ranking"}, ValueError, "task must be .*'regression'; got 'ranking'"),
        ({"link_name": "logistic"}, ValueError, "link_name must be one of 'identity', 'log' for"),
    ],
)
def test_wrong_arguments_are_named(arguments, kind, message):
    with pytest.raises(kind, match=message):
        CustomLoss(**{"value": cauchy, "gradient": cauchy_gradient, **arguments})


def test_targets_of_two_classes_are_checked():
    loss = CustomLoss(cauchy, cauchy_gradient, task="classification", name="mine")
    loss.check_target(np.array([-1.0, 1.0]))
    with pytest.raises(ValueError, match=r"y must hold -1 and \+1 for loss 'mine'"):
        loss.check_target(np.array([0.0, 1.0]))
