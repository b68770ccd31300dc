"""A loss from plain functions."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np

from ensemble_gpu.arrays.namespace import locate
from ensemble_gpu.losses.base import (
    CLASSIFICATION,
    REGRESSION,
    Loss,
    no_hessian,
    scaled,
)
from ensemble_gpu.losses.regression import weighted_quantile
from ensemble_gpu.losses.roots import increasing_root

ALLOWED_LINKS = {
    CLASSIFICATION: ("logistic", "margins", "linear"),
    REGRESSION: ("identity", "log"),
}
FARTHEST = 36.0  # ln 2^52: beyond, a probability of 1 - e^-F is 1


def _no_hessian(y: Any, F: Any) -> NoReturn:
    raise NotImplementedError(no_hessian("custom"))


@dataclass(frozen=True)
class CustomLoss(Loss):
    """l, dl/dF and (if there is one) d2l/dF2 from two or three functions of (y, F).

    They get arrays of any library that the estimator is given, and host arrays of NumPy;
    operators work on all of them, for the rest take the namespace from the array
    (`array_api_compat.array_namespace(F)`). They keep shape and data type, and work row by row.
    The model is the same on every library only as far as their `exp` or `log` are.

    task            "regression": y real; "classification": two classes, y in {-1, +1}
    link_name       "identity" (default), "log"; for classes "logistic" (default), "margins",
                    "linear": see model/link.py
    convex, curvature, calibrated, longest_step   properties of the loss (`Facts`)

        log_cosh = CustomLoss(lambda y, F: ..., lambda y, F: ..., name="log-cosh", convex=True)
    """

    # Any, since a function takes the place of a method.
    value: Any = field(repr=False)
    gradient: Any = field(repr=False)
    hessian: Any = field(default=None, repr=False)
    name: str = field(default="custom", kw_only=True)
    task: str = field(default=REGRESSION, kw_only=True)
    link_name: str = field(default="", kw_only=True)
    convex: bool = field(default=False, kw_only=True)
    curvature: float | None = field(default=None, kw_only=True)
    calibrated: bool | None = field(default=None, kw_only=True)
    longest_step: float = field(default=math.inf, kw_only=True)
    has_hessian: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name in ("value", "gradient", "hessian"):
            function = getattr(self, name)
            if not callable(function) and not (name == "hessian" and function is None):
                raise TypeError(f"{name} must be a function of (y, F); got {function!r}.")
        if self.task not in ALLOWED_LINKS:
            allowed = " or ".join(repr(task) for task in ALLOWED_LINKS)
            raise ValueError(f"task must be {allowed}; got {self.task!r}.")
        links = ALLOWED_LINKS[self.task]
        if self.link_name not in ("", *links):
            raise ValueError(
                f"link_name must be one of {', '.join(map(repr, links))} for {self.task}; got "
                f"{self.link_name!r}."
            )
        settled = {
            "hessian": _no_hessian if self.hessian is None else self.hessian,
            "link_name": self.link_name or links[0],
        }
        settled["has_hessian"] = settled["hessian"] is not _no_hessian
        for name, fact in settled.items():
            object.__setattr__(self, name, fact)

    def try_on(self, y: Any, F: Any) -> None:
        """Raise where a function does not return an array of F's shape for its first rows."""
        y, F = y[:7], F[:7]
        names = ("value", "gradient", "hessian") if self.has_hessian else ("value", "gradient")
        for name in names:
            answer = getattr(self, name)(y, F)
            if getattr(answer, "shape", None) != F.shape:
                raise TypeError(
                    f"{name} of loss {self.name!r} must return an array of the shape of F, a value "
                    f"a row; for {F.shape[0]} rows got {answer!r}."
                )

    def derivatives(self, y: Any, F: Any) -> tuple[Any, Any]:
        h = self.hessian(y, F) if self.has_hessian else locate(F).xp.ones_like(F)
        return self.gradient(y, F), h

    def best_constant(self, y: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
        """Where the mean gradient changes sign; a local minimum, if the loss is not convex.

        Searched in [-36, 36]; for the link "identity" between the quartiles of y (where a robust
        loss has its minimum), and if it is not there, between the smallest and the largest y.
        """
        w = scaled(weights, y)
        y, w = y[w > 0.0].astype(np.float64), w[w > 0.0]

        def slope(c: float) -> float:
            return float(np.sum(w * self.gradient(y, np.full_like(y, c))))

        low, high = -FARTHEST, FARTHEST
        if self.link_name == "identity":
            low, high = (weighted_quantile(y, w, tau) for tau in (0.25, 0.75))
            if not slope(low) < 0.0 < slope(high):
                low, high = float(y.min()), float(y.max())
        return np.array([increasing_root(slope, low, high)])

    def check_target(self, y: np.ndarray, name: str = "y") -> None:
        super().check_target(y, name)
        if self.task == CLASSIFICATION and not np.isin(y, (-1, 1)).all():
            raise ValueError(f"{name} must hold -1 and +1 for loss {self.name!r}; got others.")
