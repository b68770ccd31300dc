"""Trees grown the best leaf first: room for their nodes, and ties that several threads see."""

from __future__ import annotations

import numpy as np
import pytest

from ensemble_gpu import DecisionTreeClassifier, DecisionTreeRegressor
from ensemble_gpu.kernels.cpu.trees.whole_grower import WholeGrower


def test_no_tree_has_more_nodes_than_there_is_room_for(monkeypatch):
    seen, grow = [], WholeGrower.grow_whole

    def watched(self, limits, rounding, root):
        grown, split = grow(self, limits, rounding, root)
        seen.append((len(grown.feature), self._most_nodes(limits)))
        return grown, split

    monkeypatch.setattr(WholeGrower, "grow_whole", watched)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3_000, 5))
    y = X[:, 0] * X[:, 1] + rng.normal(size=3_000)
    for leaves in (*range(2, 41), 300):
        tree = DecisionTreeRegressor(max_leaf_nodes=leaves).fit(X, y)
        assert tree.get_n_leaves() == leaves
    assert len(seen) == 40
    assert all(nodes <= room for nodes, room in seen)
    assert any(nodes > 2 * 40 for nodes, _ in seen)


@pytest.mark.parametrize("first", [3, 7])
def test_of_perfect_splits_the_first_feature_wins_on_any_number_of_threads(first):
    # threads share the tiles of a node, and tell each other their scores
    rng = np.random.default_rng(first)
    X = rng.normal(size=(4_096, 16))
    y = X[:, first] > 0.1
    X[:, 8] = X[:, 12] = X[:, first]
    for n_jobs in [1] + 15 * [2]:
        tree = DecisionTreeClassifier(n_jobs=n_jobs).fit(X, y)
        assert tree.model_.nodes.feature[0] == first
