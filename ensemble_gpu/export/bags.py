"""A bag of decision trees is a Forest.

The mean of the trees' answers, added up in their order, is what a Forest computes. Features,
classes and categories of each tree are those that its bag had, and are numbered anew.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ensemble_gpu.bagging.bagging import BaggingClassifier, BaggingRegressor
from ensemble_gpu.bagging.learners import OneClass
from ensemble_gpu.export.members import renumbered
from ensemble_gpu.kernels.tree_protocol import LEAF
from ensemble_gpu.model.forest import Forest
from ensemble_gpu.model.nodes import Nodes
from ensemble_gpu.trees.tree import DecisionTreeClassifier, DecisionTreeRegressor

LEARNERS = (DecisionTreeClassifier, DecisionTreeRegressor, OneClass)


def is_bag_of_trees(estimator: Any) -> bool:
    """Whether an estimator, fitted if it is a bag, has decision trees only."""
    return isinstance(estimator, BaggingClassifier | BaggingRegressor) and all(
        isinstance(learner, LEARNERS) for learner in estimator.estimators_
    )


def forest_of_bag(bag: Any) -> Forest:
    """The Forest whose outputs are the bag's probabilities [n, K], or its prediction [n, 1]."""
    categories = bag._categories.values
    seen = {f: np.arange(len(values)) for f, values in categories.items()}  # codes, as trees do
    pairs = zip(bag.estimators_, bag.estimators_features_, strict=True)
    forests = (
        renumbered(_tree(bag, learner), np.asarray(features), bag.n_features_in_, seen, categories)
        for learner, features in pairs
    )
    return Forest.join(forests, len(bag.estimators_))


def _tree(bag: Any, learner: Any) -> Forest:
    """A learner's tree, with an output for every class of the bag."""
    if isinstance(learner, OneClass):
        return _leaf(learner.label, bag.n_classes_, bag.n_features_in_)
    forest = learner.model_
    if not hasattr(bag, "classes_"):
        return forest
    value = np.zeros((len(forest.nodes), bag.n_classes_))
    value[:, learner.classes_] = forest.nodes.value
    own = forest._options() | {"intercept": np.zeros(bag.n_classes_)}
    whole = Forest(replace(forest.nodes, value=value), forest.starts, forest.n_features, **own)
    return whole if bag.voting == "soft" else whole.voting()


def _leaf(label: int, n_classes: int, n_features: int) -> Forest:
    none, zero = np.array([LEAF]), np.zeros(1)
    value = (np.arange(n_classes) == label).astype(np.float64)[None, :]
    nodes = Nodes(
        none, np.array([np.nan]), zero, none, none, none, value, zero, np.ones(1), np.ones(1)
    )
    return Forest(nodes, np.zeros(1), n_features)
