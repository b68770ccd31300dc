"""Trees as flat arrays of nodes.

    F(x) = intercept + (sum over trees t of value[leaf_t(x)]) / T

and without the division where trees were boosted instead of averaged. The sum runs in the order of
the trees, so every engine returns the same bits.
"""

from __future__ import annotations

import hashlib
import numbers
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np

from ensemble_gpu.arrays.devices import to_workplace
from ensemble_gpu.arrays.namespace import Where, locate, to_numpy
from ensemble_gpu.data.categories import encode
from ensemble_gpu.kernels.select import engine_for
from ensemble_gpu.kernels.tree_protocol import LEAF, PackedForest
from ensemble_gpu.model.inputs import rows_of
from ensemble_gpu.model.nodes import Gathered, Nodes, check_nodes, depths, paths, tree_importances

# Leaves that staged predictions look up at once: bounds their memory.
STAGED_LEAVES = 1 << 22


class Forest:
    """Immutable trees on the host; call it with arrays of any library.

    Parameters
    ----------
    nodes : Nodes
        Trees one after the other, each in preorder.
    starts : array of int
        Position of each tree's root.
    n_features : int
    subsets : uint64 array [subsets, words], optional
        Bit c of a row: category number c goes left.
    categories : mapping of feature to array, optional
        The values of a categorical feature, ascending; a value's place is its number, and other
        values count as missing.
    intercept : array of n_outputs values, optional
        Zeros by default.
    average : bool
        Whether F is the mean of the trees or their sum.
    checked : bool
        The nodes are known to be sound, because they come from sound forests.
    """

    nodes: Nodes
    starts: np.ndarray
    n_features: int
    subsets: np.ndarray
    categories: Mapping[int, np.ndarray]
    intercept: np.ndarray
    average: bool

    def __init__(
        self,
        nodes: Nodes,
        starts: np.ndarray,
        n_features: int,
        *,
        subsets: np.ndarray | None = None,
        categories: Mapping[int, np.ndarray] | None = None,
        intercept: np.ndarray | None = None,
        average: bool = True,
        checked: bool = False,
    ) -> None:
        nodes = nodes.frozen()
        if subsets is None:
            subsets = np.zeros((0, 0))
        if intercept is None:
            intercept = np.zeros(nodes.value.shape[1])
        known = {
            int(f): _own(values, np.float64) for f, values in sorted((categories or {}).items())
        }
        for name, value in {
            "nodes": nodes, "starts": _own(starts, np.int64), "n_features": int(n_features),
            "subsets": _own(subsets, np.uint64), "categories": MappingProxyType(known),
            "intercept": _own(intercept, np.float64), "average": bool(average),
        }.items():  # fmt: skip
            object.__setattr__(self, name, value)
        if not checked:
            check_nodes(nodes, self.starts, self.n_features, self.subsets, known, self.intercept)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"Forest is immutable; cannot set {name!r}.")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"Forest is immutable; cannot delete {name!r}.")

    def _options(self) -> dict[str, Any]:
        return {
            "subsets": self.subsets, "categories": dict(self.categories),
            "intercept": self.intercept, "average": self.average,
        }  # fmt: skip

    def __getstate__(self) -> dict[str, Any]:
        own = {"nodes": self.nodes, "starts": self.starts, "n_features": self.n_features}
        return own | self._options()

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]

    @property
    def n_outputs(self) -> int:
        return len(self.intercept)

    @property
    def n_trees(self) -> int:
        return len(self.starts)

    def __len__(self) -> int:
        return self.n_trees

    @cached_property
    def node_ptr(self) -> np.ndarray:
        """Tree t has the nodes node_ptr[t] ... node_ptr[t + 1] - 1."""
        return _own(np.append(self.starts, len(self.nodes)), np.int64)

    @cached_property
    def _depths(self) -> np.ndarray:
        return depths(self.nodes, self.starts)

    def depth(self, t: int = 0) -> int:
        """Tests on the longest way from root to leaf of tree t."""
        return int(self._depths[self._span(t)].max())

    def n_leaves(self, t: int = 0) -> int:
        return int((self.nodes.feature[self._span(t)] == LEAF).sum())

    def _span(self, t: int) -> slice:
        """Where the nodes of tree t are."""
        if isinstance(t, bool) or not isinstance(t, numbers.Integral):
            raise TypeError(f"tree must be an integer; got {t!r}.")
        if not 0 <= t < self.n_trees:
            raise ValueError(f"tree must be an integer from 0 to {self.n_trees - 1}; got {t!r}.")
        return slice(int(self.node_ptr[t]), int(self.node_ptr[t + 1]))

    def __repr__(self) -> str:
        depth = int(self._depths.max(initial=0))
        return (
            f"Forest({self.n_trees} tree(s), {len(self.nodes)} nodes, depth {depth}, "
            f"{self.n_features} features, {self.n_outputs} output(s), "
            f"fingerprint {self.fingerprint()[:12]})"
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Forest) and self.fingerprint() == other.fingerprint()

    def __hash__(self) -> int:
        return hash(self.fingerprint())

    def fingerprint(self) -> str:
        """SHA-256 of the canonical bytes: equal fingerprints mean equal models."""
        return self._fingerprint

    @cached_property
    def _fingerprint(self) -> str:
        digest = hashlib.sha256(b"ensemble_gpu.Forest.1")
        sizes = [self.n_features, self.n_outputs, self.n_trees, len(self.nodes), self.average]
        sizes += [*self.subsets.shape, len(self.categories)]
        sizes += [size for f, values in self.categories.items() for size in (f, len(values))]
        digest.update(np.array(sizes, dtype="<i8").tobytes())
        arrays = [self.intercept, self.starts, *vars(self.nodes).values()]
        for array in [*arrays, self.subsets, *self.categories.values()]:
            digest.update(_canonical(array))
        return digest.hexdigest()

    def tree(self, t: int) -> Forest:
        """Tree t alone, without the intercept."""
        self._span(t)
        return self._between(int(t), int(t) + 1, np.zeros(self.n_outputs))

    def first(self, n_trees: int) -> Forest:
        """The model of the first n trees (of all, where there are fewer)."""
        if n_trees < 0:
            raise ValueError(f"n_trees must be an integer >= 0; got {n_trees!r}.")
        return self._between(0, min(int(n_trees), self.n_trees), self.intercept)

    def _between(self, start: int, stop: int, intercept: np.ndarray) -> Forest:
        """Trees start ... stop - 1, with the subsets that they use."""
        low, high = int(self.node_ptr[start]), int(self.node_ptr[stop])
        nodes = self.nodes.between(low, high)
        kept = np.unique(nodes.subset[nodes.subset >= 0])
        nodes = nodes.with_subsets(np.searchsorted(kept, nodes.subset))
        options = self._options() | {"subsets": self.subsets[kept], "intercept": intercept}
        return Forest(nodes, self.starts[start:stop] - low, self.n_features, **options)

    @classmethod
    def join(cls, forests: Iterable[Forest], expected: int = 1) -> Forest:
        """One forest of the trees of all, in this order; they must agree in everything else.

        They are taken one by one: of an iterator, which may say how many to expect, none is kept.
        """
        one: Forest | None = None
        nodes, starts = Gathered(expected), []
        subsets: list[np.ndarray] = []
        for forest in forests:
            one = one or forest
            _check_alike(one, forest)
            starts.append(forest.starts + nodes.n)
            nodes.add(forest.nodes, sum(len(s) for s in subsets))
            subsets.append(forest.subsets)
        if one is None:
            raise ValueError("forests must hold at least one Forest; got none.")
        words = max(s.shape[1] for s in subsets)
        padded = [np.pad(s, ((0, 0), (0, words - s.shape[1]))) for s in subsets]
        options = one._options() | {"subsets": np.concatenate(padded), "checked": True}
        return cls(nodes.nodes(), np.concatenate(starts), one.n_features, **options)

    @cached_property
    def packed(self) -> PackedForest:
        """The trees as the kernels take them; no copy."""
        nodes = self.nodes
        return PackedForest(
            self.starts, nodes.feature, nodes.threshold, nodes.missing_left, nodes.left,
            nodes.right, np.ascontiguousarray(nodes.subset), self.subsets, nodes.value,
            float(max(1, self.n_trees)) if self.average else 1.0, self.intercept,
        )  # fmt: skip

    def __call__(self, X: Any, n_jobs: int | None = None) -> Any:
        """F(X) as float64 [n, outputs], in the namespace and on the device of X.

        X is an array of any array-API library or a list of rows; NaN is missing. (Namespaces
        without float64 get their widest float.)
        """
        home, engine, X = self._prepare(X, n_jobs)
        return home.hand_over(engine.evaluate_forest(X, self.packed))

    def apply(self, X: Any, n_jobs: int | None = None) -> Any:
        """The leaf of every row in every tree: int64 [n, trees], its number within the tree."""
        home, engine, X = self._prepare(X, n_jobs)
        leaves = engine.apply_forest(X, self.packed)
        return home.hand_over(leaves - locate(leaves).put(self.starts)[None, :])

    def _prepare(self, X: Any, n_jobs: int | None) -> tuple[Where, Any, Any]:
        """Where X lives, the engine that works there, and X as it takes it."""
        X = rows_of(X, self.n_features)
        home, X = locate(X), to_workplace(X)
        where = locate(X)
        engine: Any = engine_for(where, n_jobs)
        if self.categories:
            X = encode(X, self.categories, where)
        return home, engine, engine.view(X)

    def decision_path(self, X: Any, n_jobs: int | None = None) -> tuple[Any, np.ndarray]:
        """The nodes that each row passes: a CSR matrix [n, nodes] on the host, and `node_ptr`.

        Columns node_ptr[t] ... node_ptr[t + 1] - 1 belong to tree t.
        """
        from scipy.sparse import csr_matrix

        leaves = to_numpy(self.apply(X, n_jobs)).astype(np.int64) + self.starts
        indices, indptr = paths(self.nodes, self._depths, leaves)
        shape = (leaves.shape[0], len(self.nodes))
        return csr_matrix((np.ones_like(indices), indices, indptr), shape=shape), self.node_ptr

    def staged(self, X: Any, rounds: Sequence[int] | None = None) -> Iterator[Any]:
        """F after each tree, starting with the first; one float64 array [n, outputs] a stage.

        With `rounds`, ascending numbers of trees, only after those. Each stage equals
        `first(n)(X)` to the last bit.
        """
        home, engine, X = self._prepare(X, None)
        where = locate(X)
        xp = where.xp
        values, intercept = where.put(self.nodes.value), where.put(self.intercept)[None, :]
        total = where.zeros((X.shape[0], self.n_outputs), xp.float64)
        after = list(range(1, self.n_trees + 1)) if rounds is None else self._stages(rounds)
        leaves: Any = None
        most, done = max(1, STAGED_LEAVES // max(1, X.shape[0])), 0
        for stage in after:
            while done < stage:
                if done % most == 0:
                    leaves = engine.apply_forest(X, self._part(done, min(done + most, len(self))))
                total = total + xp.take(values, leaves[:, done % most], axis=0)
                done += 1
            divisor = float(max(1, stage)) if self.average else 1.0
            yield home.hand_over(total / divisor + intercept)

    def _part(self, start: int, stop: int) -> PackedForest:
        """Some trees for `apply_forest`; positions stay those of the whole."""
        return replace(self.packed, layouts={}, roots=self.starts[start:stop])

    def _stages(self, rounds: Sequence[int]) -> list[int]:
        """Numbers of trees, checked."""
        stages = [0]
        if not isinstance(rounds, Iterable):
            raise TypeError(f"rounds must be a list of integers; got {rounds!r}.")
        for after in rounds:
            if isinstance(after, bool) or not isinstance(after, numbers.Integral):
                raise TypeError(f"rounds must hold integers; got {after!r}.")
            if not stages[-1] <= after <= self.n_trees:
                raise ValueError(
                    f"rounds must ascend from 0 to {self.n_trees}, the trees of the model; "
                    f"got {after!r} after {stages[-1]!r}."
                )
            stages.append(int(after))
        return stages[1:]

    def importances(self) -> np.ndarray:
        """How much each feature lowered the impurity: float64 [n_features], sum 1.

        A test lowers it by W i - W_l i_l - W_r i_r, weights times impurities of the node and its
        children. The shares of each tree are averaged over the trees that have a test; all zeros
        where none has.
        """
        shares = [
            tree_importances(self.nodes, self._span(t), self.n_features)
            for t in range(self.n_trees)
            if self.node_ptr[t + 1] - self.node_ptr[t] > 1
        ]
        mean = np.mean(shares, axis=0) if shares else np.zeros(self.n_features)
        total = np.sum(mean)
        return mean / total if total > 0.0 else mean

    def to_text(self, tree: int = 0, **options: Any) -> str:
        """A tree as text; the options are those of `export_text`."""
        from ensemble_gpu.model.export import export_text

        return export_text(self, tree, **options)


def _own(array: Any, dtype: Any) -> np.ndarray:
    """A read-only contiguous array of the type; the caller's memory where it is that already."""
    own = np.ascontiguousarray(array, dtype=dtype).view()
    own.flags.writeable = False
    return own


def _canonical(array: np.ndarray) -> bytes:
    """Bytes that equal arrays share: one zero, one NaN, one order, little-endian."""
    if array.dtype.kind == "f":
        array = np.where(np.isnan(array), np.nan, array + 0.0)
    kind = {"f": "<f8", "u": "<u8"}.get(array.dtype.kind, "<i8")
    return np.ascontiguousarray(array, dtype=kind).tobytes()


def _check_alike(one: Forest, other: Forest) -> None:
    """Raise where two forests cannot be joined."""
    for name in ("n_features", "n_outputs", "average"):
        if getattr(one, name) != getattr(other, name):
            raise ValueError(
                f"forests must have the same {name}; got {getattr(one, name)!r} and "
                f"{getattr(other, name)!r}."
            )
    if not np.array_equal(one.intercept, other.intercept):
        raise ValueError("forests must have the same intercept; got different ones.")
    known, others = one.categories, other.categories
    if known.keys() != others.keys() or not all(np.array_equal(known[f], others[f]) for f in known):
        raise ValueError("forests must have the same categories; got different ones.")
