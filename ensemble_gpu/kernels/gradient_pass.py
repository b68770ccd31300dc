"""A round of gradient boosting in one pass over the rows, and a look at what it leads to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class GradientPass:
    """A round's pass over all rows: F moves, and its gradients become packed integers.

    With F[k, i] += table[k, index[i]] (`move` = (index, table); None: F stays), w_i the weight of
    row i where it is taken, else 0, and the derivatives of the loss at F,

        g = w l'(y, F),  h = w l''(y, F) (`flat`: w),
        packed[k, i] = rint(-g / unit_g) 2^32 + rint(h / unit_h).

    F and packed [outputs, rows] are written to. `y` is [rows], or [outputs, rows] where every
    output has a target of its own; `joint`: the outputs share it. `weights` are at most 1, `taken`
    is bool; None: 1, and all.
    """

    loss: Any
    y: Any
    F: Any
    packed: Any
    units: tuple[float, float]
    joint: bool
    flat: bool = False
    weights: Any | None = None
    taken: Any | None = None
    move: tuple[Any, np.ndarray] | None = None


@dataclass(frozen=True)
class LossPass:
    """The loss after a round that is not followed yet.

    With out[k, i] = F[k, i] + table[k, index[i]] (`move` = (index, table)) it is the sum over rows
    and outputs of w_i l(y, out). `out` is written to; `y` and `weights` as of `GradientPass`, but
    no output shares its target with others.
    """

    loss: Any
    y: Any
    F: Any
    out: Any
    move: tuple[Any, np.ndarray]
    weights: Any | None = None
