"""Which features can win a node that has kept sums: most cannot, and are passed over.

Of a cut with H and G of a, b on the left and c, d on the right, and the best score S so far,

    b^2 / a + d^2 / c > S    is    b^2 c + d^2 a > S a c,

which takes no division. The products are rounded, so S is moved by more than all roundings can add
up to: what ties with S passes, too, and is scored (pair_scores.py); what does not pass cannot win.
A cut with an empty child scores as the undivided node: S has to be above that.
"""

from __future__ import annotations

import numpy as np

from ensemble_gpu.kernels.cpu.bounds import MARGIN
from ensemble_gpu.kernels.cpu.trees.pair_runs import FIRST, SECOND
from ensemble_gpu.kernels.jit import inner
from ensemble_gpu.kernels.tree_protocol import GINI, NEVER, VARIANCE

# Beyond it a product of two sums may not be finite.
MOST_L2 = 2.0**300


@inner
def _add_up(cells, shift, runs):
    """Sums up to and including each code."""
    first, second, firsts, seconds = np.int64(0), np.int64(0), runs[FIRST], runs[SECOND]
    xs, ys = cells[0], cells[1]
    for code in range(xs.shape[0]):
        first += xs[code]
        second += ys[code]
        firsts[code], seconds[code] = first >> shift, second


@inner
def _variance_may_win(firsts, seconds, n, g0, g1, node, l2, best):
    """Whether a cut behind one of n codes, with g0 and g1 on the left as well, may be as good."""
    x, y, bar, passed = float(node.first), float(node.second), best * (1.0 - MARGIN), np.int64(0)
    for i in range(n):
        a, b = float(firsts[i] + g0), float(seconds[i] + g1)
        left, right, d = a + l2, (x - a) + l2, y - b
        passed += b * b * right + d * d * left > bar * (left * right)
    return passed > 0


@inner
def _gini_may_win(firsts, seconds, n, g0, g1, node, best):
    """The same of class weights a, b and c, d: -2 (a b / (a + b) + c d / (c + d)) > S."""
    x, y, bar, passed = float(node.first), float(node.second), -best * (1.0 + MARGIN), np.int64(0)
    for i in range(n):
        a, b = float(firsts[i] + g0), float(seconds[i] + g1)
        c, d = x - a, y - b
        left, right = a + b, c + d
        passed += 2.0 * (a * b * right + c * d * left) < bar * (left * right)
    return passed > 0


@inner(forceinline=True)
def _some_may_win(judge, firsts, seconds, n, g0, g1, node, best):
    if judge.kind == VARIANCE:
        return _variance_may_win(firsts, seconds, n, g0, g1, node, judge.l2, best)
    return _gini_may_win(firsts, seconds, n, g0, g1, node, best)


@inner
def _is_above_whole(judge, node, best):
    """Whether the best score is surely above that of the undivided node, and not zero.

    Nothing tells what ties with zero from what is below it.
    """
    x, y = float(node.first), float(node.second)
    if judge.kind == VARIANCE:
        return x > 0.0 and best > y * y / (x + judge.l2) * (1.0 + 4.0 * MARGIN)
    return 0.0 > best > -2.0 * (x * y) / (x + y) * (1.0 - 4.0 * MARGIN)


@inner
def may_win(judge, count, cells, node, best, work):
    """Whether a split on a feature with the sums `cells` may score `best` or more.

    The last code is that of missing values.
    """
    known = judge.exact and judge.l2 <= MOST_L2 and (judge.kind == VARIANCE or judge.kind == GINI)
    if best == NEVER or not known or not _is_above_whole(judge, node, best):
        return True
    firsts, seconds, last = work.runs[FIRST], work.runs[SECOND], cells.shape[1] - 1
    _add_up(cells, count.shift, work.runs)
    g0, g1 = node.first - firsts[last - 1], node.second - seconds[last - 1]
    if _some_may_win(judge, firsts, seconds, last, np.int64(0), np.int64(0), node, best):
        return True
    return (g0 != 0 or g1 != 0) and _some_may_win(judge, firsts, seconds, last, g0, g1, node, best)
