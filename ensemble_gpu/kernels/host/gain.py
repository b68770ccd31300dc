"""The best split of gradient sums: what a stump fitted by least squares gains.

For leaf l and output k let S_kl be the sum of -gradient and H_kl the sum of weights (least squares)
or of second derivatives (Newton). The best value of the leaf is c_kl = S_kl / H_kl, and the loss's
quadratic model falls by half of

    gain = sum_kl S_kl^2 / H_kl                               (REAL: each leaf its own value)
    gain = sum_k (|S_k,left| + |S_k,right|)^2 / sum_l H_kl    (VOTES: h = +-1 times a coefficient)

To maximise |S_left| + |S_right| over h in {-1, +1} is to minimise the weighted error with weights
|gradient|: for a margin loss -phi'(y F).

The sums are p x bins integers that every engine hands to the host, so there is one implementation,
and nothing in it can differ between engines.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ensemble_gpu.kernels.jit import inner, kernel
from ensemble_gpu.kernels.protocol import ABSTAIN, LEFT, N_LEAVES, RIGHT, TIE

NEVER = -1.0


@dataclass(frozen=True)
class Gain:
    """The best split: its integer sums S, H [output, leaf], and the leaves' values c = S / H.

    Abstaining rows have the value 0.
    """

    gain: float
    feature: int
    bin: int
    missing_leaf: int
    S: np.ndarray
    H: np.ndarray
    c: np.ndarray


@inner
def _running(column, n, total, add, out_left, out_right):
    """Float sums left and right of thresholds 0 ... n - 1; `add` joins the left side."""
    run = add
    for t in range(n):
        run += column[t]
        out_left[t] = float(run)
        out_right[t] = float(total - run)


@inner
def _sign(x):
    return 1.0 if x > 0.0 else -1.0 if x < 0.0 else 0.0


@inner
def _add_gains(n, votes, sl, sr, hl, hr, sign, gain):
    """gain[t] += the formula for one output; NEVER where a monotone sign is violated."""
    for t in range(n):
        left, right = sl[t] if hl[t] > 0.0 else 0.0, sr[t] if hr[t] > 0.0 else 0.0
        if votes:
            both, whole = abs(left) + abs(right), hl[t] + hr[t]
            gain[t] += both * both / (whole if whole > 0.0 else 1.0)
        else:
            a, b = hl[t] if hl[t] > 0.0 else 1.0, hr[t] if hr[t] > 0.0 else 1.0
            gain[t] += left * left / a + right * right / b
    if sign != 0:
        for t in range(n):
            left = sl[t] / hl[t] if hl[t] > 0.0 else 0.0
            right = sr[t] / hr[t] if hr[t] > 0.0 else 0.0
            if votes:
                left, right = _sign(left), _sign(right)
            if sign * left > sign * right:
                gain[t] = NEVER


@inner
def _feature_gains(S, H, f, n, learn, votes, sign, gain):
    """gain[side, t] of a feature's thresholds; side 0 sends missing values left. The highest.

    Four more rows of `gain` are for the float sums.
    """
    width = S.shape[2]
    sl, sr, hl, hr = gain[2], gain[3], gain[4], gain[5]
    highest = NEVER
    for side in range(1 + learn):
        for t in range(n):
            gain[side, t] = 0.0
        for k in range(S.shape[0]):
            s, h = S[k, f], H[k, f]
            s_total, h_total = np.int64(0), np.int64(0)
            for code in range(width - 1 + learn):
                s_total += s[code]
                h_total += h[code]
            joins = learn and side == 0
            _running(s, n, s_total, s[width - 1] if joins else np.int64(0), sl, sr)
            _running(h, n, h_total, h[width - 1] if joins else np.int64(0), hl, hr)
            _add_gains(n, votes, sl, sr, hl, hr, sign, gain[side])
        for t in range(n):
            highest = max(highest, gain[side, t])
    return highest


@inner
def _leaf_values(S, H, votes, c):
    """c = S / H of both leaves; votes: the sign of S times sum of |S| / sum of H. 0 was there."""
    for k in range(S.shape[0]):
        size, whole = 0.0, 0.0
        for leaf in range(ABSTAIN):
            size += abs(float(S[k, leaf]))
            whole += float(H[k, leaf])
        for leaf in range(ABSTAIN):
            if votes:
                c[k, leaf] = _sign(float(S[k, leaf])) * (size / whole) if whole > 0.0 else 0.0
            elif H[k, leaf] > 0:
                c[k, leaf] = float(S[k, leaf]) / float(H[k, leaf])


@kernel
def search(S, H, n_thresholds, learn, votes, signs, gain, highest, record, leaves, c):
    """Of all splits within TIE of the highest gain the first in order of (feature, bin, side).

    gain[6, code] and highest[feature] are workspace; record, leaves and c hold zeros.
    """
    p, width = S.shape[1], S.shape[2]
    best = NEVER
    for f in range(p):
        n = n_thresholds[f]
        highest[f] = _feature_gains(S, H, f, n, learn, votes, signs[f], gain)
        best = max(best, highest[f])
    if best <= 0.0:
        return best
    f = 0
    while highest[f] * TIE < best:
        f += 1
    n = n_thresholds[f]
    _feature_gains(S, H, f, n, learn, votes, signs[f], gain)
    t, side = 0, 0
    while gain[side, t] * TIE < best:
        if learn and side == 0:
            side = 1
        else:
            t, side = t + 1, 0
    record[0], record[1], record[2] = f, t, side if learn else ABSTAIN
    s_leaf, h_leaf = leaves[0], leaves[1]
    for k in range(S.shape[0]):
        for code in range(width - 1):
            leaf = LEFT if code <= t else RIGHT
            s_leaf[k, leaf] += S[k, f, code]
            h_leaf[k, leaf] += H[k, f, code]
        s_leaf[k, record[2]] += S[k, f, width - 1]
        h_leaf[k, record[2]] += H[k, f, width - 1]
    _leaf_values(s_leaf, h_leaf, votes, c)
    return gain[side, t]


def best_gain(
    S: np.ndarray,
    H: np.ndarray,
    n_thresholds: np.ndarray,
    learn: bool,
    votes: bool,
    signs: np.ndarray,
) -> Gain | None:
    """The best split of S, H [output, feature, code]; None where nothing gains.

    With signs[f] = +-1 only splits whose right value is not below (above) the left one count.
    """
    record = np.zeros(3, dtype=np.int64)
    leaves = np.zeros((2, S.shape[0], N_LEAVES), dtype=np.int64)
    c = np.zeros((S.shape[0], N_LEAVES))
    gains, highest = np.empty((6, S.shape[2])), np.empty(S.shape[1])
    gain = search(S, H, n_thresholds, learn, votes, signs, gains, highest, record, leaves, c)
    if gain <= 0.0:
        return None
    feature, last_bin, missing_leaf = record.tolist()
    return Gain(gain, feature, last_bin, missing_leaf, leaves[0], leaves[1], c)
