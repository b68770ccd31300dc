"""Margins: how clearly rows are classified, and how that changes from round to round."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ensemble_gpu.arrays.namespace import NUMPY, is_array, locate, to_numpy
from ensemble_gpu.data.validation import check_weights
from ensemble_gpu.diagnostics.training import (
    after,
    check_boosted_classifier,
    columns_of,
    labels_of,
)
from ensemble_gpu.model.additive import AdditiveModel
from ensemble_gpu.model.committee import Committee
from ensemble_gpu.model.derived import DerivedModel
from ensemble_gpu.model.votes import VoteModel

# Models whose rounds say how much they can add at the most.
WITH_MARGINS = (AdditiveModel, DerivedModel, Committee, VoteModel)


def margins(estimator: Any, X: Any, y: Any, rounds: Sequence[int] | None = None) -> Any:
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
    array [n] of the library and on the device of X, [len(rounds), n] where `rounds` is given
    """
    check_boosted_classifier(estimator)
    model = getattr(estimator, "model_", None)
    if not isinstance(model, WITH_MARGINS):
        raise TypeError(
            "margins need a classifier whose model_ is an AdditiveModel (stumps), a DerivedModel, "
            "a VoteModel or a Committee; "
            f"got {type(estimator).__name__} with model_ of type {type(model).__name__}."
        )
    own = labels_of(estimator, y)
    if rounds is None:
        return locate(X).hand_over(_margins(estimator, X, own))
    stages = [_margins(after(estimator, t), X, own) for t in rounds]
    return locate(X).hand_over(np.array(stages).reshape(len(stages), len(own)))


def _margins(estimator: Any, X: Any, own: np.ndarray) -> np.ndarray:
    F = columns_of(estimator.decision_function(X))
    at = np.arange(len(own))
    mine = F[at, own]
    F[at, own] = -np.inf
    return (mine - F.max(axis=1)) / largest_margin(estimator.model_)


def largest_margin(model: Any) -> float:
    """The largest margin that the model's rounds allow."""
    if isinstance(model, Committee | VoteModel):
        return model.largest_margin or 1.0
    values = model.rounds.values
    spread = 2.0 * np.abs(values) if model.n_outputs == 1 else np.ptp(values, axis=1, keepdims=True)
    constant = 2.0 * np.abs(model.intercept) if model.n_outputs == 1 else np.ptp(model.intercept)
    total = float(spread.max(axis=(1, 2)).sum() + np.sum(constant))
    return total if total > 0.0 else 1.0


@dataclass(frozen=True)
class MarginCurves:
    """Margins of all rows after some numbers of rounds.

    Attributes
    ----------
    rounds : numbers of rounds [T]
    mean, minimum : of the margins [T]
    quantiles : {share: [T]}, the smallest margin with at least that share of the weight up to it
    error : share with a margin <= 0 [T]: the error, where no row is tied
    """

    rounds: np.ndarray
    mean: np.ndarray
    minimum: np.ndarray
    quantiles: dict[float, np.ndarray]
    error: np.ndarray

    def to_frame(self) -> Any:
        """A pandas frame, a row a number of rounds."""
        import pandas as pd

        columns = {"mean": self.mean, "minimum": self.minimum, "error": self.error}
        columns |= {f"{share:g} quantile": values for share, values in self.quantiles.items()}
        return pd.DataFrame(columns, index=pd.Index(self.rounds, name="rounds"))


def margin_curves(
    estimator: Any,
    X: Any,
    y: Any,
    rounds: Sequence[int] | None = None,
    *,
    quantiles: Sequence[float] = (0.05, 0.25, 0.5, 0.75, 0.95),
    sample_weight: Any = None,
) -> MarginCurves:
    """Mean, minimum and quantiles of the margins, round by round.

    Parameters
    ----------
    estimator : as of `margins`
    X, y : rows and their labels
    rounds : numbers of rounds; None: forty from 1 to the last, evenly in the logarithm
    quantiles : shares in (0, 1)
    sample_weight : weights of the rows; a row of weight 0 does not count
    """
    check_boosted_classifier(estimator)
    for share in quantiles:
        if not 0.0 < share < 1.0:
            raise ValueError(f"quantiles must be in (0, 1); got {share!r}.")
    last = estimator.n_estimators_
    if rounds is None:
        rounds = np.unique(np.geomspace(1, max(1, last), 40).round().astype(int)).tolist()[:last]
    found = np.asarray(to_numpy(margins(estimator, X, y, rounds)))
    w = weights_of(sample_weight, found.shape[1])
    found, w = found[:, w > 0.0], w[w > 0.0]
    order = np.argsort(found, axis=1, kind="stable")
    ranked, shares = np.take_along_axis(found, order, axis=1), np.cumsum(w[order], axis=1)
    at = {
        share: np.minimum((shares < share - 1e-12).sum(axis=1), found.shape[1] - 1)
        for share in quantiles
    }
    rows = np.arange(len(found))
    return MarginCurves(
        np.array(rounds, dtype=np.int64),
        found @ w,
        found.min(axis=1),
        {share: ranked[rows, position] for share, position in at.items()},
        (found <= 0.0) @ w,
    )


def weights_of(sample_weight: Any, n: int) -> np.ndarray:
    """Shares of the rows on the host."""
    given = to_numpy(sample_weight) if is_array(sample_weight) else sample_weight
    weights = check_weights(given, n, NUMPY, "sample_weight")
    return np.full(n, 1.0 / n) if weights is None else weights / weights.sum()
