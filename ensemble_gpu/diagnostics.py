"""What theory says about a fitted model: margins, the bound on the training error, the curves.

Everything here returns host arrays, ready to print or to plot, whatever library X is of.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ensemble_gpu.arrays.namespace import to_numpy
from ensemble_gpu.model.additive import AdditiveModel
from ensemble_gpu.model.committee import CodedVoice, Committee
from ensemble_gpu.model.derived import DerivedModel
from ensemble_gpu.model.link import VOTES
from ensemble_gpu.model.votes import VoteModel

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


def margins(estimator: Any, X: Any, y: Any, rounds: Sequence[int] | None = None) -> np.ndarray:
    """Normalised margins: positive where a row is classified right, 1 at the most.

        margin_i = (F_y(x_i) - max_{k != y} F_k(x_i)) / sum_t max_l (max_k v_tlk - min_k v_tlk)

    v_tlk is what leaf l of round t adds to class k. Two classes have F_0 = -F and F_1 = F, which
    makes it y_i F(x_i) / sum_t max_l |v_tl|, and for the textbook's discrete variant
    y_i F(x_i) / sum_t |alpha_t| (Schapire, Freund, Bartlett & Lee 1998). Always in [-1, 1].

    Parameters
    ----------
    estimator : a fitted AdaBoostClassifier, or a BoostingClassifier of stumps
    X, y : rows and their labels (any that the estimator knows)
    rounds : numbers of rounds after which to look; None: after the last

    Returns
    -------
    ndarray [n], or [len(rounds), n] where `rounds` is given
    """
    check_boosted_classifier(estimator)
    model = getattr(estimator, "model_", None)
    if not isinstance(model, AdditiveModel | DerivedModel | Committee | VoteModel):
        raise TypeError(
            "margins need a classifier whose model_ is an AdditiveModel (stumps), a DerivedModel, "
            "a VoteModel or a Committee; "
            f"got {type(estimator).__name__} with model_ of type {type(model).__name__}."
        )
    own = _index(estimator, y)
    if rounds is None:
        return _margins(estimator, X, own)
    return np.array([_margins(after(estimator, t), X, own) for t in rounds])


def _margins(estimator: Any, X: Any, own: np.ndarray) -> np.ndarray:
    F = _columns(estimator.decision_function(X))
    at = np.arange(len(own))
    mine = F[at, own]
    F[at, own] = -np.inf
    return (mine - F.max(axis=1)) / _largest_margin(estimator.model_)


def _largest_margin(model: Any) -> float:
    """The largest margin that the model's rounds allow."""
    if isinstance(model, Committee | VoteModel):
        return model.largest_margin or 1.0
    values = model.rounds.values
    spread = 2.0 * np.abs(values) if model.n_outputs == 1 else np.ptp(values, axis=1, keepdims=True)
    constant = 2.0 * np.abs(model.intercept) if model.n_outputs == 1 else np.ptp(model.intercept)
    total = float(spread.max(axis=(1, 2)).sum() + np.sum(constant))
    return total if total > 0.0 else 1.0


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
    own = _index(estimator, y)
    stages = estimator.staged_decision_function(X)
    return np.array([np.mean(_columns(F).argmax(axis=1) != own) for F in stages])


def _columns(F: Any) -> np.ndarray:
    """A column per class on the host; equal columns mean equal probabilities."""
    F = np.array(to_numpy(F), dtype=np.float64)
    return np.stack([-F, F], axis=1) if F.ndim == 1 else F


def _index(estimator: Any, y: Any) -> np.ndarray:
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
