"""A tree as a list of rules: one conjunction of tests a leaf.

The tests of one feature on the way to a leaf are merged: thresholds to one interval (low, high],
sets of categories to their intersection. Of every row exactly one rule of a tree fires, that of
its leaf.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ensemble_gpu.arrays.namespace import to_numpy
from ensemble_gpu.kernels.tree_protocol import LEAF
from ensemble_gpu.model.export import Words, words_of
from ensemble_gpu.model.forest import Forest
from ensemble_gpu.model.inputs import rows_of


@dataclass(frozen=True)
class Condition:
    """What a rule asks of a feature: low < x <= high, or one of the `categories`.

    `categories` are values as the model takes them, None for a number. `missing`: whether NaN, or
    a category that the model does not know, passes.
    """

    feature: int
    low: float = -np.inf
    high: float = np.inf
    categories: tuple[float, ...] | None = None
    missing: bool = True

    def passes(self, x: np.ndarray, known: np.ndarray | None) -> np.ndarray:
        """Whether each value passes; `known` are all categories of the feature."""
        if self.categories is None:
            return ((x > self.low) & (x <= self.high)) | (self.missing & np.isnan(x))
        assert known is not None
        return np.isin(x, self.categories) | (self.missing & ~np.isin(x, known))

    def below(self, threshold: float, missing_left: bool) -> Condition:
        """With the test of a node whose left child is next."""
        high = min(self.high, threshold)
        missing = self.missing and missing_left
        return Condition(self.feature, self.low, high, self.categories, missing)

    def above(self, threshold: float, missing_left: bool) -> Condition:
        low = max(self.low, threshold)
        missing = self.missing and not missing_left
        return Condition(self.feature, low, self.high, self.categories, missing)

    def among(self, members: Sequence[float], missing_here: bool) -> Condition:
        """With a set of categories."""
        kept = members if self.categories is None else [c for c in self.categories if c in members]
        missing = self.missing and missing_here
        return Condition(self.feature, self.low, self.high, tuple(kept), missing)


@dataclass(frozen=True)
class Rule:
    """If all `tests` pass, then the leaf's values.

    `label` is the class of the largest share (None where outputs are no shares of classes) and
    `confidence` that share; `n_rows` and `weight` are those of the training sample in the leaf,
    `support` its share of the tree's weight. str() is the rule in words.
    """

    tests: tuple[Condition, ...]
    leaf: int
    values: np.ndarray
    label: Any
    confidence: float | None
    support: float
    n_rows: int
    weight: float
    text: str
    forest: Forest

    def __str__(self) -> str:
        return self.text

    def fires(self, X: Any) -> np.ndarray:
        """Whether the rule is about each row of X, on the host: bool [n]."""
        X = to_numpy(rows_of(X, self.forest.n_features)).astype(np.float64)
        fired = np.ones(X.shape[0], dtype=bool)
        for test in self.tests:
            known = self.forest.categories.get(test.feature)
            fired &= test.passes(X[:, test.feature], known)
        return fired


def rules(
    model: Any,
    tree: int = 0,
    *,
    feature_names: Sequence[str] | None = None,
    class_names: Sequence[Any] | None = None,
    category_names: Mapping[int | str, Sequence[Any]] | None = None,
    decimals: int = 3,
) -> list[Rule]:
    """The rules of a tree, "if ... and ... then ...", one a leaf, from left to right.

    Parameters
    ----------
    model : a Forest, or a fitted estimator of trees
    tree : which tree, from 0
    feature_names, class_names, category_names, decimals : as of `export_text`

    Returns
    -------
    list of Rule
    """
    words = words_of(model, feature_names, class_names, category_names, decimals)
    forest = words.forest
    nodes, span = forest.nodes, forest.span(tree)
    classes = getattr(model, "classes_", None)
    found: list[Rule] = []
    open_: dict[int, dict[int, Condition]] = {span.start: {}}
    for i in range(span.start, span.stop):  # preorder: from left to right
        tests = open_.pop(i)
        if nodes.feature[i] == LEAF:
            found.append(_rule(words, i, span.start, tests, classes))
        else:
            left, right = _sides(forest, i, tests)
            open_[int(nodes.left[i])], open_[int(nodes.right[i])] = left, right
    return found


def _sides(
    forest: Forest, i: int, tests: dict[int, Condition]
) -> tuple[dict[int, Condition], dict[int, Condition]]:
    """The tests of the children of node i, by feature."""
    nodes, f = forest.nodes, int(forest.nodes.feature[i])
    own = tests.get(f, Condition(f))
    missing_left, threshold = bool(nodes.missing_left[i]), float(nodes.threshold[i])
    if nodes.subset[i] < 0:
        left, right = own.below(threshold, missing_left), own.above(threshold, missing_left)
    else:
        words = forest.subsets[nodes.subset[i]]
        bits = np.unpackbits(words.astype("<u8").view(np.uint8), bitorder="little")
        known = forest.categories[f]
        inside = bits[: len(known)].astype(bool)
        left = own.among(known[inside].tolist(), missing_left)
        right = own.among(known[~inside].tolist(), not missing_left)
    return tests | {f: left}, tests | {f: right}


def _rule(words: Words, i: int, root: int, tests: dict[int, Condition], classes: Any) -> Rule:
    nodes = words.forest.nodes
    values, label, confidence = nodes.value[i].copy(), None, None
    if words.shares:
        k = int(np.argmax(values))
        label = words.class_of(i) if classes is None else classes[k]
        confidence = float(values[k])
    ordered = tuple(tests[f] for f in sorted(tests))
    condition = " and ".join(_asked(words, test) for test in ordered) or "always"
    shown = f"value {words.values(i)}" if label is None else f"class {words.class_of(i)}"
    return Rule(
        ordered, i - root, values, label, confidence, float(nodes.weight[i] / nodes.weight[root]),
        int(nodes.n_samples[i]), float(nodes.weight[i]), f"if {condition} then {shown}",
        words.forest,
    )  # fmt: skip


def _asked(words: Words, test: Condition) -> str:
    """A test in words."""
    name = words.features[test.feature]
    if test.categories is not None:
        known, names = words.forest.categories[test.feature], words.categories[test.feature]
        inside = [names[int(np.searchsorted(known, c))] for c in test.categories]
        text = f"{name} in {{{', '.join(inside)}}}"
    elif test.low == np.inf:
        return f"{name} is missing"
    elif test.high == np.inf:
        text = f"{name} is present" if test.low == -np.inf else f"{name} > {words.number(test.low)}"
    elif test.low == -np.inf:
        text = f"{name} <= {words.number(test.high)}"
    else:
        text = f"{words.number(test.low)} < {name} <= {words.number(test.high)}"
    return f"({text} or missing)" if test.missing else text
