"""A fitted estimator as a Treelite model: the way to NVIDIA's forest inference.

Treelite's own evaluation (GTIL) adds trees in their order, in float64, divides where they are
averaged and adds the intercept: what a Forest does. A table is a balanced tree below a test
x <= inf, which only NaN fails.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ensemble_gpu.export.packages import required
from ensemble_gpu.export.source import Source, source_of
from ensemble_gpu.export.trees import goes_left
from ensemble_gpu.kernels.tree_protocol import LEAF
from ensemble_gpu.model.additive import AdditiveModel, Table
from ensemble_gpu.model.forest import Forest

MOST = 2**24  # categories that a float32 tells apart


def to_treelite(estimator: Any) -> Any:
    """A fitted estimator of stumps or trees as a `treelite.Model` with float64 trees.

    Parameters
    ----------
    estimator : a fitted estimator, or its model_, as in `to_onnx`
        Categories must be whole numbers from 0 to 2^24 - 1, as Treelite has them.

    Returns
    -------
    treelite.Model
        Its outputs are the scores: `treelite.gtil.predict(model, X)` of a float64 X, reshaped to
        [n, outputs], has the bits of `model_(X)`. A category that is no whole number would be cut
        to one; other unknown categories are missing, as in the model.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from ensemble_gpu import AdaBoostClassifier, to_treelite
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = to_treelite(AdaBoostClassifier(n_estimators=20).fit(X, y))  # doctest: +SKIP
    >>> scores = treelite.gtil.predict(model, X).reshape(len(X), -1)  # doctest: +SKIP
    """
    source = source_of(estimator)
    _check_categories(source.model)
    required("treelite", "to_treelite")
    return _model(source)


def _check_categories(model: AdditiveModel | Forest) -> None:
    for f, values in getattr(model, "categories", {}).items():
        wrong = values[(values < 0) | (values >= MOST) | (values != np.floor(values))]
        if len(wrong):
            raise ValueError(
                f"estimator must have categories that are whole numbers from 0 to {MOST - 1} for "
                f"to_treelite; feature {f} has {wrong[0]!r}."
            )


def _model(source: Source) -> Any:
    from treelite import model_builder

    model, K = source.model, source.model.n_outputs
    n_trees = len(model.tables) if isinstance(model, AdditiveModel) else model.n_trees
    of_classes = source.classes is not None and K > 1
    builder = model_builder.ModelBuilder(
        threshold_type="float64",
        leaf_output_type="float64",
        metadata=model_builder.Metadata(
            num_feature=model.n_features,
            task_type=_task(source),
            average_tree_output=isinstance(model, Forest) and model.average,
            num_target=1 if of_classes else K,
            num_class=[K] if of_classes else [1] * K,
            leaf_vector_shape=(1, K) if of_classes else (K, 1),
        ),
        tree_annotation=model_builder.TreeAnnotation(
            num_tree=n_trees,
            target_id=[0 if K == 1 or of_classes else -1] * n_trees,
            class_id=[0 if K == 1 or not of_classes else -1] * n_trees,
        ),
        postprocessor=model_builder.PostProcessorFunc(
            "identity_multiclass" if of_classes else "identity"
        ),
        base_scores=[0.0] * K,
        attributes={"fingerprint": model.fingerprint()},
    )
    if isinstance(model, AdditiveModel):
        for f, table in model.tables.items():
            _add_table(builder, f, table)
    else:
        for t in range(model.n_trees):
            _add_tree(builder, model, t)
    built = builder.commit()
    # the builder takes decimals, of which its reader may miss the last bit
    built.get_header_accessor().set_field("base_scores", model.intercept.copy())
    return built


def _task(source: Source) -> str:
    if source.classes is None:
        return "kRegressor"
    return "kMultiClf" if source.model.n_outputs > 1 else "kBinaryClf"


def _leaf(builder: Any, key: int, values: np.ndarray) -> None:
    builder.start_node(key)
    builder.leaf(float(values[0]) if len(values) == 1 else values.tolist())
    builder.end_node()


def _add_table(builder: Any, feature: int, table: Table) -> None:
    """Node 0 asks for missing, node 1 has their value; the others follow in preorder."""
    builder.start_tree()
    builder.start_node(0)
    builder.numerical_test(
        feature, np.inf, default_left=False, opname="<=", left_child_key=2, right_child_key=1
    )
    builder.end_node()
    _leaf(builder, 1, table.missing)

    def between(low: int, high: int, key: int) -> None:
        """The tree over thresholds low ... high - 1: 2 (high - low) + 1 nodes from `key` on."""
        if low == high:
            _leaf(builder, key, table.values[low])
            return
        middle = (low + high) // 2
        right = key + 2 * (middle - low) + 2
        builder.start_node(key)
        builder.numerical_test(
            feature, float(table.thresholds[middle]), default_left=False, opname="<=",
            left_child_key=key + 1, right_child_key=right,
        )  # fmt: skip
        builder.end_node()
        between(low, middle, key + 1)
        between(middle + 1, high, right)

    between(0, len(table.thresholds), 2)
    builder.end_tree()


def _add_tree(builder: Any, forest: Forest, t: int) -> None:
    nodes, span = forest.nodes, forest.span(t)
    builder.start_tree()
    for i in range(span.start, span.stop):
        if nodes.feature[i] == LEAF:
            _leaf(builder, i - span.start, nodes.value[i])
            continue
        feature, missing_left = int(nodes.feature[i]), bool(nodes.missing_left[i])
        children = {
            "left_child_key": int(nodes.left[i]) - span.start,
            "right_child_key": int(nodes.right[i]) - span.start,
        }
        builder.start_node(i - span.start)
        if feature in forest.categories:
            # the list is that of the side where unknown categories do not go
            listed = goes_left(forest, i) != missing_left
            builder.categorical_test(
                feature,
                default_left=missing_left,
                category_list=forest.categories[feature][listed].astype(int).tolist(),
                category_list_right_child=missing_left,
                **children,
            )
        else:
            builder.numerical_test(
                feature,
                float(nodes.threshold[i]),
                default_left=missing_left,
                opname="<=",
                **children,
            )
        builder.end_node()
    builder.end_tree()
