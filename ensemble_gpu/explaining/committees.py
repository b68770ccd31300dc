"""Committees of trees as forests: what a tree answers is a function of the leaf.

    F(x) = c + sum over rounds t of alpha_t h_t(leaf_t(x))

h is a vote, a confidence or a number (model/committee.py, model/answers.py), computed for every
leaf as it is for rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ensemble_gpu.arrays.namespace import NUMPY
from ensemble_gpu.kernels.tree_protocol import LEAF
from ensemble_gpu.model.answers import Always, Answers, Coded, parts, uncoded
from ensemble_gpu.model.committee import CodedVoice, Committee, Voice
from ensemble_gpu.model.forest import Forest


@dataclass(frozen=True)
class _Leaves:
    """A fitted tree as a learner whose rows are its leaves."""

    learner: Any
    outputs: np.ndarray

    @property
    def classes_(self) -> np.ndarray:
        return self.learner.classes_

    def predict_proba(self, rows: Any) -> np.ndarray:
        return self.outputs

    def predict(self, rows: Any) -> np.ndarray:
        if hasattr(self.learner, "classes_"):
            return self.learner.classes_[np.argmax(self.outputs, axis=1)]
        return self.outputs if self.outputs.shape[1] > 1 else self.outputs[:, 0]


def committee_forests(model: Committee) -> tuple[list[Forest], np.ndarray] | None:
    """Forests whose sum is the committee's, and its constant; None: some learner is no tree."""
    forests: list[Forest] = []
    constant = model.intercept.copy()
    for alpha, learner in zip(model.alphas.tolist(), model.learners, strict=True):
        for place, part in enumerate(parts(learner)):
            answer = _answer_of(model.voice, part, place, len(parts(learner)))
            own = uncoded(part)
            if isinstance(own, Always):
                constant += alpha * answer(own, np.zeros((1, 0)))[0]
                continue
            tree = getattr(own, "model_", None)
            if not isinstance(tree, Forest) or not _speaks_by_leaf(own, tree, model.voice):
                return None
            forests.append(_answering(tree, own, alpha, answer))
    return list(_together(forests)), constant


def _speaks_by_leaf(learner: Any, tree: Forest, voice: Any) -> bool:
    """Whether the answer is a sum over trees of what their leaves say."""
    if isinstance(voice, Answers) and not voice.signs:
        return getattr(learner, "link_", "identity") == "identity"
    return tree.n_trees == 1 and not hasattr(learner, "link_")


def _answer_of(voice: Any, part: Any, place: int, n_parts: int) -> Any:
    """A function of a learner and rows to h [rows, outputs], of one part of a round."""
    if isinstance(voice, CodedVoice):
        code = np.array(part.code) if isinstance(part, Coded) else np.ones(voice.n_outputs)
        return lambda own, rows: voice.binary(own, rows, NUMPY) * code[None, :]
    if isinstance(voice, Voice):
        return lambda own, rows: voice(own, rows, NUMPY)
    width = voice.n_outputs // n_parts
    alone = Answers(width, voice.signs)

    def answer(own: Any, rows: Any) -> np.ndarray:
        h = np.zeros((rows.shape[0], voice.n_outputs))
        h[:, place * width : (place + 1) * width] = alone(own, rows, NUMPY)
        return h

    return answer


def _answering(tree: Forest, learner: Any, alpha: float, answer: Any) -> Forest:
    """The tree, with alpha h in place of the values of its leaves."""
    leaf = np.flatnonzero(tree.nodes.feature == LEAF)
    outputs = tree.nodes.value[leaf] / tree.packed.divisor
    if tree.n_trees == 1:
        outputs = outputs + tree.intercept
    h = answer(_Leaves(learner, outputs), np.zeros((len(leaf), 0)))
    value = np.zeros((len(tree.nodes), h.shape[1]))
    value[leaf] = alpha * h
    rest = np.zeros(h.shape[1])
    if tree.n_trees != 1:
        rest = alpha * answer(_Leaves(learner, tree.intercept[None, :]), np.zeros((1, 0)))[0]
    return Forest(
        replace(tree.nodes, value=value), tree.starts, tree.n_features, subsets=tree.subsets,
        categories=dict(tree.categories), intercept=rest, average=False, checked=True,
    )  # fmt: skip


def _together(forests: list[Forest]) -> Iterator[Forest]:
    """One forest of all, where none has categories or a constant of its own."""
    plain = all(not forest.categories and not forest.intercept.any() for forest in forests)
    if plain and len(forests) > 1:
        yield Forest.join(forests, len(forests))
    else:
        yield from forests
