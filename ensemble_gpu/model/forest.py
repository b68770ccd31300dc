"""Trees as flat arrays of nodes.

    F(x) = intercept + (sum over trees t of value[leaf_t(x)]) / T

and without the division where trees were boosted instead of averaged. The sum runs in the order of
the trees, so every engine returns the same bits.
"""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np

from ensemble_gpu.arrays.namespace import Where, locate, to_numpy
from ensemble_gpu.arrays.positions import encode
from ensemble_gpu.arrays.sparse import check_dense, in_blocks
from ensemble_gpu.kernels.select import engine_for
from ensemble_gpu.kernels.sparse import apply_forest, evaluate_forest
from ensemble_gpu.kernels.tree_protocol import LEAF, PackedForest
from ensemble_gpu.model.base import (
    Model,
    canonical_bytes,
    canonical_parts,
    check_length,
    read_only,
)
from ensemble_gpu.model.inputs import rows_at_work
from ensemble_gpu.model.nodes import Gathered, Nodes, check_nodes, depths, paths, tree_importances
from ensemble_gpu.model.stages import checked_ends, joined_ends, last_of, stages

# Leaves that staged predictions look up at once: bounds their memory.
STAGED_LEAVES = 1 << 22


class Forest(Model):
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
        The values of a categorical feature, ascending. The number of a category is the position of
        its value; other values count as missing.
    intercept : array of n_outputs values, optional
        Zeros by default.
    average : bool
        Whether F is the mean of the trees or their sum.
    ends : array of int, optional
        Where several trees are a round (of bags that were averaged, of classes): how many there are
        after each round.
    checked : bool
        The nodes come from forests that were checked, and are not checked again.
    """

    _format = b"ensemble_gpu.Forest.1"

    nodes: Nodes
    starts: np.ndarray
    n_features: int
    subsets: np.ndarray
    categories: Mapping[int, np.ndarray]
    intercept: np.ndarray
    average: bool
    ends: np.ndarray | None

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
        ends: np.ndarray | None = None,
        checked: bool = False,
    ) -> None:
        nodes = nodes.frozen()
        if subsets is None:
            subsets = np.zeros((0, 0))
        if intercept is None:
            intercept = np.zeros(nodes.value.shape[1])
        known = {
            int(f): read_only(values, np.float64)
            for f, values in sorted((categories or {}).items())
        }
        self._assign(
            nodes=nodes,
            starts=read_only(starts, np.int64),
            n_features=int(n_features),
            subsets=read_only(subsets, np.uint64),
            categories=MappingProxyType(known),
            intercept=read_only(intercept, np.float64),
            average=bool(average),
            ends=checked_ends(ends, len(starts)),
        )
        if not checked:
            check_nodes(nodes, self.starts, self.n_features, self.subsets, known, self.intercept)

    def _options(self) -> dict[str, Any]:
        return {
            "subsets": self.subsets, "categories": dict(self.categories),
            "intercept": self.intercept, "average": self.average, "ends": self.ends,
        }  # fmt: skip

    def __getstate__(self) -> dict[str, Any]:
        own = {"nodes": self.nodes, "starts": self.starts, "n_features": self.n_features}
        return own | self._options()

    @property
    def n_outputs(self) -> int:
        return len(self.intercept)

    @property
    def n_trees(self) -> int:
        return len(self.starts)

    @property
    def n_rounds(self) -> int:
        """Trees or, where several are a round, rounds."""
        return self.n_trees if self.ends is None else len(self.ends)

    def in_rounds(self, ends: np.ndarray) -> Forest:
        """The same trees, the first ends[0] rounds as one round, those up to ends[1] as next."""
        options = self._options() | {"ends": joined_ends(self.ends, ends), "checked": True}
        return Forest(self.nodes, self.starts, self.n_features, **options)

    def voting(self) -> Forest:
        """The same trees, whose leaves say 1 for their largest output (the first of several)."""
        leaf, value = self.nodes.feature == LEAF, self.nodes.value.copy()
        value[leaf] = np.argmax(value[leaf], axis=1)[:, None] == np.arange(self.n_outputs)
        nodes = replace(self.nodes, value=value)
        return Forest(nodes, self.starts, self.n_features, **self._options(), checked=True)

    def __len__(self) -> int:
        return self.n_trees

    @cached_property
    def node_ptr(self) -> np.ndarray:
        """Tree t has the nodes node_ptr[t] ... node_ptr[t + 1] - 1."""
        return read_only(np.append(self.starts, len(self.nodes)), np.int64)

    @cached_property
    def depths(self) -> np.ndarray:
        """Tests between the root and each node: int [nodes]."""
        return depths(self.nodes, self.starts)

    def depth(self, t: int = 0) -> int:
        """Tests on the longest way from root to leaf of tree t."""
        return int(self.depths[self.span(t)].max())

    def n_leaves(self, t: int = 0) -> int:
        return int((self.nodes.feature[self.span(t)] == LEAF).sum())

    def span(self, t: int) -> slice:
        """Which nodes belong to tree t."""
        if isinstance(t, bool) or not isinstance(t, numbers.Integral):
            raise TypeError(f"tree must be an integer; got {t!r}.")
        if not 0 <= t < self.n_trees:
            raise ValueError(f"tree must be an integer from 0 to {self.n_trees - 1}; got {t!r}.")
        return slice(int(self.node_ptr[t]), int(self.node_ptr[t + 1]))

    def __repr__(self) -> str:
        depth = int(self.depths.max(initial=0))
        return (
            f"Forest({self.n_trees} tree(s), {len(self.nodes)} nodes, depth {depth}, "
            f"{self.n_features} features, {self.n_outputs} output(s), "
            f"fingerprint {self.fingerprint()[:12]})"
        )

    def fingerprint(self) -> str:
        """SHA-256 of the canonical bytes; computed once, since forests can be large."""
        return self._fingerprint

    @cached_property
    def _fingerprint(self) -> str:
        return super().fingerprint()

    def _canonical(self) -> Iterator[bytes]:
        sizes = [self.n_features, self.n_outputs, self.n_trees, len(self.nodes), self.average]
        sizes += [*self.subsets.shape, len(self.categories)]
        sizes += [size for f, values in self.categories.items() for size in (f, len(values))]
        yield canonical_bytes(sizes)
        arrays = [self.intercept, self.starts, *vars(self.nodes).values()]
        for array in [*arrays, self.subsets, *self.categories.values()]:
            yield from canonical_parts(array)
        if self.ends is not None:
            yield canonical_bytes(self.ends)

    def tree(self, t: int) -> Forest:
        """Tree t alone, without the intercept."""
        self.span(t)
        return self._between(int(t), int(t) + 1, np.zeros(self.n_outputs), None)

    def first(self, n_rounds: int) -> Forest:
        """The model of the first n trees, or rounds (of all, where there are fewer)."""
        check_length("n_rounds", n_rounds)
        n = min(int(n_rounds), self.n_rounds)
        ends = None if self.ends is None else self.ends[:n]
        return self._between(0, last_of(self.ends, n), self.intercept, ends)

    def _between(
        self, start: int, stop: int, intercept: np.ndarray, ends: np.ndarray | None
    ) -> Forest:
        """Trees start ... stop - 1, with the subsets that they use."""
        low, high = int(self.node_ptr[start]), int(self.node_ptr[stop])
        nodes = self.nodes.between(low, high)
        kept = np.unique(nodes.subset[nodes.subset >= 0])
        nodes = nodes.with_subsets(np.searchsorted(kept, nodes.subset))
        options = self._options() | {
            "subsets": self.subsets[kept], "intercept": intercept, "ends": ends
        }  # fmt: skip
        return Forest(nodes, self.starts[start:stop] - low, self.n_features, **options)

    @classmethod
    def join(cls, forests: Iterable[Forest], expected: int = 1) -> Forest:
        """One forest of the trees of all, in this order; they must agree in everything else.

        An iterator is read one by one, and none of its forests is kept; `expected` is their number,
        if it is known, and saves memory.
        """
        joining = Joining(expected)
        for forest in forests:
            joining.add(forest)
        return joining.forest()

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

        X is an array of any array-API library, a matrix of scipy.sparse or a list of rows; NaN is
        missing. (Namespaces without float64 get their widest float.)
        """
        source, engine, X = self.prepared(X, n_jobs)
        return source.hand_over(evaluate_forest(engine, X, self.packed))

    def apply(self, X: Any, n_jobs: int | None = None) -> Any:
        """The leaf of every row in every tree: int64 [n, trees], its number within the tree."""
        source, engine, X = self.prepared(X, n_jobs)
        leaves = apply_forest(engine, X, self.packed)
        return source.hand_over(leaves - locate(leaves).put(self.starts)[None, :])

    def prepared(self, X: Any, n_jobs: int | None) -> tuple[Where, Any, Any]:
        """Where X came from, the engine that works where it is now, and X as it takes it."""
        X, source, where = rows_at_work(X, self.n_features)
        engine: Any = engine_for(where, n_jobs)
        if self.categories:
            check_dense(X, "a model with categories")
            X = encode(X, self.categories, where)
        return source, engine, X if in_blocks(X) else engine.view(X)

    def decision_path(self, X: Any, n_jobs: int | None = None) -> tuple[Any, np.ndarray]:
        """The nodes that each row passes: a CSR matrix [n, nodes] on the host, and `node_ptr`.

        Columns node_ptr[t] ... node_ptr[t + 1] - 1 belong to tree t.
        """
        from scipy.sparse import csr_matrix

        leaves = to_numpy(self.apply(X, n_jobs)).astype(np.int64) + self.starts
        indices, indptr = paths(self.nodes, self.depths, leaves)
        shape = (leaves.shape[0], len(self.nodes))
        return csr_matrix((np.ones_like(indices), indices, indptr), shape=shape), self.node_ptr

    def staged(
        self, X: Any, rounds: Sequence[int] | None = None, n_jobs: int | None = None
    ) -> Iterator[Any]:
        """F after each tree (or round), from the first on; one float64 array [n, outputs] a stage.

        With `rounds`, ascending numbers of trees, only after those. Each stage equals
        `first(n)(X)` to the last bit.
        """
        source, engine, X = self.prepared(X, n_jobs)
        where = locate(X)
        xp = where.xp
        values, intercept = where.put(self.nodes.value), where.put(self.intercept)[None, :]
        total = where.zeros((X.shape[0], self.n_outputs), xp.float64)
        leaves: Any = None
        most, done = max(1, STAGED_LEAVES // max(1, X.shape[0])), 0
        for _, n_rounds in stages(rounds, self.n_rounds):
            stage = last_of(self.ends, n_rounds)
            while done < stage:
                if done % most == 0:
                    part = self._part(done, min(done + most, len(self)))
                    leaves = apply_forest(engine, X, part)
                total = total + xp.take(values, leaves[:, done % most], axis=0)
                done += 1
            divisor = float(max(1, stage)) if self.average else 1.0
            yield source.hand_over(total / divisor + intercept)

    def _part(self, start: int, stop: int) -> PackedForest:
        """Some trees for `apply_forest`; positions stay those of the whole."""
        return replace(self.packed, layouts={}, roots=self.starts[start:stop])

    def importances(self) -> np.ndarray:
        """How much each feature lowered the impurity: float64 [n_features], sum 1.

        A test lowers it by W i - W_l i_l - W_r i_r, weights times impurities of the node and its
        children. The shares of each tree are averaged over the trees that have a test; all zeros
        where none has.
        """
        shares = [
            tree_importances(self.nodes, self.span(t), self.n_features)
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


class Joining:
    """Forests that are joined one by one; what there is so far is a forest at any time."""

    def __init__(self, expected: int = 1) -> None:
        self.nodes, self.n_trees = Gathered(expected), 0
        # Of every forest: its first, its starts, its subsets, and how many nodes there are with it.
        self.parts: list[tuple[Forest, np.ndarray, np.ndarray, int]] = []

    def add(self, forest: Forest) -> None:
        """Copy its trees behind those that are there; they must agree in everything else."""
        one = self.parts[0][0] if self.parts else forest
        _check_alike(one, forest)
        if forest.ends is not None:
            raise ValueError("forests must have a tree a round; got one with several.")
        starts = forest.starts + self.nodes.n
        self.nodes.add(forest.nodes, sum(len(part[2]) for part in self.parts))
        self.parts.append((one, starts, forest.subsets, self.nodes.n))
        self.n_trees += len(forest)

    def forest(self) -> Forest:
        """All trees so far; its nodes are views of what is being joined."""
        if not self.parts:
            raise ValueError("forests must hold at least one Forest; got none.")
        one = self.parts[0][0]
        subsets = [part[2] for part in self.parts]
        words = max(s.shape[1] for s in subsets)
        padded = [np.pad(s, ((0, 0), (0, words - s.shape[1]))) for s in subsets]
        options = one._options() | {"subsets": np.concatenate(padded), "checked": True}
        starts = np.concatenate([part[1] for part in self.parts])
        return Forest(self.nodes.nodes(self.parts[-1][3]), starts, one.n_features, **options)
