"""Curves of a fitted model; matplotlib is imported when one is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ensemble_gpu.arrays.namespace import to_numpy
from ensemble_gpu.diagnostics import (
    EXPONENTIAL,
    check_boosted_classifier,
    margins,
    staged_errors,
    training_error_bound,
)
from ensemble_gpu.drawing.axes import BLUE, GREY, RED, axes_or_new, class_colours, pyplot, tidy
from ensemble_gpu.model.spline import Shape

LOSS = "loss"
STEPS = ("#9ECAE1", "#4292C6", "#08519C", "#08306B", "#000000")


def plot_learning_curve(
    estimator: Any, X: Any, y: Any, X_test: Any = None, y_test: Any = None, *, ax: Any = None
) -> Any:
    """Training error, test error and the bound on the training error, round by round.

    The bound is c prod Z_t (`diagnostics.training_error_bound`), drawn where the loss is the
    exponential one. The error axis is logarithmic, with an error of zero on a line of its own below
    the others. Rounds are logarithmic too, because most changes are in the first ones.

    Parameters
    ----------
    estimator : a fitted AdaBoostClassifier
    X, y : the rows that it was trained on
    X_test, y_test : other rows, or None
    ax : matplotlib Axes to draw on; None makes one

    Returns
    -------
    matplotlib Axes
    """
    train = staged_errors(estimator, X, y)
    rounds = np.arange(1, len(train) + 1)
    ax = axes_or_new(ax)
    curves = [(train, BLUE, _train_label(train))]
    if X_test is not None:
        test = staged_errors(estimator, X_test, y_test)
        curves.insert(0, (test, RED, f"test error (last: {test[-1]:.2%})"))
    lowest = min(curve[curve > 0.0].min(initial=1.0) for curve, _, _ in curves)
    zero = lowest / 2.0
    if getattr(estimator, "variant", None) in EXPONENTIAL:
        bound = training_error_bound(estimator)
        product = r", $\prod Z_t$" if len(estimator.classes_) == 2 else ""
        bound = np.where(bound > zero, bound, np.nan)  # it is never below the line of zero
        ax.plot(rounds, bound, color=GREY, linestyle="--", label=f"bound on train error{product}")
    for curve, colour, label in curves:
        ax.plot(rounds, np.where(curve > 0.0, curve, zero), color=colour, label=label)
    ax.set_yscale("log")
    reaches_zero = any((curve == 0.0).any() for curve, _, _ in curves)
    ax.set_ylim(zero / 1.2 if reaches_zero else lowest / 1.6, 1.3 * max(1.0, float(train[0])))
    _percent_axis(ax, lowest, reaches_zero)
    if reaches_zero:
        _name_zero(ax, zero)
    ax.set_xscale("log")
    ax.set_xlim(1, max(2, len(rounds)))
    ax.xaxis.set_major_formatter("{x:g}")
    ax.set_xlabel("rounds")
    ax.set_ylabel("rows classified wrong")
    ax.set_title("Learning curve")
    ax.legend(frameon=False)
    tidy(ax)
    return ax


def plot_history(history: Any, *, metric: str | None = None, ax: Any = None) -> Any:
    """The metrics of all validation sets after each round, a panel a metric.

    The training loss is in the panel of the loss; the best round is marked where the metric decides
    early stopping.

    Parameters
    ----------
    history : a fitted boosted estimator, or its `history_`
    metric : the one to draw; None: all, or, with `ax`, the one that decides
    ax : matplotlib Axes to draw on; None makes as many as there are metrics

    Returns
    -------
    matplotlib Axes, or an array of them for several metrics
    """
    history = getattr(history, "history_", history)
    panels = _panels(history)
    if not panels:
        raise ValueError(
            "The history is empty: fit with early_stopping=True, callbacks, eval_set, or X_val and "
            "y_val."
        )
    if metric is None and ax is not None:
        metric = history.decides[1] if history.decides else LOSS
    if metric is not None:
        if metric not in panels:
            raise ValueError(f"metric must be one of {list(panels)!r}; got {metric!r}.")
        panels = {metric: panels[metric]}
    if len(panels) == 1:
        (name,) = panels
        return _draw_history(axes_or_new(ax), history, name, panels[name])
    size = {"figsize": (4.6 * len(panels) + 0.4, 3.8), "layout": "constrained"}
    axes = pyplot().subplots(1, len(panels), **size)[1]
    for one, (name, curves) in zip(axes, panels.items(), strict=True):
        _draw_history(one, history, name, curves)
    return axes


def _panels(history: Any) -> dict[str, dict[str, np.ndarray]]:
    """Metric -> set -> values; the training loss is a curve of the loss."""
    metrics = {metric: None for of_set in history.evals.values() for metric in of_set}
    if len(history.training) and LOSS not in metrics:
        metrics = {LOSS: None} | metrics
    panels: dict[str, dict[str, np.ndarray]] = {}
    for metric in metrics:
        curves = {"training": history.training} if metric == LOSS else {}
        curves |= {name: of_set[metric] for name, of_set in history.evals.items()
                   if metric in of_set}  # fmt: skip
        panels[metric] = {name: values for name, values in curves.items() if len(values)}
    return {metric: curves for metric, curves in panels.items() if curves}


def _draw_history(ax: Any, history: Any, metric: str, curves: dict[str, np.ndarray]) -> Any:
    others = iter([c for c in class_colours(max(2, len(curves) + 1)) if str(c) != BLUE])
    for name, values in curves.items():
        rounds, last = np.arange(1, len(values) + 1), values[-1]
        colour = BLUE if metric == LOSS and name == "training" else next(others)
        ax.plot(rounds, values, color=colour, label=f"{name} (last: {last:#.4g})")
    if history.decides and history.decides[1] == metric and history.best_round:
        best = history.best_round
        ax.axvline(best, color=GREY, linewidth=0.9, linestyle=":", label=f"best round: {best}")
    ax.set_xlabel("rounds")
    ax.set_ylabel(metric)
    ax.set_title(f"{metric[0].upper()}{metric[1:]} by round")
    ax.legend(frameon=False)
    tidy(ax)
    return ax


def _percent_axis(ax: Any, lowest: float, reaches_zero: bool) -> None:
    """100%, 10%, 1%; where the curves span no decade, the ticks between are named too.

    Where zero is drawn below the lowest error, nothing else is named there.
    """
    least = 0.99 * lowest if reaches_zero else 0.0
    ax.yaxis.set_major_formatter(lambda value, _: f"{100 * value:g}%" if value > least else "")
    named = (2, 3, 5) if lowest > 0.05 else ()
    ax.yaxis.set_minor_formatter(
        lambda value, _: (
            f"{100 * value:g}%" if f"{value:e}"[:4] in {f"{d}.00" for d in named} else ""
        )
    )


def _name_zero(ax: Any, at: float) -> None:
    """Say that this height of a logarithmic axis means 0."""
    ax.axhline(at, color=GREY, linewidth=0.6, linestyle=":", zorder=0)
    ax.annotate(
        "0", (0.0, at), xycoords=ax.get_yaxis_transform(), xytext=(-6, 0),
        textcoords="offset points", ha="right", va="center",
    )  # fmt: skip


def _train_label(train: np.ndarray) -> str:
    if train[-1] > 0.0:
        return f"train error (last: {train[-1]:.2%})"
    last_wrong = int(np.flatnonzero(train).max(initial=-1)) + 1
    return f"train error (zero after round {last_wrong})"


def plot_margins(
    estimator: Any, X: Any, y: Any, rounds: Sequence[int] = (5, 50, 500), *, ax: Any = None
) -> Any:
    """Cumulative distribution of the margins after several numbers of rounds.

    The height at 0 is the error. After it has stopped falling, boosting goes on to raise the
    smallest margins at the price of the largest (`diagnostics.margins` has the formula).

    Parameters
    ----------
    estimator : a fitted AdaBoostClassifier
    X, y : rows and labels
    rounds : numbers of rounds; numbers beyond the last round mean the last
    ax : matplotlib Axes to draw on; None makes one

    Returns
    -------
    matplotlib Axes
    """
    check_boosted_classifier(estimator)
    last = estimator.n_estimators_
    when = sorted({min(int(t), last) for t in rounds})
    curves = to_numpy(margins(estimator, X, y, when))
    ax = axes_or_new(ax)
    colours = (
        STEPS if len(when) <= len(STEPS) else pyplot().cm.viridis(np.linspace(0, 1, len(when)))
    )
    for t, margin, colour in zip(when, curves, colours, strict=False):
        share = np.arange(1, len(margin) + 1) / len(margin)
        label = f"{t} round{'s' if t != 1 else ''}"
        ax.step(np.sort(margin), share, where="post", color=colour, label=label)
    ax.axvline(0.0, color=RED, linewidth=0.9, linestyle=":")
    ax.annotate(
        "wrong | right", (0.0, 1.0), xytext=(0, 3), textcoords="offset points",
        ha="center", color=RED, fontsize="small",
    )  # fmt: skip
    ax.set_xlim(-1.02, 1.02)  # a margin of 1 is inside of the frame
    ax.set_ylim(0.0, 1.0)
    ax.set_xlabel("margin")
    ax.set_ylabel("share of rows with a smaller margin")
    ax.set_title("Margins", pad=16)
    ax.legend(frameon=False, loc="upper left")
    tidy(ax)
    return ax


def plot_shape_functions(
    estimator: Any,
    features: Sequence[int] | None = None,
    *,
    n_features: int = 6,
    X: Any = None,
    feature_names: Sequence[str] | None = None,
) -> Any:
    """What single features add to F(x) = intercept + sum_f table_f(x_f), a panel each.

    Two classes: values above zero raise the probability of classes_[1]. More: a line per class. A
    dotted line is what a missing value adds, where it is not zero.

    Parameters
    ----------
    estimator : a fitted model of stumps, or L2BoostRegressor with componentwise=True
    features : columns to draw; None: the `n_features` most important
    n_features : int
    X : rows; where given, their central 99 % set the width of a panel and their density is
        drawn below it as a histogram
    feature_names : names of all columns; None: feature_names_in_ or "feature 3"

    Returns
    -------
    matplotlib Figure
    """
    plt = pyplot()
    chosen = list(_top(estimator, n_features) if features is None else features)
    if not chosen:
        raise ValueError("there is no feature to draw: the model uses none.")
    across = min(3, len(chosen))
    down = -(-len(chosen) // across)
    figure, axes = plt.subplots(
        down, across, figsize=(3.4 * across + 0.4, 2.6 * down + 0.5), sharey=True, squeeze=False,
        layout="constrained",
    )  # fmt: skip
    names = _names(estimator, feature_names)
    for f, ax in zip(chosen, axes.flat, strict=False):
        _draw_shape(ax, estimator, f, None if X is None else _column(X, f))
        ax.set_title(f"{names[f]}  ({estimator.feature_importances_[f]:.0%})", fontsize="medium")
    for ax in axes.flat[len(chosen) :]:
        ax.set_visible(False)
    for ax in axes[:, 0]:
        ax.set_ylabel("adds to F")
    handles, labels = axes.flat[0].get_legend_handles_labels()
    if len(labels) > 1:
        figure.legend(handles, labels, loc="outside right upper", frameon=False, title="class")
    rows = "" if X is None else "; below: histograms of the rows"
    figure.suptitle(f"Shape functions (share of the importance){rows}")
    return figure


def _draw_shape(ax: Any, estimator: Any, feature: int, x: np.ndarray | None) -> None:
    """Steps of one table over the range of the data, or of the thresholds; a spline as a curve."""
    table = estimator.model_.shape_function(feature)
    if isinstance(table, Shape):
        _draw_spline(ax, table, x)
        return
    finite = table.thresholds[np.isfinite(table.thresholds)]
    low, high = _range(finite, x)
    inner = finite[(finite > low) & (finite < high)]
    # The value left of a threshold holds up to it, so a step is drawn between neighbours.
    edges = np.concatenate([[low], inner, [high]])
    values = table(np.concatenate([inner, [high]]))
    colours = class_colours(values.shape[1])
    names = [str(c) for c in estimator.classes_] if values.shape[1] > 1 else ["F"]
    for k, (name, colour) in enumerate(zip(names, colours, strict=True)):
        ax.stairs(values[:, k], edges, baseline=None, color=colour, linewidth=1.4, label=name)
        if table.missing[k] != 0.0:
            ax.axhline(table.missing[k], color=colour, linestyle=":", linewidth=1.0)
    ax.axhline(0.0, color=GREY, linewidth=0.7)
    ax.set_xlim(low, high)
    if x is not None:
        _draw_density(ax, x[(x >= low) & (x <= high)])
    tidy(ax)


def _draw_spline(ax: Any, shape: Shape, x: np.ndarray | None) -> None:
    low, high = _range(shape.knots, x)
    at = np.linspace(low, high, 201)
    ax.plot(at, shape(at), color=class_colours(1)[0], linewidth=1.4, label="F")
    ax.axhline(0.0, color=GREY, linewidth=0.7)
    ax.set_xlim(low, high)
    if x is not None:
        _draw_density(ax, x[(x >= low) & (x <= high)])
    tidy(ax)


def _draw_density(ax: Any, x: np.ndarray) -> None:
    """A histogram of the rows below the panel, on the same axis."""
    strip = ax.inset_axes((0.0, -0.3, 1.0, 0.2), sharex=ax)
    strip.hist(x, bins=40, color=GREY, alpha=0.6)
    strip.set_yticks([])
    strip.spines[["top", "right", "left"]].set_visible(False)
    ax.tick_params(labelbottom=False)


def _range(thresholds: np.ndarray, x: np.ndarray | None) -> tuple[float, float]:
    """Central 99 % of the data, or the thresholds and a tenth more; never empty."""
    if x is not None and len(x):
        low, high = (float(q) for q in np.quantile(x, (0.005, 0.995)))
    elif len(thresholds):
        margin = 0.1 * float(np.ptp(thresholds))
        low, high = float(thresholds.min()) - margin, float(thresholds.max()) + margin
    else:
        low = high = 0.0
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def _top(estimator: Any, n_features: int) -> list[int]:
    importance = estimator.feature_importances_
    order = np.argsort(-importance, kind="stable")[:n_features]
    return [int(f) for f in order if importance[f] > 0.0]


def _names(estimator: Any, given: Sequence[str] | None) -> list[str]:
    if given is None:
        given = getattr(estimator, "feature_names_in_", None)
    if given is None:
        return [f"feature {f}" for f in range(estimator.n_features_in_)]
    return [str(name) for name in given]


def _column(X: Any, feature: int) -> np.ndarray:
    """The present values of one column on the host."""
    column = X.iloc[:, feature] if hasattr(X, "iloc") else X[:, feature]
    x = np.asarray(to_numpy(column), dtype=np.float64)
    return x[np.isfinite(x)]
