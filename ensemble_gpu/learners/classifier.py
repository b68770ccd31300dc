"""Any classifier as the weak learner of AdaBoost: clones, fitted to weights, are a Committee."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ensemble_gpu.arrays.namespace import Where
from ensemble_gpu.learners.foreign import check_learner
from ensemble_gpu.learners.protocol import Outcome, RoundWeights, alphas_and_errors, shares
from ensemble_gpu.model.answers import parts, uncoded
from ensemble_gpu.model.committee import CodedVoice, Committee, Voice

VARIANTS = ("real", "discrete")


def check_variant(estimator: Any, variant: str) -> None:
    """Raise unless AdaBoost's `estimator` is a classifier that the variant can use."""
    check_learner(estimator, ("classifier",), "the stump")
    if variant not in VARIANTS:
        raise ValueError(
            f"variant must be one of {', '.join(map(repr, VARIANTS))} where an estimator is given; "
            f"got {variant!r}, which is for stumps (estimator=None)."
        )
    if variant == "real" and not hasattr(estimator, "predict_proba"):
        raise ValueError(
            f"variant='real' needs probabilities, and {type(estimator).__name__} has no "
            "predict_proba; use variant='discrete'."
        )


@dataclass(frozen=True)
class Member:
    """A round: a fitted learner, whose answers the model adds times alpha."""

    name: ClassVar[str] = "learner"

    learner: Any
    alpha: float
    error: float
    perfect: bool
    weights: RoundWeights | None = None
    trail: Any = None


@dataclass(frozen=True)
class Members:
    """Fitted classifiers in a model: rounds become a committee."""

    name: ClassVar[str] = "learner"
    by_feature: ClassVar[bool] = False

    voice: Voice | CodedVoice
    n_features: int

    def added(self, member: Member, X: Any, where: Where) -> Any:
        return member.alpha * self.voice(member.learner, X, where)

    def round_info(self, member: Member) -> dict[str, Any]:
        return {"feature": None, "threshold": None}

    def outcome(self, rounds: Sequence[Member], start: np.ndarray, constant: np.ndarray) -> Outcome:
        learners = tuple(member.learner for member in rounds)
        alphas, errors = alphas_and_errors(rounds)
        model = Committee(learners, alphas, voice=self.voice, n_features=self.n_features)
        every = [[uncoded(part) for part in parts(learner)] for learner in learners]
        if not all(hasattr(one, "feature_importances_") for own in every for one in own):
            return Outcome(model, None)
        votes = isinstance(self.voice, Voice) and self.voice.least is None
        worth = alphas if votes else np.maximum(-np.log(errors), 0.0)
        own = np.array([np.mean([one.feature_importances_ for one in own], axis=0)
                        for own in every])  # fmt: skip
        return Outcome(model, shares(worth @ own))
