"""A picture of a tree; matplotlib is imported when it is drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ensemble_gpu.drawing.axes import GREY, class_colours, pyplot
from ensemble_gpu.kernels.tree_protocol import LEAF
from ensemble_gpu.model.export import Words, check_max_depth, words_of
from ensemble_gpu.model.forest import Forest

# Of a box, in units of one leaf's width and one level's height.
BOX_WIDTH, BOX_HEIGHT = 0.92, 0.52
INCHES_PER_LEVEL, MOST_INCHES = 1.1, 60.0
# Letters for a set of categories, or for several values.
MOST_LETTERS = 28
LARGEST_FONT, SMALLEST_FONT = 9.0, 3.0

Node = tuple[float, int, bool]  # place across, level, whether its children are not drawn


def plot_tree(
    model: Any,
    tree: int = 0,
    *,
    max_depth: int | None = None,
    feature_names: Sequence[str] | None = None,
    class_names: Sequence[Any] | None = None,
    category_names: Mapping[int | str, Sequence[Any]] | None = None,
    decimals: int = 3,
    ax: Any = None,
) -> Any:
    """Draw a tree: tests in the boxes, the true branch on the left.

    A line is as wide as the share of the training weight that takes it. With classes a strip shows
    their shares and a leaf has the colour of its class; else the colour is the value. Boosted
    trees of several classes have scores in place of shares: a bar a class, upwards where it is
    positive. A dot on a branch marks where missing values go.

    Parameters
    ----------
    model : a Forest, or a fitted estimator of trees
    tree : which tree, from 0
    max_depth : levels of tests to draw; None: all
    feature_names : names of all columns; None: feature_names_in_ or "feature 3"
    class_names : names of the outputs; None: classes_
    category_names : by feature (index or name), names of all its categories in order of their
        values; None: the labels that the estimator was fitted with, or the values
    decimals : of thresholds and values
    ax : matplotlib Axes to draw on; None makes one that fits the tree

    Returns
    -------
    matplotlib Axes
    """
    check_max_depth(max_depth)
    words = words_of(model, feature_names, class_names, category_names, decimals)
    span = words.forest.span(tree)
    at = _layout(words.forest, span, max_depth)
    texts = {i: _text(words, i, is_cut) for i, (_, _, is_cut) in at.items()}
    longest = max(len(line) for text in texts.values() for line in text)
    n_across = 1.0 + max(x for x, _, _ in at.values())
    n_levels = 1.0 + max(level for _, level, _ in at.values())
    if ax is None:
        ax = _new_axes(n_across, n_levels, longest)
    ax.set_axis_off()
    ax.set_xlim(-0.55, n_across - 0.45)
    ax.set_ylim(n_levels - 0.45, -0.55)
    fonts = _fonts(ax, n_across, n_levels)
    _draw_branches(ax, words.forest, at, fonts(0))
    paint, draw_outputs = _painter(words, span), _output_drawer(ax, words, span)
    for i, (x, level, is_cut) in at.items():
        is_leaf = words.forest.nodes.feature[i] == LEAF
        _draw_node(ax, x, level, texts[i], fonts, GREY if is_cut else paint(i), is_leaf)
        if not is_cut:
            draw_outputs(i, x, level)
    _draw_legend(ax, words, fonts(0))
    several = len(words.forest) > 1
    ax.set_title(f"Tree {tree} of {len(words.forest)}" if several else "Tree")
    return ax


def _layout(forest: Forest, span: slice, max_depth: int | None) -> dict[int, Node]:
    """Where the nodes are drawn: leaves side by side, a parent amid its children."""
    nodes, depth = forest.nodes, forest.depths
    deepest = np.inf if max_depth is None else max_depth + 1
    shown = [i for i in range(span.start, span.stop) if depth[i] <= deepest]
    at: dict[int, Node] = {}
    beside = 0
    for i in shown:
        is_leaf = nodes.feature[i] == LEAF
        if is_leaf or depth[i] == deepest:
            at[i] = (float(beside), int(depth[i]), not is_leaf)
            beside += 1
    for i in reversed(shown):  # children come after their parent in preorder
        if i not in at:
            x = 0.5 * (at[int(nodes.left[i])][0] + at[int(nodes.right[i])][0])
            at[i] = (x, int(depth[i]), False)
    return at


def _text(words: Words, i: int, is_cut: bool) -> list[str]:
    """The lines in the box of node i."""
    nodes = words.forest.nodes
    n = int(nodes.n_samples[i])
    rows = f"{n:,} row{'s' if n != 1 else ''}"
    if is_cut:
        return ["...", rows]
    if nodes.feature[i] == LEAF:
        return [words.class_of(i) or words.values(i, MOST_LETTERS), rows]
    test = words.tests(i, MOST_LETTERS)[0].removesuffix(" or missing").replace("<=", "≤")
    has_mean = words.forest.average and not words.shares  # boosted trees have values in leaves only
    return [test, f"{rows}, {words.values(i, MOST_LETTERS)}" if has_mean else rows]


def _new_axes(n_across: float, n_levels: float, longest: int) -> Any:
    across = min(2.4, max(0.95, 0.25 + 0.073 * longest)) * n_across
    size = (max(4.0, across + 0.3), max(2.4, INCHES_PER_LEVEL * n_levels + 0.6))
    size = (min(size[0], MOST_INCHES), min(size[1], MOST_INCHES))
    figure, ax = pyplot().subplots(figsize=size, layout="constrained")
    ax.set_axis_off()
    figure.draw_without_rendering()  # so that the axes know their size
    return ax


def _fonts(ax: Any, n_across: float, n_levels: float) -> Callable[[int], float]:
    """Points that let a line of so many letters fit its box."""
    box = ax.get_window_extent().transformed(ax.figure.dpi_scale_trans.inverted())
    width = 72.0 * box.width / (n_across + 0.1) * BOX_WIDTH
    height = 72.0 * box.height / (n_levels + 0.1) * BOX_HEIGHT

    def points(letters: int) -> float:
        fits = min(width / (0.57 * max(letters, 8)), height / 3.4)
        return max(SMALLEST_FONT, min(LARGEST_FONT, fits))

    return points


def _painter(words: Words, span: slice) -> Any:
    """The colour of a node: of its class, or on a scale from the lowest to the highest value."""
    nodes = words.forest.nodes
    values, is_leaf = nodes.value, nodes.feature == LEAF
    if words.shares:
        colours = class_colours(values.shape[1])
        return lambda i: colours[int(np.argmax(values[i]))]
    if values.shape[1] > 1:
        return lambda i: GREY
    known = np.ones_like(is_leaf) if words.forest.average else is_leaf
    first = values[span, 0][known[span]]
    low, width = float(first.min()), float(np.ptp(first)) or 1.0
    scale = pyplot().cm.viridis
    return lambda i: scale((float(values[i, 0]) - low) / width) if known[i] else GREY


def _draw_branches(ax: Any, forest: Forest, at: dict[int, Node], font: float) -> None:
    """Lines from parents to children; a dot where missing values go; yes and no at the root."""
    nodes, root = forest.nodes, min(at)
    heaviest = max(float(nodes.weight[root]), 1e-300)
    for i, (x, level, is_cut) in at.items():
        if nodes.feature[i] == LEAF or is_cut:
            continue
        for child, takes_missing, answer in (
            (int(nodes.left[i]), nodes.missing_left[i], "yes"),
            (int(nodes.right[i]), not nodes.missing_left[i], "no"),
        ):
            to_x, to_level, _ = at[child]
            width = 0.8 + 5.0 * float(nodes.weight[child]) / heaviest
            top, bottom = level + BOX_HEIGHT / 2, to_level - BOX_HEIGHT / 2
            ax.plot(
                [x, to_x], [top, bottom], color="#BBBBBB", linewidth=width, zorder=1,
                solid_capstyle="butt",
            )  # fmt: skip
            if takes_missing:
                ax.plot(
                    0.5 * (x + to_x), 0.5 * (top + bottom), "o", color=GREY, markersize=6,
                    markeredgecolor="white", zorder=2,
                )  # fmt: skip
            if i == root:
                ax.annotate(
                    answer, (0.7 * x + 0.3 * to_x, 0.7 * top + 0.3 * bottom), xytext=(0, 5),
                    textcoords="offset points", fontsize=font, color=GREY,
                    ha="right" if answer == "yes" else "left",
                )  # fmt: skip


def _draw_node(
    ax: Any, x: float, level: int, text: list[str], fonts: Any, colour: Any, is_leaf: bool
) -> None:
    """A box with two lines; a leaf's is tinted."""
    from matplotlib.colors import to_rgb
    from matplotlib.patches import FancyBboxPatch

    tint = [0.82 + 0.18 * c for c in to_rgb(colour)] if is_leaf else "white"
    box = FancyBboxPatch(
        (x - BOX_WIDTH / 2, level - BOX_HEIGHT / 2), BOX_WIDTH, BOX_HEIGHT,
        boxstyle="round,pad=0,rounding_size=0.06", facecolor=tint, edgecolor=colour,
        linewidth=1.4, zorder=3,
    )  # fmt: skip
    ax.add_patch(box)
    sizes = fonts(len(text[0])), 0.85 * fonts(len(text[1]))
    ax.text(x, level - 0.13, text[0], ha="center", va="center", fontsize=sizes[0], zorder=5)
    ax.text(
        x, level + 0.04, text[1], ha="center", va="center", fontsize=sizes[1], color=GREY, zorder=5
    )


def _output_drawer(ax: Any, words: Words, span: slice) -> Callable[[int, float, int], None]:
    """What draws the outputs of a node where they are several: shares, or scores of leaves."""
    nodes = words.forest.nodes
    if words.shares:
        return lambda i, x, level: _draw_shares(ax, x, level, nodes.value[i])
    if words.forest.average or words.forest.n_outputs == 1:
        return lambda i, x, level: None
    largest = float(np.abs(nodes.value[span]).max()) or 1.0

    def draw(i: int, x: float, level: int) -> None:
        if nodes.feature[i] == LEAF:
            _draw_scores(ax, x, level, nodes.value[i] / largest)

    return draw


def _draw_scores(ax: Any, x: float, level: int, scores: np.ndarray) -> None:
    """Bars on a line along the bottom of the box; scores from -1 to 1."""
    step = 0.92 * BOX_WIDTH / len(scores)
    at = x + step * (np.arange(len(scores)) - 0.5 * (len(scores) - 1))
    colours = class_colours(len(scores))
    bars = {"width": 0.8 * step, "bottom": level + 0.17, "color": colours, "zorder": 4}
    ax.bar(at, -0.085 * scores, **bars)  # the axis points down
    ends = x + 0.46 * BOX_WIDTH * np.array([-1.0, 1.0])
    ax.plot(ends, [level + 0.17] * 2, color=GREY, linewidth=0.6, zorder=4)


def _draw_shares(ax: Any, x: float, level: int, values: np.ndarray) -> None:
    """A strip along the bottom of the box, as long for each class as its share."""
    positive = np.maximum(values, 0.0)
    if positive.sum() == 0.0:
        return
    ends = np.concatenate([[0.0], np.cumsum(positive / positive.sum())])
    left, width = x - 0.46 * BOX_WIDTH, 0.92 * BOX_WIDTH
    for k, colour in enumerate(class_colours(len(values))):
        ax.barh(
            level + 0.19, width * (ends[k + 1] - ends[k]), height=0.06,
            left=left + width * ends[k], color=colour, zorder=4,
        )  # fmt: skip


def _draw_legend(ax: Any, words: Words, font: float) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    names = words.classes or []
    colours = class_colours(len(names)) if names else []
    handles = [Patch(color=c, label=n) for n, c in zip(names, colours, strict=True)]
    dot = Line2D([], [], marker="o", color=GREY, linestyle="", markersize=6, label="missing values")
    ax.legend(
        handles=[*handles, dot], frameon=False, fontsize=max(6.0, 0.85 * font), loc="upper left"
    )
