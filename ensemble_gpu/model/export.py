"""A tree as text, and the words for its tests that text and picture share."""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ensemble_gpu.kernels.tree_protocol import LEAF
from ensemble_gpu.model.forest import Forest


@dataclass(frozen=True)
class Words:
    """How features, classes, categories and numbers are called.

    `classes` are the names of the outputs, None where those are no classes. Of averaged trees
    they are shares, of boosted ones scores.
    """

    forest: Forest
    features: list[str]
    classes: list[str] | None
    categories: Mapping[int, list[str]]
    decimals: int

    def number(self, x: float) -> str:
        text = f"{x:.{self.decimals}f}"
        return text.removeprefix("-") if float(text) == 0.0 else text

    def tests(self, i: int, limit: int | None = None) -> tuple[str, str]:
        """What is true of a row that goes left and of one that goes right of node i.

        A set of categories that takes more than `limit` letters is cut short.
        """
        nodes, f = self.forest.nodes, int(self.forest.nodes.feature[i])
        name, threshold = self.features[f], float(nodes.threshold[i])
        if nodes.subset[i] >= 0:
            members = self._members(i, f)
            inside = "{" + ", ".join(members if limit is None else _cut(members, limit)) + "}"
            sides = [f"{name} in {inside}", f"{name} not in {inside}"]
        elif threshold == np.inf:
            sides = [f"{name} is present", f"{name} is missing"]
            if not nodes.missing_left[i]:
                return sides[0], sides[1]
            sides[1] = f"{name} > inf"
        else:
            sides = [f"{name} <= {self.number(threshold)}", f"{name} > {self.number(threshold)}"]
        sides[0 if nodes.missing_left[i] else 1] += " or missing"
        return sides[0], sides[1]

    def _members(self, i: int, f: int) -> list[str]:
        """The categories that go left of node i."""
        words = self.forest.subsets[self.forest.nodes.subset[i]]
        bits = np.unpackbits(words.astype("<u8").view(np.uint8), bitorder="little")
        codes = np.flatnonzero(bits).tolist()
        if f in self.categories:
            known = self.categories[f]
            return [known[c] for c in codes if c < len(known)]
        return [str(c) for c in codes]

    def values(self, i: int, limit: int | None = None) -> str:
        """The outputs of node i: one number, or several in brackets."""
        numbers = [self.number(v) for v in self.forest.nodes.value[i]]
        if len(numbers) == 1:
            return numbers[0]
        return "[" + ", ".join(numbers if limit is None else _cut(numbers, limit)) + "]"

    @property
    def shares(self) -> bool:
        """Whether the outputs are shares of classes."""
        return self.classes is not None and self.forest.average

    def class_of(self, i: int) -> str | None:
        """The class with the largest share in node i; None where outputs are no shares."""
        if self.classes is None or not self.shares:
            return None
        return self.classes[int(np.argmax(self.forest.nodes.value[i]))]


def _cut(words: list[str], limit: int) -> list[str]:
    """As many words as fit into `limit` letters, at least one, and the number of the others."""
    words = [word if len(word) <= limit else word[: limit - 1] + "…" for word in words]
    n, shown = len(words), words
    while n > 1 and len(", ".join(shown)) > limit:
        n -= 1
        shown = [*words[:n], f"{len(words) - n} more"]
    return shown


def words_of(
    model: Any,
    feature_names: Sequence[str] | None = None,
    class_names: Sequence[Any] | None = None,
    category_names: Mapping[int | str, Sequence[Any]] | None = None,
    decimals: int = 3,
) -> Words:
    """The words for a forest or a fitted estimator (whose own names are the default)."""
    forest = getattr(model, "model_", model)
    if not isinstance(forest, Forest):
        raise TypeError(f"model must be a Forest or a fitted estimator of trees; got {model!r}.")
    if isinstance(decimals, bool) or not isinstance(decimals, numbers.Integral) or decimals < 0:
        raise ValueError(f"decimals must be an integer >= 0; got {decimals!r}.")
    if feature_names is None:
        feature_names = getattr(model, "feature_names_in_", None)
    if feature_names is None:
        feature_names = [f"feature {f}" for f in range(forest.n_features)]
    if len(feature_names) != forest.n_features:
        raise ValueError(
            f"feature_names must hold {forest.n_features} names, one a feature; "
            f"got {len(feature_names)}."
        )
    features = [str(name) for name in feature_names]
    classes = _classes(model, forest, class_names)
    known = _known_categories(model, forest)
    given = {} if category_names is None else _named_categories(category_names, features, known)
    return Words(forest, features, classes, known | given, decimals)


def _known_categories(model: Any, forest: Forest) -> dict[int, list[str]]:
    """What an estimator calls the categories; their values where it has no labels."""
    own = getattr(model, "_categories", None)
    names = {f: values.tolist() if own is None else own.names(f)
             for f, values in forest.categories.items()}  # fmt: skip
    return {
        f: [f"{name:g}" if isinstance(name, float) else str(name) for name in known]
        for f, known in names.items()
    }


def _named_categories(
    given: Any, features: list[str], known: Mapping[int, list[str]]
) -> dict[int, list[str]]:
    """The user's names of categories, by feature."""
    if not isinstance(given, Mapping):
        raise TypeError(
            "category_names must be a dict of features (indices or names) to names of their "
            f"categories; got {given!r}."
        )
    places = {f: f for f in known} | {features[f]: f for f in known}
    unknown = [key for key in given if key not in places]
    if unknown:
        raise ValueError(
            f"category_names must be keyed by categorical features, {_either(features, known)}; "
            f"got {unknown[0]!r}."
        )
    for key, names in given.items():
        wanted = len(known[places[key]])
        if isinstance(names, str) or len(names) != wanted:
            raise ValueError(
                f"category_names[{key!r}] must hold {wanted} names, one a category in the order of "
                f"their values; got {names!r}."
            )
    return {places[key]: [str(name) for name in names] for key, names in given.items()}


def _either(features: list[str], known: Mapping[int, Any]) -> str:
    """The keys that name a categorical feature."""
    if not known:
        return "of which there are none"
    return f"{list(known)} or {[features[f] for f in known]}"


def _classes(model: Any, forest: Forest, given: Sequence[Any] | None) -> list[str] | None:
    if given is not None and len(given) != forest.n_outputs:
        raise ValueError(
            f"class_names must hold {forest.n_outputs} names, one an output; got {len(given)}."
        )
    if given is None:
        given = getattr(model, "classes_", None)
    if given is None or len(given) != forest.n_outputs:
        return None
    return [str(name) for name in given]


def check_max_depth(max_depth: int | None) -> None:
    if max_depth is None:
        return
    if isinstance(max_depth, bool) or not isinstance(max_depth, numbers.Integral) or max_depth < 0:
        raise ValueError(f"max_depth must be None or an integer >= 0; got {max_depth!r}.")


def export_text(
    model: Any,
    tree: int = 0,
    *,
    feature_names: Sequence[str] | None = None,
    class_names: Sequence[Any] | None = None,
    category_names: Mapping[int | str, Sequence[Any]] | None = None,
    max_depth: int | None = None,
    decimals: int = 3,
    show_weights: bool = False,
) -> str:
    """A tree as indented text, a line for each branch and each leaf.

    Parameters
    ----------
    model : a Forest, or a fitted estimator of trees
    tree : which tree, from 0
    feature_names : names of all columns; None: feature_names_in_ or "feature 3"
    class_names : names of the outputs; None: classes_. A leaf shows the class of the largest share;
        leaves of boosted trees, which have no shares but scores, show those
    category_names : by feature (index or name), names of all its categories in order of their
        values; None: the labels that the estimator was fitted with, or the values
    max_depth : branches below this depth are cut; None: none is
    decimals : of thresholds and values
    show_weights : whether leaves show all values, the rows and the weight of the training sample

    Returns
    -------
    str
    """
    check_max_depth(max_depth)
    words = words_of(model, feature_names, class_names, category_names, decimals)
    forest = words.forest
    span = forest.span(tree)
    depth = forest.depths
    deepest = forest.depth(tree) if max_depth is None else max_depth
    branch: dict[int, str] = {}
    lines = []
    for i in range(span.start, span.stop):  # preorder: the order of the lines
        if depth[i] > deepest + 1:
            continue
        if i in branch:
            lines.append("|   " * (int(depth[i]) - 1) + "|--- " + branch.pop(i))
        indent = "|   " * int(depth[i]) + "|--- "
        if forest.nodes.feature[i] == LEAF:
            lines.append(indent + _leaf(words, i, show_weights))
        elif depth[i] > deepest:
            lines.append(indent + f"... ({_nodes_below(forest, i)} nodes)")
        else:
            left, right = words.tests(i)
            branch[int(forest.nodes.left[i])] = left
            branch[int(forest.nodes.right[i])] = right
    return "\n".join(lines) + "\n"


def _leaf(words: Words, i: int, show_weights: bool) -> str:
    nodes, name = words.forest.nodes, words.class_of(i)
    parts = [f"value: {words.values(i)}"] if name is None else [f"class: {name}"]
    if show_weights:
        parts += [] if name is None else [f"values: {words.values(i)}"]
        parts += [f"rows: {nodes.n_samples[i]}", f"weight: {words.number(nodes.weight[i])}"]
    return ", ".join(parts)


def _nodes_below(forest: Forest, i: int) -> int:
    """Nodes of the subtree at node i, without itself: in preorder they follow it."""
    end = i
    while forest.nodes.feature[end] != LEAF:
        end = int(forest.nodes.right[end])
    return end - i
