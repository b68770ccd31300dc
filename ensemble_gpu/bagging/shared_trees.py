"""The trees of a forest shared out among workers that all have all rows: each grows some of them.

What a tree becomes depends on its number, and not on who grows it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields

import numpy as np

from ensemble_gpu.bagging.bagged_trees import side_by_side
from ensemble_gpu.kernels.protocol import Engine
from ensemble_gpu.kernels.team import Team
from ensemble_gpu.model.forest import Forest
from ensemble_gpu.model.nodes import Nodes, column_type

# Trees that each of a worker's threads grows before all trees are exchanged.
TURNS = 2


def shared_out(
    grow: Callable[[Engine, int], Forest], numbers: Sequence[int], engine: Engine, team: Team
) -> Iterator[Forest]:
    """grow(engine, number) of every number, in their order; those of a journal are known."""
    journal, size, rank = team.journal, team.reduce.size, team.reduce.rank
    known = list(journal.earlier) if journal is not None else []
    known, numbers = known[: len(numbers)], numbers[len(known) :]
    yield from known
    most = size * TURNS * int(team.largest(engine.n_workers)[0])
    for start in range(0, len(numbers), most):
        some = numbers[start : start + most]
        own = list(side_by_side(grow, some[rank::size], engine)) if some[rank::size] else []
        for tree in exchanged(own, len(some), team):
            if journal is not None:
                journal.found.append(tree)
            yield tree


def exchanged(own: list[Forest], n_trees: int, team: Team) -> list[Forest]:
    """The trees of all workers, of which worker k has the k-th, the (k + size)-th, ..."""
    size, about = team.reduce.size, None
    if own:
        one = own[0]
        kinds = {f: values.tolist() for f, values in one.categories.items()}
        about = [one.n_outputs, one.subsets.shape[1], one.n_features, list(kinds.items())]
    outputs, words, n_features, kinds_ = next(a for a in team.each(about) if a is not None)
    columns = {f.name: _column(own, f.name, outputs) for f in fields(Nodes)}
    subsets = np.concatenate([np.zeros((0, words), np.uint64), *(t.subsets for t in own)])
    sizes = np.array([[len(t.nodes), len(t.subsets)] for t in own], dtype=np.int64).reshape(-1, 2)
    every = {name: team.reduce.gather(column) for name, column in columns.items()}
    all_sizes, all_subsets = team.reduce.gather(sizes), team.reduce.gather(subsets)
    categories = {int(f): np.array(values, dtype=np.float64) for f, values in kinds_}
    trees = []
    for number in range(n_trees):
        worker, place = number % size, number // size
        ends = np.concatenate([np.zeros((1, 2), np.int64), np.cumsum(all_sizes[worker], axis=0)])
        (a, b), (c, d) = ends[place : place + 2].T
        nodes = Nodes(**{name: arrays[worker][a:b] for name, arrays in every.items()})
        root = np.zeros(1, dtype=np.int64)
        trees.append(
            Forest(
                nodes,
                root,
                n_features,
                subsets=all_subsets[worker][c:d],
                categories=categories,
            )
        )
    return trees


def _column(trees: list[Forest], name: str, n_outputs: int) -> np.ndarray:
    """A column of the nodes of all trees, one after the other."""
    none = np.zeros((0, n_outputs) if name == "value" else 0, dtype=column_type(name))
    return np.concatenate([none, *(getattr(tree.nodes, name) for tree in trees)])
