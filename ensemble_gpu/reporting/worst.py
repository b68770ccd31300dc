"""The rows that the model is most wrong about, and why it said so."""

from __future__ import annotations

from typing import Any

import numpy as np

from ensemble_gpu.metrics import CLASSIFICATION, RANKING
from ensemble_gpu.reporting.page import Section, card, facts, grid, table
from ensemble_gpu.reporting.plots import bars
from ensemble_gpu.reporting.subject import Subject, on_host
from ensemble_gpu.reporting.text import number, percent, plain

MOST_WORST, MOST_REASONS = 6, 6
CHARACTERS = 27


def worst(subject: Subject) -> Section | None:
    """Rows with the least probability of their class, or with the largest residuals."""
    if subject.task == RANKING or (
        subject.prediction.ndim > 1 or (subject.task == CLASSIFICATION and _p(subject) is None)
    ):
        return None
    rows = _order(subject)[:MOST_WORST]
    values = _explained(subject, rows)
    parts = []
    for k, row in enumerate(rows.tolist()):
        reasons = None if values is None else values[k]
        parts.append(_row(subject, row, reasons))
    how = "the least probable truth" if subject.task == CLASSIFICATION else "the largest residuals"
    about = f"The {len(rows)} test rows with {how}."
    if values is not None:
        about += (
            " Bars are exact Shapley values: what each feature moves the score from its mean to "
            "that of the row"
        )
        about += _direction(subject)
    return Section("worst", "Worst rows", about, grid(parts))


def _direction(subject: Subject) -> str:
    if subject.task != CLASSIFICATION:
        return "."
    if len(subject.classes) == 2:
        return f", towards {subject.class_names[1]} where they go right."
    return ", for the class that was predicted."


def _p(subject: Subject) -> np.ndarray | None:
    return subject.probabilities


def _order(subject: Subject) -> np.ndarray:
    """Rows, the worst first."""
    if subject.task != CLASSIFICATION:
        return np.argsort(-np.abs(subject.y - subject.prediction), kind="stable")
    p = _p(subject)
    assert p is not None
    return np.argsort(p[np.arange(len(p)), subject.own], kind="stable")


def _explained(subject: Subject, rows: np.ndarray) -> np.ndarray | None:
    """Shapley values [row, feature] of what was predicted; None where a model has none."""
    explain = getattr(subject.estimator, "explain", None)
    if explain is None:
        return None
    try:
        values = on_host(explain(_taken(subject.X, rows)).values)
    except (TypeError, ValueError, NotImplementedError, AttributeError):
        return None
    if values.ndim == 2:
        return values
    if values.shape[2] == 1:
        return values[:, :, 0]
    said = np.searchsorted(subject.classes, subject.prediction[rows])
    if len(subject.classes) == 2:
        said = np.ones(len(rows), dtype=int)
    return values[np.arange(len(rows)), :, said]


def _taken(X: Any, rows: np.ndarray) -> Any:
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    if hasattr(X, "columns"):
        return X[rows.tolist()]
    if hasattr(X, "tocsr"):
        return X.tocsr()[rows]
    return on_host(X)[rows]


def _row(subject: Subject, row: int, reasons: np.ndarray | None) -> str:
    title = f"Row {row:,}"
    about = _facts(subject, row)
    shown = (
        subject.top(MOST_REASONS)
        if reasons is None
        else np.argsort(-np.abs(reasons), kind="stable")[:MOST_REASONS].tolist()
    )
    held = {f: subject.column(f).text(row, number) for f in shown}
    if reasons is None:
        lines = [[subject.names[f], held[f]] for f in shown]
        return card(title, about + table(("feature", "value"), lines, numeric=(1,)))
    lengths = [
        (_equation(subject.names[f], held[f]), float(reasons[f]), f"{reasons[f]:+.3g}")
        for f in shown
    ]
    rest = float(reasons.sum() - reasons[shown].sum())
    others = len(reasons) - len(shown)
    if others > 0:
        lengths.append((f"{others:,} others", rest, f"{rest:+.3g}"))
    text = "; ".join(f"{name}: {words}" for name, _, words in lengths) + "."
    drawn = bars(f"row-{row}", title, text, lengths, signed=True, name_width=212.0)
    return card(title, about + drawn)


def _equation(name: str, value: str) -> str:
    """name = value, the longer one cut so that both are seen."""
    value = plain(value, CHARACTERS // 2)
    return f"{plain(name, CHARACTERS - 3 - len(value))} = {value}"


def _facts(subject: Subject, row: int) -> str:
    if subject.task == CLASSIFICATION:
        p = _p(subject)
        assert p is not None
        own = int(subject.own[row])
        said = int(np.searchsorted(subject.classes, subject.prediction[row]))
        names = subject.class_names
        sure = percent(float(p[row, own]), 2)
        return facts(
            [("truth", names[own]), ("predicted", names[said]), ("probability of the truth", sure)]
        )
    y, prediction = float(subject.y[row]), float(subject.prediction[row])
    return facts(
        [
            ("truth", number(y)),
            ("predicted", number(prediction)),
            ("residual", number(y - prediction)),
        ]
    )
