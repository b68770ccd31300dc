"""Parameters of a test: all combinations, of which `make test` takes what every pair needs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import combinations, product
from typing import Any

import pytest


def every_pair(
    names: str,
    *axes: Iterable[Any],
    makes_sense: Callable[..., bool] = lambda *_: True,
    **options: Any,
) -> pytest.MarkDecorator:
    """Parametrise by the product of the axes; combinations that show no new pair are `long`.

    Every value of an axis meets every value of every other one in `make test`; how three of them
    go together is left to `make test-long`, which has the combinations that are left. Those that
    make no sense are in neither.
    """
    values = [list(axis) for axis in axes]

    def at(one: Sequence[int]) -> list[Any]:
        return [axis[i] for axis, i in zip(values, one, strict=True)]

    left = [one for one in product(*(range(len(axis)) for axis in values)) if makes_sense(*at(one))]
    unseen = {pair for one in left for pair in _pairs(one)}
    chosen = []
    while unseen:
        best = max(left, key=lambda one: len(unseen & _pairs(one)))  # the first of equals
        left.remove(best)
        unseen -= _pairs(best)
        chosen.append(best)
    marked = [
        pytest.param(*at(one), marks=marks)
        for many, marks in ((sorted(chosen), ()), (left, pytest.mark.long))
        for one in many
    ]
    return pytest.mark.parametrize(names.split(", "), marked, **options)


def _pairs(one: Sequence[int]) -> set[tuple[tuple[int, int], ...]]:
    """Which values of which two axes meet; of one axis, its values."""
    placed = list(enumerate(one))
    return set(combinations(placed, 2)) or {(placed[0],)}
