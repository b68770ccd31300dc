"""A learner's parameters about single features, in terms of the columns that it sees.

A learner gets some columns of X, as an array without names. So the parameters that refer to
features, by index, name or position, are resolved against all of X once, and every learner gets
them for its own columns. Categories are codes 0, 1, ... by then, whatever X called them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ensemble_gpu.data.categories import Categories
from ensemble_gpu.data.interactions import read_sets
from ensemble_gpu.data.parameters import check_signs


@dataclass(frozen=True)
class Columns:
    """The learner's parameters; None where it has none or they are not set.

    `categorical` are features, `signs` are of all features, `groups` are features that may
    interact.
    """

    categorical: Sequence[int] | None
    signs: Sequence[int] | None
    groups: Sequence[Sequence[int]] | None

    def seen(self, drawn: np.ndarray) -> dict[str, Any]:
        """Parameters of a learner whose columns are the features `drawn`."""
        features = drawn.tolist()

        def positions(chosen: Sequence[int]) -> list[int]:
            return [column for column, feature in enumerate(features) if feature in chosen]

        found: dict[str, Any] = {}
        if self.categorical is not None:
            found["categorical_features"] = positions(self.categorical)
        if self.signs is not None:
            found["monotonic_cst"] = [self.signs[feature] for feature in features]
        if self.groups is not None:
            own = map(positions, self.groups)
            found["interaction_cst"] = [group for group in own if group]
        return found


def resolved(
    given: Mapping[str, Any], categories: Categories, n_features: int, names: Any | None
) -> Columns:
    """The learner's parameters about the features of X."""
    categorical, signs = given.get("categorical_features"), given.get("monotonic_cst")
    says_nothing = categorical is None or (isinstance(categorical, str) and not categories.values)
    return Columns(
        None if says_nothing else sorted(categories.values),
        None if signs is None else check_signs(signs, n_features, names).tolist(),
        _groups(given.get("interaction_cst"), n_features, names),
    )


def _groups(given: Any, n_features: int, names: Any | None) -> list[list[int]] | None:
    """interaction_cst: groups of features; a word is about any features, and stays what it is."""
    if given is None or isinstance(given, str):
        return None
    return [sorted(group) for group in read_sets(given, n_features, names)]
