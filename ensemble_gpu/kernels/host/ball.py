"""A quadratic function of coefficients a, minimised in the L1 ball or with an L1 penalty.

    min over a of 1/2 (a - a0)' Q (a - a0) - c0' (a - a0)    with |a|_1 <= radius, or + alpha |a|_1

c = c0 - Q (a - a0), the correlations of what is left, follows a. In the ball weight is moved
between two signed columns: from the one k, or from what |a|_1 leaves of the radius, to the j with
the largest |c_j|, as far as the quadratic falls; of all k the one where it falls most is taken.
With a penalty single coefficients go to their minimum. Neighbours are almost the same columns, so
that such steps become short: in between conjugate gradients find the minimum over the columns that
are not 0, up to where the first of them would change its sign.

Loops in one order, so the coefficients are the same wherever the sums are.
"""

from __future__ import annotations

import numpy as np

from ensemble_gpu.kernels.jit import inner, kernel

# Conjugate gradients end at this share of the first residual, squared.
CLOSE = 1e-16
# Curvatures below this share of the diagonal are rounding.
FLAT = 1e-14
# Slack counts in full from this share of the radius on; a face with less than TIED of it is tied.
SLACK, TIED = 1e-6, 1e-9
BALL, PENALTY = 0, 1


@inner
def _sign(x):
    return 1.0 if x > 0.0 else -1.0


@inner
def _norm(a):
    total = 0.0
    for j in range(a.shape[0]):
        total += abs(a[j])
    return total


@inner
def _changed(Q, c, a, j, change):
    """a_j += change, and c follows."""
    a[j] += change
    row = Q[j]
    for i in range(a.shape[0]):
        c[i] -= change * row[i]


@inner
def _best_pair(Q, c, a, slack, radius):
    """(j, k, violation): from column k (-1: from the slack) to j; -2: nowhere.

    Roundings leave some slack, which is as good as none.
    """
    n = a.shape[0]
    j = 0
    for i in range(1, n):
        if abs(c[i]) > abs(c[j]):
            j = i
    top, s = abs(c[j]), _sign(c[j])
    k, most, violation = -2, 0.0, 0.0
    if slack > 0.0:
        k, most = -1, top * top / Q[j, j]
        violation = top * min(slack / (SLACK * radius), 1.0)
    for i in range(n):
        if a[i] != 0.0:
            own = _sign(a[i])
            less = top - own * c[i]
            violation = max(violation, less)
            if less > 0.0:
                curve = Q[j, j] + Q[i, i] - 2.0 * s * own * Q[j, i]
                fall = less * less / max(curve, FLAT * Q[j, j])
                if fall > most:
                    k, most = i, fall
    return j, k, violation


@inner
def _pairs(Q, c, a, radius, enough, most_steps):
    """Move weight between two columns until no move is worth more than `enough`; what is left."""
    slack = max(radius - _norm(a), 0.0)
    violation = 0.0
    for _ in range(most_steps):
        j, k, violation = _best_pair(Q, c, a, slack, radius)
        if k == -2 or violation <= enough:
            break
        s, before = _sign(c[j]), abs(a[j])
        if k == -1:
            _changed(Q, c, a, j, s * min(abs(c[j]) / Q[j, j], slack))
        else:
            own = _sign(a[k])
            curve = Q[j, j] + Q[k, k] - 2.0 * s * own * Q[j, k]
            worth = (abs(c[j]) - own * c[k]) / max(curve, FLAT * Q[j, j])
            if k == j:  # the sign changes: no weight beyond what there is
                _changed(Q, c, a, j, 2.0 * s * min(worth, abs(a[j])))
            else:
                step = min(worth, abs(a[k]))
                before += abs(a[k])
                _changed(Q, c, a, j, s * step)
                _changed(Q, c, a, k, -a[k] if step == abs(a[k]) else -own * step)
                before -= abs(a[k])
        slack = max(slack + (before - abs(a[j])), 0.0)
    return violation


@inner
def _coordinates(Q, c, a, alpha, enough, most_steps):
    """Single coefficients to their minimum, the one that lowers the function most first."""
    n = a.shape[0]
    violation = 0.0
    for _ in range(most_steps):
        best, most, move, violation = -1, 0.0, 0.0, 0.0
        for j in range(n):
            if a[j] != 0.0:
                violation = max(violation, abs(c[j] - alpha * _sign(a[j])))
            else:
                violation = max(violation, abs(c[j]) - alpha)
            free = c[j] + Q[j, j] * a[j]
            wanted = _sign(free) * max(abs(free) - alpha, 0.0) / Q[j, j]
            fall = (wanted - a[j]) * (wanted - a[j]) * Q[j, j]
            if fall > most:
                best, most, move = j, fall, wanted - a[j]
        if best < 0 or violation <= enough:
            break
        _changed(Q, c, a, best, -a[best] if move == -a[best] else move)
    return violation


@inner
def _face(Q, c, a, kind, bound, most_work, at, r, p, q, d, whole):
    """To the minimum over the columns that are not 0, or the first place where one becomes 0.

    Returns what is left of the work that may be done.
    """
    n = 0
    norm = _norm(a)
    for j in range(a.shape[0]):
        if a[j] != 0.0:
            at[n] = j
            n += 1
    tied = kind == BALL and bound - norm <= TIED * bound
    level = bound if kind == PENALTY else 0.0
    if tied:
        for i in range(n):
            level += _sign(a[at[i]]) * c[at[i]] / n
    size = 0.0
    for i in range(n):
        r[i] = c[at[i]] - level * _sign(a[at[i]])
        p[i], d[i] = r[i], 0.0
        size += r[i] * r[i]
    first = size
    for _ in range(n):
        if size <= CLOSE * first or size == 0.0 or most_work <= 0:
            break
        most_work -= n * whole.shape[0]
        for i in range(whole.shape[0]):
            whole[i] = 0.0
        for m in range(n):  # a row at a time: sums in one order, and vectorised
            factor, row = p[m], Q[at[m]]
            for i in range(whole.shape[0]):
                whole[i] += factor * row[i]
        mean = 0.0
        for i in range(n):
            q[i] = whole[at[i]]
            mean += _sign(a[at[i]]) * q[i] / n
        curve, scale = 0.0, 0.0
        for i in range(n):
            if tied:
                q[i] -= mean * _sign(a[at[i]])
            curve += p[i] * q[i]
            scale += p[i] * p[i] * Q[at[i], at[i]]
        if curve <= FLAT * scale:
            break
        step, before = size / curve, size
        size = 0.0
        for i in range(n):
            d[i] += step * p[i]
            r[i] -= step * q[i]
            size += r[i] * r[i]
        for i in range(n):
            p[i] = r[i] + size / before * p[i]
    length, last, growth = 1.0, -1, 0.0
    for i in range(n):
        j = at[i]
        growth += _sign(a[j]) * d[i]
        if a[j] * d[i] < 0.0 and -a[j] / d[i] <= length:
            length, last = -a[j] / d[i], j
    if kind == BALL and not tied and growth * length > bound - norm:
        length, last = (bound - norm) / growth, -1
    for i in range(n):
        _changed(Q, c, a, at[i], -a[at[i]] if at[i] == last else length * d[i])
    return most_work - n * a.shape[0]


@inner
def _steps(Q, c, a, kind, bound, enough, most_steps):
    if kind == BALL:
        return _pairs(Q, c, a, bound, enough, most_steps)
    return _coordinates(Q, c, a, bound, enough, most_steps)


@kernel
def minimise(Q, c, a, kind, bound, share, most_work):
    """Bring a and c to the minimum, as far as this `share` of the first violation.

    `bound` is the radius (kind BALL) or alpha (PENALTY). Q has a positive diagonal. Ends where
    some `most_work` products have been made; returns what is left of them.
    """
    n = a.shape[0]
    at = np.empty(n, dtype=np.int64)
    r, p, q, d, whole = np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    enough = share * _steps(Q, c, a, kind, bound, 0.0, 1)  # before the one step that it makes
    many = 2 * n + 8
    while most_work > 0:
        steps = min(many, most_work // (4 * n) + 1)
        violation = _steps(Q, c, a, kind, bound, enough, steps)
        most_work -= 4 * n * steps
        if violation <= enough or most_work <= 0:
            break
        most_work = _face(Q, c, a, kind, bound, most_work, at, r, p, q, d, whole)
    return most_work
