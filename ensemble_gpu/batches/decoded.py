"""Rows that are kept as codes: a byte a cell, decoded where they are read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ensemble_gpu.arrays.streamed import Decoded


class CodedRows(Decoded):
    """Rows at the positions `at` of a source, once a pass has filled in their codes.

    The values are not those of the rows, but lie on the same side of every edge: a model whose
    thresholds are edges has the same outputs.
    """

    def __init__(self, source: Any, at: np.ndarray, n_features: int, dtype: np.dtype) -> None:
        self.source, self.at, self.dtype = source, at, dtype
        self.shape = len(at), n_features
        self._codes: np.ndarray | None = None
        self._values = np.zeros((0, 0))

    def fill(self, codes: np.ndarray, values: np.ndarray) -> None:
        """Codes [feature, row] and what each stands for [feature, code]."""
        self._codes, self._values, self.source = codes, values.astype(self.dtype), None

    def encoded(self, values: Mapping[int, np.ndarray]) -> CodedRows:
        assert self._codes is None  # they will be filled in where the training rows are encoded
        return self.source.encoded(values).apart(self.at)

    def __getitem__(self, at: Any) -> Any:
        """X[:, f] is a column; X[rows] and X[:, features] are coded rows."""
        assert self._codes is not None
        codes, values = self._codes, self._values
        if isinstance(at, tuple):
            rows, features = at
            if isinstance(features, int | np.integer):
                return values[features][codes[features, rows]]
            codes, values = codes[features][:, rows], values[features]
        else:
            codes = codes[:, at]
        found = CodedRows(None, np.zeros(codes.shape[1], dtype=np.int64), len(codes), self.dtype)
        found.fill(codes, values)
        return found

    def toarray(self) -> np.ndarray:
        """All of them as floats."""
        assert self._codes is not None
        out = np.empty(self.shape, dtype=self.dtype)
        for f, (codes, values) in enumerate(zip(self._codes, self._values, strict=True)):
            out[:, f] = values[codes]
        return out
