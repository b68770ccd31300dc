"""The parameter `estimator` of gradient boosting: what it may be, and the learner that it becomes.

A learner of this package (learners/protocol.py: OwnLearner) makes its own; any other object with
scikit-learn's interface, a regressor or a classifier, is cloned and fitted in every round
(learners/directions.py).
"""

from __future__ import annotations

from inspect import signature
from typing import Any

from ensemble_gpu.boosting.plans import DescentParameters
from ensemble_gpu.estimators.reading import TrainingData
from ensemble_gpu.kernels.edges import MAX_BINS_LIMIT
from ensemble_gpu.learners.directions import Directions
from ensemble_gpu.learners.foreign import check_learner, told_of
from ensemble_gpu.learners.protocol import GradientLearner, LearnerRows, OwnLearner

# Parameters of the stumps and trees that are grown where no estimator is given.
OF_TREES = (
    "stump", "max_depth", "max_leaf_nodes", "min_samples_leaf", "min_hessian", "l2_regularization",
    "max_features", "monotonic_cst", "interaction_cst", "categorical_split", "n_bags", "candidates",
)  # fmt: skip
# How far to go along the answers of an estimator of another kind.
STEPS_OF_OTHERS = ("line_search", "constant")


def is_own(estimator: Any) -> bool:
    """Whether it is a learner of this package; a class of one is none."""
    return isinstance(estimator, OwnLearner) and not isinstance(estimator, type)


def check_given(boosting: Any) -> None:
    """Raise where the parameter `estimator` is no learner, or other parameters are not for it."""
    estimator = boosting.estimator
    if not is_own(estimator):
        check_learner(estimator, ("regressor", "classifier"), "stumps and trees")
    defaults = signature(type(boosting).__init__).parameters
    clashing = {
        name: getattr(boosting, name)
        for name in OF_TREES
        if name in defaults and not _same(getattr(boosting, name), defaults[name].default)
    }
    if clashing:
        told = ", ".join(f"{name}={value!r}" for name, value in clashing.items())
        raise ValueError(
            f"{told}: for the stumps and trees that are grown where estimator is None; estimator "
            f"is {estimator!r}. Leave {', '.join(clashing)} out, or set it on the estimator."
        )
    if not is_own(estimator):
        check_step_of_others(boosting)
    elif boosting.missing == "learn":
        raise ValueError(
            f"missing must be 'abstain' or 'error' for estimator {estimator!r}; got 'learn', which "
            "is for stumps and trees on the features themselves."
        )


def check_step_of_others(boosting: Any) -> None:
    """Raise where `step` is one of leaves, which the learner does not have."""
    if boosting.step not in (*STEPS_OF_OTHERS, None):
        raise ValueError(
            f"step must be {' or '.join(map(repr, STEPS_OF_OTHERS))} for estimator "
            f"{boosting.estimator!r}; got {boosting.step!r}, which is for leaves."
        )


def _same(value: Any, default: Any) -> bool:
    return value is default or (type(value) is type(default) and value == default)


def learner_of(
    boosting: Any, data: TrainingData, descent: DescentParameters, n_outputs: int, form: str
) -> GradientLearner | Directions:
    """The learner of the rounds; `form` says what several outputs have in a round."""
    estimator = boosting.estimator
    if is_own(estimator):
        return estimator.gradient_learner(learner_rows(boosting, data, n_outputs, descent.seed))
    told = told_of(data.categories, estimator)
    return Directions(told, data.taking_part(), data.where, n_outputs, form, descent.seed)


def learner_rows(boosting: Any, data: TrainingData, n_outputs: int, seed: int) -> LearnerRows:
    """What a learner of this package is made from."""
    rows, most = data.taking_part(), boosting.max_bins or MAX_BINS_LIMIT
    return LearnerRows(
        data.engine, rows.X, rows.target, rows.weights, data.where, n_outputs, boosting._n_rounds,
        most, seed, getattr(boosting, "classes_", None),
    )  # fmt: skip
