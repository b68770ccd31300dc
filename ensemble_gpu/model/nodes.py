"""The nodes of a forest, and what can be read off them on the host."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from ensemble_gpu.kernels.tree_protocol import LEAF
from ensemble_gpu.model.base import check_range


def column_type(name: str) -> np.dtype:
    """The type of a column of nodes, as the kernels take it."""
    if name == "missing_left":
        return np.dtype(bool)
    floats = ("threshold", "value", "impurity", "weight")
    return np.dtype("f8" if name in floats else "i4")


@dataclass(frozen=True)
class Nodes:
    """One entry a node; trees one after the other, each in preorder (left child = position + 1).

    x[feature] <= threshold goes left (inf: everything present does), NaN where `missing_left`.
    `feature`, `left`, `right` are LEAF for leaves; `subset` >= 0 is the row of the subsets that
    tests a categorical feature (None: no node has one). `threshold` is NaN for leaves and
    categorical tests. `value` [nodes, outputs], `impurity`, `n_samples` and `weight` describe the
    rows of the training sample that came to the node, inner nodes too.
    """

    feature: np.ndarray
    threshold: np.ndarray
    missing_left: np.ndarray
    left: np.ndarray
    right: np.ndarray
    subset: np.ndarray
    value: np.ndarray
    impurity: np.ndarray
    n_samples: np.ndarray
    weight: np.ndarray

    def __post_init__(self) -> None:
        if self.subset is None:
            object.__setattr__(self, "subset", no_subset(len(self.feature)))

    def __len__(self) -> int:
        return len(self.feature)

    def frozen(self) -> Nodes:
        """The same nodes as read-only arrays of the types that the kernels take."""
        own = {}
        for name, array in vars(self).items():
            dtype = column_type(name)
            if name == "subset" and len(array) and not array.strides[0]:
                own[name] = array
                continue
            own[name] = np.ascontiguousarray(array, dtype=dtype).view()
            own[name].flags.writeable = False
        if not (own["subset"] >= 0).any():
            own["subset"] = no_subset(len(self))
        return Nodes(**own)

    def between(self, low: int, high: int) -> Nodes:
        """Nodes low ... high - 1 as a forest of their own."""
        return Nodes(*(array[low:high] for array in vars(self).values())).moved(-low, 0)

    def moved(self, by: int, subsets_by: int) -> Nodes:
        """The nodes at other positions."""
        inner = self.feature != LEAF
        return replace(
            self,
            left=np.where(inner, self.left + by, LEAF),
            right=np.where(inner, self.right + by, LEAF),
            subset=np.where(self.subset >= 0, self.subset + subsets_by, LEAF),
        )

    def with_subsets(self, rows: np.ndarray) -> Nodes:
        """The nodes with other rows of the subsets where they have one."""
        return replace(self, subset=np.where(self.subset >= 0, rows, LEAF))


class Gathered:
    """Nodes of several forests in one, copied part by part, so that no part has to be kept.

    Columns are allocated for `expected` parts of the size of the first and an eighth more (memory
    that the system provides when it is used); beyond that they grow by doubling.
    """

    def __init__(self, expected: int = 1) -> None:
        self.n, self.expected = 0, expected
        self.columns: dict[str, np.ndarray] = {}

    def add(self, part: Nodes, n_subsets: int) -> None:
        """Append nodes behind those that are there, which have n subsets."""
        last = self.n + len(part)
        for name, array in vars(part).items():
            if name == "subset" and name not in self.columns and not array.strides[0]:
                continue
            self._reserve(name, array, last)
            by = {"left": self.n, "right": self.n, "subset": n_subsets}.get(name, 0)
            moved = array if by == 0 else np.where(array >= 0, array + by, LEAF)
            self.columns[name][self.n : last] = moved
        self.n = last

    def _reserve(self, name: str, like: np.ndarray, n: int) -> None:
        old = self.columns.get(name)
        if old is not None and n <= len(old):
            return
        capacity = n * self.expected * 9 // 8 if old is None else max(n, 2 * len(old))
        new = np.empty((capacity, *like.shape[1:]), dtype=like.dtype)
        new[: self.n] = LEAF if old is None else old[: self.n]  # the first subset of all
        self.columns[name] = new

    def nodes(self, n: int | None = None) -> Nodes:
        """The first n nodes, or all."""
        n = self.n if n is None else n
        columns = {name: column[:n] for name, column in self.columns.items()}
        return Nodes(**({"subset": no_subset(n)} | columns))


def no_subset(n: int) -> np.ndarray:
    """LEAF for n nodes, in the memory of one."""
    return np.broadcast_to(np.int32(LEAF), (n,))


def _refuse(name: str, found: object, allowed: str) -> None:
    raise ValueError(f"{name} must be {allowed}; got {found!r}.")


def check_nodes(
    nodes: Nodes,
    starts: np.ndarray,
    n_features: int,
    subsets: np.ndarray,
    categories: Mapping[int, np.ndarray],
    intercept: np.ndarray,
) -> None:
    """Raise where a kernel could leave the arrays, or would never reach a leaf."""
    n = len(nodes)
    for name, array in vars(nodes).items():
        if len(array) != n or array.ndim != (2 if name == "value" else 1):
            _refuse(f"nodes.{name}", array.shape, f"an array of {n} entries, one a node")
    if intercept.shape != nodes.value.shape[1:]:
        _refuse("intercept", intercept.shape, f"of shape {nodes.value.shape[1:]}, as the values")
    ends = np.append(starts, n)
    if ends[0] != 0 or (np.diff(ends) <= 0).any():
        _refuse("starts", starts, f"ascending from 0 to below {n}, the number of nodes")
    inner = nodes.feature != LEAF
    _check_children(nodes, inner, ends)
    check_range("nodes.feature", nodes.feature, LEAF, n_features - 1)
    check_range("nodes.subset", nodes.subset, LEAF, len(subsets) - 1)
    unknown = np.isnan(nodes.threshold) & inner
    if len(subsets):
        unknown &= nodes.subset == LEAF
    if unknown.any():
        _refuse(f"the threshold of node {np.flatnonzero(unknown)[0]}", np.nan, "a number")
    if not np.isfinite(nodes.value).all():
        _refuse("nodes.value", "NaN or infinity", "finite")
    _check_categories(nodes, n_features, subsets, categories)


def _check_children(nodes: Nodes, inner: np.ndarray, ends: np.ndarray) -> None:
    """Raise unless every node but the roots is the child of one node, which is before it."""
    at = np.flatnonzero(inner)
    left, right = nodes.left[at], nodes.right[at]
    wrong = (left != at + 1) | (right <= left) | (right >= np.repeat(ends[1:], np.diff(ends))[at])
    if wrong.any():
        i = int(at[wrong][0])
        _refuse(
            f"the children of node {i}", (int(nodes.left[i]), int(nodes.right[i])),
            f"{i + 1} and a later node of its tree (preorder)",
        )  # fmt: skip
    is_child = np.zeros(len(nodes), dtype=bool)
    is_child[1:] = inner[:-1]
    is_child[right] = True
    n_others, n_children = len(nodes) - (len(ends) - 1), np.count_nonzero(is_child)
    if not 2 * len(at) == n_children == n_others:
        _refuse(
            "nodes", f"{2 * len(at)} children, {n_children} of them different",
            f"trees, whose {n_others} nodes below the roots are the child of one node each",
        )  # fmt: skip
    n_pointers = np.count_nonzero(nodes.left != LEAF) + np.count_nonzero(nodes.right != LEAF)
    if n_pointers != n_others:
        _refuse("the children of leaves", "others", f"{LEAF}")


def _check_categories(
    nodes: Nodes, n_features: int, subsets: np.ndarray, categories: Mapping[int, np.ndarray]
) -> None:
    if subsets.ndim != 2:
        _refuse("subsets", subsets.shape, "of shape (subsets, words)")
    for f, values in categories.items():
        if not 0 <= f < n_features:
            _refuse("categories", f, f"keyed by features from 0 to {n_features - 1}")
        if np.isnan(values).any() or not (np.diff(values) > 0).all():
            _refuse(f"categories[{f}]", values, "ascending, without NaN")
        bits = 64 * subsets.shape[1]
        if len(subsets) and len(values) > bits and (nodes.subset[nodes.feature == f] >= 0).any():
            _refuse(f"categories[{f}]", len(values), f"at most {bits} values, the bits of a subset")


def depths(nodes: Nodes, starts: np.ndarray) -> np.ndarray:
    """Tests between the root and each node."""
    depth, at = np.zeros(len(nodes), dtype=np.int64), starts
    level = 0
    while len(at):
        depth[at] = level
        inner = at[nodes.feature[at] != LEAF]
        at = np.concatenate([nodes.left[inner], nodes.right[inner]])
        level += 1
    return depth


def paths(nodes: Nodes, depth: np.ndarray, leaves: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Indices and row pointers of the CSR matrix of the nodes above (and at) leaves[row, tree].

    A path is filled in from its end: parents come before their children.
    """
    parent = np.full(len(nodes), LEAF, dtype=np.int64)
    inner = np.flatnonzero(nodes.feature != LEAF)
    parent[nodes.left[inner]] = parent[nodes.right[inner]] = inner
    n, n_trees = leaves.shape
    at = leaves.reshape(-1)
    ends = np.cumsum(depth[at] + 1)
    indices = np.zeros(int(ends[-1]) if len(ends) else 0, dtype=np.int64)
    place = ends.copy()
    while len(at):
        place -= 1
        indices[place] = at
        up = parent[at]
        at, place = up[up != LEAF], place[up != LEAF]
    row_ends = ends[n_trees - 1 :: n_trees] if n_trees else np.zeros(n, dtype=np.int64)
    return indices, np.concatenate([[0], row_ends])


def tree_importances(nodes: Nodes, span: slice, n_features: int) -> np.ndarray:
    """Share of each feature in what the tests of one tree took from the impurity."""
    feature = nodes.feature[span]
    with np.errstate(over="ignore", invalid="ignore"):
        mass = nodes.weight[span] * nodes.impurity[span]
    inner = np.flatnonzero(feature != LEAF)
    left, right = (a[span][inner] - span.start for a in (nodes.left, nodes.right))
    if np.isfinite(mass).all():
        gain = mass[inner] - mass[left] - mass[right]
    else:
        gain = _gain_of_means(nodes, span, left, right)
    found = np.bincount(feature[inner], gain, n_features) / nodes.weight[span.start]
    total = found.sum()
    return found / total if total > 0.0 else found


def _gain_of_means(nodes: Nodes, span: slice, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """W_l W_r / (W_l + W_r) (m_l - m_r)^2 of the children's means, in units of the largest.

    That is what a test takes from the variance, where the variance itself is beyond float64.
    """
    mean, weight = nodes.value[span, 0], nodes.weight[span] / nodes.weight[span.start]
    mean = mean / np.abs(mean).max()
    both = weight[left] * weight[right] / (weight[left] + weight[right])
    return both * (mean[left] - mean[right]) ** 2
