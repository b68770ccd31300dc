"""What a loss is told of the labels."""

from __future__ import annotations

from typing import Any

from ensemble_gpu.arrays.namespace import Where
from ensemble_gpu.losses.base import Loss
from ensemble_gpu.losses.multinomial import Multinomial


def class_target(loss: Loss, index: Any, n_classes: int, where: Where) -> Any:
    """What the loss takes for y: the class, +-1 [rows], or +-1 [classes, rows] for K > 2."""
    xp = where.xp
    if isinstance(loss, Multinomial):
        return xp.astype(index, xp.int64)
    if n_classes == 2:
        return 2.0 * where.as_float64(index) - 1.0
    own = index[None, :] == xp.arange(n_classes, dtype=index.dtype, device=where.device)[:, None]
    return 2.0 * where.as_float64(own) - 1.0
