"""Margins: how clearly rows are classified."""

from __future__ import annotations

import numpy as np

from ensemble_gpu.diagnostics import margins as normalised
from ensemble_gpu.reporting.page import Section, figure, grid, table
from ensemble_gpu.reporting.plots import Plot, shares
from ensemble_gpu.reporting.subject import Subject
from ensemble_gpu.reporting.text import number

STAGES = (5, 50, 500)
MOST_STEPS = 100
PLACES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)


def margins(subject: Subject) -> Section | None:
    """Cumulative distribution of the margins, after several numbers of rounds if there are any."""
    found, formula = _found(subject)
    if not found:
        return None
    plot = Plot((-1.0, 1.0), (0.0, 1.0), "margin", "share of rows with a smaller margin",
                y_format=shares)  # fmt: skip
    marks, entries = [plot.upright(0.0, "line reference")], []
    styles = [f"c{k}" for k in (7, 2, 0, 1)][-len(found) :]
    for style, (name, values) in zip(styles, found.items(), strict=True):
        steps, counts = np.unique(np.clip(values, -1.0, 1.0), return_counts=True)
        share = np.cumsum(counts) / len(values)
        at = np.unique(np.rint(np.linspace(0, len(steps) - 1, min(len(steps), MOST_STEPS))))
        at = at.astype(int)
        edges = np.concatenate([[-1.0], steps[at], [1.0]])
        marks.append(plot.steps(edges, np.concatenate([[0.0], share[at]]), style))
        entries.append((style, name))
    rows = [[name, *(number(float(v), 3) for v in np.quantile(values, PLACES))]
            for name, values in found.items()]  # fmt: skip
    header = ("", *("smallest", "5 %", "25 %", "median", "75 %", "95 %", "largest"))
    last = list(found.values())[-1]
    text = (
        f"The height at 0 is the error. In the end half of the rows have a margin above "
        f"{number(float(np.median(last)), 3)}."
    )
    drawn = plot.drawn("margin-curves", "Margins of the test rows", text, *marks)
    numbers = table(header, rows, numeric=range(1, 8))
    part = figure("Margins of the test rows", drawn, text, entries, numbers)
    return Section("margins", "Margins", formula, grid([part]))


def _found(subject: Subject) -> tuple[dict[str, np.ndarray], str]:
    """Margins by name of the stage, and what they are."""
    estimator = subject.estimator
    last = getattr(estimator, "n_estimators_", 0)
    stages = sorted({min(t, last) for t in (*STAGES, last)}) if last else []
    try:
        every = normalised(estimator, subject.X, subject.y, stages)
    except TypeError:
        p = subject.probabilities
        if p is None:
            return {}, ""
        rows = np.arange(len(p))
        others = p.copy()
        others[rows, subject.own] = -np.inf
        about = "The probability of the true class less the largest of the others."
        return {"all test rows": p[rows, subject.own] - others.max(axis=1)}, about
    about = (
        "The score of the true class less the largest of the others, over the most that the rounds "
        "allow: above 0 where a row is classified right, 1 at the most."
    )
    names = [f"{t:,} round{'' if t == 1 else 's'}" for t in stages]
    return dict(zip(names, every, strict=True)), about
