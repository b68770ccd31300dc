"""Where a model comes from: data, settings, versions, fingerprint."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from ensemble_gpu import __version__
from ensemble_gpu.metrics import CLASSIFICATION, RANKING
from ensemble_gpu.reporting.page import Section, card, details, grid, pairs, table
from ensemble_gpu.reporting.settings import settings
from ensemble_gpu.reporting.subject import Subject
from ensemble_gpu.reporting.text import count, number, percent

# Features in the table of data.
MOST_FEATURES = 40


def data(subject: Subject) -> Section:
    """The test rows: labels, and a line a feature."""
    shown = subject.top(MOST_FEATURES)
    rest = [f for f in range(subject.n_features) if f not in set(shown)]
    shown += rest[: MOST_FEATURES - len(shown)]
    header = ("feature", "kind", "missing", "lowest", "median", "highest")
    lines = table(header, [_line(subject, f) for f in shown], numeric=(2, 3, 4, 5))
    features = count(subject.n_features, "feature")
    about = f"{count(subject.n_rows, 'test row')} of {features}"
    if len(shown) < subject.n_features:
        about += f"; the {len(shown)} most important ones are listed"
    folded = details(f"{count(len(shown), 'feature')} in numbers", lines)
    target = card(*_target(subject))
    return Section("data", "Data", f"{about}.", f"{target}{card('Features', folded)}")


def _line(subject: Subject, feature: int) -> list[str]:
    column = subject.column(feature)
    missing = percent(float(np.isnan(column.values).mean()))
    present, name = column.present, subject.names[feature]
    if not len(present):
        return [name, "empty", missing, "", "", ""]
    if column.categories is not None:
        codes, counts = np.unique(present.astype(np.int64), return_counts=True)
        usual = column.categories[codes[counts.argmax()]]
        return [
            name,
            count(len(codes), "category", "categories"),
            missing,
            "",
            f"most: {usual}",
            "",
        ]
    low, middle, high = np.quantile(present, (0.0, 0.5, 1.0))
    return [name, "number", missing, *(number(v) for v in (low, middle, high))]


def _target(subject: Subject) -> tuple[str, str]:
    y = subject.y
    if subject.task == CLASSIFICATION:
        counts = np.bincount(subject.own, minlength=len(subject.classes))
        rows = [
            [name, f"{n:,}", percent(n / len(y))]
            for name, n in zip(subject.class_names, counts.tolist(), strict=True)
        ]
        return "Classes", table(("class", "test rows", "share"), rows, numeric=(1, 2))
    if subject.task == RANKING:
        values, counts = np.unique(y, return_counts=True)
        if len(values) <= 20:
            rows = [
                [number(v), f"{n:,}", percent(n / len(y))]
                for v, n in zip(values.tolist(), counts.tolist(), strict=True)
            ]
            return "Levels", table(("level", "test rows", "share"), rows, numeric=(1, 2))
    places = (0.0, 0.25, 0.5, 0.75, 1.0)
    names = ("lowest", "lower quarter", "median", "upper quarter", "highest")
    found = np.quantile(y, places)
    return "Target", pairs([(n, number(v)) for n, v in zip(names, found, strict=True)])


def origin(subject: Subject) -> Section:
    """Settings, versions and fingerprint."""
    estimator = subject.estimator
    chosen, every = settings(estimator)
    listed = pairs(chosen) if chosen else "<p>All parameters have their defaults.</p>"
    listed += details(f"All {count(len(every), 'parameter')}", pairs(every))
    about = "What is needed to make the same model again: its fingerprint says whether it is."
    parts = [card("Settings", listed), card("Model", pairs(_model(estimator)))]
    return Section("model", "Model and settings", about, grid(parts))


def _model(estimator: Any) -> list[tuple[str, str]]:
    model: Any = getattr(estimator, "model_", None)
    rows = [("estimator", type(estimator).__name__)]
    if model is not None:
        rows.append(("model", type(model).__name__))
    rounds = getattr(estimator, "n_estimators_", None)
    if rounds is not None:
        rows.append(("rounds", f"{rounds:,}"))
    if hasattr(model, "nodes"):
        rows.append(("trees", f"{len(model):,}"))
        rows.append(("nodes", f"{len(model.nodes):,}"))
    for name, attribute in (("ended because", "stop_reason_"), ("engine", "engine_")):
        if hasattr(estimator, attribute):
            rows.append((name, str(getattr(estimator, attribute))))
    if hasattr(estimator, "scale_"):
        rows.append(("scale of probabilities", number(estimator.scale_)))
    if hasattr(model, "fingerprint"):
        rows.append(("fingerprint", model.fingerprint()))
    versions = [("ensemble_gpu", __version__), ("Python", platform.python_version())]
    for package in ("numpy", "scikit-learn"):
        try:
            versions.append((package, version(package)))
        except PackageNotFoundError:
            continue
    return [*rows, ("versions", ", ".join(f"{name} {number_}" for name, number_ in versions))]
