"""The best split of gradient sums: against every split tried one by one."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ensemble_gpu.kernels.host.gain import best_gain
from ensemble_gpu.kernels.protocol import ABSTAIN, LEFT, RIGHT, TIE


@dataclass(frozen=True)
class Sums:
    """S, H [output, feature, code], the last code for missing, and what splits are allowed."""

    S: np.ndarray
    H: np.ndarray
    n_thresholds: np.ndarray
    learn: bool
    votes: bool
    signs: np.ndarray

    def best(self):
        return best_gain(self.S, self.H, self.n_thresholds, self.learn, self.votes, self.signs)


def random_sums(
    seed: int, outputs: int, p: int, bins: int, learn: bool, votes: bool, signed: bool, few: bool
) -> Sums:
    rng = np.random.default_rng(seed)
    shape = (outputs, p, bins + 1)
    H = rng.integers(0, 3 if few else 2**40, size=shape)
    S = rng.integers(-2, 3, size=shape) if few else rng.integers(-(2**45), 2**45, size=shape)
    thresholds = rng.integers(0, bins + learn, size=p)
    signs = rng.integers(-1, 2, size=p) if signed else np.zeros(p, dtype=np.int64)
    return Sums(S, H, thresholds, learn, votes, signs)


every_sums = st.builds(
    random_sums,
    seed=st.integers(0, 10_000),
    outputs=st.integers(1, 4),
    p=st.integers(1, 6),
    bins=st.integers(1, 9),
    learn=st.booleans(),
    votes=st.booleans(),
    signed=st.just(False),
    few=st.booleans(),  # small numbers: ties, and leaves without any weight
)
one_signed_output = st.builds(
    random_sums,
    seed=st.integers(0, 10_000),
    outputs=st.just(1),
    p=st.integers(1, 6),
    bins=st.integers(1, 9),
    learn=st.booleans(),
    votes=st.booleans(),
    signed=st.just(True),
    few=st.booleans(),
)


def leaves(a: np.ndarray, f: int, t: int, side: int) -> np.ndarray:
    """Sums [output, leaf]; `side` is the leaf of missing values."""
    out = np.zeros((a.shape[0], 3), dtype=np.int64)
    out[:, LEFT] = a[:, f, : min(t, a.shape[2] - 2) + 1].sum(axis=1)
    out[:, RIGHT] = a[:, f, t + 1 : -1].sum(axis=1)
    out[:, side] += a[:, f, -1]
    return out


def one_gain(sums: Sums, S: np.ndarray, H: np.ndarray, sign: int) -> float:
    """The formula at the top of kernels/host/gain.py; -1 where the sign forbids the split."""
    gain = 0.0
    for k in range(len(S)):
        s = [float(S[k, leaf]) if H[k, leaf] > 0 else 0.0 for leaf in (LEFT, RIGHT)]
        h = [float(H[k, leaf]) for leaf in (LEFT, RIGHT)]
        if sums.votes:
            gain += (abs(s[0]) + abs(s[1])) ** 2 / (h[0] + h[1] or 1.0)
        else:
            gain += s[0] ** 2 / (h[0] or 1.0) + s[1] ** 2 / (h[1] or 1.0)
        value = [a / b if b else 0.0 for a, b in zip(s, h, strict=True)]
        value = [float(np.sign(v)) for v in value] if sums.votes else value
        if sign * value[0] > sign * value[1]:
            return -1.0
    return gain


def brute_force(sums: Sums):
    """(gain, feature, bin, leaf of missing values, S, H), or None where nothing gains."""
    tried = []
    for f, n in enumerate(sums.n_thresholds):
        for t in range(n):
            for side in (LEFT, RIGHT) if sums.learn else (ABSTAIN,):
                S, H = leaves(sums.S, f, t, side), leaves(sums.H, f, t, side)
                tried.append((one_gain(sums, S, H, int(sums.signs[f])), f, t, side, S, H))
    best = max((gain for gain, *_ in tried), default=-1.0)
    return next((split for split in tried if best > 0.0 and split[0] * TIE >= best), None)


def assert_same(found, truth) -> None:
    assert (found is None) == (truth is None)
    if truth is None:
        return
    gain, feature, last_bin, side, S, H = truth
    assert (found.feature, found.bin, found.missing_leaf) == (feature, last_bin, side)
    assert found.gain == pytest.approx(gain, rel=1e-13)
    np.testing.assert_array_equal(found.S, S)
    np.testing.assert_array_equal(found.H, H)


@given(every_sums)
def test_the_best_split_is_that_of_brute_force(sums):
    assert_same(sums.best(), brute_force(sums))


@given(one_signed_output)
def test_monotone_signs_forbid_what_brute_force_forbids(sums):
    assert_same(sums.best(), brute_force(sums))


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("votes", [False, True], ids=["real", "votes"])
@pytest.mark.parametrize("learn", [False, True], ids=["abstain", "learn"])
def test_features_of_255_bins_give_the_split_of_brute_force(learn, votes, outputs):
    sums = random_sums(1, outputs, 3, 255, learn, votes, signed=False, few=False)
    assert_same(sums.best(), brute_force(sums))


@pytest.mark.parametrize("votes", [False, True], ids=["real", "votes"])
def test_ties_go_to_the_lowest_feature_then_the_lowest_bin_then_missing_left(votes):
    # Features 1 and 2 are equal, bins 1 and 2 of them hold nothing, nor does the missing code.
    S = np.array([[[1, -1, 0, 0, 0], [5, 0, 0, -5, 0], [5, 0, 0, -5, 0]]])
    H = np.array([[[3, 3, 0, 0, 0], [3, 0, 0, 3, 0], [3, 0, 0, 3, 0]]])
    sums = Sums(S, H, np.array([3, 3, 3]), True, votes, np.zeros(3, dtype=np.int64))
    found = sums.best()
    assert (found.feature, found.bin, found.missing_leaf) == (1, 0, LEFT)


def test_gains_that_differ_by_rounding_tie_and_a_clear_difference_does_not():
    big = 10**9
    S = np.array([[[big, -big, 0], [big + 1, -big - 1, 0]]])
    H = np.full_like(S, big)
    one = np.ones(2, dtype=np.int64)
    assert best_gain(S, H, one, False, False, 0 * one).feature == 0  # 1 + 2e-9, within TIE
    S = np.array([[[big, -big, 0], [big + 1000, -big - 1000, 0]]])
    assert best_gain(S, H, one, False, False, 0 * one).feature == 1  # 1 + 2e-6


@pytest.mark.parametrize("votes", [False, True], ids=["real", "votes"])
def test_nothing_gains_where_all_sums_vanish_or_nothing_can_be_split(votes):
    sums = random_sums(2, 2, 3, 4, False, votes, signed=False, few=False)
    assert replace(sums, S=0 * sums.S).best() is None
    assert replace(sums, n_thresholds=np.zeros(3, dtype=np.int64)).best() is None


def test_a_sign_that_no_split_satisfies_leaves_nothing():
    S = np.array([[[9, -9, 0]]])
    H = np.ones_like(S)
    one = np.ones(1, dtype=np.int64)
    assert best_gain(S, H, one, False, False, -one).bin == 0
    assert best_gain(S, H, one, False, False, one) is None


def test_a_leaf_without_weight_gains_nothing_and_divides_by_nothing():
    # Second derivatives can vanish where gradients do not (Huber beyond delta).
    S = np.array([[[7, 2, 0]]])
    H = np.array([[[0, 4, 0]]])
    found = best_gain(S, H, np.ones(1, dtype=np.int64), False, False, np.zeros(1, dtype=np.int64))
    assert found.gain == 1.0


@pytest.mark.parametrize("votes", [False, True], ids=["real", "votes"])
def test_sums_near_two_to_the_sixty_one_do_not_overflow(votes):
    S = np.array([[[2**60, -(2**60), 2**60, 2**59]]])
    H = np.full_like(S, 2**58)
    sums = Sums(S, H, np.array([3]), True, votes, np.zeros(1, dtype=np.int64))
    assert_same(sums.best(), brute_force(sums))
