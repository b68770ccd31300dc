"""Classes: ROC, precision and recall, calibration, confusion."""

from __future__ import annotations

from typing import Any

import numpy as np

from ensemble_gpu import metrics
from ensemble_gpu.reporting import plots
from ensemble_gpu.reporting.page import Section, card, figure, grid, table
from ensemble_gpu.reporting.plots import COLOURS, Plot, shares, unit_plot
from ensemble_gpu.reporting.scales import Scale
from ensemble_gpu.reporting.subject import Subject
from ensemble_gpu.reporting.text import number, percent

# Classes that have a curve and a cell of their own.
MOST_CURVES, MOST_CELLS, MOST_PAIRS = COLOURS, 12, 12
# Bins of the probability: few where rows are few.
N_BINS, FEW_BINS, FEW_ROWS = 10, 5, 1_000
STRIP = 44.0


def judging(subject: Subject) -> Section:
    """Curves of the scores, calibration of the probabilities, and which labels were mistaken."""
    parts = []
    if subject.scores is not None:
        ranked = _ranked(subject)
        parts += [_roc(subject, ranked), _precision_recall(subject, ranked)] if ranked else []
    if subject.probabilities is not None:
        parts.append(_calibration(subject))
    parts.append(_confusion(subject))
    about = ""
    if len(subject.classes) > 2:
        about = "Curves are those of a class against all others."
        shown = len(_shown(subject))
        if shown < len(subject.classes):
            about += f" They are drawn for the {shown} most frequent classes."
    return Section("classes", "Right and wrong", about, grid(parts))


def _shown(subject: Subject) -> list[int]:
    """Positions of the classes that are drawn: the second of two, or the most frequent ones."""
    if len(subject.classes) == 2:
        return [1]
    counts = np.bincount(subject.own, minlength=len(subject.classes))
    return sorted(np.argsort(-counts, kind="stable")[:MOST_CURVES].tolist())


def _ranked(subject: Subject) -> list[tuple[int, np.ndarray, np.ndarray]]:
    """(class, truth, scores) of those that have rows on both sides."""
    scores, found = subject.scores, []
    assert scores is not None
    for k in _shown(subject):
        truth = (subject.own == k).astype(np.int64)
        if 0 < truth.sum() < len(truth):
            found.append((k, truth, scores if scores.ndim == 1 else scores[:, k]))
    return found


def _roc(subject: Subject, ranked: list[tuple[int, np.ndarray, np.ndarray]]) -> str:
    plot = unit_plot("false positive rate, FP / N", "true positive rate, TP / P")
    marks, entries, rows = [plot.diagonal()], [], []
    for j, (k, truth, scores) in enumerate(ranked):
        curve = metrics.roc_curve(truth, scores, pos_label=1)
        area = metrics.roc_auc(truth, scores, pos_label=1)
        marks.append(plot.curve(curve.fpr, curve.tpr, f"c{j}"))
        entries.append((f"c{j}", f"{subject.class_names[k]}: area {number(area)}"))
        at = np.interp([0.01, 0.05, 0.1, 0.2], curve.fpr, curve.tpr)
        rows.append([subject.class_names[k], number(area), *(percent(float(v)) for v in at)])
    entries.append(("reference", "chance: area 0.5"))
    header = ("class", "area", "TPR at FPR 1 %", "5 %", "10 %", "20 %")
    text = "ROC curves. " + "; ".join(name for _, name in entries) + "."
    drawn = plot.drawn("roc", "ROC", text, *marks)
    return figure("ROC", drawn, "", entries, table(header, rows, numeric=range(1, 6)))


def _precision_recall(subject: Subject, ranked: list[tuple[int, np.ndarray, np.ndarray]]) -> str:
    plot = unit_plot("recall, TP / P", "precision, TP / (TP + FP)")
    marks, entries, rows = [], [], []
    for j, (k, truth, scores) in enumerate(ranked):
        curve = metrics.precision_recall_curve(truth, scores, pos_label=1)
        average = metrics.average_precision(truth, scores, pos_label=1)
        share = float(truth.mean())
        if len(ranked) == 1:
            marks.append(plot.level(share, "line reference"))
        marks.append(plot.curve(curve.recall, curve.precision, f"c{j}"))
        entries.append((f"c{j}", f"{subject.class_names[k]}: average {number(average)}"))
        order = np.argsort(curve.recall, kind="stable")
        at = np.interp([0.5, 0.8, 0.9, 0.95], curve.recall[order], curve.precision[order])
        rows.append([subject.class_names[k], number(average), percent(share),
                     *(percent(float(v)) for v in at)])  # fmt: skip
    if len(ranked) == 1:
        entries.append(("reference", f"chance: {rows[0][2]}"))
    header = ("class", "average", "share", "precision at recall 50 %", "80 %", "90 %", "95 %")
    text = "Precision over recall. " + "; ".join(name for _, name in entries) + "."
    drawn = plot.drawn("precision-recall", "Precision and recall", text, *marks)
    numbers = table(header, rows, numeric=range(1, 7))
    return figure("Precision and recall", drawn, "", entries, numbers)


def _calibration(subject: Subject) -> str:
    """Observed shares over predicted probabilities; below, where the probabilities are."""
    base = unit_plot("mean probability of the bin", "share of rows of the class", 330.0 + STRIP)
    plot = Plot(
        base.x, base.y, base.x_name, base.y_name, shares, shares, height=base.height,
        bottom=base.bottom + STRIP,
    )  # fmt: skip
    p = subject.probabilities
    assert p is not None
    n_bins = FEW_BINS if p.size < 2 * FEW_ROWS else N_BINS
    shown, truth, name = p[:, -1], subject.own == 1, subject.class_names[-1]
    if len(subject.classes) > 2:
        every = np.arange(len(subject.classes))
        shown, truth = p.reshape(-1), (subject.own[:, None] == every).reshape(-1)
        name = "all classes together"
    curve = metrics.calibration_curve(
        truth.astype(np.int64), np.clip(shown, 0.0, 1.0), n_bins=n_bins, pos_label=1
    )
    order = np.argsort(curve.predicted)
    y, x, weight = (np.asarray(a)[order] for a in curve)
    marks = [plot.diagonal(), plot.curve(x, y, "c0 thin"), _strip(plot, shown)]
    for a, b, n in zip(x, y, weight, strict=True):
        marks.append(plot.points([a], [b], "c0", 2.5 + 4.5 * float(n) / len(shown)))
    rows = [[name, percent(float(a)), percent(float(b)), f"{int(n):,}"]
            for a, b, n in zip(x, y, weight, strict=True)]  # fmt: skip
    entries = [("c0", name)]
    entries.append(("reference", "calibrated"))
    header = ("class", "mean probability", "observed share", "rows")
    text = (
        f"Rows in {n_bins} bins of their probability, and how many of them are of the class; large "
        "dots are many rows. Grey: where the probabilities are."
    )
    drawn = plot.drawn("calibration", "Calibration", text, *marks)
    return figure("Calibration", drawn, text, entries, table(header, rows, numeric=(1, 2, 3)))


def _strip(plot: Plot, values: np.ndarray) -> str:
    """A histogram below the axis, between its numbers and its name."""
    heights, edges = np.histogram(values, bins=2 * N_BINS, range=(0.0, 1.0))
    floor = plot.height - plot.bottom + 22.0
    down = Scale(0.0, float(max(1, heights.max())), 0.0, STRIP - 8.0)
    x = plot.across(edges)
    return "".join(
        plots.svg.rect(a, floor + STRIP - 8.0 - h, b - a - 1.0, h, "rows")
        for a, b, h in zip(x[:-1].tolist(), x[1:].tolist(), down(heights).tolist(), strict=True)
        if h > 0.0
    )


def _confusion(subject: Subject) -> str:
    labels, names = subject.classes.tolist(), subject.class_names
    counts = np.asarray(metrics.confusion_matrix(subject.y, subject.prediction, labels=labels))
    right = float(np.trace(counts)) / float(counts.sum())
    about = f"{percent(right, 2)} of the test rows are on the diagonal."
    if len(labels) > MOST_CELLS:
        return card("Confusion", f"<p>{about}</p>{_pairs(counts, names)}")
    drawn = plots.grid("confusion", "Confusion", _mistakes(counts, names), counts, names)
    rows = [[name, *(f"{int(v):,}" for v in row)] for name, row in zip(names, counts, strict=True)]
    numbers = table(("true", *(f"as {n}" for n in names)), rows, numeric=range(1, len(names) + 1))
    caption = f"{about} Percentages are of the true class."
    return figure("Confusion", drawn, caption, (), numbers)


def _order(counts: np.ndarray) -> list[tuple[int, int]]:
    """Mistakes, the most frequent first."""
    off = counts - np.diag(np.diag(counts))
    order = np.argsort(-off, axis=None, kind="stable")[:MOST_PAIRS]
    places: Any = np.unravel_index(order, off.shape)
    return [(int(j), int(k)) for j, k in zip(*places, strict=True) if off[j, k] > 0]


def _mistakes(counts: np.ndarray, names: list[str]) -> str:
    found = [f"{int(counts[j, k]):,} {names[j]} taken for {names[k]}" for j, k in _order(counts)]
    return "Mistakes: " + ("; ".join(found[:5]) if found else "none") + "."


def _pairs(counts: np.ndarray, names: list[str]) -> str:
    total = np.maximum(1, counts.sum(axis=1))
    rows = [
        [names[j], names[k], f"{int(counts[j, k]):,}", percent(counts[j, k] / total[j])]
        for j, k in _order(counts)
    ]
    header = ("true class", "taken for", "test rows", "share of the class")
    return table(header, rows, numeric=(2, 3))
