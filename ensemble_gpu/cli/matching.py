"""The columns of a file beside those of a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ensemble_gpu.cli.errors import BadInput, listed
from ensemble_gpu.cli.readers import read_table
from ensemble_gpu.cli.tables import Table, features


def texts_of(estimator: Any) -> set[str]:
    """Columns whose categories are texts: a file may make them look like numbers."""
    names = getattr(estimator, "feature_names_in_", None)
    known = getattr(estimator, "_categories", None)
    if names is None or known is None:
        return set()
    return {
        str(names[f])
        for f, labels in known.labels.items()
        if any(isinstance(label, str) for label in labels)
    }


def read_for(
    estimator: Any, paths: Sequence[str], others: Sequence[str | None]
) -> tuple[Table, Any]:
    """The table of files, and the columns of it that the model takes, in its order.

    `others` are columns that are no features, such as the label.
    """
    table = read_table(paths, texts_of(estimator))
    return table, matched(estimator, table, [name for name in others if name is not None])


def matched(estimator: Any, table: Table, others: Sequence[str]) -> Any:
    """X by the names of training; other columns are ignored, missing ones are an error."""
    known = getattr(estimator, "feature_names_in_", None)
    if known is None:
        return features(table, _in_order(estimator, table, others))
    names = [str(name) for name in known]
    missing = [name for name in names if name not in table.columns]
    if missing:
        plural = "column" if len(missing) == 1 else "columns"
        raise BadInput(
            f"{len(missing)} {plural} of the model missing: {listed(missing, 20)}; the file has "
            f"{listed(table.names)}"
        )
    return features(table, names)


def _in_order(estimator: Any, table: Table, others: Sequence[str]) -> list[str]:
    """Columns for a model without names: as many as it takes, in the order of the file."""
    names = [name for name in table.names if name not in others]
    if len(names) != estimator.n_features_in_:
        raise BadInput(
            f"the model was trained without names of columns and takes {estimator.n_features_in_} "
            f"features; the file has {len(names)}: {listed(names)}"
        )
    return names
