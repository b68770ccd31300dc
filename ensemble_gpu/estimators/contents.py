"""What a fit was given, as digests: whether another is given the same, and if not, what differs.

A later fit that goes on where an earlier one ended (warm_start, resume) must see the same rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ensemble_gpu.arrays.namespace import Where
from ensemble_gpu.data.digests import array_digest, digest, feature_digests, unbinned_digests
from ensemble_gpu.data.matrix import BinnedMatrix
from ensemble_gpu.data.rows import Rows
from ensemble_gpu.kernels.protocol import Engine

MOST_NAMED = 5
# Codes of a feature up to which sums of each cost less than a look at the features themselves.
MOST_CODES = 1024


@dataclass(frozen=True)
class Contents:
    """Digests of the arrays that are there, by name, and of the features of X.

    Which rows there are, and in which order, comes first: where it differs the rest is another.
    """

    n_rows: int
    rows: Mapping[str, str]
    features: Sequence[str]
    others: Mapping[str, str] = field(default_factory=dict)

    def with_others(self, **digests: str) -> Contents:
        return replace(self, others={**self.others, **digests})

    def changes(self, now: Contents, names: Sequence[Any] | None) -> list[str]:
        """What is another in `now`; `names` are those of the features (None: they have none)."""
        if self.n_rows != now.n_rows:
            return [f"the number of rows (it was {self.n_rows} and is {now.n_rows})"]
        of_rows = _changed(self.rows, now.rows)
        if of_rows:
            return of_rows
        return [*self._features(now, names), *_changed(self.others, now.others)]

    def _features(self, now: Contents, names: Sequence[Any] | None) -> list[str]:
        if len(self.features) != len(now.features):
            return ["X"]
        pairs = zip(self.features, now.features, strict=True)
        found = [f for f, (then, own) in enumerate(pairs) if then != own]
        if names is not None and len(names) != len(now.features):
            names = None
        if len(found) > MOST_NAMED or (len(found) == len(now.features) and len(found) > 1):
            return [f"X (in {len(found)} features)"]
        return [f"feature {f}{'' if names is None else f' ({names[f]!r})'} of X" for f in found]


def _changed(then: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    return [name for name in {**then, **now} if then.get(name) != now.get(name)]


def contents_of(
    rows: Rows, keep: Any | None, where: Where, matrix: BinnedMatrix | None, engine: Engine
) -> Contents:
    """Of training rows; their features as binned where a learner sees them so."""
    if matrix is None or matrix.codes.width > MOST_CODES:
        features = unbinned_digests(rows, where)
    else:
        features = feature_digests(engine, matrix)
    return Contents(
        int(rows.X.shape[0]),
        {**_of_rows(rows, where), **_named({"the rows that are held out": keep}, where)},
        features,
    )


def set_digest(rows: Rows, where: Where) -> str:
    """Of validation rows."""
    parts = [*_of_rows(rows, where).values(), *unbinned_digests(rows, where)]
    return digest(*(part.encode() for part in parts))


def _of_rows(rows: Rows, where: Where) -> dict[str, str]:
    groups = rows.groups
    arrays = {
        "y": rows.target,
        "sample_weight": rows.weights,
        "init_score": rows.offset,
        "qid": None if groups is None else groups.index,
    }
    found = _named(arrays, where)
    if groups is not None and groups.weights is not None:
        found["sample_weight"] = array_digest(groups.weights)
    return found


def _named(arrays: Mapping[str, Any | None], where: Where) -> dict[str, str]:
    return {
        name: array_digest(where.host(array)) for name, array in arrays.items() if array is not None
    }
