"""The threshold s of the rule f > s: by a rule, the costs of errors, a limit of false alarms."""

from __future__ import annotations

import math
import numbers
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted

from ensemble_gpu.arrays.devices import to_workplace
from ensemble_gpu.arrays.namespace import is_array, locate
from ensemble_gpu.data.sampling import check_seed
from ensemble_gpu.metrics.areas import groups
from ensemble_gpu.metrics.reading import read_ranked
from ensemble_gpu.saving.saved import Saved
from ensemble_gpu.selection.cross_validation import cross_validate
from ensemble_gpu.selection.splits import take_rows

RULES = ("youden", "f1")


def _check_rule(rule: Any, cost_fp: Any, cost_fn: Any, max_fpr: Any) -> None:
    """Exactly one of: a named rule, both costs, a limit."""
    costs = cost_fp is not None or cost_fn is not None
    given = [rule is not None, costs, max_fpr is not None]
    if sum(given) != 1:
        raise ValueError(
            f"give one of rule ({' or '.join(map(repr, RULES))}), cost_fp with cost_fn, or "
            f"max_fpr; got rule={rule!r}, cost_fp={cost_fp!r}, cost_fn={cost_fn!r}, "
            f"max_fpr={max_fpr!r}."
        )
    if rule is not None and rule not in RULES:
        raise ValueError(f"rule must be one of {RULES!r}; got {rule!r}.")
    for name, cost in (("cost_fp", cost_fp), ("cost_fn", cost_fn)):
        if costs and not (isinstance(cost, numbers.Real) and 0.0 < float(cost) < math.inf):
            raise ValueError(f"{name} must be finite and > 0; got {cost!r}.")
    if max_fpr is not None and not 0.0 <= max_fpr <= 1.0:
        raise ValueError(f"max_fpr must be between 0 and 1; got {max_fpr!r}.")


def choose_threshold(
    y: Any,
    scores: Any,
    rule: str | None = None,
    *,
    cost_fp: float | None = None,
    cost_fn: float | None = None,
    max_fpr: float | None = None,
    sample_weight: Any = None,
    pos_label: Any = None,
) -> float:
    """The threshold s with which "positive where f > s" is best on these rows.

    "youden": largest TPR - FPR; "f1": largest 2 TP / (2 TP + FP + FN); costs: least
    cost_fp FP + cost_fn FN; max_fpr: largest TPR with FPR <= max_fpr. Of equally good thresholds
    the highest. It is in the middle between two scores; infinity: no row is positive, -infinity:
    all.

    Parameters
    ----------
    y : labels [n]
    scores : [n] or [n, K], of any array library
    rule : {"youden", "f1"}, or None where costs or a limit are given
    cost_fp, cost_fn : costs > 0 of a false positive and of a false negative
    max_fpr : the largest FP / N allowed, 0 to 1
    sample_weight : weights [n], or None
    pos_label : the positive label; None: the second of two

    Returns
    -------
    float
    """
    _check_rule(rule, cost_fp, cost_fn, max_fpr)
    rows = read_ranked(y, scores, sample_weight, pos_label, "choose_threshold")
    if rows.stacked:
        raise ValueError("choose_threshold takes one vector of scores, not a stack of them.")
    xp, where = rows.where.xp, rows.where
    found = groups(rows.positive, rows.scores[0, :], rows.weights, where)
    none = where.zeros(1, xp.float64)
    tp, fp = (xp.concat([none, where.as_float64(w)]) for w in (found.plus, found.minus))
    if rule == "youden":
        gain = tp / tp[-1] - fp / fp[-1]
    elif rule == "f1":
        gain = 2.0 * tp / (tp + fp + tp[-1])
    elif max_fpr is not None:
        gain = xp.where(fp <= max_fpr * fp[-1], tp, -xp.ones_like(tp))
    else:
        assert cost_fp is not None
        assert cost_fn is not None
        gain = -(cost_fp * fp + cost_fn * (tp[-1] - tp))
    k = int(xp.argmax(gain))
    if k == 0:
        return math.inf
    if k == found.thresholds.shape[0]:
        return -math.inf
    above, below = float(found.thresholds[k - 1]), float(found.thresholds[k])
    middle = 0.5 * below + 0.5 * above
    return middle if middle < above else below


class ThresholdClassifier(Saved, ClassifierMixin, BaseEstimator):
    """A classifier of two classes with another threshold than its own.

    Predicts classes_[1] where its score is above the threshold. A rule chooses the threshold from
    predictions out of fold: those of rows that the model was trained on are too good.

    Parameters
    ----------
    estimator : classifier of two classes with predict_proba
    threshold : float or None
        The probability above which a row is classes_[1]; None: by one of the following
    rule : {"youden", "f1"} or None
    cost_fp, cost_fn : costs of errors, or None
    max_fpr : largest false positive rate, or None
        As of `choose_threshold`; where nothing is given, "youden"
    cv : as of `cross_validate`; what the predictions are made with that choose the threshold
    random_state : seed of the folds

    Attributes
    ----------
    estimator_ : the classifier, fitted to all rows
    threshold_ : float, of the probability of classes_[1]
    classes_ : ndarray, the two labels in order
    """

    takes_any_array = True

    def __init__(
        self,
        estimator: Any,
        threshold: float | None = None,
        *,
        rule: str | None = None,
        cost_fp: float | None = None,
        cost_fn: float | None = None,
        max_fpr: float | None = None,
        cv: Any = 5,
        random_state: Any = 0,
    ) -> None:
        self.estimator = estimator
        self.threshold = threshold
        self.rule = rule
        self.cost_fp = cost_fp
        self.cost_fn = cost_fn
        self.max_fpr = max_fpr
        self.cv = cv
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Choose the threshold, and fit the classifier to all rows.

        Parameters
        ----------
        X, y, sample_weight : as of the estimator

        Returns
        -------
        self
        """
        check_seed(self.random_state)
        given = {"cost_fp": self.cost_fp, "cost_fn": self.cost_fn, "max_fpr": self.max_fpr}
        rule = self.rule
        if self.threshold is not None:
            if rule is not None or any(value is not None for value in given.values()):
                raise ValueError(
                    f"threshold={self.threshold!r} needs no rule, cost or max_fpr; give one of "
                    "them."
                )
            if not (isinstance(self.threshold, numbers.Real) and self.threshold == self.threshold):
                raise ValueError(f"threshold must be a number or None; got {self.threshold!r}.")
        else:
            if rule is None and all(value is None for value in given.values()):
                rule = "youden"
            _check_rule(rule, **given)
        more = {} if sample_weight is None else {"sample_weight": sample_weight}
        model = clone(self.estimator).fit(X, y, **more)
        if len(model.classes_) != 2:
            raise ValueError(
                f"ThresholdClassifier is for two classes; y holds {len(model.classes_)}."
            )
        threshold = self.threshold
        if threshold is None:
            found = cross_validate(
                self.estimator, X, y, sample_weight=sample_weight, cv=self.cv,
                random_state=self.random_state,
            )  # fmt: skip
            y, p, sample_weight = _known(y, found.out_of_fold, sample_weight, found.folds)
            threshold = choose_threshold(y, p, rule, sample_weight=sample_weight, **given)
        self.estimator_, self.classes_, self.threshold_ = model, model.classes_, float(threshold)
        self.n_features_in_ = getattr(model, "n_features_in_", None)
        return self

    def predict(self, X: Any) -> Any:
        """classes_[1] where its probability is above the threshold, else classes_[0]."""
        check_is_fitted(self)
        p = self.estimator_.predict_proba(X)
        home, p = locate(p), to_workplace(p)
        where = locate(p)
        index = where.xp.astype(p[:, 1] > self.threshold_, where.xp.int64)
        if self.classes_.dtype.kind in "biuf":
            return home.hand_over(where.xp.take(where.put(self.classes_), index))
        return self.classes_[where.host(index)]

    def predict_proba(self, X: Any) -> Any:
        """Probabilities [n, 2] of the classifier."""
        check_is_fitted(self)
        return self.estimator_.predict_proba(X)


def _known(y: Any, p: Any, weights: Any, folds: list[tuple[np.ndarray, np.ndarray]]) -> tuple:
    """Rows that were held out by any of the folds."""
    rows = np.unique(np.concatenate([test for _, test in folds]))
    y = y if is_array(y) else np.asarray(y)
    return tuple(take_rows(array, rows) for array in (y, p, weights))
