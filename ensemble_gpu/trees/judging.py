"""What trees of several capacities lose on rows that they have not seen, from one walk.

Each row is sent to its leaf once. What the rows of a node lose if it is a leaf is a formula of sums
over them, which are integers; the loss of a tree is the sum of that of its leaves, and splitting a
node changes it by loss(left) + loss(right) - loss(node), from the first capacity on that is enough.

Of V_k the weight of the rows of class k in a node, V their sum, and p the shares of the node:

    error      V - V_k, k the first class of the largest p_k
    log_loss   sum_k -V_k ln p_k, a share of 0 counting as the least float
    brier      sum_k V_k (1 - p_k)^2 + (V - V_k) p_k^2 (of two classes the half of it)

and of targets t, V the weight and m the mean of the rows in a node, v its value:

    mse        sum_i w_i (t_i - v)^2 = S + V (m - v)^2,   S = sum_i w_i (t_i - m)^2

where S adds up as S_left + S_right + V_left V_right / V (m_left - m_right)^2.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ensemble_gpu.arrays.sparse import take_rows
from ensemble_gpu.kernels.host.criteria import logs
from ensemble_gpu.kernels.host.nodes import add_subtrees
from ensemble_gpu.kernels.protocol import Engine
from ensemble_gpu.kernels.sparse import apply_forest
from ensemble_gpu.kernels.tree_protocol import LEAF
from ensemble_gpu.model.forest import Forest
from ensemble_gpu.model.nodes import Nodes
from ensemble_gpu.trees.statistics import TARGET_BITS, Statistics

ERROR, LOG_LOSS, BRIER = CLASS_LOSSES = ("error", "log_loss", "brier")
MSE = "mse"
# Sums of weights times integers stay below 2^MOST_BITS.
MOST_BITS = 61


def node_losses(
    engine: Engine, X: Any, statistics: Statistics, counts: np.ndarray, tree: Forest, loss: str
) -> tuple[np.ndarray, float]:
    """What the rows that come to each node [node] would lose in it, and the weight of all rows.

    Rows are there as often as `counts` says; losses are in units of integer weight (and, of a
    regression, of t^2).
    """
    where, xp = engine.where, engine.where.xp
    held = np.flatnonzero(counts)
    rows = where.put(held.astype(np.int32))
    leaf = engine.adopt(apply_forest(engine, take_rows(X, rows), tree.packed))[:, 0]
    target = xp.take(statistics.target, rows)
    weights = xp.take(statistics.weights, rows) * where.put(counts[held].astype(np.int64))
    if statistics.labelled:
        sums = _class_sums(engine, leaf, target, weights, tree)
        lost = _CLASSES[loss](sums, np.sum(sums, axis=1), tree.nodes.value)
    else:
        sums, lost = _squared(engine, leaf, target, weights, tree, statistics)
    return lost, float(np.sum(sums[0]))


def curve(nodes: Nodes, losses: np.ndarray, places: np.ndarray, n: int) -> np.ndarray:
    """The loss of the tree of each of n capacities; places[node] is the first that splits it.

    Losses become integers of 61 bits: what has been added can be taken away again, exactly.
    """
    unit = math.ldexp(1.0, math.frexp(float(np.sum(losses)))[1] - MOST_BITS)
    whole = np.rint(losses / unit).astype(np.int64)
    inner = np.flatnonzero(nodes.left != LEAF)
    changes = np.zeros(n + 1, dtype=np.int64)
    less = whole[nodes.left[inner]] + whole[nodes.right[inner]] - whole[inner]
    np.add.at(changes, places[inner], less)
    return (whole[0] + np.cumsum(changes[:n])) * unit


def _added_up(nodes: Nodes, sums: np.ndarray) -> np.ndarray:
    """Those of inner nodes include those below them."""
    add_subtrees(np.array(nodes.left), np.array(nodes.right), sums)
    return sums


def _class_sums(engine: Engine, leaf: Any, label: Any, weights: Any, tree: Forest) -> np.ndarray:
    """V_k of every node: int64 [node, class]."""
    n, k = tree.nodes.value.shape
    sums = engine.sums_by(leaf * k + label, weights[:, None], n * k)
    return _added_up(tree.nodes, sums.reshape(n, k))


def _error(sums: np.ndarray, total: np.ndarray, p: np.ndarray) -> np.ndarray:
    right = np.take_along_axis(sums, np.argmax(p, axis=1)[:, None], axis=1)[:, 0]
    return (total - right).astype(np.float64)


def _log_loss(sums: np.ndarray, total: np.ndarray, p: np.ndarray) -> np.ndarray:
    lost = np.zeros(len(p))
    for k in range(p.shape[1]):
        lost -= sums[:, k] * logs(np.maximum(p[:, k], np.finfo(np.float64).tiny))
    return lost


def _brier(sums: np.ndarray, total: np.ndarray, p: np.ndarray) -> np.ndarray:
    lost = np.zeros(len(p))
    for k in range(p.shape[1]):
        lost += sums[:, k] * (1.0 - p[:, k]) ** 2 + (total - sums[:, k]) * p[:, k] ** 2
    return 0.5 * lost if p.shape[1] == 2 else lost


_CLASSES = {ERROR: _error, LOG_LOSS: _log_loss, BRIER: _brier}


def _squared(
    engine: Engine, leaf: Any, t: Any, weights: Any, tree: Forest, statistics: Statistics
) -> tuple[np.ndarray, np.ndarray]:
    """(V [node, 1], loss [node]).

    Squares are those of r = t - c, c the value of the row's leaf as an integer: small where the
    tree is right, so that their rounding is small beside the loss, whatever the range of y.
    """
    xp, where, nodes = engine.where.xp, engine.where, tree.nodes
    value = (nodes.value[:, 0] - statistics.shift) / statistics.unit
    centre = np.rint(value).astype(np.int64)
    r = where.as_float64(t - xp.take(where.put(centre), leaf))
    bits = min(TARGET_BITS, MOST_BITS - int(xp.sum(weights)).bit_length())
    square = r * r
    largest = float(xp.max(square)) if square.shape[0] else 0.0
    unit = math.ldexp(1.0, math.frexp(largest)[1] - bits)
    squares = xp.astype(xp.round(square / unit), xp.int64)
    values = xp.stack([weights, weights * t, weights * squares], axis=1)
    sums = engine.sums_by(leaf, values, len(nodes))
    off = (sums[:, 1] - centre * sums[:, 0]).astype(np.float64)
    spread = np.maximum(unit * sums[:, 2] - _over(off**2, sums[:, 0]), 0.0)[:, None]  # of leaves
    sums = _added_up(nodes, np.ascontiguousarray(sums[:, :2]))
    mean = _over(sums[:, 1], sums[:, 0])
    inner = np.flatnonzero(nodes.left != LEAF)
    left, right = nodes.left[inner], nodes.right[inner]
    both = _over(sums[left, 0] * 1.0 * sums[right, 0], sums[inner, 0])
    spread[inner, 0] = both * (mean[left] - mean[right]) ** 2
    spread = _added_up(nodes, spread)[:, 0]
    return sums[:, :1], spread + sums[:, 0] * (mean - value) ** 2


def _over(a: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """A quotient of floats; 0 where no row is."""
    return np.where(weight > 0, a / np.maximum(weight, 1), 0.0)
