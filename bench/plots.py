"""Pictures of the sweeps."""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from bench.peers import FAST, OURS
from bench.sweeps import Sweep

# Okabe and Ito's colours, told apart by colour-blind readers; ours is the strong one.
COLOURS = dict(zip(FAST, ("#D55E00", "#009E73", "#0072B2", "#CC79A7", "#7F7F7F"), strict=True))
MARKERS = dict(zip(FAST, "osD^v", strict=True))


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
    if sweep.key == "threads":
        axes.set_xticks(sorted({p.x for p in sweep.points}))
    else:
        axes.set_xscale("log")
    axes.set_xlabel(sweep.label)
    axes.set_ylabel("seconds to fit")
    _finish(axes, f"Time against {sweep.label} ({sweep.setting})")


def _time_to_auc(sweep: Sweep, axes: Axes) -> None:
    """Each point is a whole fit of so many rounds."""
    for name in FAST:
        points = [p for p in sweep.points if p.name == name]
        _curve(axes, name, [p.seconds for p in points], [p.auc for p in points])
    axes.set_xscale("log")
    axes.set_xlabel("seconds to fit")
    axes.set_ylabel("held-out AUC")
    rounds = ", ".join(f"{x:,}" for x in sorted({p.x for p in sweep.points}))
    _finish(axes, f"Held-out AUC against time ({sweep.setting}; {rounds} rounds)")


def draw(all_sweeps: list[Sweep], folder: Path) -> list[Path]:
    """One picture a sweep, and AUC against time from the sweep over rounds."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    pictures = [(f"time-{s.key}", s, _times) for s in all_sweeps]
    pictures += [("auc-time", s, _time_to_auc) for s in all_sweeps if s.key == "rounds"]
    for name, sweep, content in pictures:
        figure, axes = plt.subplots(figsize=(7.0, 4.2), layout="constrained")
        content(sweep, axes)
        axes.legend(frameon=False, fontsize=8.5)
        paths.append(folder / f"{name}.png")
        figure.savefig(paths[-1], dpi=150)
        plt.close(figure)
    return paths
