"""What must be as in the last fit for a warm start: features, categories and classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from ensemble_gpu.data.categories import Categories

MOST_SHOWN = 5


@dataclass(frozen=True)
class Shape:
    """Features, their names (None: they had none) and categories; classes of a classifier."""

    n_features: int
    names: list | None
    classes: list | None
    categories: Categories

    @classmethod
    def of(cls, estimator: Any) -> Shape:
        names = getattr(estimator, "feature_names_in_", None)
        classes = getattr(estimator, "classes_", None)
        return cls(
            estimator.n_features_in_,
            None if names is None else names.tolist(),
            None if classes is None else classes.tolist(),
            estimator._categories,
        )

    def check(self, now: Shape) -> None:
        """Raise where another fit is about something else."""
        change = self._change(now)
        if change:
            raise ValueError(
                "warm_start=True adds to what the last fit has left, so X and y must have the same "
                f"features, names, categories and classes; {change}. Use warm_start=False to fit "
                "anew."
            )

    def _change(self, now: Shape) -> str | None:
        if self.n_features != now.n_features:
            return f"X had {self.n_features} features then, and has {now.n_features} now"
        for f in range(self.n_features):
            then, name = self._name(f), now._name(f)
            if then != name:
                return f"feature {f} was {then} then, and is {name} now"
        if self.classes != now.classes:
            return f"the classes of y were {self.classes!r} then, and are {now.classes!r} now"
        for f in range(self.n_features):
            change = _change_of_labels(self._labels(f), now._labels(f))
            if change:
                called = "" if self.names is None else f" ({self.names[f]!r})"
                return f"feature {f}{called} {change}"
        return None

    def _name(self, feature: int) -> str:
        return "without a name" if self.names is None else repr(self.names[feature])

    def _labels(self, feature: int) -> list | None:
        """What the user calls the categories of a feature; None where it has none."""
        known = feature in self.categories.values
        return self.categories.names(feature) if known else None


def _change_of_labels(then: list | None, now: list | None) -> str | None:
    if then == now:
        return None
    if then is None or now is None:
        return f"was {_kind(then)} then, and is {_kind(now)} now"
    return f"had the categories {_only(then, now)} only then, and has {_only(now, then)} only now"


def _kind(labels: list | None) -> str:
    return "a number" if labels is None else "a category"


def _only(labels: Sequence, others: Sequence) -> str:
    """Labels that are not among the others; the first few of them."""
    known = set(others)
    found = [label for label in labels if label not in known]
    more = ", ..." if len(found) > MOST_SHOWN else ""
    return f"[{', '.join(map(repr, islice(found, MOST_SHOWN)))}{more}]"
