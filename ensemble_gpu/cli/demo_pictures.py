"""A picture of each kind that the package draws."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ensemble_gpu import AdaBoostClassifier, BoostingClassifier, DecisionTreeClassifier
from ensemble_gpu.cli.demo_data import Data


def draw(small: Data, large: Data, rounds: int, out: Path) -> Iterator[tuple[Path, str]]:
    """Save the pictures; the path of each, and what it shows. ImportError without matplotlib."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    out.mkdir(parents=True, exist_ok=True)
    for name, (what, figure) in _pictures(small, large, rounds, plt).items():
        made = figure()
        made.savefig(out / name, dpi=130)
        plt.close(made)
        yield out / name, what


def _pictures(
    small: Data, large: Data, rounds: int, plt: Any
) -> dict[str, tuple[str, Callable[[], Any]]]:
    """What is drawn, by the name of the file."""
    from ensemble_gpu.plotting import curves, tree

    fits = [AdaBoostClassifier(n_estimators=rounds).fit(d.X, d.y) for d in (small, large)]

    def pair(title: str) -> tuple[Any, Any]:
        figure, axes = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained")
        figure.suptitle(title)
        return figure, axes

    def learning() -> Any:
        figure, axes = pair("Learning curves of AdaBoost")
        for d, model, ax in zip((small, large), fits, axes, strict=True):
            curves.plot_learning_curve(model, d.X, d.y, d.X_test, d.y_test, ax=ax)
            ax.set_title(f"{d.name}, {len(d.y):,} rows")
        return figure

    def margins() -> Any:
        figure, axes = pair(f"Cumulative distribution of the training margins: {small.name}")
        textbook = AdaBoostClassifier(variant="discrete", n_estimators=rounds)
        for model, ax in zip((textbook.fit(small.X, small.y), fits[0]), axes, strict=True):
            curves.plot_margins(model, small.X, small.y, ax=ax)
            ax.set_title(f'variant="{model.variant}"', pad=16)
        return figure

    def shapes() -> Any:
        return curves.plot_shape_functions(fits[1], X=large.X, feature_names=large.feature_names)

    def history() -> Any:
        model = BoostingClassifier(n_estimators=rounds, learning_rate=0.1, early_stopping=True).fit(
            large.X, large.y
        )
        ax = model.history_.plot()
        ax.set_title(f"Boosted trees with early stopping: {large.name}")
        return ax.figure

    def one_tree() -> Any:
        model = DecisionTreeClassifier(max_depth=3).fit(small.X, small.y)
        names = list(small.feature_names)
        ax = tree.plot_tree(model, feature_names=names, class_names=list(small.class_names))
        ax.set_title(f"A decision tree: {small.name}")
        return ax.figure

    return {
        "learning_curve.png": ("train and test error under the bound on train error", learning),
        "margins.png": ("margins of the training rows, round by round", margins),
        "shape_functions.png": ("what the most important features add to F", shapes),
        "history.png": ("losses by round, and where early stopping stops", history),
        "tree.png": ("a decision tree", one_tree),
    }
