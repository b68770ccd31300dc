"""What a loss is: its value, its two derivatives, its facts.

l(y, F) is minimised over functions F by descent: a round fits -dl/dF at the rows (MATHS 4). The
derivatives decide which stump wins, so they use only operations that IEEE 754 rounds correctly
(+, -, *, /, comparisons, where, min, max) and `exp`, which training replaces by one that gives the
same bits on every engine; no product that is inexact feeds a sum.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ensemble_gpu.arrays.namespace import locate
from ensemble_gpu.model.link import LINKS

CLASSIFICATION, REGRESSION, RANKING = "classification", "regression", "ranking"


def array_exp(x: Any) -> Any:
    """e^x by the array's own library."""
    return locate(x).xp.exp(x)


class Facts:
    """Properties of a loss that do not depend on data; attributes of the class."""

    name: str
    task: str  # "classification", "regression" or "ranking"
    link_name: str  # how F becomes a mean of y: model/link.py
    convex: bool = True  # in F
    has_hessian: bool = True
    curvature: float | None = None  # upper bound on the second derivative, where there is one
    calibrated: bool | None = None  # classification: is sign F* the Bayes rule? (MATHS 8)
    times_half: float = 1.0  # how many times 1/2 stands before its squares: 2 for (y - F)^2
    longest_step: float = math.inf  # bound on the Newton step of a leaf
    straight: bool = False  # made of straight lines: the gradient changes at kinks alone
    has_leaf_step: bool = False  # whether a leaf's best step can be found (boosting/leaf_steps.py)
    by_row: bool = True  # whether a row's derivatives depend on that row alone
    kernel: str | None = None  # engines may have compiled l and derivatives under this name,
    parameter: float = 0.0  # with this parameter


@dataclass(frozen=True, kw_only=True)
class Loss(Facts):
    """l(y, F), for every row on its own.

    y and F are arrays of one namespace, device and floating data type, which the answers keep.
    A subclass writes the facts, `value`, `derivatives` and `best_constant`; `CustomLoss` makes
    a loss of plain functions.
    """

    exp: Callable[[Any], Any] = field(default=array_exp, repr=False, compare=False)

    def __init_subclass__(cls) -> None:
        """Values and derivatives of a subclass are its own: they do not inherit a kernel."""
        super().__init_subclass__()
        own = {"value", "derivatives", "gradient", "hessian"} & set(vars(cls))
        if own and "kernel" not in vars(cls):
            cls.kernel = None

    def value(self, y: Any, F: Any) -> Any:
        """l(y, F)."""
        raise NotImplementedError

    def derivatives(self, y: Any, F: Any) -> tuple[Any, Any]:
        """dl/dF and d2l/dF2; a loss without the second gives ones in its place."""
        raise NotImplementedError

    def gradient(self, y: Any, F: Any) -> Any:
        """dl/dF; at a kink, one of the subgradients."""
        return self.derivatives(y, F)[0]

    def hessian(self, y: Any, F: Any) -> Any:
        """d2l/dF2; an error where there is none."""
        if not self.has_hessian:
            raise NotImplementedError(no_hessian(self.name))
        return self.derivatives(y, F)[1]

    @property
    def n_outputs(self) -> int:
        """Outputs of a regression."""
        return 1

    def output(self, k: int) -> Loss:
        """The loss of output k alone, where every output has a target of its own."""
        return self

    @property
    def level(self) -> float:
        """Of a straight loss: the share of the weight below the best constant of a leaf."""
        raise NotImplementedError

    def best_constant(self, y: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
        """The c (shape (1,); K values for K outputs) with the least weighted mean of l(y, c).

        Always finite: where the minimum is at infinity, c is a large number of its sign.
        """
        raise NotImplementedError

    def link(self, mean: Any) -> Any:
        """F that stands for a mean of y; for classes the mean is the probability of +1."""
        return LINKS[self.link_name].output(mean)

    def inverse_link(self, F: Any) -> Any:
        """The mean of y that F stands for."""
        return LINKS[self.link_name].mean(F, self.exp)

    def check_target(self, y: np.ndarray, name: str = "y") -> None:
        """Raise where y (on the host) is outside of the domain."""
        if not np.isfinite(y).all():
            raise ValueError(
                f"{name} contains NaN or infinity; loss {self.name!r} takes finite values."
            )


def no_hessian(name: str) -> str:
    return (
        f"loss {name!r} has no second derivative (has_hessian is False); `derivatives` gives ones "
        "in its place."
    )


def scaled(weights: np.ndarray | None, y: np.ndarray) -> np.ndarray:
    """Weights over the largest of them, so that no sum overflows; ones where there are none."""
    return np.ones(y.shape[0]) if weights is None else weights / np.max(weights)
