"""What the rounds of a fitted classifier did to the training rows: stages, errors, their bound."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ensemble_gpu.arrays.namespace import to_numpy
from ensemble_gpu.model.committee import CodedVoice
from ensemble_gpu.model.link import VOTES

EXPONENTIAL = ("real", "discrete", "gentle")


def check_boosted_classifier(estimator: Any) -> None:
    """Raise where margins, errors or bounds are asked of something that has none."""
    if not hasattr(estimator, "staged_decision_function"):
        raise TypeError(
            "estimator must be a fitted boosted classifier (AdaBoostClassifier, "
            f"BoostingClassifier); got {type(estimator).__name__}."
        )
    check_is_fitted(estimator)


def after(estimator: Any, n_rounds: int) -> Any:
    """The fitted estimator as it was after its first `n_rounds` rounds.

    Parameters
    ----------
    estimator : a fitted AdaBoostClassifier; it is not changed
    n_rounds : int from 0 to n_estimators_
    """
    check_is_fitted(estimator)
    if not 0 <= n_rounds <= estimator.n_estimators_:
        raise ValueError(
            f"n_rounds must be from 0 to {estimator.n_estimators_} (the rounds in the model); "
            f"got {n_rounds!r}."
        )
    stage = copy.copy(estimator)
    stage.model_ = estimator.model_.first(n_rounds)
    stage.n_estimators_ = n_rounds
    stage.errors_, stage.alphas_ = estimator.errors_[:n_rounds], estimator.alphas_[:n_rounds]
    return stage


def training_error_bound(estimator: Any) -> np.ndarray:
    """Upper bound of the (weighted) training error after each round.

        error_t <= c prod_{s <= t} Z_s

    with W0_s, W+_s and W-_s the shares of the weight before round s of rows that abstain and that
    are voted right and wrong (`history_.weights`):

    - "real", "gentle": Z_s is the weight after round s over the weight before it, `errors_[s]`.
      c = 1 for two classes, K / 2 for AdaBoost.MH: where argmax is wrong, some k has F_k >= F_y,
      so that sum_k exp(-Y_k F_k) >= exp(-F_y) + exp(F_k) >= 2.
    - "discrete": Z_s = W0_s + W+_s exp(-a_s) + W-_s exp(a_s), c = 1, with a_s = alpha_s for two
      classes, where prod Z_s is the mean of exp(-y F), and alpha_s / 2 for SAMME (where argmax is
      wrong, at least half of the votes are). At the best alpha of two classes that is
      W0_s + 2 sqrt(W+_s W-_s), of SAMME sqrt(e_s (1 - e_s)) K / sqrt(K - 1), which is above 1 where
      1 / K < e_s < 1 - 1 / K.

    - learners that know two classes: Z_s of all weights (boosting/coded.py), c = K / 2 with
      multiclass="single" and "ovr", K - 1 with "codes".

    SAMME's own loss, the mean of exp(-F_y) in `history_.training`, does not bound its error.

    Parameters
    ----------
    estimator : a fitted AdaBoostClassifier

    Returns
    -------
    ndarray [n_estimators_]; it can exceed 1, where it says nothing
    """
    check_boosted_classifier(estimator)
    variant, n_classes = getattr(estimator, "variant", None), len(estimator.classes_)
    if variant not in EXPONENTIAL:
        raise ValueError(
            "The bound holds for AdaBoostClassifier with variant one of "
            f"{', '.join(map(repr, EXPONENTIAL))}; got {type(estimator).__name__} with variant "
            f"{variant!r}."
        )
    weights = estimator.history_.weights[: estimator.n_estimators_]
    voice = getattr(estimator.model_, "voice", None)
    if isinstance(voice, CodedVoice):
        factor = n_classes - 1.0 if voice.link == VOTES else n_classes / 2.0
        return factor * np.cumprod(weights[:, 3])
    if variant == "real" and n_classes > 2 and voice is not None:
        raise ValueError(
            "There is no bound for SAMME.R (variant='real' with an estimator, three or more "
            "classes); it holds with variant='discrete'."
        )
    if variant != "discrete":
        return (1.0 if n_classes == 2 else n_classes / 2.0) * np.cumprod(weights[:, 3])
    if n_classes == 2:
        return np.cumprod(weights[:, 3])
    abstaining, right, wrong, _ = weights.T
    if abstaining.any():
        raise ValueError(
            "There is no bound for SAMME (variant='discrete', three or more classes) where rows "
            "abstain: missing values are in features that were used. It holds with "
            "missing='learn'."
        )
    a = estimator.alphas_ / 2.0
    return np.cumprod(right * np.exp(-a) + wrong * np.exp(a))


def staged_errors(estimator: Any, X: Any, y: Any) -> np.ndarray:
    """Share of the rows of X classified wrong after 1, 2, ... rounds: [n_estimators_].

    Parameters
    ----------
    estimator : a fitted AdaBoostClassifier or BoostingClassifier
    X, y : rows and their labels (any that the estimator knows)

    Returns
    -------
    ndarray [n_estimators_]
    """
    check_boosted_classifier(estimator)
    own = labels_of(estimator, y)
    stages = estimator.staged_decision_function(X)
    return np.array([np.mean(columns_of(F).argmax(axis=1) != own) for F in stages])


def columns_of(F: Any) -> np.ndarray:
    """A column per class on the host; equal columns mean equal probabilities."""
    F = np.array(to_numpy(F), dtype=np.float64)
    return np.stack([-F, F], axis=1) if F.ndim == 1 else F


def labels_of(estimator: Any, y: Any) -> np.ndarray:
    """Position of every label in classes_."""
    y, classes = to_numpy(y), estimator.classes_
    y = np.asarray(y)
    unknown = np.setdiff1d(y, classes)
    if len(unknown):
        raise ValueError(
            f"y holds labels that the estimator has not seen: {unknown.tolist()!r}; "
            f"it knows {classes.tolist()!r}."
        )
    return np.searchsorted(classes, y)
