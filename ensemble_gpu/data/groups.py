"""Which rows belong together: the queries of a ranking."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ensemble_gpu.arrays.namespace import Where, is_array, locate
from ensemble_gpu.data.labels import check_labels
from ensemble_gpu.data.validation import check_length, check_weights, features_of


@dataclass(frozen=True)
class Groups:
    """The group of every row, 0, 1, ..., where the rows are; what each weighs (host; None: 1).

    Groups are numbered in the order of their labels: the order of the rows does not matter.
    """

    index: Any
    weights: np.ndarray | None = None

    def taken(self, at: Any) -> Groups:
        """Those of the rows at the given positions."""
        return replace(self, index=locate(self.index).xp.take(self.index, at))


def read_groups(qid: Any, n_rows: int, where: Where, name: str = "qid") -> tuple[Any, int]:
    """The group of every row, int64, and how many there are; `qid` is any label a row."""
    if qid is None:
        raise ValueError(
            f"{name} must say which query each row belongs to, a label a row; got None. All rows "
            f"are compared with each other where {name} is one label, such as zeros."
        )
    on_device = is_array(qid) and not isinstance(qid, np.ndarray)
    if on_device and where.xp.isdtype(qid.dtype, "real floating"):
        whole = where.xp.astype(qid, where.xp.int64)
        if not bool(where.xp.all(where.as_float64(whole) == where.as_float64(qid))):
            raise ValueError(f"{name} must hold labels of queries, without NaN; got {qid.dtype}.")
        qid = whole
    if not on_device:
        qid = np.asarray(qid)
        if qid.dtype.kind == "f" and qid.ndim == 1:
            if not np.isfinite(qid).all():
                raise ValueError(f"{name} contains NaN or infinity; every row needs a query.")
            qid = np.unique(qid, return_inverse=True)[1]
    if qid.ndim > 1:
        raise ValueError(f"{name} must be of one dimension, a label a row; got shape {qid.shape}.")
    check_length(name, int(qid.shape[0]) if qid.ndim else 1, features_of(name), n_rows)
    labels, index = check_labels(qid, n_rows, where, 1, name)
    return where.xp.astype(index, where.xp.int64), len(labels)


def read_weights(
    weights: Any, n_rows: int, n_groups: int, where: Where, name: str
) -> tuple[Any | None, np.ndarray | None]:
    """Weights of rows, or of groups in the order of their labels, by how many there are.

    Where there are as many rows as groups, they are of rows.
    """
    shape = getattr(weights, "shape", None)
    if shape is None and hasattr(weights, "__len__"):
        shape = (len(weights),)
    if n_groups == n_rows or shape is None or tuple(shape) != (n_groups,):
        return check_weights(weights, n_rows, where, name), None
    of_groups = check_weights(weights, n_groups, where, name)
    return None, where.host(of_groups)
