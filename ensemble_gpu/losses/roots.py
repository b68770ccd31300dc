"""Where an increasing function of one number crosses zero.

The slope of a convex loss is such a function. `increasing_root` looks for its root as exactly as
floats allow; a line search along a learner (boosting/steps.py) stops early and takes the lower end
of the bracket, where the loss has not begun to rise. Both narrow a bracket by the same rule.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

LOW, NEITHER, HIGH = -1, 0, 1


class Bracket(NamedTuple):
    """Two points with slopes below and above zero, and which of them moved last."""

    low: float
    slope_low: float
    high: float
    slope_high: float
    moved: int = NEITHER

    @property
    def middle(self) -> float:
        return 0.5 * self.low + 0.5 * self.high


class Precision(NamedTuple):
    """When to stop: a slope at the low end of at least -flat, a width of narrow times the larger
    end, or a number of steps.
    """

    flat: float
    narrow: float
    most_steps: int


EXACT = Precision(flat=0.0, narrow=1e-14, most_steps=200)


def narrowed(slope: Callable[[float], float], bracket: Bracket, precision: Precision) -> Bracket:
    """A smaller bracket of the same root.

    The secant through the ends, an end that stays twice counting half (the Illinois rule), and a
    bisection at every third step, so that the interval shrinks whatever the function.
    """
    low, slope_low, high, slope_high, moved = bracket
    weight_low, weight_high = -slope_low, slope_high  # of the secant, halved by the rule
    for step in range(precision.most_steps):
        narrow = precision.narrow * max(abs(low), abs(high))
        if -slope_low <= precision.flat or high - low <= narrow:
            break
        c = low + (high - low) * (weight_low / (weight_low + weight_high))
        if step % 3 == 2 or not low < c < high:
            c = 0.5 * low + 0.5 * high
        at = slope(c)
        if at <= 0.0:
            weight_high *= 0.5 if moved == LOW else 1.0
            low, slope_low, weight_low, moved = c, at, -at, LOW
        else:
            weight_low *= 0.5 if moved == HIGH else 1.0
            high, slope_high, weight_high, moved = c, at, at, HIGH
    return Bracket(low, slope_low, high, slope_high, moved)


def increasing_root(slope: Callable[[float], float], low: float, high: float) -> float:
    """Where an increasing function crosses zero in [low, high]; an end, if it does not."""
    below, above = slope(low), slope(high)
    if below >= 0.0 or above <= 0.0:
        return low if below >= 0.0 else high
    found = narrowed(slope, Bracket(low, below, high, above), EXACT)
    return found.low if found.slope_low == 0.0 else found.middle
