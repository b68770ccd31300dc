"""The compiled count of pairs in order."""

from __future__ import annotations

import numpy as np
import pytest

from ensemble_gpu.kernels.cpu.ranks import pairs_in_order


@pytest.mark.parametrize("scale", [1e-300, 1.0, 1e300])
@pytest.mark.parametrize("digits", [0, 2, 15])
def test_pairs_equal_brute_force_whatever_digits_the_scores_differ_in(scale, digits):
    rng = np.random.default_rng(digits)
    s = np.round(rng.normal(size=500), digits) * scale + 0.0
    positive = rng.random(500) < 0.3
    plus, minus = s[positive][:, None], s[~positive][None, :]
    expected = 2 * int((plus > minus).sum()) + int((plus == minus).sum())
    assert pairs_in_order(s.view(np.uint64), positive, int(positive.sum())) == expected
