"""From values to pixels, and the numbers beside an axis."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

NICE = (1.0, 2.0, 2.5, 5.0, 10.0)


@dataclass(frozen=True)
class Scale:
    """low ... high go to start ... stop, in proportion or by logarithm."""

    low: float
    high: float
    start: float
    stop: float
    log: bool = False

    def __call__(self, values: Any) -> Any:
        values = np.asarray(values, dtype=np.float64)
        low, high = self.low, self.high
        if self.log:
            with np.errstate(divide="ignore", invalid="ignore"):
                values = np.log10(np.maximum(values, low))
            low, high = math.log10(low), math.log10(high)
        share = (values - low) / (high - low)
        return self.start + share * (self.stop - self.start)

    def ticks(self, most: int = 6) -> list[float]:
        return self._decades(most) if self.log else self._steps(most)

    def _steps(self, most: int) -> list[float]:
        width = (self.high - self.low) / most
        if not width > 0.0 or not math.isfinite(width):
            return [self.low]
        power = 10.0 ** math.floor(math.log10(width))
        step = next(n * power for n in NICE if n * power >= 0.999 * width)
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [k * step for k in range(first, last + 1)]

    def _decades(self, most: int) -> list[float]:
        first = math.floor(math.log10(self.low) + 1e-9)
        last = math.ceil(math.log10(self.high) - 1e-9)
        per_decade = (1, 2, 5) if last - first <= 3 else (1,)
        every = max(1, -(-(last - first + 1) // most))
        found = [d * 10.0**k for k in range(first, last + 1, every) for d in per_decade]
        return [v for v in found if 0.999 * self.low <= v <= 1.001 * self.high]


def bounds(values: Any, pad: float = 0.04) -> tuple[float, float]:
    """The range of the finite values and a little more; never empty."""
    values = np.asarray(values, dtype=np.float64)
    values = values[np.isfinite(values)]
    if not len(values):
        return -1.0, 1.0
    low, high = float(values.min()), float(values.max())
    if low == high:
        wide = abs(low) or 1.0
        return low - 0.5 * wide, high + 0.5 * wide
    more = pad * (high - low)
    return low - more, high + more
