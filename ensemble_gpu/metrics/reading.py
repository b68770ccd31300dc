"""What metrics are given: labels, scores and weights, checked, where the scores live."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ensemble_gpu.arrays.devices import to_workplace
from ensemble_gpu.arrays.namespace import Where, check_same_place, is_array, locate, to_numpy
from ensemble_gpu.data.labels import check_labels
from ensemble_gpu.data.validation import check_length, check_weights


@dataclass(frozen=True)
class Truth:
    """Labels in order, the index of each row's, and weights; `home` is where results go."""

    classes: np.ndarray
    index: Any
    weights: Any | None
    where: Where
    home: Where

    def position(self, label: Any, name: str) -> int:
        """Which of the labels the parameter `name` is."""
        known = self.classes.tolist()
        if label not in known:
            raise ValueError(f"{name} must be one of the labels of y, {known!r}; got {label!r}.")
        return known.index(label)

    def among(self, labels: Any) -> Truth:
        """The same rows, with `labels` in their order in place of those that occur."""
        wanted = np.asarray(to_numpy(labels) if is_array(labels) else labels)
        position = {label: k for k, label in enumerate(wanted.tolist())}
        unknown = [label for label in self.classes.tolist() if label not in position]
        if wanted.ndim != 1 or len(position) != len(wanted) or unknown:
            more = f"; missing: {unknown!r}" if unknown else ""
            raise ValueError(
                "labels must be a list of different labels that holds all those that occur; got "
                f"{wanted.tolist()!r}{more}."
            )
        numbers = np.array([position[label] for label in self.classes.tolist()], dtype=np.int64)
        index = self.where.xp.take(self.where.put(numbers), self.index)
        return replace(self, classes=wanted, index=index)


@dataclass(frozen=True)
class Ranked:
    """Which rows are positive [n], and scores [M, n] of them; `stacked`: as the user has it."""

    positive: Any
    scores: Any
    weights: Any | None
    stacked: bool
    where: Where
    home: Where

    def beside(self, other: Ranked) -> Ranked:
        """The vectors of both, of the same rows."""
        scores = self.where.xp.concat([self.scores, other.scores])
        return replace(self, scores=scores, stacked=True)

    def answer(self, values: Sequence[Any]) -> Any:
        """What there is for each vector of scores: all of it, or that of the only one."""
        return list(values) if self.stacked else values[0]

    def numbers(self, values: Any) -> Any:
        """The same of numbers: an array [M] where the scores came from, or a float."""
        return answered(values, self.stacked, self.home)


def answered(values: Any, several: bool, home: Where) -> Any:
    """An array in the user's library, or the only number."""
    return home.hand_over(np.asarray(values, dtype=np.float64)) if several else float(values[0])


def read_numbers(given: Any, name: str) -> tuple[Any, Where, Where]:
    """Finite float64 numbers of any shape, where they came from, where they are."""
    home = locate(given)
    array = to_workplace(given)
    if not is_array(array):
        try:
            array = np.asarray(array, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{name} must hold numbers; {error}.") from error
    where = locate(array)
    xp = where.xp
    if not xp.isdtype(array.dtype, ("real floating", "integral", "bool")):
        raise ValueError(f"{name} must hold real numbers; got dtype {array.dtype}.")
    array = xp.astype(array, xp.float64, copy=False)
    if not bool(xp.all(xp.isfinite(array))):
        raise ValueError(f"{name} contains NaN or infinity; finite values are allowed.")
    return array, home, where


def rows_of(given: Any, name: str) -> int:
    shape = getattr(given, "shape", None)
    if shape is None:
        shape = np.shape(given)
    if len(shape) == 0:
        raise ValueError(f"{name} must hold a value a row; got {given!r}.")
    return int(shape[0])


def read_truth(
    y: Any, sample_weight: Any, n_rows: int | None, home: Where, where: Where, beside: str
) -> Truth:
    """y and weights, on the device of what `beside` names; None: any number of rows."""
    if y is None:
        raise ValueError("y must hold a label a row; got None.")
    check_same_place(home, beside, y=y, sample_weight=sample_weight)
    n = rows_of(y, "y")
    if n == 0:
        raise ValueError("y must hold at least one row; got none.")
    n_rows = n if n_rows is None else n_rows
    check_length("y", n, beside, n_rows)
    classes, index = check_labels(to_workplace(y), n_rows, where, 1, "y")
    weights = check_weights(to_workplace(sample_weight), n_rows, where, "sample_weight")
    return Truth(classes, index, weights, where, home)


def read_ranked(
    y: Any, scores: Any, sample_weight: Any, pos_label: Any, metric: str, name: str = "scores"
) -> Ranked:
    """Two kinds of rows and scores of them.

    Scores are [n], [n, K] (of K classes: the column of the positive one counts) or a stack [M, n].
    """
    scores, home, where = read_numbers(scores, name)
    truth = read_truth(y, sample_weight, None, home, where, name)
    k = _positive(truth, pos_label, metric)
    vectors, stacked = _vectors(scores, truth, k, name)
    return ranked(truth.index == k, vectors, stacked, truth, metric)


def _positive(truth: Truth, pos_label: Any, metric: str) -> int:
    """Which label is positive: `pos_label`, or the second of two."""
    labels = truth.classes.tolist()
    if len(labels) < 2:
        raise ValueError(f"{metric} needs rows of two classes; y holds only {labels!r}.")
    if pos_label is not None:
        return truth.position(pos_label, "pos_label")
    if len(labels) > 2:
        raise ValueError(
            f"pos_label must say which of the labels {labels!r} is positive: {metric} is about "
            "two kinds of rows; got None."
        )
    return 1


def _vectors(scores: Any, truth: Truth, k: int, name: str) -> tuple[Any, bool]:
    """Scores of class k [M, n], and whether the user has given several."""
    n, n_classes = truth.index.shape[0], len(truth.classes)
    shape = tuple(scores.shape)
    if shape == (n,):
        return scores[None, :], False
    if shape == (n, n_classes):
        return scores[:, k][None, :], False
    if len(shape) == 2 and shape[1] == n and shape[0] > 0:
        return scores, True
    raise ValueError(
        f"{name} must have shape ({n},), ({n}, {n_classes}) or (M, {n}): y has {n} rows of "
        f"{n_classes} classes; got shape {shape}."
    )


def ranked(positive: Any, vectors: Any, stacked: bool, truth: Truth, metric: str) -> Ranked:
    """Rows of weight zero are as if absent; both kinds must be there."""
    where, weights = truth.where, truth.weights
    xp = where.xp
    if weights is not None and bool(xp.any(weights == 0.0)):
        rows = xp.nonzero(weights > 0.0)[0]
        positive, weights = xp.take(positive, rows), xp.take(weights, rows)
        vectors = xp.take(vectors, rows, axis=1)
    if bool(xp.all(positive)) or not bool(xp.any(positive)):
        raise ValueError(
            f"{metric} needs rows of two classes with sample_weight > 0; y holds only one of "
            f"{truth.classes.tolist()!r} there."
        )
    return Ranked(positive, vectors, weights, stacked, where, truth.home)
