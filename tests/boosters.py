"""Parameters of boosted stumps and trees without what holds trees back by default."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ensemble_gpu.learners.tree import splits_once

# A tree of all rows and features, whose leaves keep no conditions.
FREE = {
    "min_samples_leaf": 1, "min_hessian": 0.0, "l2_regularization": 0.0, "subsample": 1.0,
    "max_features": None,
}  # fmt: skip
# Large steps, few of them, and all rows however many there are.
ROUNDS = {"learning_rate": 0.1, "n_estimators": 100, "early_stopping": False}


def plain(*params: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """Stumps, unless a size is given; trees of that size that nothing else holds back."""
    given: dict[str, Any] = {}
    for some in (*params, more):
        given |= some
    if not given.keys() & {"max_depth", "max_leaf_nodes"}:
        given["max_depth"] = 1
    size = given.setdefault("max_depth", None), given.get("max_leaf_nodes")
    return {**ROUNDS, **({} if splits_once(*size) else FREE), **given}
