"""An additive model as plain ONNX operators: a search, a look-up, a sum in the model's order."""

from __future__ import annotations

import numpy as np

from ensemble_gpu.export.onnx_graph import Columns, Graph
from ensemble_gpu.model.additive import AdditiveModel


def table_scores(graph: Graph, x: str, model: AdditiveModel) -> str:
    """F [n, outputs] of x, float64 [n, features]; the model has a table at least."""
    tables = list(model.tables.values())
    x = graph.columns(x, np.array(list(model.tables)), model.n_features)
    # a table has a value more than thresholds, then the one for missing
    columns = Columns([table.thresholds for table in tables], room=2)
    missing = (columns.first + columns.sizes + 1)[None, :]
    place = graph.node("Where", graph.node("IsNaN", x), missing, columns.search(graph, x))
    values = np.concatenate([part for t in tables for part in (t.values, t.missing[None, :])])
    total = graph.sum_in_order(graph.rows_at(values, place, len(tables)), len(tables))
    return graph.node("Add", total, model.intercept)
