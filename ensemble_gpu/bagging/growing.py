"""The trees of a forest as they are finished: joined, told to callbacks, written to checkpoints."""

from __future__ import annotations

import math
from collections.abc import Iterable
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np

from ensemble_gpu.bagging.capacity import Chosen
from ensemble_gpu.estimators.checkpoint import Checkpoints, checkpoints_of, others_of
from ensemble_gpu.estimators.progress import RoundInfo
from ensemble_gpu.estimators.resuming import Origin
from ensemble_gpu.kernels.team import current_team
from ensemble_gpu.kernels.tree_protocol import LEAF
from ensemble_gpu.model.forest import Forest, Joining
from ensemble_gpu.saving.runs import write_run


class Growing:
    """The trees of one fit, in addition to `old` ones; `drawn` is what each of them grows from.

    `origin` is what a checkpoint says of the fit, where there are any.
    """

    def __init__(self, forest: Any, old: Forest | None, origin: Origin | None, drawn: Any) -> None:
        self.estimator, self.old, self.origin = forest, old, origin
        self.drawn, self.earlier = drawn, list(forest._drawn)
        # The capacity that each tree has chosen, and its curve.
        self.noted: list[tuple[Any, np.ndarray]] = []
        if old is not None and forest.capacity is not None:
            self.noted = list(zip(forest.capacities_, forest.validation_curves_, strict=True))
        self.callbacks = others_of(forest.callbacks)
        self.checkpoints = Checkpoints(checkpoints_of(forest.callbacks), self._write)

    def __call__(self, trees: Iterable[Forest | Chosen], n_more: int) -> None:
        """Join the trees; a callback may end them."""
        self.joining = Joining(n_more)
        if self.old is not None:
            self.joining.add(self.old)
        self.checkpoints.begin(self.joining.n_trees)
        n_trees = self.joining.n_trees + n_more
        with self.checkpoints.watching(self.callbacks):
            for tree in trees:
                model = self._model(tree)
                self.joining.add(model)
                ends = self._told(model, n_trees)
                self.checkpoints(self.joining.n_trees)
                if ends:
                    break
        self._keep(self.estimator)

    def _model(self, tree: Forest | Chosen) -> Forest:
        if isinstance(tree, Chosen):
            self.noted.append((tree.capacity, tree.curve))
            tree = tree.tree
        return self.estimator._voting(tree)

    def _told(self, tree: Forest, n_trees: int) -> bool:
        """Whether a callback asks to stop."""
        feature, threshold = int(tree.nodes.feature[0]), float(tree.nodes.threshold[0])
        info = RoundInfo(
            round=self.joining.n_trees,
            n_rounds=n_trees,
            feature=None if feature == LEAF else feature,
            threshold=None if feature == LEAF else threshold,
            error=math.nan,
            alpha=1.0,
            validation_loss=None,
        )
        team = current_team()
        known = 0 if team.journal is None else len(team.journal.earlier)
        if not self.callbacks or self.joining.n_trees <= known:  # which they have seen
            return False

        def stops() -> bool:
            answers = [callback(info) for callback in self.callbacks]
            return any(answer is True for answer in answers)

        return team.from_first(stops)

    def _keep(self, estimator: Any) -> None:
        """Fitted attributes of the trees so far."""
        model = self.joining.forest()
        estimator.model_, estimator.n_estimators_ = model, len(model)
        estimator._drawn = self.earlier + [self.drawn] * (len(model) - len(self.earlier))
        if estimator.capacity is not None:
            capacities, curves = zip(*self.noted[: len(model)], strict=True)
            estimator.capacities_ = capacities
            estimator.validation_curves_ = np.stack(curves)

    def _write(self, path: Path, n_trees: int) -> None:
        model = copy(self.estimator)
        self._keep(model)
        self._write_as(path, model)

    def _write_as(self, path: Path, estimator: Any) -> None:
        assert self.origin is not None
        origin, arrays = self.origin.written()
        write_run(path, estimator, {"origin": origin}, arrays)

    def end(self) -> None:
        """The estimator has all that a fit leaves."""
        self.checkpoints.write = lambda path, _: self._write_as(path, self.estimator)
        self.checkpoints.end(self.joining.n_trees)
