"""`save` as a method of estimators."""

from __future__ import annotations

import os


class Saved:
    """An estimator that can be written to a file."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the estimator to a .safetensors file, or .json for people.

        `ensemble_gpu.load(path)` is the same estimator again; `ensemble_gpu.save` says what a file
        keeps, and what it cannot hold.
        """
        from ensemble_gpu.saving.files import save

        save(self, path)
