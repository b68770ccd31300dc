"""How far to go along a stump h: the step rules.

leaf         each leaf by itself goes to its best constant (boosting/leaf_steps.py); alpha = 1.
constant     alpha = 1 / L, where L bounds the loss's second derivative (1 where nothing does).
newton       h is fitted with second derivatives, so that each leaf is a Newton step; alpha = 1.
line_search  alpha minimises R(f + alpha h) over the whole training set.

A round adds nu alpha h, nu the learning rate.
"""

from __future__ import annotations

from collections.abc import Callable

from ensemble_gpu.losses.roots import LOW, Bracket, Precision, narrowed

LEAF_STEP = "leaf"
STEPS = (LEAF_STEP, "line_search", "newton", "constant")

# A slope of this share of the first one counts as flat; an interval of this share as a point.
FLAT = 1e-3
NARROW = 1e-4
MOST_DOUBLINGS = 40
MOST_NARROWINGS = 30


def line_search(slope: Callable[[float], float], start: float, limit: float) -> float:
    """The alpha in [0, limit] where the slope of a convex R(f + alpha h) vanishes.

    Doubles `start` until the slope turns positive, then narrows the bracket (losses/roots.py). The
    end with slope <= 0 is returned: R falls all the way to it, so the loss cannot rise whatever the
    rounding.
    """
    low, slope_low = 0.0, slope(0.0)
    if slope_low >= 0.0:
        return 0.0
    first = -slope_low
    high = min(start, limit)
    slope_high = slope(high)
    for _ in range(MOST_DOUBLINGS):
        if slope_high >= 0.0 or high >= limit:
            break
        low, slope_low = high, slope_high
        high = min(2.0 * high, limit)
        slope_high = slope(high)
    if slope_high <= 0.0:
        return high
    bracket = Bracket(low, slope_low, high, slope_high, moved=LOW)
    return narrowed(slope, bracket, Precision(FLAT * first, NARROW, MOST_NARROWINGS)).low
