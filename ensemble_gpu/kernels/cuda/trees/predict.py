"""Trees applied to rows: one on codes, forests on X."""

from __future__ import annotations

from typing import Any

import numpy as np

from ensemble_gpu.kernels.cuda.device import Device, thread_a_row
from ensemble_gpu.kernels.cuda.limits import check_rows
from ensemble_gpu.kernels.cuda.trees import evaluate as kernels
from ensemble_gpu.kernels.cuda.trees import partition
from ensemble_gpu.kernels.cuda.trees.codes import by_row
from ensemble_gpu.kernels.protocol import Codes
from ensemble_gpu.kernels.tree_protocol import CodeTree, PackedForest


def leaves(codes: Codes, tree: CodeTree, device: Device) -> Any:
    """The leaf of every row of the matrix."""
    where = device.where
    rows, out = by_row(codes, device), where.zeros(codes.n_rows, where.xp.int64)
    columns = (tree.feature, tree.bin, tree.missing_left, tree.left, tree.right)
    nodes = np.stack(columns, axis=1).astype(np.int32)
    subset = tree.subset if tree.subset.shape[1] else np.zeros((1, 1), dtype=np.uint64)
    partition.launch_leaves(
        thread_a_row(device, codes.n_rows), rows.lane_bits, codes.width, rows.handle,
        device.handle(where.put(nodes)), device.handle(where.put(np.ascontiguousarray(subset))),
        device.handle(out),
    )  # fmt: skip
    return out


def evaluate_forest(X: Any, forest: PackedForest, device: Device) -> Any:
    """float64 [n, outputs]."""
    where = device.where
    n, outputs = X.shape[0], len(forest.intercept)
    check_rows(n)
    with device.active(f"predictions of {n} rows", 8 * n * outputs):
        out = where.zeros((n, outputs), where.xp.float64)
        if n:
            nodes_, thresholds_, subsets_, values_ = _forest(forest, device)
            kernels.launch_evaluate_forest(
                thread_a_row(device, n), forest.divisor, device.handle(device.adopt(X)),
                _roots(forest, device), nodes_, thresholds_, subsets_, values_,
                _handle(forest.intercept, device), device.handle(out),
            )  # fmt: skip
        return device.hand_back(out)


def apply_forest(X: Any, forest: PackedForest, device: Device) -> Any:
    """The leaf of every row in every tree."""
    where = device.where
    n, trees = X.shape[0], len(forest.roots)
    check_rows(n)
    with device.active(f"leaves of {n} rows in {trees} trees", 8 * n * trees):
        out = where.zeros((n, trees), where.xp.int64)
        if n and trees:
            nodes_, thresholds_, subsets_, _ = _forest(forest, device)
            kernels.launch_apply_forest(
                thread_a_row(device, n), device.handle(device.adopt(X)), _roots(forest, device),
                nodes_, thresholds_, subsets_, device.handle(out),
            )  # fmt: skip
        return device.hand_back(out)


def _forest(forest: PackedForest, device: Device) -> tuple[Any, Any, Any, Any]:
    """Nodes, thresholds, subsets, values on this device; made once, kept with the forest."""
    key = ("cuda", str(device.where.device))
    if key not in forest.layouts:
        arrays = (*kernels.packed(forest), forest.values)
        forest.layouts[key] = tuple(_handle(a, device) for a in arrays)
    return forest.layouts[key]


def _roots(forest: PackedForest, device: Device) -> Any:
    """Not kept: forests that share their nodes may differ in the trees that they add up."""
    return _handle(forest.roots.astype(np.int32), device)


def _handle(array: np.ndarray, device: Device) -> Any:
    """A host array as a kernel argument."""
    return device.handle(device.where.put(np.ascontiguousarray(array)))
