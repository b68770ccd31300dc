"""How many rows a pass over the batches has seen."""

from __future__ import annotations

from collections.abc import Callable

from ensemble_gpu.estimators.progress import TextBar


class RowsBar:
    """A bar on standard error, where it is wanted; a total that is not known is what was seen."""

    def __init__(self, label: str, wanted: bool, total: Callable[[], int | None]) -> None:
        self.bar = TextBar(f"{label:10}") if wanted else None
        self.total, self.seen = total() if wanted else None, 0

    def __call__(self, n_rows: int) -> None:
        """So many rows more."""
        self.seen += n_rows
        if self.bar is not None:
            self.bar.show(self.seen, max(self.total or 0, self.seen), "row")

    def close(self) -> None:
        if self.bar is not None:
            self.bar.close()
