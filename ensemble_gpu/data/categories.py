"""Categorical features: which ones they are, and the number that stands for each category.

A category is a number in X and a bit in a tree's split, with three steps from one to the other:

- `choose` finds the features, and the labels of the columns of a frame that are not plain numbers;
- `number` puts numbers in place of labels: a label that is a number stays what it is, any other
  becomes its position among the labels of training, sorted, so that no library's order matters;
- `learn` finds the numbers that occur in training, and `encode` (arrays/positions.py) puts in place
  of each its position among those, NaN where it is missing or unknown. That is what engines see.

Only `choose` and `number` take frames (data/frames.py); `learn` and `encode` take arrays of any
library.
"""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ensemble_gpu.arrays.namespace import Where, is_array, to_numpy
from ensemble_gpu.arrays.streamed import is_streamed
from ensemble_gpu.data.frames import Table, count_columns, table_of
from ensemble_gpu.kernels.edges import MAX_BINS_LIMIT
from ensemble_gpu.kernels.team import ALONE, Team

FROM_DTYPE = "from_dtype"


@dataclass(frozen=True)
class Chosen:
    """Features to treat as categories (ascending), and the sorted labels of those that have any."""

    features: list[int]
    labels: dict[int, list]
    names: list | None = None


@dataclass(frozen=True)
class Categories:
    """The numbers that each categorical feature had in training, and the user's labels.

    `values[f]` are ascending float64, the same for arrays and frames; `labels[f]` is there where
    the column was not of plain numbers. A label that is no number has its position for a number.
    """

    values: dict[int, np.ndarray]
    labels: dict[int, list]

    def mask(self, n_features: int) -> np.ndarray:
        """Which features are categorical: bool [feature]."""
        mask = np.zeros(n_features, dtype=bool)
        mask[list(self.values)] = True
        return mask

    def sizes(self) -> dict[int, int]:
        """How many codes each feature has: one at least."""
        return {f: max(1, len(values)) for f, values in self.values.items()}

    def names(self, feature: int) -> list:
        """What the user calls the categories of a feature, in the order of their codes."""
        values, labels = self.values[feature], self.labels.get(feature)
        if labels is None or _all_numbers(labels):
            return values.tolist()
        return [labels[int(v)] for v in values]


NO_CATEGORIES = Categories({}, {})


def choose(X: Any, categorical_features: Any) -> Chosen:
    """Resolve the parameter against the X of fit, a frame or an array.

    None is no feature; "from_dtype" the columns that a frame declares as categories; otherwise
    indices, names or a mask. An X that is not two-dimensional has no features to choose from.
    """
    given = categorical_features
    from_dtype = isinstance(given, str) and given == FROM_DTYPE
    if given is None or (from_dtype and not hasattr(X, "columns")):
        return Chosen([], {})
    table = table_of(X)
    n_features = count_columns(X if table is None else table)
    names = None if table is None else table.names
    if n_features is None:
        return Chosen([], {})
    if not isinstance(given, str):
        features = _listed(given, n_features, names)
    elif given == FROM_DTYPE:
        features = [f for f in range(n_features) if table and table.is_category(f)]
    else:
        raise ValueError(_allowed(given))
    if table is None:
        return Chosen(features, {}, names)
    labelled = [f for f in features if not table.is_plain(f)]
    return Chosen(features, {f: _labels(table, f) for f in labelled}, names)


def _allowed(given: Any) -> str:
    return (
        "categorical_features must be None, 'from_dtype', or a 1-dimensional array of feature "
        f"indices, of column names, or of bool (a mask); got {given!r}."
    )


def _listed(given: Any, n_features: int, names: list | None) -> list[int]:
    """Indices, names or a mask as ascending indices."""
    array = np.asarray(to_numpy(given) if is_array(given) else given, dtype=object)
    if array.ndim != 1:
        raise ValueError(_allowed(given))
    items = array.tolist()
    if all(isinstance(item, bool | np.bool_) for item in items):
        if items and len(items) != n_features:
            raise ValueError(
                f"categorical_features is a mask of {len(items)} values; it must have one for "
                f"each of the {n_features} features of X."
            )
        return [f for f, chosen in enumerate(items) if chosen]
    if all(isinstance(item, str) for item in items):
        features = _named(items, names)
    elif all(
        isinstance(item, numbers.Integral) and not isinstance(item, bool | np.bool_)
        for item in items
    ):
        features = [int(item) for item in items]
    else:
        raise ValueError(_allowed(given))
    outside = [f for f in features if not 0 <= f < n_features]
    if outside:
        raise ValueError(
            f"categorical_features holds indices that X does not have: {outside!r}; X has "
            f"{n_features} features, so 0 to {n_features - 1} are allowed."
        )
    repeated = sorted({items[i] for i, f in enumerate(features) if features.count(f) > 1})
    if repeated:
        raise ValueError(
            f"categorical_features names features more than once: {repeated!r}; once each is "
            "allowed."
        )
    return sorted(features)


def _named(items: list[str], names: list | None) -> list[int]:
    if names is None:
        raise ValueError(
            f"categorical_features holds names, {items!r}, but X has no column names; give "
            "indices or a mask, or a pandas or polars frame as X."
        )
    unknown = [item for item in items if names.count(item) != 1]
    if unknown:
        raise ValueError(
            f"categorical_features must hold names of columns that X has once; got {unknown!r}, "
            f"X has {names!r}."
        )
    return [names.index(item) for item in items]


def number(X: Any, labels: Mapping[int, Sequence]) -> Any:
    """X with numbers in place of labels: a frame stays a frame, with its column names.

    Missing and unknown labels become NaN. X itself where no feature has labels, and where X has
    too few columns: the checks of X that follow say so.
    """
    if not labels:
        return X
    table = table_of(X)
    n_features = count_columns(X if table is None else table)
    if n_features is None or n_features <= max(labels):
        return X
    if table is None:
        for f, known in labels.items():
            _check_kind(f, None, known, [0.0])
        return X
    columns = {}
    for f, known in labels.items():
        codes, found = table.factors(f)
        _check_kind(f, table.names, known, found)
        position = {label: label if _all_numbers(known) else k for k, label in enumerate(known)}
        as_number = [float(position.get(label, np.nan)) for label in found]
        columns[f] = np.array([*as_number, np.nan])[codes]  # code -1: the last one
    return table.replaced(columns)


def known_to_all(chosen: Chosen, team: Team) -> Chosen:
    """The labels that some worker of a team has met."""
    if team.alone:
        return chosen
    found = team.each([chosen.features, sorted(chosen.labels)])
    if any(one != found[0] for one in found):
        raise ValueError(
            "X must have the same categorical features for every worker, with labels or without; "
            f"their features, and those with labels, are {found!r}."
        )
    labels = {}
    for f, own in chosen.labels.items():
        every = team.labels(own, f"categorical {_called(f, chosen.names)}")
        labels[f] = sorted_labels(list(dict.fromkeys(label for one in every for label in one)))
    return Chosen(chosen.features, labels, chosen.names)


def learn(
    X: Any, chosen: Chosen, max_bins: int, where: Where, rows: Any = None, team: Team = ALONE
) -> Categories:
    """The categories of checked floats X: ascending distinct numbers of every chosen feature.

    `rows` (positions, where X lives) are those to learn from; None: all. At most `max_bins`
    categories; a column of plain numbers must hold codes 0 ... max_bins - 1.
    """
    xp = where.xp
    values = {}
    streamed = X.distinct(chosen.features, rows) if is_streamed(X) and chosen.features else {}
    for f in chosen.features:
        found = streamed.get(f)
        if found is None:
            column = X[:, f] if rows is None else xp.take(X[:, f], rows)
            found = xp.unique_values(column[~xp.isnan(column)])
        values[f] = np.unique(team.concatenated(to_numpy(found).astype(np.float64) + 0.0))
        if f in chosen.labels:
            _check_cardinality(f, chosen.names, len(values[f]), max_bins)
        else:
            _check_codes(f, chosen.names, values[f], max_bins)
        values[f].setflags(write=False)
    return Categories(values, chosen.labels)


def _called(feature: int, names: list | None) -> str:
    return f"feature {feature}" if names is None else f"feature {feature} ({names[feature]!r})"


def _more_bins(max_bins: int) -> str:
    return (
        "" if max_bins >= MAX_BINS_LIMIT else f"; raise max_bins (None is up to {MAX_BINS_LIMIT:,})"
    )


def _check_cardinality(feature: int, names: list | None, found: int, max_bins: int) -> None:
    if found > max_bins:
        raise ValueError(
            f"Categorical {_called(feature, names)} has {found:,} categories, but at most "
            f"max_bins={max_bins} are allowed{_more_bins(max_bins)}."
        )


def _check_codes(feature: int, names: list | None, values: np.ndarray, max_bins: int) -> None:
    wrong = values[(values < 0) | (values >= max_bins) | (values != np.floor(values))]
    if len(wrong):
        raise ValueError(
            f"Categorical {_called(feature, names)} holds {wrong[0]:g}, which is out of range: "
            f"category codes must be integers from 0 to {max_bins - 1} (max_bins={max_bins}) or "
            f"NaN{_more_bins(max_bins)}, or give a frame with a column of category type."
        )


def _check_kind(feature: int, names: list | None, known: Sequence, found: Sequence) -> None:
    """Numbers in place of other labels, or the reverse, would be unknown one and all: refuse."""
    kinds = [
        {isinstance(label, numbers.Real) for label in labels if label == label}
        for labels in (known, found)
    ]
    if all(kinds) and not kinds[0] & kinds[1]:
        got = "numbers" if True in kinds[1] else f"{next(iter(found))!r}, which is no number"
        raise ValueError(
            f"Categorical {_called(feature, names)} was fitted with labels such as {known[0]!r}; "
            f"got {got}. Labels as in training are allowed, and missing ones."
        )


def _all_numbers(labels: Sequence) -> bool:
    return all(isinstance(label, numbers.Real) for label in labels)


def _labels(table: Table, feature: int) -> list:
    return sorted_labels(found_labels(table, feature))


def found_labels(table: Table, feature: int) -> list:
    """The distinct labels of a column, in any order."""
    try:
        return table.factors(feature)[1]
    except TypeError as error:
        raise ValueError(
            f"Categorical {_called(feature, table.names)} must hold labels that can be told apart "
            f"by their hash, such as strings or numbers; {error}."
        ) from error


def sorted_labels(labels: Sequence) -> list:
    """Sorted by value; by type and text where values of several types cannot be compared."""
    try:
        return sorted(labels)
    except TypeError:
        return sorted(labels, key=lambda label: (type(label).__name__, str(label)))
