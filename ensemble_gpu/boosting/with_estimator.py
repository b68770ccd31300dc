"""What boosting does with the parameter `estimator`: its tags, its features, its fitted clones."""

from __future__ import annotations

from typing import Any

from sklearn.utils import get_tags

from ensemble_gpu.arrays.namespace import Where
from ensemble_gpu.arrays.positions import encode
from ensemble_gpu.estimators.categorical import CategoricalEstimator
from ensemble_gpu.model.answers import parts, uncoded
from ensemble_gpu.model.committee import Committee


class TakesEstimator(CategoricalEstimator):
    """An estimator that boosts another one, or, where `estimator` is None, its own learners."""

    estimator: Any

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if hasattr(self.estimator, "__sklearn_tags__"):
            learner = get_tags(self.estimator).input_tags
            tags.input_tags.allow_nan &= learner.allow_nan
            tags.input_tags.sparse &= learner.sparse
        return tags

    @property
    def estimators_(self) -> list[Any]:
        """The fitted learners of the rounds in the model; a list of them for several outputs."""
        model = getattr(self, "model_", None)
        if not isinstance(model, Committee):
            raise AttributeError("estimators_ are there after a fit with an estimator.")
        every = [[uncoded(part) for part in parts(learner)] for learner in model.learners]
        return [own if len(own) > 1 else own[0] for own in every]

    def _feature_parameter(self, name: str) -> Any:
        """An estimator's features are its own affair, unless it can be told of categories."""
        given = getattr(self, name, None)
        if name != "categorical_features" or self.estimator is None or given is None:
            return given
        parameters = self.estimator.get_params(deep=False)
        if isinstance(given, str):
            return given if parameters.get(name) is not None else None
        if name not in parameters:
            raise ValueError(
                f"categorical_features is {given!r}, but estimator "
                f"{type(self.estimator).__name__} takes none; categorical_features must be None "
                "for it."
            )
        return given

    def _inputs(self, X: Any) -> tuple[Any, Where, Where, Any]:
        X, home, where, dtype = super()._inputs(X)
        if isinstance(self.model_, Committee):  # its learners were fitted to codes
            X = encode(X, self._categories.values, where)
        return X, home, where, dtype
