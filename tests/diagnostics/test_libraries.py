"""Diagnostics of arrays of torch and JAX are those of NumPy's."""

from __future__ import annotations

import numpy as np
import pytest

from ensemble_gpu import AdaBoostClassifier, BoostingRegressor
from ensemble_gpu.diagnostics import bias_variance, margins, rademacher_complexity, report
from ensemble_gpu.losses import excess_error_bound, minimiser, optimal_risk, psi, wrong_side_risk

pytestmark = pytest.mark.interop


def test_risks_are_arrays_of_the_library(library):
    eta = np.linspace(0.0, 1.0, 9)
    for function in (optimal_risk, wrong_side_risk, minimiser, psi, excess_error_bound):
        found = function("exponential", library.put(eta))
        library.check(found, "float64")
        np.testing.assert_allclose(library.host(found), function("exponential", eta))


def test_reports_margins_and_replicates_are_the_same(library):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    y = (X[:, 0] + rng.normal(size=80) > 0.0).astype(np.int64)
    A, b = library.put(X), library.put(y)
    model = AdaBoostClassifier(variant="discrete", n_estimators=6).fit(X, y)
    found = margins(model, A, b)
    library.check(found, "float64")
    np.testing.assert_array_equal(library.host(found), margins(model, X, y))
    here, there = report(model, X, y).rounds, report(model, A, b).rounds
    for name, column in here.columns.items():
        np.testing.assert_array_equal(there.columns[name], column)
    stumps = BoostingRegressor(n_estimators=3, max_depth=1, learning_rate=0.5)
    parts = [bias_variance(stumps, *rows, n_replicates=3) for rows in ((X, y), (A, b))]
    np.testing.assert_allclose(parts[0].error, parts[1].error)
    signs = [rademacher_complexity(rows, n_signs=4).samples for rows in (X, A)]
    np.testing.assert_array_equal(*signs)
