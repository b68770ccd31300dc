"""Bagging: the same learner on many bags of rows and features, and the mean or vote of them all.

L. Breiman, Bagging predictors, 1996; T. K. Ho, The random subspace method, 1998 (max_features).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.metrics import r2_score
from sklearn.utils.metaestimators import available_if

from ensemble_gpu.arrays.means import magnitude
from ensemble_gpu.arrays.namespace import NUMPY, Where, locate
from ensemble_gpu.bagging.fitting import Bagging
from ensemble_gpu.data.parameters import check_choice
from ensemble_gpu.estimators.classifier import ArrayClassifier
from ensemble_gpu.estimators.regressor import ArrayRegressor
from ensemble_gpu.learners.foreign import tags_of


def _has_margins(bagging: Any) -> bool:
    return hasattr(bagging._learner(), "decision_function")


class BaggingClassifier(ArrayClassifier, Bagging):
    """Classifiers on bags of the rows, joined by the mean of their probabilities or by vote.

    Parameters
    ----------
    estimator : a classifier of this package or of scikit-learn; None: our decision tree
        One that takes sample_weight gets the counts of its bag as weights; others get the rows
        themselves, repeated. Ours work where X is, others on the host only. Its
        `categorical_features`, `monotonic_cst` and `interaction_cst` refer to the features of X.
    n_estimators : int, default=10
    max_samples : rows drawn for each learner, default=1.0
        A float is a share of the rows (of the sum of weights, where weights are integers).
    max_features : features drawn for each learner, default=1.0
        A float is a share of the features.
    bootstrap : draw rows with replacement, default=True
    bootstrap_features : draw features with replacement, default=False
    voting : "soft" (mean of probabilities) or "hard" (share of votes), default="soft"
        Learners without predict_proba vote in either case.
    oob_score : False, True, or a callable(y_true, y_pred) -> float, default=False
        Score on every row by the learners that have not seen it: accuracy, weighted by
        sample_weight; or the callable's, given NumPy arrays of the rows that have weight.
    warm_start : keep the learners of the last fit and add to them, default=False
        Features, their names and categories, and classes must be those of the last fit.
    class_weight : dict, "balanced" or None, default=None
        Weights of the labels, by which those of their rows are multiplied: whole products are
        repetitions of rows, as whole weights are. "balanced": n / (K n_k). oob_score_ counts rows
        by sample_weight alone.
    device : {None, "cpu", "cuda", "auto"}, default=None
        Where the learners work; None follows the input, "cpu" copies it to the host.
    n_jobs : learners at a time, in threads; None: one, or as joblib's context says
        The result does not depend on it.
    random_state : seed; one seed gives the same bags on every array library, whatever the order
        of the rows

    Attributes
    ----------
    classes_, n_classes_ : labels in order, and how many; one is enough, and none needs weight
    estimator_ : the learner that was cloned
    estimators_ : fitted learners, on labels 0, 1, ...; a bag with one class has a constant one
    estimators_features_ : features of each, indices
    estimators_samples_ : rows of each bag, indices
    bags_ : how the rows of each were drawn
    oob_score_, oob_decision_function_ : if oob_score was asked for; the latter [n, K] holds NaN
        for rows that are in every bag
    n_features_in_, feature_names_in_ : as in scikit-learn

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from ensemble_gpu import AdaBoostClassifier
    >>> from ensemble_gpu.bagging.bagging import BaggingClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> learner = AdaBoostClassifier(n_estimators=20)
    >>> model = BaggingClassifier(learner, 30, oob_score=True, random_state=0).fit(X, y)
    >>> bool(model.oob_score_ > 0.9)
    True
    """

    _kind = "classifier"

    def __init__(
        self,
        estimator: Any = None,
        n_estimators: int = 10,
        *,
        max_samples: float | int = 1.0,
        max_features: float | int = 1.0,
        bootstrap: bool = True,
        bootstrap_features: bool = False,
        voting: str = "soft",
        oob_score: Any = False,
        warm_start: bool = False,
        class_weight: Any = None,
        device: str | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ):
        super().__init__(
            estimator,
            n_estimators,
            max_samples=max_samples,
            max_features=max_features,
            bootstrap=bootstrap,
            bootstrap_features=bootstrap_features,
            oob_score=oob_score,
            warm_start=warm_start,
            device=device,
            n_jobs=n_jobs,
            random_state=random_state,
        )
        self.voting = voting
        self.class_weight = class_weight

    def _tree(self) -> Any:
        from ensemble_gpu.trees.tree import DecisionTreeClassifier

        return DecisionTreeClassifier()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        learner = tags_of(self._learner())
        if learner is not None and learner.classifier_tags is not None:
            tags.classifier_tags.multi_class = learner.classifier_tags.multi_class
        return tags

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("voting", self.voting, ("soft", "hard"))
        self._check_class_weight()

    def _read_target(self, y: Any, n_rows: int, w: Any, where: Where) -> tuple[Any, Any]:
        """Index of every row's label, and weights; classes_ are all labels, as in trees."""
        self.classes_, index, weights = self._read_labels(y, n_rows, w, where, 1)
        self.n_classes_ = len(self.classes_)
        return index, weights

    def _labels(self, target: Any, where: Where) -> np.ndarray:
        return where.host(target)

    def _answer(self, learner: Any, X: Any) -> Any:
        """Probabilities or a vote [n, K]."""
        where = locate(X)
        xp = where.xp
        if self.voting == "soft" and hasattr(learner, "predict_proba"):
            P = where.as_float64(learner.predict_proba(X))
            return self._spread(P, learner, where)
        votes = xp.astype(learner.predict(X), xp.int64)
        every = xp.arange(self.n_classes_, dtype=xp.int64, device=where.device)
        return xp.astype(votes[:, None] == every[None, :], xp.float64)

    def _spread(self, P: Any, learner: Any, where: Where) -> Any:
        """A learner's columns in the order of all classes; zero for those not in its bag."""
        classes = np.asarray(learner.classes_)
        if len(classes) == self.n_classes_:
            return P
        sources = np.full(self.n_classes_, len(classes))
        sources[classes] = np.arange(len(classes))
        P = where.xp.concat([P, where.zeros((P.shape[0], 1), P.dtype)], axis=1)
        return where.xp.take(P, where.put(sources), axis=1)

    def predict_proba(self, X: Any) -> Any:
        """Mean of the learners' probabilities, or shares of their votes: [n, K]."""
        P, home, _ = self._mean_answer(X)
        return home.hand_over(P)

    def predict_log_proba(self, X: Any) -> Any:
        """Logarithm of predict_proba: minus infinity where no learner gives any probability."""
        P, home, where = self._mean_answer(X)
        xp = where.xp
        some = P > 0.0
        logarithm = xp.log(xp.where(some, P, xp.ones_like(P)))
        return home.hand_over(xp.where(some, logarithm, where.full(-np.inf, P.dtype)))

    def predict(self, X: Any) -> Any:
        """The label of the largest mean probability, or of most votes; of equals the first."""
        P, home, where = self._mean_answer(X)
        return home.hand_over(self._take_labels(where.xp.argmax(P, axis=1), where))

    @available_if(_has_margins)
    def decision_function(self, X: Any) -> Any:
        """The ensemble's margin, as predict sees it: mean answer for a class, minus the other's.

        P(classes_[1]) - P(classes_[0]) in [-1, 1] for two classes [n], predict_proba [n, K]
        otherwise. Means of the learners' own margins could contradict `predict`.
        """
        P, home, _ = self._mean_answer(X)
        return home.hand_over(P[:, 1] - P[:, 0] if self.n_classes_ == 2 else P)

    def _score_out_of_bag(
        self, answers: np.ndarray, seen: np.ndarray, target: np.ndarray, weights: Any
    ) -> None:
        self.oob_decision_function_ = answers
        weights = np.ones(len(seen)) if weights is None else weights
        rows = seen & (weights > 0.0)
        found, truth = np.argmax(answers[rows], axis=1), target[rows]
        if callable(self.oob_score):
            self.oob_score_ = self.oob_score(self.classes_[truth], self.classes_[found])
        else:
            own = weights[rows] / self._class_factor[truth]
            self.oob_score_ = float(np.average(found == truth, weights=own))


class BaggingRegressor(ArrayRegressor, Bagging):
    """Regressors on bags of the rows; the prediction is their mean.

    Parameters
    ----------
    estimator : a regressor of this package or of scikit-learn; None: our decision tree
        One that takes sample_weight gets the counts of its bag as weights; others get the rows
        themselves, repeated. Ours work where X is, others on the host only.
    n_estimators, max_samples, max_features, bootstrap, bootstrap_features, warm_start, device,
    n_jobs, random_state : as in BaggingClassifier
    oob_score : False, True, or a callable(y_true, y_pred) -> float, default=False
        Score on every row by the learners that have not seen it: R^2, weighted by sample_weight;
        or the callable's, given NumPy arrays of the rows that have weight.

    Attributes
    ----------
    oob_score_, oob_prediction_ : if oob_score was asked for; the latter [n] holds NaN for rows
        that are in every bag
    estimator_, estimators_, estimators_features_, estimators_samples_, bags_, n_features_in_,
    feature_names_in_ : as in BaggingClassifier

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from ensemble_gpu import BoostingRegressor
    >>> from ensemble_gpu.bagging.bagging import BaggingRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = BaggingRegressor(BoostingRegressor(), 30, oob_score=True, random_state=0)
    >>> model = model.fit(X, y)
    >>> bool(model.oob_score_ > 0.35)
    True
    """

    _kind = "regressor"

    def _tree(self) -> Any:
        from ensemble_gpu.trees.tree import DecisionTreeRegressor

        return DecisionTreeRegressor()

    def _labels(self, target: Any, where: Where) -> None:
        return None

    def _answer(self, learner: Any, X: Any) -> Any:
        where = locate(X)
        return where.xp.reshape(where.as_float64(learner.predict(X)), (-1,))

    def predict(self, X: Any) -> Any:
        """The mean of the learners' predictions, in the namespace and on the device of X."""
        mean, home, _ = self._mean_answer(X)
        return home.hand_over(mean)

    def _score_out_of_bag(
        self, answers: np.ndarray, seen: np.ndarray, target: np.ndarray, weights: Any
    ) -> None:
        self.oob_prediction_ = answers
        weights = np.ones(len(seen)) if weights is None else weights
        rows = seen & (weights > 0.0)
        if callable(self.oob_score):
            self.oob_score_ = self.oob_score(target[rows], answers[rows])
        else:
            unit = magnitude(target[rows], NUMPY)
            truth, found = target[rows] / unit, answers[rows] / unit
            self.oob_score_ = float(r2_score(truth, found, sample_weight=weights[rows]))
