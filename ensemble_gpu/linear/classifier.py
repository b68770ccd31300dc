"""Linear classifiers of the losses that boosting minimises, with L1 and L2 penalties."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ensemble_gpu.arrays.namespace import Where
from ensemble_gpu.data.parameters import check_integer, check_not_negative, check_real
from ensemble_gpu.estimators.classifier import ArrayClassifier
from ensemble_gpu.estimators.dense import DenseEstimator
from ensemble_gpu.estimators.reading import read
from ensemble_gpu.linear.hinge import solve_rounded
from ensemble_gpu.linear.solvers import Objective, Solution, solve
from ensemble_gpu.losses import Hinge, Loss, classification_loss
from ensemble_gpu.losses.targets import class_target
from ensemble_gpu.model.linear import LinearModel
from ensemble_gpu.model.link import probabilities


class LinearPath(NamedTuple):
    """Fits of several penalties: `coef` [penalties, outputs, p], `intercept`."""

    coef: np.ndarray
    intercept: np.ndarray


class LinearClassifier(ArrayClassifier, DenseEstimator):
    """A linear function that minimises a penalised loss.

        min over b0, b of sum_i w_i l(y_i, b0 + b x_i) + l2 |b|^2 + l1 |b|_1

    Intercepts are not penalised: with an infinite penalty F is the best constant. Without an L1
    norm Newton's method is used, else FISTA (linear/solvers.py).

    Parameters
    ----------
    loss : str or Loss, default="logistic"
        As of BoostingClassifier: "logistic" (multinomial for K > 2 classes), "exponential",
        "squared", "truncated_squared", "hinge", which for K > 2 take each class against the rest.
        The kink of the hinge is rounded (linear/hinge.py): to 2^-20 of a margin, with an L1 norm to
        2^-10.
    l1, l2 : float >= 0, default=0.0 and 0.5
        The penalties. scikit-learn's LogisticRegression(C) has l2 = 1 / (2 C), l1 = 1 / C.
    max_iter : int, default=10_000
        Steps at most.
    tol : float > 0, default=1e-7
        The conditions of the minimum hold to this share of the gradient at b0 = b = 0.
    class_weight : dict, "balanced" or None
        Weights of the labels; "balanced": n / (K n_k).
    device : {None, "cpu", "cuda", "auto"}, default=None
        Where to fit; None follows the input.

    Attributes
    ----------
    n_features_in_, feature_names_in_, classes_ : as in scikit-learn
    coef_ : ndarray [outputs, p], one output for two classes, else one a class
    intercept_ : ndarray [outputs]
    n_iter_ : int, steps
    converged_ : bool, whether the conditions of the minimum hold to `tol`
    model_ : LinearModel
    link_ : str, how outputs become probabilities (model/link.py)
    """

    model_: LinearModel
    link_: str

    def __init__(
        self,
        loss: str | Loss = "logistic",
        *,
        l1: float = 0.0,
        l2: float = 0.5,
        max_iter: int = 10_000,
        tol: float = 1e-7,
        class_weight: Any = None,
        device: str | None = None,
    ) -> None:
        self.loss = loss
        self.l1 = l1
        self.l2 = l2
        self.max_iter = max_iter
        self.tol = tol
        self.class_weight = class_weight
        self.device = device

    def _check_parameters(self) -> None:
        super()._check_parameters()
        for name in ("l1", "l2"):
            check_not_negative(name, getattr(self, name))
        check_integer("max_iter", self.max_iter, 1)
        check_real("tol", self.tol, 0.0)
        self._check_class_weight()
        loss = classification_loss(self.loss, 2)
        if not (loss.has_hessian or isinstance(loss, Hinge)):
            raise ValueError(
                f"loss {loss.name!r} has no second derivative, and LinearClassifier minimises "
                "smooth losses and 'hinge'; give it one, or use BoostingClassifier."
            )

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LinearClassifier:
        """Fit to X [n, p] and labels y [n], with weights >= 0.

        Returns
        -------
        self
        """
        with self._fitting():
            self._check_parameters()
            self._forget()
            problem = self._problem(X, y, sample_weight)
            found = _solved(problem, _start(problem), self)
            b, constant = _on_host(found, problem.where)
            self.coef_, self.intercept_ = b, constant
            self.n_iter_, self.converged_ = found.n_steps, found.converged
            self.link_ = problem.loss.link_name
            self.model_ = LinearModel(b[None, :, :], constant[None, :], np.zeros(len(constant)))
        return self

    def path(
        self,
        X: Any,
        y: Any,
        *,
        l1: Sequence[float] | None = None,
        l2: Sequence[float] | None = None,
        sample_weight: Any = None,
    ) -> LinearPath:
        """Fits of the penalties, one after the other, each from where the last one ended.

        `l1` and `l2` are lists of one length, or None: the parameter of the estimator for all. The
        quickest way is from large penalties to small ones. The estimator stays as it is.
        """
        given = [len(one) for one in (l1, l2) if one is not None]
        if not given or len(set(given)) != 1 or not given[0]:
            raise ValueError(
                f"l1 and l2 must be lists of one length, at least one of them; got {l1!r}, {l2!r}."
            )
        firsts = [self.l1] * given[0] if l1 is None else l1
        seconds = [self.l2] * given[0] if l2 is None else l2
        found: list[tuple[np.ndarray, np.ndarray]] = []
        problem, B = None, None
        for first, second in zip(firsts, seconds, strict=True):
            one = LinearClassifier(**{**self.get_params(deep=False), "l1": first, "l2": second})
            one._check_parameters()
            if problem is None:
                problem = one._problem(X, y, sample_weight)
                B = _start(problem)
            at = Objective(**{**vars(problem), "l1": float(first), "l2": float(second)})
            solution = _solved(at, B, self)
            B = solution.B
            found.append(_on_host(solution, at.where))
        return LinearPath(*(np.array(part) for part in zip(*found, strict=True)))

    def _problem(self, X: Any, y: Any, sample_weight: Any) -> Objective:
        reading = read(self, X, y, sample_weight)
        rows, where = reading.rows, reading.where
        xp = where.xp
        if reading.keep is not None:
            rows = rows.take(xp.nonzero(reading.keep)[0])
        n_classes = len(self.classes_)
        loss = classification_loss(self.loss, n_classes)
        features = where.as_float64(rows.X)
        A = xp.concat([features, xp.ones_like(features[:, :1])], axis=1)
        return Objective(
            loss, A, class_target(loss, rows.target, n_classes, where), rows.weights,
            n_classes if n_classes > 2 else 1, float(self.l1), float(self.l2), where,
        )  # fmt: skip

    def decision_function(self, X: Any) -> Any:
        """F(x): [n] for two classes (positive: classes_[1]), [n, K] otherwise."""
        F, home, _ = self._outputs(X)
        return home.hand_over(F[:, 0] if F.shape[1] == 1 else F)

    def predict_proba(self, X: Any) -> Any:
        """Probabilities [n, K] (model/link.py has the formulas)."""
        F, home, where = self._outputs(X)
        return home.hand_over(probabilities(F, self.link_, where))

    def predict_log_proba(self, X: Any) -> Any:
        """Logarithm of predict_proba; a probability that underflows counts as the least float."""
        F, home, where = self._outputs(X)
        p = probabilities(F, self.link_, where)
        least = where.full(float(where.xp.finfo(p.dtype).smallest_normal), p.dtype)
        return home.hand_over(where.xp.log(where.xp.maximum(p, least)))

    def predict(self, X: Any) -> Any:
        """The most probable label of every row: argmax of predict_proba, always."""
        F, home, where = self._outputs(X)
        index = where.xp.argmax(probabilities(F, self.link_, where), axis=1)
        return home.hand_over(self._take_labels(index, where))


def _solved(problem: Objective, B: Any, asked: LinearClassifier) -> Solution:
    minimise = solve_rounded if isinstance(problem.loss, Hinge) else solve
    return minimise(problem, B, int(asked.max_iter), float(asked.tol))


def _start(problem: Objective) -> Any:
    """Zeros, and the best constants as intercepts."""
    where, host = problem.where, problem.where.host
    y = host(problem.y)
    weights = None if problem.weights is None else host(problem.weights)
    if y.ndim == 1:
        constant = problem.loss.best_constant(y, weights)
    else:
        constant = np.concatenate([problem.loss.best_constant(own, weights) for own in y])
    B = np.zeros((problem.A.shape[1], problem.n_outputs))
    B[-1] = constant
    return where.put(B)


def _on_host(found: Solution, where: Where) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients [outputs, p] and intercepts [outputs]."""
    B = where.host(found.B)
    return np.ascontiguousarray(B[:-1].T), B[-1].copy()
