"""What a sum is bounded by, when its rounds end, and what they leave."""

from __future__ import annotations

from dataclasses import dataclass

from ensemble_gpu.kernels.host.ball import BALL, PENALTY

STEPS = CORRECTIVE, FRANK_WOLFE = "corrective", "frank_wolfe"
# Why rounds end: the gap is closed, all were run, nothing but rounding is left.
CLOSED, ALL, STUCK = "gap", "rounds", "rounding"


@dataclass(frozen=True)
class Bound:
    """|a|_1 <= radius, or a penalty alpha |a|_1."""

    kind: int
    size: float

    @property
    def penalised(self) -> bool:
        return self.kind == PENALTY

    @classmethod
    def ball(cls, radius: float) -> Bound:
        return cls(BALL, radius)

    @classmethod
    def penalty(cls, alpha: float) -> Bound:
        return cls(PENALTY, alpha)


@dataclass(frozen=True)
class Settings:
    """When to stop: gap <= tol R or gap <= enough, or after so many rounds; and the step.

    R counts as 1e-6 of that of f_0 at least.
    """

    most_rounds: int
    tol: float
    step: str = CORRECTIVE
    enough: float = 0.0


@dataclass
class Curves:
    """R and the gap before the first round and after each."""

    losses: list[float]
    gaps: list[float]
    reason: str = ALL
