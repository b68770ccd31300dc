"""The learning curve: what the model was worth after each number of rounds, and the bound."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ensemble_gpu import metrics
from ensemble_gpu.diagnostics import training_error_bound
from ensemble_gpu.metrics import CLASSIFICATION, RANKING
from ensemble_gpu.reporting.page import Section, figure, grid, table
from ensemble_gpu.reporting.plots import Plot, shares
from ensemble_gpu.reporting.scales import bounds
from ensemble_gpu.reporting.subject import Subject, on_host
from ensemble_gpu.reporting.text import number, percent, short

# Numbers of rounds that are looked at, and lines of a table of numbers.
MOST_STAGES, MOST_LINES = 60, 12
MOST_PANELS = 4
# Errors that are so many times each other have a logarithmic axis.
WIDE = 5.0


def learning(subject: Subject) -> Section | None:
    """Test error and loss by rounds, the bound of AdaBoost, and what training has written down."""
    last = _rounds_of(subject.estimator)
    found: list[str] = []
    if last >= 2:
        rounds = np.unique(np.rint(np.geomspace(1, last, MOST_STAGES)).astype(int))
        outcomes = _outcomes(subject, rounds.tolist())
        if outcomes is not None:
            found += _test_curves(subject, rounds, list(outcomes))
    history = getattr(subject.estimator, "history_", None)
    if history is not None:
        found += _history(history)
    if not found:
        return None
    about = (
        "Rounds are on a logarithmic axis: most changes are in the first ones. The test rows "
        "have taken no part in training, nor in the choice of the number of rounds."
    )
    return Section("learning", "Learning curve", about, grid(found))


def _rounds_of(estimator: Any) -> int:
    if hasattr(estimator, "staged_predict"):
        return int(getattr(estimator, "n_estimators_", 0))
    return len(estimator.model_) if hasattr(getattr(estimator, "model_", None), "nodes") else 0


def _outcomes(subject: Subject, rounds: list[int]) -> Iterator[np.ndarray] | None:
    """Probabilities, predictions or scores after each of the rounds; None: there is no way."""
    estimator, X = subject.estimator, subject.X
    if subject.task == CLASSIFICATION and hasattr(estimator, "staged_predict_proba"):
        return map(on_host, estimator.staged_predict_proba(X, rounds))
    if hasattr(estimator, "staged_predict") and subject.task != CLASSIFICATION:
        return map(on_host, estimator.staged_predict(X, rounds))
    return None


def _test_curves(subject: Subject, rounds: np.ndarray, outcomes: list[np.ndarray]) -> list[str]:
    y = subject.y
    if subject.task == CLASSIFICATION:
        labels = subject.classes.tolist()
        wrong = np.array([np.mean(p.argmax(axis=1) != subject.own) for p in outcomes])
        loss = np.array([metrics.log_loss(y, p, labels=labels) for p in outcomes])
        scaled = getattr(subject.estimator, "scale_", 1.0) != 1.0
        note = " Probabilities are at the scale of the whole model." if scaled else ""
        return [_errors(subject, rounds, wrong), _curve("log-loss", rounds, loss, note=note)]
    if subject.task == RANKING:
        value = [metrics.ndcg(y, s, qid=subject.qid, k=10) for s in outcomes]
        return [_curve("NDCG@10", rounds, np.array(value), greater=True)]
    if outcomes[0].ndim > 1:
        return []
    return [_curve("RMSE", rounds, np.array([metrics.rmse(y, p) for p in outcomes]))]


def _errors(subject: Subject, rounds: np.ndarray, wrong: np.ndarray) -> str:
    """Test error and the bound on the training error; a wide range on a logarithmic axis."""
    bound = _bound(subject.estimator)
    lowest = float(wrong[wrong > 0.0].min(initial=1.0))
    log = bound is not None or wrong.max() > WIDE * lowest
    zero = bool((wrong == 0.0).any()) or (bound is not None and bound[-1] < lowest / 3.0)
    low = lowest / (3.0 if zero else 1.5)
    high = max(1.0, 1.1 * wrong.max()) if bound is not None else min(1.0, 1.4 * wrong.max())
    if not log:
        low, high = 0.0, max(1.15 * float(wrong.max()), 1e-3)
    plot = Plot(
        (1.0, float(rounds[-1])), (low, max(high, 2.0 * low)), "rounds", "rows classified wrong",
        y_format=shares, x_log=True, y_log=log, zero=log and bool((wrong == 0.0).any()),
    )  # fmt: skip
    marks, entries = [], [("c1", f"test error (last: {percent(float(wrong[-1]), 2)})")]
    columns = [("rounds", rounds, short), ("test error", wrong, lambda v: percent(v, 2))]
    text = (
        f"The test error is {percent(float(wrong[0]), 2)} after {rounds[0]} round and "
        f"{percent(float(wrong[-1]), 2)} after {rounds[-1]:,}."
    )
    if bound is not None:
        at = bound[rounds - 1]
        marks.append(plot.curve(rounds, np.where((at >= low) & (at <= high), at, np.nan),
                                "dash c0"))  # fmt: skip
        entries.append(("dash c0", "bound on the training error"))
        columns.append(("bound", at, number))
        text += f" The bound on the training error ends at {number(float(bound[-1]), 3)}."
    marks.append(plot.curve(rounds, wrong, "c1"))
    drawn = plot.drawn("errors", "Error by rounds", text, *marks)
    return figure("Error by rounds", drawn, text, entries, _lines(columns))


def _bound(estimator: Any) -> np.ndarray | None:
    """The bound on the training error, where there is one."""
    try:
        return training_error_bound(estimator)
    except (AttributeError, TypeError, ValueError):
        return None


def _curve(
    name: str, rounds: np.ndarray, values: np.ndarray, *, greater: bool = False, note: str = ""
) -> str:
    """One series of the test rows by rounds; the best is marked."""
    best = int(np.argmax(values) if greater else np.argmin(values))
    plot = Plot((1.0, float(rounds[-1])), bounds(values, 0.08), "rounds", name, x_log=True)
    entries = [("c1", f"test {name} (last: {number(values[-1])})")]
    text = (
        f"The {name} of the test rows ends at {number(values[-1])}; the best, "
        f"{number(values[best])}, is after {rounds[best]:,} rounds.{note}"
    )
    marks = [
        plot.upright(float(rounds[best]), "line reference"),
        plot.curve(rounds, values, "c1"),
        plot.points(rounds[best : best + 1], values[best : best + 1], "c1"),
    ]
    key, title = f"by-rounds-{name.lower().strip('@10')}", f"{name[0].upper()}{name[1:]} by rounds"
    columns = [("rounds", rounds, short), (f"test {name}", values, number)]
    drawn = plot.drawn(key, title, text, *marks)
    return figure(title, drawn, text, entries, _lines(columns))


def _history(history: Any) -> list[str]:
    """What was written down in training, a panel a metric."""
    panels: dict[str, dict[str, np.ndarray]] = {}
    if len(history.training):
        panels["loss"] = {"training": history.training}
    for name, of_set in history.evals.items():
        for metric, values in of_set.items():
            if len(values):
                panels.setdefault(metric, {})[name] = values
    found = []
    for k, (metric, curves) in enumerate(list(panels.items())[:MOST_PANELS]):
        found.append(_history_panel(k, metric, curves, history))
    return found


def _history_panel(k: int, metric: str, curves: dict[str, np.ndarray], history: Any) -> str:
    longest = max(map(len, curves.values()))
    every = np.concatenate(list(curves.values()))
    plot = Plot((1.0, float(max(2, longest))), bounds(every), "rounds", metric, x_log=True)
    entries, marks = [], []
    columns: list[tuple[str, np.ndarray, Any]] = [("rounds", np.arange(1, longest + 1), short)]
    for j, (name, values) in enumerate(curves.items()):
        style = f"c{0 if name == 'training' else (j + 2) % 8}"
        marks.append(plot.curve(np.arange(1, len(values) + 1), values, style))
        entries.append((style, f"{name} (last: {number(values[-1])})"))
        padded = np.full(longest, np.nan)
        padded[: len(values)] = values
        columns.append((name, padded, number))
    text = f"{metric} in training: " + ", ".join(name for _, name in entries) + "."
    best = history.best_round
    if best is not None and history.decides and history.decides[1] == metric:
        marks.insert(0, plot.upright(float(best), "line reference"))
        entries.append(("reference", f"best round: {best:,}"))
    title = f"{metric[0].upper()}{metric[1:]} in training"
    return figure(title, plot.drawn(f"history-{k}", title, text, *marks), "", entries,
                  _lines(columns))  # fmt: skip


def _lines(columns: list[tuple[str, np.ndarray, Any]]) -> str:
    """A few lines of a long table: the first, the last, and some between."""
    n = len(columns[0][1])
    at = np.unique(np.rint(np.linspace(0, n - 1, min(n, MOST_LINES))).astype(int))
    rows = [[text(float(values[i])) for _, values, text in columns] for i in at]
    return table([name for name, _, _ in columns], rows, numeric=range(len(columns)))
