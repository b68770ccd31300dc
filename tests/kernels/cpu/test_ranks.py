"""The compiled count of pairs in order."""

from __future__ import annotations

import numpy as np
import pytest

from ensemble_gpu.kernels.cpu.ranks import FEW, pairs_in_order


def by_brute_force(s, positive):
    plus, minus = s[positive][:, None], s[~positive][None, :]
    return 2 * int((plus > minus).sum()) + int((plus == minus).sum())


@pytest.mark.parametrize("scale", [1e-300, 1.0, 1e300])
def test_pairs_of_every_vector_equal_brute_force_whatever_digits_the_scores_differ_in(scale):
    rng = np.random.default_rng(0)
    scores = np.stack([np.round(rng.normal(size=500), d) * scale for d in (0, 2, 15)])
    assert np.signbit(scores[scores == 0.0]).any()
    positive, found = rng.random(500) < 0.3, np.empty(3, dtype=np.int64)
    pairs_in_order(scores, positive, int(positive.sum()), found)
    assert found.tolist() == [by_brute_force(s, positive) for s in scores]


UNEVEN = {
    "a score far away": lambda rng, n: np.append(rng.normal(size=n - 1), 1e12),
    "an infinite range": lambda rng, n: rng.choice([-1e308, 1e308, 0.0, 1.0], n),
    "infinite scores": lambda rng, n: rng.choice([-np.inf, np.inf, 0.0, 1.0], n),
    "the least numbers": lambda rng, n: rng.integers(-5, 5, n) * 5e-324,
    "all the same": lambda rng, n: np.full(n, 0.25),
    "heavy tails": lambda rng, n: rng.standard_cauchy(n) ** 3,
}


@pytest.mark.parametrize("n", [300, FEW + 1])
@pytest.mark.parametrize("kind", UNEVEN)
def test_uneven_scores_and_those_of_large_sets_are_counted_by_digits(kind, n):
    rng = np.random.default_rng(1)
    scores, positive = UNEVEN[kind](rng, n)[None, :], rng.random(n) < 2e2 / n
    found = np.empty(1, dtype=np.int64)
    pairs_in_order(scores, positive, int(positive.sum()), found)
    assert found[0] == by_brute_force(scores[0], positive)
