"""Parameters of boosted stumps and trees without what regularises trees by default."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def plain(params: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """Stumps, unless a size is given; trees of that size whose leaves keep no conditions.

    All rows and rounds, however many rows there are.
    """
    given = {"early_stopping": False, **params, **more}
    if not given.keys() & {"max_depth", "max_leaf_nodes"}:
        return {"max_depth": 1, **given}
    if given.get("max_depth") == 1:
        return given
    return {"max_depth": None, "min_samples_leaf": 1, "min_hessian": 0.0, **given}
