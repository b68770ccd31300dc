"""A model that is saved, loaded again and reported."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ensemble_gpu import AdaBoostClassifier, load, report_html
from ensemble_gpu.cli.demo_data import Data


@dataclass(frozen=True)
class Kept:
    """Where the files are, and whether the loaded model is the one that was saved."""

    model: Path
    report: Path
    bytes: int
    seconds: float
    same: bool


def keep(data: Data, rounds: int, out: Path) -> Kept:
    """AdaBoost on the data, through a file."""
    out.mkdir(parents=True, exist_ok=True)
    model, report = out / "model.safetensors", out / "report.html"
    fitted = AdaBoostClassifier(n_estimators=rounds).fit(data.X, data.y)
    start = time.perf_counter()
    fitted.save(model)
    loaded = load(model)
    taken = time.perf_counter() - start
    same = loaded.model_.fingerprint() == fitted.model_.fingerprint() and np.array_equal(
        loaded.predict_proba(data.X_test), fitted.predict_proba(data.X_test)
    )
    report_html(fitted, data.X_test, data.y_test, report, title=f"{data.name}: AdaBoost")
    return Kept(model, report, model.stat().st_size, taken, bool(same))
