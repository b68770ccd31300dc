"""Every kernel and the argument types that its launcher passes.

The compiled tests and the cost sheet compile exactly these; a simulator test records what
`launch` is given and compares it with this table.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ensemble_gpu.kernels.cuda import (
    answers,
    binning,
    evaluate,
    histogram,
    requantise,
    rowwise,
    score,
)
from ensemble_gpu.kernels.cuda.trees import best, partition, splits, sums
from ensemble_gpu.kernels.cuda.trees import evaluate as forests


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
# Trees: codes, order, label, values; then parts or ranges, and features.
_TREE_ROWS = (
    _CODES, Array("int32", 1), Array("int32", 1), Array("int64", 2), Array("int32", 2),
    Array("int32", 2),
)  # fmt: skip
_ORDER = _FLAGS = Array("int32", 1)
_NODES, _SUBSETS = Array("int32", 2), Array("uint64", 2)
_BEST = (_FLOATS, Array("int64", 3))
# Criterion, statistics, least rows, least weight, l2, random; signs, bounds, draws, bits of a team.
_SEARCH = (
    *(3 * ("int32",)), "int64", "float64", "int32", Array("int32", 1), _FLOATS, _SUBSETS, "int32",
    *_BEST,
)  # fmt: skip
_SPLIT_ROWS = (*_TREE_ROWS, "int32", "int32", *_SEARCH)
_SPLIT_SUMS = (_SUMS, Array("int32", 1), Array("int32", 2), "int32", *_SEARCH)
_FOREST = (Array("int32", 1), _NODES, Array("float64", 1), _SUBSETS)
_FOREST_VALUES = (_FLOATS, "float64", Array("float64", 1), _FLOATS)
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
    "sum_parts": [(*_TREE_ROWS, *(5 * ("int32",)), _SUMS)],
    "sum_direct": [(*_TREE_ROWS, *(4 * ("int32",)), _SUMS)],
    "subtract": [(_NODES, _SUMS, _SUMS)],
    "split_rows": [_SPLIT_ROWS],
    "split_rows_large": [_SPLIT_ROWS],
    "split_sums": [_SPLIT_SUMS],
    "split_sums_large": [_SPLIT_SUMS],
    "choose_feature": [(*_BEST, Array("int32", 2), _SUMS, _FLOATS)],
    "mark": [(_CODES, _ORDER, _NODES, _SUBSETS, "int32", "int32", _FLAGS, _FLAGS)],
    "scatter": [(_ORDER, _NODES, *(4 * (_FLAGS,)))],
    "restore": [(_NODES, _FLAGS, _ORDER, _ORDER)],
    "number_rows": [(_ORDER, _NODES, Array("int64", 1))],
    "compare": [(_ORDER, _NODES, Array("int64", 1), _FLAGS)],
    "sum_by": [(Array("int64", 1), Array("int64", 2), _SUMS)],
    "leaves": [(_CODES, _NODES, _SUBSETS, "int32", "int32", Array("int64", 1))],
    "evaluate_forest": [(x, *_FOREST, *_FOREST_VALUES) for x in X_TYPES],
    "apply_forest": [(x, *_FOREST, Array("int64", 2)) for x in X_TYPES],
    "digits_of": [(Array("int64", 1), _CODES)],
    "count_answers": [(_CODES, _CODES, Array("int64", 1))],
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
    "sum_parts": sums.sum_parts,
    "sum_direct": sums.sum_direct,
    "subtract": sums.subtract,
    "split_rows": splits.split_rows,
    "split_rows_large": splits.split_rows_large,
    "split_sums": splits.split_sums,
    "split_sums_large": splits.split_sums_large,
    "choose_feature": best.choose_feature,
    "mark": partition.mark,
    "scatter": partition.scatter,
    "restore": partition.restore,
    "number_rows": partition.number_rows,
    "compare": partition.compare,
    "sum_by": partition.sum_by,
    "leaves": partition.leaves,
    "evaluate_forest": forests.evaluate_forest,
    "apply_forest": forests.apply_forest,
    "digits_of": answers.digits_of,
    "count_answers": answers.count_answers,
}
