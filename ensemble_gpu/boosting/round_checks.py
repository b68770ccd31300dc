"""Rounds that come from a file, before compiled code sees them: every index is in range.

Shapes that only array calls see are left to them; what they raise is an error of the file as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ensemble_gpu.boosting.bags import BagRound
from ensemble_gpu.boosting.gram import GramTrail
from ensemble_gpu.boosting.one_class import OneClassAtATime, OneClassTrail
from ensemble_gpu.boosting.rescale import Rescale, WeightTrail
from ensemble_gpu.boosting.rescale_rounds import RescaleRounds
from ensemble_gpu.boosting.strategy import Plan
from ensemble_gpu.kernels.protocol import N_LEAVES
from ensemble_gpu.kernels.tree_protocol import LEAF
from ensemble_gpu.learners.classifier import Members
from ensemble_gpu.learners.each import EachRound
from ensemble_gpu.learners.stump import Stump
from ensemble_gpu.learners.tree import TreeRound
from ensemble_gpu.learners.votes import Vote
from ensemble_gpu.trees.grow import Grown


def check_rounds(rounds: Sequence[Any], plan: Plan) -> None:
    """Raise ValueError where a round of a file does not fit the plan of the fit."""
    strategy = plan.strategy
    in_groups = isinstance(strategy, Rescale | RescaleRounds) or (
        isinstance(strategy, OneClassAtATime) and not isinstance(plan.learner, Members)
    )
    n_groups = strategy.n_groups if in_groups else None
    for number, round_ in enumerate(rounds):
        try:
            check_round(round_, plan.learner, len(plan.start), n_groups)
        except ValueError as error:
            raise ValueError(f"round {number + 1} is none of this fit: {error}") from error


def check_round(round_: Any, learner: Any, n_outputs: int, n_groups: int | None = None) -> None:
    """Raise ValueError where a round does not fit the learner, or groups that share a scale."""
    if isinstance(round_, BagRound):
        learners = getattr(learner, "learners", [])
        _check(len(learners) == len(round_.rounds), "as many rounds as bags")
        for own, of_bag in zip(round_.rounds, learners, strict=True):
            if own is not None:
                check_round(own, of_bag, n_outputs)
    elif isinstance(round_, EachRound):
        _check(len(round_.parts) == n_outputs, "a part an output")
        for part in round_.parts:
            if part is not None:
                check_round(part, getattr(learner, "own", None), 1)
    elif isinstance(round_, Stump):
        _check_stump(round_, learner, n_outputs, n_groups)
    elif isinstance(round_, TreeRound):
        _check_tree(round_, learner, n_outputs)
    elif isinstance(round_, Vote):
        members = getattr(getattr(learner, "finder", None), "members", None)
        if members is not None:
            _check(type(round_.key) is int and 0 <= round_.key < len(members), "a member's number")


def _check(fits: bool, what: str) -> None:
    if not fits:
        raise ValueError(f"it is not {what}")


def _check_stump(stump: Stump, learner: Any, n_outputs: int, n_groups: int | None) -> None:
    matrix: Any = getattr(learner, "matrix", None)
    _check(matrix is not None, "a round of this learner")
    width, p = matrix.codes.width, len(matrix.edges)
    places = (stump.feature, p), (stump.bin, width), (stump.missing_leaf, N_LEAVES)
    _check(all(type(n) is int and 0 <= n < end for n, end in places), "a stump of these features")
    _check_array(stump.values, np.float64, (n_outputs, N_LEAVES))
    if stump.left is not None:
        _check_array(stump.left, np.bool_, None, 1)
        _check(len(stump.left) <= width, "a set of these categories")
    trail = stump.trail
    if isinstance(trail, OneClassTrail):
        _check(type(trail.number) is int and 0 <= trail.number < n_outputs, "of one of the classes")
        check_round(trail.own, learner, 1, n_groups)
    elif n_groups is not None:
        _check(isinstance(trail, WeightTrail), "a round of this strategy")
        for array in trail:
            _check_array(array, np.int64, (n_groups,))
    elif isinstance(trail, GramTrail):
        _check_array(trail.units, np.int64, (n_outputs, N_LEAVES))


def _check_tree(round_: TreeRound, learner: Any, n_outputs: int) -> None:
    matrix: Any = getattr(learner, "matrix", None)
    grown = round_.grown
    _check(matrix is not None and isinstance(grown, Grown), "a round of this learner")
    n = len(grown.feature)
    _check_array(round_.values, np.float64, (n_outputs, n))
    for name in ("feature", "bin", "above", "left", "n_rows", "depth"):
        _check_array(getattr(grown, name), np.int32, (n,))
    for name, kind, dims in (
        ("missing_left", np.bool_, 1), ("subset", np.uint64, 2), ("sums", np.int64, 2),
        ("gain", np.float64, 1), ("bounds", np.float64, 2), ("key", np.uint64, 1),
    ):  # fmt: skip
        _check_array(getattr(grown, name), kind, None, dims)
        _check(len(getattr(grown, name)) == n, "a tree with an entry a node")
    if grown.owner is not None:
        _check_array(grown.owner, None, (n,))
        _check(bool(((grown.owner >= 0) & (grown.owner < n)).all()), "a tree of these nodes")
    inner = np.flatnonzero(grown.feature != LEAF)
    feature, left = grown.feature[inner], grown.left[inner]
    _check(bool(((feature >= 0) & (feature < len(matrix.edges))).all()), "of these features")
    _check(bool(((left > inner) & (left < n - 1)).all()), "a tree whose children follow")
    last = grown.bin[inner]
    _check(bool((last < matrix.codes.width).all()), "of these bins")
    sets = bool((last < 0).any())
    _check(not sets or 64 * grown.subset.shape[1] >= _most_codes(learner), "of these categories")


def _most_codes(learner: Any) -> int:
    """Codes of the categorical feature that has the most."""
    values = learner.categories.values.values()
    return max((len(own) for own in values), default=2**62)


def _check_array(
    array: Any, kind: Any, shape: tuple[int, ...] | None, dims: int | None = None
) -> None:
    fits = isinstance(array, np.ndarray) and (kind is None or array.dtype == kind)
    fits = fits and (array.ndim == dims if shape is None else array.shape == shape)
    _check(fits, "made of the arrays that it needs")
