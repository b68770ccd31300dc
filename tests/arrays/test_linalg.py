"""Decompositions of a library without the extension linalg are NumPy's, and a warning says so."""

from __future__ import annotations

import numpy as np
import pytest
from array_api_strict import ArrayAPIStrictFlags

from ensemble_gpu import L2BoostRegressor
from ensemble_gpu.arrays.linalg import eigh, solve_linear, svd, trace
from ensemble_gpu.arrays.namespace import locate
from ensemble_gpu.smoothers import KernelRidge
from tests.places import DEVICE

A = np.random.default_rng(0).normal(size=(5, 5))
A = A + A.T


def test_decompositions_are_where_the_arrays_are(place):
    there = place.put(A)
    where = locate(there)
    d, U = eigh(there, where)
    place.check(U, "float64")
    np.testing.assert_allclose(place.host(U) * place.host(d) @ place.host(U).T, A, atol=1e-12)
    U, s, Vt = map(place.host, svd(place.put(A[:, :3]), where))
    np.testing.assert_allclose(U * s @ Vt, A[:, :3], atol=1e-12)
    b = solve_linear(there, place.put(A[:, :1]), where)
    np.testing.assert_allclose(place.host(b)[:, 0], np.eye(5)[0], atol=1e-12)
    assert trace(there, where) == pytest.approx(np.trace(A))


def test_a_library_without_linalg_is_served_by_the_host():
    there = DEVICE.put(A)
    with ArrayAPIStrictFlags(enabled_extensions=()):
        with pytest.warns(RuntimeWarning, match=r"array_api_strict on .* has no linalg.eigh"):
            d, U = eigh(there, locate(there))
        DEVICE.check(d, "float64")
        DEVICE.check(U, "float64")
        with pytest.warns(RuntimeWarning, match="on the host"):
            x = solve_linear(there, there, locate(there))
        DEVICE.check(x, "float64")
        model = L2BoostRegressor(KernelRidge(1.0), criterion=None, n_estimators=3)
        with pytest.warns(RuntimeWarning, match=r"linalg.eigh: it is computed on the host"):
            model.fit(there, DEVICE.put(A[:, 0]))
    own = L2BoostRegressor(KernelRidge(1.0), criterion=None, n_estimators=3).fit(A, A[:, 0])
    np.testing.assert_allclose(DEVICE.host(model.predict(there)), own.predict(A), atol=1e-10)
