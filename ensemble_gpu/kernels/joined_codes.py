"""Codes of evenly spaced thresholds by array calls: encoded as any others, and joined."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from ensemble_gpu.kernels.edges import even_edges
from ensemble_gpu.kernels.protocol import EVEN_BINS, Codes, Histograms, Layout


class Encoding(Protocol):
    """What `JoinedCodes` needs of an engine."""

    def encode(
        self, X: Any, edges: list[np.ndarray], rows: Any, layout: Layout | None,
        width: int | None = None,
    ) -> Codes: ...  # fmt: skip

    def join(self, parts: Sequence[Codes], layout: Layout) -> Codes: ...

    def histograms(self, codes: Codes, layout: Layout, log_weights: Any | None) -> Histograms: ...


class JoinedCodes:
    """EvenCodes of an engine whose arrays are not written to: parts that are joined."""

    def __init__(self, engine: Encoding, rows: Any, layout: Layout) -> None:
        self.engine, self.rows, self.layout = engine, rows, layout
        self.parts: dict[int, Codes] = {}

    def put(self, first: int, Z: Any, low: np.ndarray, step: np.ndarray) -> None:
        edges = even_edges(low, step)
        self.parts[first] = self.engine.encode(Z, edges, self.rows, self.layout, EVEN_BINS + 1)

    def codes(self) -> Codes:
        parts, self.parts = [self.parts[first] for first in sorted(self.parts)], {}
        return self.engine.join(parts, self.layout)

    def histograms(self, codes: Codes, log_weights: Any) -> Histograms:
        return self.engine.histograms(codes, self.layout, log_weights)
