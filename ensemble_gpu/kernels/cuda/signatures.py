"""Every kernel and the argument types that its launcher passes.

The compiled tests and the cost sheet compile exactly these; a simulator test records what
`launch` is given and compares it with this table.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ensemble_gpu.kernels.cuda import binning, evaluate, histogram, requantise, rowwise, score


@dataclass(frozen=True)
class Array:
    """A device array argument; layout "C", "F" or "A" (any strides)."""

    dtype: str
    ndim: int
    layout: str = "C"


Argument = Array | str  # a string is the dtype of a scalar

_CODES, _Q, _SUMS = Array("uint64", 2), Array("int32", 2), Array("int64", 2)
_PARTS = _GROUP_OF = Array("int32", 2)
_ROWS = (_CODES, _PARTS, _GROUP_OF)
_FLOATS = Array("float64", 2)
_UPDATE = (*_ROWS, "int32", "uint64", _FLOATS, _Q, _SUMS, Array("int32", 1))
_LOGS = (
    *_ROWS, Array("int32", 2), "int32", "uint32", Array("int64", 3), Array("int64", 1),
    Array("int64", 1),
)  # fmt: skip
_SPLIT = (
    _SUMS, Array("int64", 2), Array("int32", 1), Array("float64", 2), "int32", "int32", "int32",
    "int32",
)  # fmt: skip
_ENCODE = (Array("int64", 1), Array("float64", 2), *(5 * ("int32",)), _CODES)
_EVALUATE = (
    Array("int64", 2), Array("float64", 1), Array("float64", 2), Array("float64", 2),
    Array("float64", 2),
)  # fmt: skip
# X as users have it.
X_TYPES = [Array(dtype, 2, layout) for dtype in ("float32", "float64") for layout in "CFA"]

SIGNATURES: dict[str, list[tuple[Argument, ...]]] = {
    "encode": [(x, *_ENCODE) for x in X_TYPES],
    "build": [(*_ROWS, _Q, _SUMS)],
    "build_wide": [(*_ROWS, _Q, _SUMS, "int64")],
    "update": [_UPDATE],
    "update_wide": [(*_UPDATE, "int64")],
    "heaviest": [_LOGS],
    "quantise": [(*_LOGS, Array("float64", 2), _Q, Array("int32", 1))],
    "score": [(*_SPLIT, "int32", Array("float64", 1))],
    "choose": [
        (Array("float64", 1), *_SPLIT, Array("int32", 1), Array("int64", 1), Array("float64", 1))
    ],
    "evaluate": [(x, *_EVALUATE) for x in X_TYPES],
    "exponentiate": [(_FLOATS, Array("float64", 1), _FLOATS, _FLOATS)],
    "move": [(_FLOATS, Array("int32", 1), "int32", "int32", _FLOATS, _FLOATS)],
    "pack": [(_FLOATS, _FLOATS, "float64", "float64", Array("int64", 2))],
}

KERNELS: dict[str, Any] = {
    "encode": binning.encode,
    "build": histogram.build,
    "build_wide": histogram.build_wide,
    "update": histogram.update,
    "update_wide": histogram.update_wide,
    "heaviest": requantise.heaviest,
    "quantise": requantise.quantise,
    "score": score.score,
    "choose": score.choose,
    "evaluate": evaluate.evaluate,
    "exponentiate": rowwise.exponentiate,
    "move": rowwise.move,
    "pack": rowwise.pack,
}
