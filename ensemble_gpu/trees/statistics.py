"""What a tree adds up over its rows, and what the sums mean in the user's units.

classes       label and integer weight; value of a node: the shares of the classes.
squared       (w, w t), t = (y - shift) / unit rounded to an integer; value: the mean of y.
poisson       the same without a shift; value: the mean of y.

What rounding takes from y is kept in further integers, its digits d_1, d_2, ...:

    y = shift + unit t + unit_1 d_1 + unit_2 d_2 + ...

Trees grow on t alone; values are the means of all of it, so that a leaf of one row has its y.

Impurities H, with p_k the shares of a node and m its mean:

    gini 1 - sum p_k^2      entropy -sum p_k log2 p_k      error 1 - max p_k
    squared mean of (y - m)^2      poisson mean of y ln(y / m)
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ensemble_gpu.data.integers import integer_weights
from ensemble_gpu.kernels.host.criteria import times_log
from ensemble_gpu.kernels.protocol import Engine
from ensemble_gpu.kernels.tree_protocol import ENTROPY, ERROR, GINI, POISSON, VARIANCE, Sample
from ensemble_gpu.model.impurity import IMPURITIES

CLASS_CRITERIA = {"gini": GINI, "entropy": ENTROPY, "log_loss": ENTROPY, "error": ERROR}
CLASS_IMPURITIES = {kind: IMPURITIES[name] for name, kind in CLASS_CRITERIA.items()}
REAL_CRITERIA = {"squared_error": VARIANCE, "poisson": POISSON}

# Bits of the total weight, of a class; with targets; of the targets themselves.
CLASS_WEIGHT_BITS, WEIGHT_BITS, TARGET_BITS = 50, 31, 40
# |sum of w t| stays below 2^61, also where a bootstrap draws a heavy row up to 16 times.
SUM_BITS = 57
# Digits of the targets hold this many bits together, if they need them.
DIGIT_BITS = 80
SMALLEST_UNIT = 2.0**-1070


@dataclass(frozen=True)
class Statistics:
    """The rows of a matrix as a tree sees them; how its sums are read.

    `weights` int64 [rows], `weight_unit` the user's weight of one of them; `target` the label, or
    t with y = shift + unit t + ... `second` [rows], in units of `second_unit`, makes the impurity
    of a regression: t^2 (in units of t^2), or y ln y. `digits` [rows] each are in `digit_units`.
    """

    criterion: int
    n_classes: int
    target: Any
    weights: Any
    weight_unit: float
    shift: float = 0.0
    unit: float = 1.0
    second: Any | None = None
    second_unit: float = 1.0
    digits: tuple[Any, ...] = ()
    digit_units: tuple[float, ...] = ()

    @property
    def labelled(self) -> bool:
        return self.criterion < VARIANCE

    def sample(self, rows: Any | None, counts: Any | None, xp: Any) -> Sample:
        """What a tree grows from: these rows, each as often as counts says."""
        weights = self.weights if counts is None else self.weights * counts
        if self.labelled:
            return Sample(rows, self.target, weights[:, None], self.n_classes)
        values = xp.stack([weights, weights * self.target], axis=1)
        return Sample(rows, None, values, 2, self.target)

    def in_scores(self, amount: float) -> float:
        """An amount of integer weight times impurity, in units of the score."""
        if self.criterion == ENTROPY:
            return amount * math.log(2.0)
        amount = amount / self.unit
        return amount / self.unit if self.criterion == VARIANCE else amount

    def weight(self, sums: np.ndarray) -> np.ndarray:
        """Integer weight of nodes with these sums."""
        return sums.sum(axis=1) if self.labelled else sums[:, 0]

    def values(self, sums: np.ndarray, rest: np.ndarray | None) -> np.ndarray:
        """Class shares, or the mean of y: [node, output]; `rest` is what the digits add to it."""
        weight = self.weight(sums).astype(np.float64)[:, None]
        if self.labelled:
            return sums / weight
        mean = self.shift + self.unit * (sums[:, 1:] / weight)
        return mean if rest is None else mean + rest[:, None]

    def rest(self, sums: np.ndarray, digits: np.ndarray) -> np.ndarray | None:
        """Means of unit_1 d_1 + unit_2 d_2 + ..., the smallest first, of their sums [node, j]."""
        weight = self.weight(sums).astype(np.float64)
        rest = None
        for j in reversed(range(len(self.digit_units))):
            mean = self.digit_units[j] * (digits[:, j] / weight)
            rest = mean if rest is None else mean + rest
        return rest

    def impurities(self, sums: np.ndarray, second: np.ndarray | None) -> np.ndarray:
        """Impurity of nodes; `second` are their sums of w times `second`."""
        weight = self.weight(sums).astype(np.float64)
        if self.labelled:
            return CLASS_IMPURITIES[self.criterion](sums / weight[:, None])
        assert second is not None
        mean, first = sums[:, 1] / weight, self.second_unit * (second / weight)
        if self.criterion == VARIANCE:
            with np.errstate(over="ignore"):
                return np.maximum(first - mean * mean, 0.0) * self.unit * self.unit
        mean = self.unit * mean
        return np.maximum(first - times_log(mean), 0.0)


def class_statistics(
    criterion: str,
    index: Any,
    n_classes: int,
    weights: Any | None,
    engine: Engine,
    bits: int = CLASS_WEIGHT_BITS,
) -> Statistics:
    """Labels as they are; weights as integers."""
    xp = engine.where.xp
    q, unit = _weights(index, weights, bits, engine)
    return Statistics(CLASS_CRITERIA[criterion], n_classes, xp.astype(index, xp.int64), q, unit)


def real_statistics(criterion: str, y: Any, weights: Any | None, engine: Engine) -> Statistics:
    """Targets as integers, as fine as their weighted sum allows."""
    xp, kind = engine.where.xp, REAL_CRITERIA[criterion]
    q, weight_unit = _weights(y, weights, WEIGHT_BITS, engine)
    low, high = float(xp.min(y)), float(xp.max(y))
    middle = 0.5 * low + 0.5 * high if kind == VARIANCE else 0.0
    bits = min(TARGET_BITS, SUM_BITS - int(xp.sum(q)).bit_length())
    reach = max(high - middle, middle - low)
    unit = _unit(reach, bits)
    units = middle / unit if reach > 0.0 else math.inf
    shift = float(np.rint(units)) * unit if math.isfinite(units) else middle
    t = xp.round((y - shift) / unit)
    digits, digit_units = _digits(y - (shift + unit * t), unit, bits, xp)
    real = Statistics(
        kind, 0, xp.astype(t, xp.int64), q, weight_unit, shift, unit, digits=digits,
        digit_units=digit_units,
    )  # fmt: skip
    return replace(real, **_second(real, engine, bits))


def _digits(
    rest: Any, unit: float, bits: int, xp: Any
) -> tuple[tuple[Any, ...], tuple[float, ...]]:
    """Digits of `bits` bits each, and their units, until nothing is left (or nothing that counts).

    Units are powers of two, and every difference is exact.
    """
    digits: list[Any] = []
    units: list[float] = []
    while len(units) * bits < DIGIT_BITS and bool(xp.any(rest != 0.0)):
        unit = math.ldexp(unit, -bits)
        if unit < SMALLEST_UNIT:
            break
        digit = xp.round(rest / unit)
        rest = rest - unit * digit
        digits.append(xp.astype(digit, xp.int64))
        units.append(unit)
    return tuple(digits), tuple(units)


def _second(real: Statistics, engine: Engine, bits: int) -> dict[str, Any]:
    xp, where = engine.where.xp, engine.where
    t = where.as_float64(real.target)
    if real.criterion == VARIANCE:
        second = t * t
    else:
        y = where.host(t * real.unit)
        second = where.put(times_log(y))
    unit = _unit(float(xp.max(xp.abs(second))), bits)
    return {"second": xp.astype(xp.round(second / unit), xp.int64), "second_unit": unit}


def _unit(largest: float, bits: int) -> float:
    """The power of two in which `largest` has `bits` bits."""
    return math.ldexp(1.0, max(math.frexp(largest)[1] - bits, -1000))


def _weights(like: Any, weights: Any | None, bits: int, engine: Engine) -> tuple[Any, float]:
    """Integer weights [rows], none of them zero, and what a weight of one is worth."""
    xp, where = engine.where.xp, engine.where
    q = integer_weights(weights, bits, engine)
    if weights is None or q is None:
        return where.zeros(like.shape, xp.int64) + 1, 1.0
    q = xp.where(q > 0, q, xp.ones_like(q))
    whole = float(xp.sum(weights / xp.max(weights))) * float(xp.max(weights))
    return q, 1.0 if bool(xp.all(xp.astype(q, xp.float64) == weights)) else whole / int(xp.sum(q))
