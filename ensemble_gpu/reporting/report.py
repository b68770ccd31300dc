"""`report_html`: a model and what it is worth on test rows, as one page."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ensemble_gpu import __version__
from ensemble_gpu.metrics import CLASSIFICATION, RANKING
from ensemble_gpu.reporting.features import importances, shapes
from ensemble_gpu.reporting.judging import judging
from ensemble_gpu.reporting.learning import learning
from ensemble_gpu.reporting.margins import margins
from ensemble_gpu.reporting.origin import data, origin
from ensemble_gpu.reporting.page import Section, page
from ensemble_gpu.reporting.residuals import residuals
from ensemble_gpu.reporting.subject import Subject, read_subject
from ensemble_gpu.reporting.text import count
from ensemble_gpu.reporting.worst import worst
from ensemble_gpu.reporting.worth import worth


def report_html(
    estimator: Any,
    X_test: Any,
    y_test: Any,
    path: str | os.PathLike[str],
    *,
    title: str | None = None,
    note: str | None = None,
    qid: Any = None,
) -> None:
    """Write a report of a fitted estimator: one HTML file without scripts that loads nothing.

    Scores, the learning curve with the bound on the training error (AdaBoost), ROC, precision and
    recall, calibration and confusion or residuals, importances, what the most important features
    do, margins, the worst rows with their explanations, data, settings, versions and the
    fingerprint. Pictures are inline SVG with text alternatives, in the light or dark colours that
    the reader prefers. The same estimator and rows give the same bytes.

    Parameters
    ----------
    estimator : a fitted estimator of this package
    X_test, y_test : rows that it was not trained on, as `predict` takes them, and their labels,
        numbers or levels
    path : where to write the file
    title : heading of the page; None: the estimator's name
    note : a sentence below it; None: none
    qid : of a ranker: the query of each row
    """
    subject = read_subject(estimator, X_test, y_test, qid)
    text = report_text(subject, title, note)
    Path(path).write_text(text, encoding="utf-8", newline="\n")


def report_text(subject: Subject, title: str | None, note: str | None) -> str:
    """The page."""
    name = type(subject.estimator).__name__
    made = [section for section in _sections(subject) if section is not None]
    rows, features = count(subject.n_rows, "test row"), count(subject.n_features, "feature")
    subtitle = f"{name}, {rows} of {features}" if title else f"{rows} of {features}"
    if note:
        subtitle += f". {note}"
    closing = f"Made by ensemble_gpu {__version__}."
    return page(title or name, subtitle, made, closing)


def _sections(subject: Subject) -> list[Section | None]:
    judged = None
    if subject.task == CLASSIFICATION:
        judged = judging(subject)
    elif subject.task != RANKING:
        judged = residuals(subject)
    return [
        worth(subject),
        learning(subject),
        judged,
        importances(subject),
        shapes(subject),
        margins(subject) if subject.task == CLASSIFICATION else None,
        worst(subject),
        data(subject),
        origin(subject),
    ]
