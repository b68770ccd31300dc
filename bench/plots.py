"""Pictures of the sweeps."""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

from bench.peers import FAST, OURS
from bench.sweeps import Sweep

# Okabe and Ito's colours, told apart by colour-blind readers; ours is the strong one.
COLOURS = dict(zip(FAST, ("#D55E00", "#009E73", "#0072B2", "#CC79A7", "#7F7F7F"), strict=True))
MARKERS = dict(zip(FAST, "osD^v", strict=True))


def _log_seconds(axis: Axis) -> None:
    """Ticks at 1, 2, 5 times powers of ten, with units; no labels between."""
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(
        FuncFormatter(lambda s, _: f"{s:g} s" if s >= 1 else f"{s * 1e3:g} ms")
    )
    axis.set_minor_formatter(NullFormatter())


def _curve(axes: Axes, name: str, x: list[float], y: list[float]) -> None:
    axes.plot(
        x, y, marker=MARKERS[name], color=COLOURS[name], markersize=5,
        linewidth=2.5 if name == OURS else 1.3, zorder=3 if name == OURS else 2, label=name,
    )  # fmt: skip


def _finish(axes: Axes, title: str) -> None:
    axes.set_title(title, loc="left", fontsize=10)
    axes.grid(alpha=0.25, which="major")
    axes.spines[["top", "right"]].set_visible(False)


def _times(sweep: Sweep, axes: Axes) -> None:
    for name in FAST:
        points = [p for p in sweep.points if p.name == name]
        _curve(axes, name, [p.x for p in points], [p.seconds for p in points])
    axes.set_yscale("log")
    _log_seconds(axes.yaxis)
    if sweep.key != "threads":
        axes.set_xscale("log")
    axes.set_xticks(ticks := sorted({p.x for p in sweep.points}), [f"{x:,}" for x in ticks])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel(sweep.label)
    axes.set_ylabel("time to fit")
    _finish(axes, f"Time against {sweep.label} ({sweep.setting})")


def _time_to_auc(sweep: Sweep, axes: Axes) -> None:
    """Each point is a whole fit of so many rounds."""
    for name in FAST:
        points = [p for p in sweep.points if p.name == name]
        _curve(axes, name, [p.seconds for p in points], [p.auc for p in points])
    axes.set_xscale("log")
    _log_seconds(axes.xaxis)
    axes.set_xlabel("time to fit")
    axes.set_ylabel("held-out AUC")
    rounds = ", ".join(f"{x:,}" for x in sorted({p.x for p in sweep.points}))
    _finish(axes, f"Held-out AUC against time ({sweep.setting}; {rounds} rounds)")


def draw(sweep: Sweep, folder: Path) -> list[Path]:
    """The picture of a sweep; the sweep over rounds also gives AUC against time."""
    folder.mkdir(parents=True, exist_ok=True)
    pictures = {f"time-{sweep.key}": _times}
    if sweep.key == "rounds":
        pictures["auc-time"] = _time_to_auc
    paths = []
    for name, content in pictures.items():
        figure, axes = plt.subplots(figsize=(7.5, 4.6), layout="constrained")
        content(sweep, axes)
        figure.legend(loc="outside lower center", ncols=len(FAST), frameon=False, fontsize=8.5)
        paths.append(folder / f"{name}.png")
        figure.savefig(paths[-1], dpi=150)
        plt.close(figure)
    return paths
