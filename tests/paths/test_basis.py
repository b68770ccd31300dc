"""The inverse that follows exchanges is the one computed anew."""

from __future__ import annotations

import numpy as np

from ensemble_gpu.paths.basis import REFRESH, Basis


def test_the_inverse_follows_exchanges():
    rng = np.random.default_rng(0)
    M = rng.normal(size=(30, 40))
    basis = Basis(M, [], [])
    for number in range(4 * REFRESH):
        k = len(basis.E)
        row = int(rng.choice(np.setdiff1d(np.arange(30), basis.E)))
        column = int(rng.choice(np.setdiff1d(np.arange(40), basis.K)))
        kind = rng.integers(4) if 2 < k < 12 else (0 if k < 12 else 1)
        at, other = (int(rng.integers(k)) if k else 0 for _ in range(2))
        if kind == 0:
            basis.grow(row, column)
        elif kind == 1:
            basis.shrink(at, other)
        elif kind == 2:
            basis.swap_row(at, row)
        else:
            basis.swap_column(at, column)
        assert basis.exchanges == number + 1
        part = M[np.ix_(basis.E, basis.K)]
        np.testing.assert_allclose(basis.V @ part, np.eye(len(basis.E)), atol=1e-8)
