"""Rounds as data: what a checkpoint keeps of a run, and how it is read again.

Rounds of this package's learners are records of numbers (data/columns.py). So are fitted
estimators of this package (saving/writing.py). A learner that is neither cannot be stored: of its
rounds `alpha` and `error` are kept, and the learners are fitted again (boosting/loop.py: Refitted).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ensemble_gpu.boosting.bags import BagRound
from ensemble_gpu.boosting.descend import DescendTrail
from ensemble_gpu.boosting.gram import GramTrail
from ensemble_gpu.boosting.one_class import OneClassTrail
from ensemble_gpu.boosting.pool_gram import PoolTrail
from ensemble_gpu.boosting.rebuild import DescentTrail
from ensemble_gpu.boosting.redrawn import RedrawnTrail
from ensemble_gpu.boosting.rescale import WeightTrail
from ensemble_gpu.data.columns import NotStorableError, Packer, Unpacker
from ensemble_gpu.data.digests import digest
from ensemble_gpu.learners.classifier import Member
from ensemble_gpu.learners.directions import Direction
from ensemble_gpu.learners.each import EachRound
from ensemble_gpu.learners.protocol import RoundWeights, alphas_and_errors
from ensemble_gpu.learners.rectangles import RectangleCodes
from ensemble_gpu.learners.redrawn import GeneratedStump
from ensemble_gpu.learners.ridge import RidgeFit
from ensemble_gpu.learners.stump import Stump
from ensemble_gpu.learners.tree import TreeRound
from ensemble_gpu.learners.votes import Vote
from ensemble_gpu.model.answers import Always, Coded, Each
from ensemble_gpu.model.generators import BallGenerators, BoxGenerators, HalfSpaceGenerators
from ensemble_gpu.saving.reading import Reader
from ensemble_gpu.saving.writing import CannotBeSavedError, Writer
from ensemble_gpu.trees.grow import Grown

RECORDS: dict[str, type] = {
    kind.__name__: kind
    for kind in (
        Stump, TreeRound, Grown, EachRound, BagRound, GeneratedStump, Vote, Member, Direction,
        RoundWeights, WeightTrail, OneClassTrail, DescentTrail, GramTrail, PoolTrail, RedrawnTrail,
        DescendTrail, RectangleCodes, HalfSpaceGenerators, BallGenerators, BoxGenerators, Coded,
        Each, Always, RidgeFit,
    )
}  # fmt: skip
PATH = "rounds"


def written_rounds(rounds: Sequence[Any]) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Rounds as JSON and arrays."""
    writer = Writer()
    packer = Packer(RECORDS, writer.value)
    try:
        told = {"n": len(rounds), "of": packer(PATH, rounds)}
    except (NotStorableError, CannotBeSavedError):
        alpha, error = alphas_and_errors(rounds)
        arrays = {f"{PATH}.alpha": alpha, f"{PATH}.error": error}
        return {"n": len(rounds), "digest": _digest(arrays)}, arrays
    arrays = {**packer.arrays, **writer.arrays}
    return {**told, "digest": _digest(arrays)}, arrays


def read_rounds(told: Any, arrays: Mapping[str, np.ndarray]) -> list[Any] | np.ndarray:
    """The rounds that were written; of those that could not be, alpha and error [n, 2]."""
    if not isinstance(told, dict) or type(told.get("n")) is not int or told["n"] < 0:
        raise ValueError("it does not say how many rounds there are")
    n = told["n"]
    own = {name: array for name, array in arrays.items() if name.startswith(PATH)}
    if told.get("digest") != _digest(own):
        raise ValueError("its rounds are not those that were written")
    if "of" in told:
        return Unpacker(RECORDS, own, Reader(own).value)(PATH, told["of"], n)
    pair = [own.get(f"{PATH}.{name}", np.zeros(0)) for name in ("alpha", "error")]
    if any(one.shape != (n,) or one.dtype != np.float64 for one in pair):
        raise ValueError("its rounds have no alpha and error")
    return np.stack(pair, axis=1)


def _digest(arrays: Mapping[str, np.ndarray]) -> str:
    return digest(*(
        part
        for name in sorted(arrays)
        for part in (name.encode(), np.ascontiguousarray(arrays[name]).tobytes())
    ))  # fmt: skip
