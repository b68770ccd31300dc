"""Trees of every capacity in one: cut, they are those that grow with the limit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ensemble_gpu.kernels.cpu.engine import CpuEngine
from ensemble_gpu.trees.build import grow_tree, to_forest
from ensemble_gpu.trees.cutting import Grid
from ensemble_gpu.trees.judging import curve
from ensemble_gpu.trees.tree import DecisionTreeClassifier, DecisionTreeRegressor
from tests.datasets import ADVERSARIAL, random_data

SETTINGS: dict[str, tuple[type, dict[str, Any], Any]] = {
    "holes": (DecisionTreeClassifier, {}, random_data(3, n=90).with_missing()),
    "equal gains": (DecisionTreeClassifier, {}, ADVERSARIAL["ties"]()),
    "drawn features": (DecisionTreeClassifier, {"max_features": 2, "random_state": 1},
                       random_data(2, n=120)),
    "real": (DecisionTreeRegressor, {"min_samples_leaf": 2}, random_data(5, n=120)),
}  # fmt: skip


def every_capacity(estimator: Any, X: Any, y: Any) -> dict[str, list[Any]]:
    """Whatever makes a difference, and the numbers between."""
    tree = estimator.fit(X, y)
    alphas = estimator.cost_complexity_pruning_path(X, y).ccp_alphas
    between = (alphas[1:] + alphas[:-1]) / 2
    return {
        "max_depth": list(range(1, tree.get_depth() + 2)),
        "max_leaf_nodes": list(range(2, tree.get_n_leaves() + 2)),
        "ccp_alpha": sorted({0.0, *alphas.tolist(), *between.tolist()}, reverse=True),
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", SETTINGS)
def test_the_cut_tree_is_the_one_that_grows_with_the_limit(name):
    kind, params, data = SETTINGS[name]
    X, y = data.X, data.y + data.X[:, 0] * (kind is DecisionTreeRegressor)
    prepared = kind(**params)._prepare(X, y, None)
    engine, matrix, statistics = CpuEngine(1), prepared.matrix, prepared.statistics
    whole, about = grow_tree(engine, matrix, statistics, prepared.parameters, 0)
    risk = about.risk(statistics.weight(whole.sums))
    for capacity, values in every_capacity(kind(**params), X, y).items():
        grid = Grid.of(capacity, values[::-1])
        assert list(grid.values) == values
        places = grid.places(whole, risk)
        for place, value in enumerate(values):
            limited = kind(**params, **{capacity: value}).fit(X, y).model_
            cut = whole.cut(places <= place)
            assert to_forest(cut, about, matrix, statistics, {}) == limited, (capacity, value)
        assert (places[whole.left >= 0] < len(values)).all()


def test_a_grid_goes_from_the_smallest_tree_to_the_largest():
    assert Grid.of("max_depth", [None, 3, 1, 3]).values == (1, 3, None)
    assert Grid.of("ccp_alpha", [0.0, 0.5, 0.1]).values == (0.5, 0.1, 0.0)


def test_the_loss_of_a_capacity_is_that_of_its_leaves():
    data = random_data(3, n=90)
    nodes = DecisionTreeClassifier().fit(data.X, data.y).model_.nodes
    rng = np.random.default_rng(0)
    losses = rng.gamma(0.1, size=len(nodes)) * 1e9
    depth = DecisionTreeClassifier().fit(data.X, data.y).model_.depths
    n = int(depth.max()) + 1
    found = curve(nodes, losses, np.where(nodes.left < 0, n, depth), n)
    for d in range(n):  # a place splits nodes of its depth
        leaf = (depth == d + 1) | ((nodes.left < 0) & (depth <= d + 1))
        assert found[d] == pytest.approx(losses[leaf].sum(), rel=1e-14)
