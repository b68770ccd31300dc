"""The penalised hinge: support vector machines, linear programmes, a kink that is rounded."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog
from sklearn.svm import SVC

from ensemble_gpu import LinearClassifier
from ensemble_gpu.linear.hinge import RoundedHinge
from ensemble_gpu.losses import Hinge
from tests.linear.test_classifier import LABELS, W, X
from tests.places import DEVICE

SIGNS = 2.0 * LABELS[2] - 1.0


def risk(coef: np.ndarray, intercept: float, l1: float = 0.0, l2: float = 0.0) -> float:
    short = np.maximum(1.0 - SIGNS * (X @ coef + intercept), 0.0)
    return float(short.sum() + l1 * np.abs(coef).sum() + l2 * (coef**2).sum())


def test_the_rounded_hinge_lies_below_the_hinge_by_half_of_mu_at_most():
    F = np.linspace(-3.0, 3.0, 2001)
    y = np.ones_like(F)
    rounded = RoundedHinge(mu=0.25)
    gap = Hinge().value(y, F) - rounded.value(y, F)
    assert gap.min() >= -1e-15
    assert gap.max() == pytest.approx(0.125)
    g, h = rounded.derivatives(y, F)
    step = F[1] - F[0]
    slopes = np.gradient(rounded.value(y, F), step)
    np.testing.assert_allclose(g[1:-1], slopes[1:-1], atol=2.0 * step * rounded.curvature)
    assert set(np.unique(h)) == {0.0, 4.0}


@pytest.mark.parametrize("C", [0.1, 1.0, 10.0])
def test_with_an_l2_norm_it_is_a_support_vector_machine(C):
    theirs = SVC(kernel="linear", C=C, tol=1e-8).fit(X, LABELS[2])
    ours = LinearClassifier("hinge", l2=0.5 / C).fit(X, LABELS[2])
    assert ours.converged_
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-3)
    least = risk(theirs.coef_[0], theirs.intercept_[0], l2=0.5 / C)
    assert risk(ours.coef_[0], ours.intercept_[0], l2=0.5 / C) <= least * (1.0 + 1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("l1", [1.0, 10.0])
def test_with_an_l1_norm_it_is_near_the_linear_programme(l1):
    n, p = X.shape
    costs = np.concatenate([np.full(2 * p, l1), [0.0], np.ones(n)])
    rows = np.concatenate([-SIGNS[:, None] * np.column_stack([X, -X, np.ones(n)]), -np.eye(n)], 1)
    bounds = [(0, None)] * (2 * p) + [(None, None)] + [(0, None)] * n
    least = linprog(costs, A_ub=rows, b_ub=-np.ones(n), bounds=bounds).fun
    ours = LinearClassifier("hinge", l1=l1, l2=0.0).fit(X, LABELS[2])
    assert least <= risk(ours.coef_[0], ours.intercept_[0], l1=l1) <= 1.001 * least


def test_each_class_is_told_from_the_rest_and_weights_count():
    every = LinearClassifier("hinge").fit(X, LABELS[3], W)
    assert every.score(X, LABELS[3], W) > 0.75
    for k in range(3):
        alone = LinearClassifier("hinge").fit(X, LABELS[3] == k, W)
        np.testing.assert_allclose(every.coef_[k], alone.coef_[0], atol=1e-5)


@pytest.mark.slow
def test_another_device_gives_the_same_fit():
    here, there = (
        LinearClassifier("hinge").fit(place(X[:50]), place(LABELS[2][:50]))
        for place in (np.asarray, DEVICE.put)
    )
    np.testing.assert_allclose(here.coef_, there.coef_, atol=1e-5)
