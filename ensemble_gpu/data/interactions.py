"""Which features may meet on the way from the root of a tree to a leaf: `interaction_cst`.

The features of X are covered by sets S_1, S_2, ... After tests of the features U a node may test
those of every set that holds all of U:

    allowed(U) = union of the S_i with U subset of S_i

So the features on any path are all in one set, and a model is a sum of functions of one set each.
"""

from __future__ import annotations

import numbers
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

# Words for all sets of so many features.
WORDS = {"no_interactions": 1, "pairwise": 2}


@dataclass(frozen=True)
class Interactions:
    """`sets` of features, or None: any set of at most `most` features."""

    n_features: int
    sets: tuple[frozenset[int], ...] | None
    most: int = 0
    known: dict[frozenset[int], tuple[int, ...] | None] = field(
        default_factory=dict, compare=False, repr=False
    )

    def allowed(self, tested: frozenset[int]) -> tuple[int, ...] | None:
        """The features that may be tested after these, ascending; None: all."""
        if tested not in self.known:
            self.known[tested] = self._allowed(tested)
        return self.known[tested]

    def bits(self) -> tuple[np.ndarray, int]:
        """`sets` as bits of 64-bit words [set, word], none where any will do; and `most`."""
        words, sets = -(-self.n_features // 64), self.sets or ()
        bits = np.zeros((len(sets), words), dtype=np.uint64)
        for i, own in enumerate(sets):
            for f in own:
                bits[i, f // 64] |= np.uint64(1 << f % 64)
        return bits, self.most

    def _allowed(self, tested: frozenset[int]) -> tuple[int, ...] | None:
        if self.sets is None:
            return None if len(tested) < self.most else tuple(sorted(tested))
        found = frozenset[int]().union(*(own for own in self.sets if tested <= own))
        return None if len(found) == self.n_features else tuple(sorted(found))


def read_interactions(given: Any, n_features: int, names: Any | None) -> Interactions | None:
    """From the parameter `interaction_cst`; None where it forbids nothing."""
    if given is None:
        return None
    if isinstance(given, str):
        if given not in WORDS:
            raise _wrong(given, n_features)
        most = WORDS[given]
        return Interactions(n_features, None, most) if most < n_features else None
    sets = read_sets(given, n_features, names)
    rest = frozenset(range(n_features)).difference(*sets)
    if rest:
        sets.append(rest)
    if any(len(own) == n_features for own in sets):
        return None
    return Interactions(n_features, tuple(sets))


def _wrong(given: Any, n_features: int) -> ValueError:
    return ValueError(
        "interaction_cst must be None, 'pairwise', 'no_interactions' or a sequence of sets of "
        f"names or of feature indices from 0 to {n_features - 1}; got {given!r}."
    )


def read_sets(given: Any, n_features: int, names: Any | None) -> list[frozenset[int]]:
    """A sequence of sets, lists or tuples of features as sets of their indices."""
    if not _is_many(given) or not all(_is_many(own) for own in given):
        raise _wrong(given, n_features)
    known = {} if names is None else {str(name): f for f, name in enumerate(names)}
    return [frozenset(_feature(f, n_features, known) for f in own) for own in given]


def _is_many(given: Any) -> bool:
    return isinstance(given, Iterable) and not isinstance(given, str | bytes | dict)


def _feature(given: Any, n_features: int, known: dict[str, int]) -> int:
    """The index of a feature."""
    if isinstance(given, str):
        if not known:
            raise ValueError(
                f"interaction_cst names the feature {given!r}, but X had no feature names."
            )
        if given not in known:
            raise ValueError(
                f"interaction_cst names a feature that X does not have: {given!r}; X has "
                f"{list(known)!r}."
            )
        return known[given]
    is_index = isinstance(given, numbers.Integral) and not isinstance(given, bool)
    if not is_index or not 0 <= int(given) < n_features:
        raise _wrong(given, n_features)
    return int(given)
