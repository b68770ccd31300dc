"""A committee of decision trees is a Forest: its leaves hold alpha_t h_t.

h_t is what the committee hears of a tree: a vote or a confidence (model/committee.py), the same
for all rows of a leaf.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ensemble_gpu.arrays.namespace import NUMPY
from ensemble_gpu.export.members import renumbered
from ensemble_gpu.kernels.tree_protocol import LEAF
from ensemble_gpu.model.committee import Committee, Voice
from ensemble_gpu.model.forest import Forest
from ensemble_gpu.trees.tree import DecisionTreeClassifier


@dataclass(frozen=True)
class _Leaves:
    """A tree whose rows are its leaves."""

    value: np.ndarray
    classes_: np.ndarray

    def predict_proba(self, X: Any) -> np.ndarray:
        return self.value

    def predict(self, X: Any) -> np.ndarray:
        return self.classes_[np.argmax(self.value, axis=1)]


def is_committee_of_trees(model: Any) -> bool:
    """Whether a model adds up classes that decision trees predict, and nothing else."""
    return (
        isinstance(model, Committee)
        and isinstance(model.voice, Voice)
        and len(model.learners) > 0
        and all(isinstance(learner, DecisionTreeClassifier) for learner in model.learners)
        and not model.intercept.any()  # a Forest adds it last
    )


def forest_of_committee(committee: Committee) -> Forest:
    """The Forest with the bits of the committee, for a float64 X."""
    forests = [learner.model_ for learner in committee.learners]
    every: dict[int, list[np.ndarray]] = {}
    for forest in forests:
        for f, values in forest.categories.items():
            every.setdefault(f, []).append(values)
    categories = {f: np.unique(np.concatenate(own)) for f, own in every.items()}
    p = committee.n_features

    def members() -> Iterator[Forest]:
        for learner, alpha in zip(committee.learners, committee.alphas.tolist(), strict=True):
            forest = _spoken(learner, alpha, committee.voice)
            yield renumbered(forest, np.arange(p), p, categories, categories, average=False)

    return Forest.join(members(), len(forests))


def _spoken(learner: Any, alpha: float, voice: Any) -> Forest:
    """The tree of a learner with alpha h in its leaves."""
    forest = learner.model_
    leaf = np.flatnonzero(forest.nodes.feature == LEAF)
    leaves = _Leaves(forest.nodes.value[leaf], learner.classes_)
    value = np.zeros((len(forest.nodes), voice.n_outputs))
    value[leaf] = alpha * voice(leaves, np.zeros((len(leaf), 1)), NUMPY)
    own = forest._options() | {"intercept": np.zeros(voice.n_outputs), "average": False}
    return Forest(replace(forest.nodes, value=value), forest.starts, forest.n_features, **own)
