"""From a model to Shapley values: which way each kind of model goes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ensemble_gpu.arrays.namespace import locate
from ensemble_gpu.arrays.sparse import dense_blocks, is_sparse
from ensemble_gpu.explaining.background import Background
from ensemble_gpu.explaining.committees import committee_forests
from ensemble_gpu.explaining.tables import explain_tables
from ensemble_gpu.explaining.trees import explain_forest
from ensemble_gpu.model.additive import AdditiveModel
from ensemble_gpu.model.committee import Committee
from ensemble_gpu.model.forest import Forest

HAVE = (
    "explain is for sums of stumps and of trees: AdaBoostClassifier, BoostingClassifier, "
    "BoostingRegressor, BoostingRanker, L1BoostingClassifier and L1BoostingRegressor with stumps "
    "or trees (also with our decision trees as their estimator), decision trees, random forests, "
    "and BaggingClassifier and BaggingRegressor around trees"
)


class NotExplainableError(TypeError):
    """The model is no sum over stumps or trees."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} cannot be explained; {HAVE}.")


def forests_and_tables(
    model: Any, background: Background | None, what: str
) -> tuple[list[Forest], AdditiveModel | None, np.ndarray]:
    """A model as a sum: forests, tables, and a constant besides."""
    if isinstance(model, AdditiveModel) and background is not None:
        return [], model, np.zeros(model.n_outputs)
    if isinstance(model, Forest):
        return [model], None, np.zeros(model.n_outputs)
    if isinstance(model, Committee):
        found = committee_forests(model)
        if found is not None:
            return found[0], None, found[1]
    raise NotExplainableError(f"{what}, whose model is a {type(model).__name__},")


def explained(
    model: Any, background: Background | None, X: Any, n_jobs: int | None, what: str
) -> tuple[Any, np.ndarray]:
    """Values [n, features, outputs] of rows X, where they are, and base values [outputs]."""
    forests, tables, base = forests_and_tables(model, background, what)
    if is_sparse(X):
        blocks = [block for _, block in dense_blocks(X)] or [X.toarray()]
        found = [explained(model, background, block, n_jobs, what) for block in blocks]
        return np.concatenate([values for values, _ in found]), found[0][1]
    if tables is not None:
        assert background is not None
        return explain_tables(tables, background, X, n_jobs)
    where = locate(X)
    total: Any = None
    for forest in forests:
        values, own = explain_forest(forest, X, n_jobs)
        total, base = values if total is None else total + values, base + own
    if total is None:
        total = where.zeros((*X.shape, len(base)), where.xp.float64)
    return total, base
