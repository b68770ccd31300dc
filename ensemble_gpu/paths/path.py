"""A regularisation path, and points of it as models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ensemble_gpu.data.parameters import check_not_negative, check_real
from ensemble_gpu.drawing.axes import GREY, axes_or_new, class_colours, tidy
from ensemble_gpu.paths.columns import Columns

SQUARED, ABSOLUTE, HINGE = "squared", "absolute", "hinge"
# Coefficients that get a name in a picture.
NAMED = 5


@dataclass(frozen=True)
class Point:
    """A point of the path: coefficients of Path.columns, and the intercept.

    alpha is the penalty for which the point is optimal: -dR/dradius, R the least loss in the ball;
    of several, as knots of the absolute and the hinge loss have, the least.
    """

    alpha: float
    radius: float
    coefficients: np.ndarray
    intercept: float


@dataclass(frozen=True)
class Path:
    """b(alpha) = argmin of the mean loss + alpha |b|_1 for all alpha at once.

    In the radius |b|_1 it is linear between knots. In alpha it is linear for the squared loss; for
    the others, which are linear but for kinks, knot k is the answer for all penalties from
    alphas[k] to alphas[k - 1], and the radii between two knots belong to one alpha.

    alphas, radii : arrays [knots], descending and ascending
    columns : array [used], the columns of the dictionary that are active somewhere
    coefficients : array [knots, used]
    intercepts : array [knots]
    complete : bool, whether the last knot is that of alpha = 0, the least loss of all
    dictionary : the columns; `dictionary.name(j)` says what column j is. Of stumps
        `dictionary.feature[columns]` and `.threshold[columns]`
    loss : {"squared", "absolute", "hinge"}
    classes : the labels -1 and +1 of the hinge loss; None otherwise
    """

    alphas: np.ndarray
    radii: np.ndarray
    columns: np.ndarray
    coefficients: np.ndarray
    intercepts: np.ndarray
    complete: bool
    dictionary: Columns
    loss: str = SQUARED
    classes: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.alphas)

    def __repr__(self) -> str:
        return (
            f"Path({self.loss} loss, {len(self)} knots, alpha {self.alphas[0]:.3g} to "
            f"{self.alphas[-1]:.3g}, radius up to {self.radii[-1]:.3g}, {len(self.columns)} "
            "columns)"
        )

    def at(self, *, radius: float | None = None, alpha: float | None = None) -> Point:
        """The point with |b|_1 = radius, or with the penalty alpha.

        A radius beyond the last of a complete path, and an alpha beyond the first, give its ends.
        """
        if (radius is None) == (alpha is None):
            raise ValueError(f"give radius or alpha; got radius={radius!r}, alpha={alpha!r}.")
        if radius is not None:
            check_real("radius", radius, 0.0)
            at, knots = float(radius), self.radii
        else:
            check_not_negative("alpha", alpha)
            at, knots = -float(alpha or 0.0), -self.alphas
        if at > knots[-1] and not self.complete:
            given = f"radius={radius!r}" if radius is not None else f"alpha={alpha!r}"
            raise ValueError(
                f"{given} is beyond the last knot (radius {self.radii[-1]:.6g}, alpha "
                f"{self.alphas[-1]:.6g}): the path was ended by max_active, max_radius, max_knots "
                "or columns that depend on each other."
            )
        at = min(max(at, float(knots[0])), float(knots[-1]))
        j = int(np.searchsorted(knots, at))  # the first knot that is not before
        if float(knots[j]) == at or (alpha is not None and self.loss != SQUARED):
            return self._between(j, j, 0.0)
        return self._between(j - 1, j, (at - float(knots[j - 1])) / float(knots[j] - knots[j - 1]))

    def _between(self, i: int, j: int, share: float) -> Point:
        def mixed(array: np.ndarray) -> Any:
            return array[i] if share == 0.0 else (1.0 - share) * array[i] + share * array[j]

        coefficients = mixed(self.coefficients)
        alpha = mixed(self.alphas) if self.loss == SQUARED else self.alphas[i]
        return Point(
            float(alpha), float(np.abs(coefficients).sum()), coefficients,
            float(mixed(self.intercepts)),
        )  # fmt: skip

    def model(self, *, radius: float | None = None, alpha: float | None = None) -> Any:
        """The model at a point.

        An AdditiveModel of stumps, a LinearModel of features, a VoteModel of a pool, a DerivedModel
        of half-spaces, balls and boxes. Of the hinge loss F > 0 means classes[1].
        """
        point = self.at(radius=radius, alpha=alpha)
        used = point.coefficients != 0.0
        columns = self.columns[used]
        return self.dictionary.model(columns, point.coefficients[used], point.intercept)

    def plot(self, *, ax: Any = None) -> Any:
        """Coefficients against the radius; the largest have names.

        Returns
        -------
        matplotlib Axes
        """
        ax = axes_or_new(ax)
        size = np.abs(self.coefficients).max(axis=0, initial=0.0)
        named = np.argsort(-size, kind="stable")[:NAMED]
        for j in range(len(self.columns)):
            if j not in named:
                ax.plot(self.radii, self.coefficients[:, j], color=GREY, alpha=0.5, linewidth=0.7)
        for j, colour in zip(named, class_colours(NAMED), strict=False):
            name = self.dictionary.name(int(self.columns[j]))
            ax.plot(self.radii, self.coefficients[:, j], color=colour, linewidth=1.4, label=name)
        ax.axhline(0.0, color=GREY, linewidth=0.7)
        ax.set_xlabel("radius, sum of |coefficients|")
        ax.set_ylabel("coefficient")
        if self.radii[-1] > 0.0:
            ax.set_xlim(0.0, float(self.radii[-1]))
        ax.set_title(f"Regularisation path of the {self.loss} loss")
        if len(named):
            ax.legend(frameon=False)
        tidy(ax)
        return ax
