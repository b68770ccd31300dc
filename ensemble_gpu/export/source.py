"""What of a fitted estimator is exported: its model, and what the model's outputs mean."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ensemble_gpu.export.bags import forest_of_bag, is_bag_of_trees
from ensemble_gpu.export.committees import forest_of_committee, is_committee_of_trees
from ensemble_gpu.kernels.tree_protocol import LEAF
from ensemble_gpu.model.additive import AdditiveModel
from ensemble_gpu.model.forest import Forest
from ensemble_gpu.model.link import IDENTITY

SHARES = "shares"  # outputs are probabilities already

EXPORTED = (
    "a fitted AdaBoostClassifier, BoostingClassifier, BoostingRegressor, BoostingRanker, "
    "L1BoostingClassifier or L1BoostingRegressor of stumps or of this package's trees, a "
    "DecisionTree, a RandomForest, a BaggingClassifier or BaggingRegressor of decision trees, "
    "or the AdditiveModel or Forest that one of them has as model_"
)


@dataclass(frozen=True)
class Source:
    """A model and how to read its outputs.

    `link` is a name of model/link.py or SHARES, None where there is a model alone; `classes` are
    the labels of a classifier, `categories[f]` pairs of what the user calls a category, and its
    number in X.
    """

    model: AdditiveModel | Forest
    link: str | None = None
    scale: float = 1.0
    classes: np.ndarray | None = None
    feature_names: list[str] | None = None
    categories: Mapping[int, list[tuple[Any, float]]] | None = None

    @property
    def n_classes(self) -> int:
        return 0 if self.classes is None else len(self.classes)

    @property
    def labels(self) -> list:
        return [] if self.classes is None else self.classes.tolist()

    @property
    def tests(self) -> bool:
        """Whether the model tests any feature."""
        if isinstance(self.model, AdditiveModel):
            return bool(self.model.tables)
        return bool((self.model.nodes.feature != LEAF).any())

    def constant_row(self) -> np.ndarray:
        """The outputs [outputs] of a model that tests nothing."""
        return self.model(np.zeros((1, self.model.n_features)))[0]


def source_of(estimator: Any) -> Source:
    """The source of an estimator or a model; TypeError where it cannot be exported."""
    if isinstance(estimator, AdditiveModel | Forest):
        return Source(_checked(estimator))
    if isinstance(estimator, BaseEstimator):
        check_is_fitted(estimator)
    model: Any = getattr(estimator, "model_", None)
    if is_bag_of_trees(estimator):
        model = forest_of_bag(estimator)
    elif is_committee_of_trees(model):
        model = forest_of_committee(model)
    if not isinstance(model, AdditiveModel | Forest):
        learner = getattr(estimator, "estimator_", None)
        within = f" of {type(learner).__name__}" if learner is not None else ""
        has = "" if model is None else f", whose model_ is a {type(model).__name__}"
        raise TypeError(
            f"estimator must be {EXPORTED}; got {type(estimator).__name__}{within}{has}."
        )
    classes = getattr(estimator, "classes_", None)
    names = getattr(estimator, "feature_names_in_", None)
    known = estimator._categories
    return Source(
        _checked(model),
        link=getattr(estimator, "link_", IDENTITY if classes is None else SHARES),
        scale=float(getattr(estimator, "scale_", 1.0)),
        classes=classes,
        feature_names=None if names is None else [str(name) for name in names],
        categories={
            f: list(zip(known.names(f), values.tolist(), strict=True))
            for f, values in known.values.items()
        },
    )


def _checked(model: AdditiveModel | Forest) -> AdditiveModel | Forest:
    if isinstance(model, Forest):
        tested = np.unique(model.nodes.feature[model.nodes.subset >= 0])
        without = [f for f in tested.tolist() if f not in model.categories]
        if without:
            raise ValueError(
                "estimator must be a Forest that knows the categories of every feature that it "
                f"tests by subsets; those of features {without} are missing."
            )
    return model
