"""Boosting in the L1 ball: estimators."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ensemble_gpu.arrays.namespace import locate
from ensemble_gpu.boosting.classifier import AdditiveClassifier
from ensemble_gpu.boosting.problem import Problem
from ensemble_gpu.data.rows import OrderedRows
from ensemble_gpu.estimators.regressor import ArrayRegressor
from ensemble_gpu.l1.fitting import L1Boosting
from ensemble_gpu.learners.pool import Pool
from ensemble_gpu.learners.rectangles import Rectangles
from ensemble_gpu.losses import Loss, classification_loss, regression_loss
from ensemble_gpu.losses.targets import class_target

PARAMETERS = """
    radius : float > 0, "cv", "consistent" or None, default=None
        The L1 norm of the coefficients at most. "cv": the one of `radii` with the least loss of
        rows held out. "consistent": by a schedule under which the method is consistent
        (`consistent_radius`{units}). None: "cv", unless alpha is given.
    alpha : float > 0 or None, default=None
        The penalised form instead: R + alpha sum |coefficients|. R is the weighted mean of the
        loss; for the squared loss, which has no 1/2, alpha is twice that of `regularization_path`.
    estimator : learner of `ensemble_gpu.learners` or None
        The functions: `Pool`, `Rectangles`, or `HalfSpaces`, `Balls`, `Boxes` with redraw="once".
        Members of a pool count with either sign. None: stumps, or trees.
    max_depth, max_leaf_nodes : int or None, default=1 and None
        The size of trees with +1 or -1 in every leaf; max_depth=1: stumps. Trees are grown split by
        split, and not searched for: of them the gap is what was found, and no certificate.
    n_estimators : int, default=500
        Rounds at most. A round asks once for the functions with the largest derivatives, and may
        take in the best of several features.
    tol : float > 0, default=1e-3
        Stop where gap <= tol R (R at least 1e-6 of that of f_0); penalised where besides the
        conditions of the minimum hold to 1e-6 of the largest derivative at f_0.
    step : {{"corrective", "frank_wolfe"}}, default="corrective"
        "corrective": a round finds all coefficients anew, and the gap closes. "frank_wolfe": f goes
        towards radius h by an exact line search, f <- (1 - g) f + g radius h with g in [0, 1]; the
        textbook's, far slower, and not for alpha.
    init : {{"constant", "zero"}}, default="constant"
        f_0, which is not counted: the best constant, or 0.
    radii : int or list of floats, default=10
        Of radius="cv": how many, from {first:g} to {last:g}{unit}, or which. They are tried in
        ascending order, up to the first that is worse than the one before.
    n_folds : int, default=5
        Of radius="cv".
    max_bins : int or None, default=255
        Thresholds come from at most this many bins a feature; None: as many as it has values.
    missing : {{"abstain", "learn", "error"}}, default="abstain"
        NaN in the stump's feature: "abstain" adds 0; "learn" has stumps with either answer; "error"
        refuses NaN. Trees always learn.{class_weight}
    device : {{None, "cpu", "cuda", "auto"}}, default=None
        Where to train; None follows the input.
    n_jobs : int or None, default=None
        Threads of the CPU engine; None and -1 mean all.
    random_state : int, RandomState instance or None, default=0
        Draws folds and generators.

    Attributes
    ----------
    n_features_in_, feature_names_in_ : as in scikit-learn{classes}
    radius_ : float, the radius; penalised: that of the sum
    l1_norm_ : float, sum of |coefficients|, at most the radius
    penalty_ : float, max over h of |dR/da_h|: the alpha of the same f
    gap_ : ndarray, the gap before the first round and after each: R* is from R - gap to R
        (penalised: of R + alpha sum |coefficients|)
    loss_ : ndarray, R before the first round and after each
    certified_ : bool, whether the gap is a bound (not with trees)
    converged_ : bool, whether the gap was closed
    stop_reason_ : str
    n_iter_ : int, rounds
    n_estimators_ : int, functions in the model
    coefficients_ : ndarray, those of the functions, in the order in which they came
    cv_ : RadiusScores, `radii`, `losses`, `errors` (only of radius="cv")
    feature_importances_ : ndarray, shares of the fall of R, where functions have features
    background_ : Background, weights of the training rows between the thresholds of the stumps, for
        `explain` (where model_ is an AdditiveModel)
    model_ : AdditiveModel (stumps), Forest (trees), VoteModel or DerivedModel. `model_.first(n)`
        and staged predictions are the first n functions with the coefficients that they end with
    link_ : str, how outputs become predictions (model/link.py)
    engine_ : str, the engine that ran
    """


class L1BoostingClassifier(AdditiveClassifier, L1Boosting):
    __doc__ = """Boosting in an L1 ball: the best sum of stumps, or others, with bounded coefficients.

        min R(f_0 + sum_h a_h h)    with sum |a_h| <= radius,    R = mean of w_i l(y_i, f(x_i))

    h = +-1 are all stumps with both signs (or trees, members of a pool, ...). Rounds in the manner of
    Frank and Wolfe find the minimum, and the gap of each certifies how far it is: R - gap <= R*. The
    radius takes the place of a number of rounds and a learning rate; the same f minimises
    R + alpha sum |a_h| with alpha = `penalty_`.

    Three or more classes: every function counts for one class, h e_k, and one ball holds them all.
    The logistic loss is the multinomial one then; the others take each class against the rest, and
    R is the sum over the classes.

    The stump that is taken and the model are the same to the last bit on every array library and
    engine (R and the gap to about 1e-15).

    Parameters
    ----------
    loss : str or Loss, default="logistic"
        "logistic", "exponential", "squared", "truncated_squared"; "hinge" has a kink, and is
        refused.""" + PARAMETERS.format(  # noqa: E501
        units="",
        unit="",
        first=0.25,
        last=128.0,
        classes=", classes_",
        class_weight="""
    class_weight : dict, "balanced" or None
        Weights of the labels; "balanced": n / (K n_k).""",
    )

    def __init__(
        self,
        loss: str | Loss = "logistic",
        *,
        radius: float | str | None = None,
        alpha: float | None = None,
        estimator: Any = None,
        max_depth: int | None = 1,
        max_leaf_nodes: int | None = None,
        n_estimators: int = 500,
        tol: float = 1e-3,
        step: str = "corrective",
        init: str = "constant",
        radii: Any = 10,
        n_folds: int = 5,
        max_bins: int | None = 255,
        missing: str = "abstain",
        class_weight: Any = None,
        device: str | None = None,
        n_jobs: int | None = None,
        random_state: Any = 0,
    ) -> None:
        self.loss = loss
        self.radius = radius
        self.alpha = alpha
        self.estimator = estimator
        self.max_depth = max_depth
        self.max_leaf_nodes = max_leaf_nodes
        self.n_estimators = n_estimators
        self.tol = tol
        self.step = step
        self.init = init
        self.radii = radii
        self.n_folds = n_folds
        self.max_bins = max_bins
        self.missing = missing
        self.class_weight = class_weight
        self.device = device
        self.n_jobs = n_jobs
        self.random_state = random_state

    _losses = ("logistic", "exponential", "squared", "truncated_squared")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if isinstance(self.estimator, Pool | Rectangles):
            tags.classifier_tags.multi_class = False
        return tags

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._check_class_weight()

    def _resolved_loss(self, n_classes: int) -> Loss:
        return classification_loss(self.loss, n_classes)

    def _target(self, rows: OrderedRows, loss: Loss) -> Any:
        return class_target(loss, rows.target, len(self.classes_), rows.engine.where)


class L1BoostingRegressor(ArrayRegressor, L1Boosting):
    __doc__ = """Boosting in an L1 ball for a real target.

        min R(f_0 + sum_h a_h h)    with sum |a_h| <= radius,    R = mean of w_i l(y_i, f(x_i))

    As L1BoostingClassifier; f_0 is the mean of y (or the best constant of the loss).

    Parameters
    ----------
    loss : str or Loss, default="squared"
        "squared", "huber"; "absolute" and "quantile" have kinks, and are refused.""" + (
        PARAMETERS.format(
            units=" times the standard deviation of y",
            unit=" standard deviations of y",
            first=0.25,
            last=128.0,
            classes="",
            class_weight="",
        )
    )

    def __init__(
        self,
        loss: str | Loss = "squared",
        *,
        radius: float | str | None = None,
        alpha: float | None = None,
        estimator: Any = None,
        max_depth: int | None = 1,
        max_leaf_nodes: int | None = None,
        n_estimators: int = 500,
        tol: float = 1e-3,
        step: str = "corrective",
        init: str = "constant",
        radii: Any = 10,
        n_folds: int = 5,
        max_bins: int | None = 255,
        missing: str = "abstain",
        device: str | None = None,
        n_jobs: int | None = None,
        random_state: Any = 0,
    ) -> None:
        self.loss = loss
        self.radius = radius
        self.alpha = alpha
        self.estimator = estimator
        self.max_depth = max_depth
        self.max_leaf_nodes = max_leaf_nodes
        self.n_estimators = n_estimators
        self.tol = tol
        self.step = step
        self.init = init
        self.radii = radii
        self.n_folds = n_folds
        self.max_bins = max_bins
        self.missing = missing
        self.device = device
        self.n_jobs = n_jobs
        self.random_state = random_state

    _losses = ("squared", "huber")

    def _resolved_loss(self, n_classes: int) -> Loss:
        return regression_loss(self.loss)

    def _target(self, rows: OrderedRows, loss: Loss) -> Any:
        return rows.target

    def _unit(self, y: np.ndarray, weights: np.ndarray | None) -> float:
        """The standard deviation of y, two digits of it; 1 where y is constant."""
        mean = np.average(y, weights=weights)
        spread = math.sqrt(float(np.average((y - mean) ** 2, weights=weights)))
        return float(f"{spread:.2g}") or 1.0

    def _scale_of(self, problem: Problem) -> float:
        xp = locate(problem.y).xp
        return float(xp.max(xp.abs(problem.y))) or 1.0

    def predict(self, X: Any) -> Any:
        """The predicted value of every row [n], in the namespace and on the device of X."""
        F, home, _ = self._outputs(X)
        return home.hand_over(F[:, 0])

    def staged_predict(self, X: Any, rounds: Sequence[int] | None = None) -> Iterator[Any]:
        """Predict with the first 1, 2, ... functions, or with the chosen numbers (ascending)."""
        for F, home, _ in self._staged(X, rounds):
            yield home.hand_over(F[:, 0])
