"""L2Boost with linear smoothers: all numbers of rounds at once."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ensemble_gpu.data.parameters import (
    check_choice,
    check_flag,
    check_integer,
    check_not_negative,
    check_real,
)
from ensemble_gpu.data.rows import Rows
from ensemble_gpu.data.sampling import check_seed
from ensemble_gpu.data.validation import check_target
from ensemble_gpu.estimators.dense import DenseEstimator
from ensemble_gpu.estimators.reading import read
from ensemble_gpu.estimators.regressor import ArrayRegressor
from ensemble_gpu.learners.neighbours import Neighbours as NeighboursLearner
from ensemble_gpu.learners.ridge import Ridge as RidgeLearner
from ensemble_gpu.model.linear import LinearModel
from ensemble_gpu.smoothers.componentwise import Chosen, componentwise_boosted
from ensemble_gpu.smoothers.criteria import CRITERIA, curves, first_minimum
from ensemble_gpu.smoothers.dictionary import Stumps, dictionary_of
from ensemble_gpu.smoothers.kernel import KernelRidge
from ensemble_gpu.smoothers.linear import Ridge
from ensemble_gpu.smoothers.neighbours import Neighbours
from ensemble_gpu.smoothers.precomputed import Precomputed
from ensemble_gpu.smoothers.protocol import Iterated, SmootherRows
from ensemble_gpu.smoothers.spectrum import (
    INITS,
    BiasVariance,
    Boosted,
    Settings,
    bias_variance,
    iterated_boosted,
    spectral_boosted,
)

# Learners of ensemble_gpu.learners, and the smoothers that they are.
SMOOTHERS: dict[type, type] = {NeighboursLearner: Neighbours, RidgeLearner: Ridge}


def as_smoother(given: Any) -> Any:
    """A learner that is a smoother as one; anything else as it is."""
    own = SMOOTHERS.get(type(given))
    return given if own is None else own(**given.get_params())


class L2BoostRegressor(ArrayRegressor, DenseEstimator):
    """Boosting with the squared loss and a linear smoother S.

        F_k = F_k-1 + nu S (y - F_k-1) = F_0 + (I - (I - nu S)^k) (y - F_0)

    All k come from one eigendecomposition of S; a smoother that is not symmetric is iterated. k = 2
    with nu = 1 is Tukey's twicing. With componentwise=True a round fits one column, group of
    columns, spline or stump, the one that lowers the RSS most (matching pursuit for nu = 1), in the
    space of the Gram matrix: its cost does not depend on the rows.

    The number of rounds is that of the first minimum of a criterion of RSS_k and df_k, the trace of
    the operator y -> F_k. Whole weights are repetitions of rows.

    Parameters
    ----------
    smoother : a smoother of ensemble_gpu.smoothers or None, default=None
        `KernelRidge` (None: with its defaults), `Ridge`, `Spline`, `Linear`, `Neighbours`, or
        `Precomputed`, whose X is the matrix S itself; `Neighbours` and `Ridge` of
        ensemble_gpu.learners are the same. Componentwise: `Linear`, `Spline`, `Stumps`.
    learning_rate : float > 0, default=0.1
        nu; nu times the eigenvalues of S must be below 2.
    n_estimators : int, default=500
        The most rounds.
    criterion : {"aicc", "aic", "bic", "gmdl", "gcv", "cv", None}, default="aicc"
        Chooses the number of rounds (ensemble_gpu/smoothers/criteria.py has the formulas), and the
        penalty where the smoother has several. None: n_estimators rounds.
    componentwise : bool, default=False
    init : {"mean", "zero", "offset"}, default="mean"
        F_0. The mean of y counts in df as far as the smoother does not know constants: df_k =
        tr B_k + 1 - u' B_k u, u the unit vector of constants; one more for centred columns.
        "offset" is the mean, not counted (mboost's convention). "zero": F_0 = 0.
    n_folds : int, default=5
        Folds of criterion="cv".
    random_state : int, RandomState instance or None, default=None
        Draws the folds.
    device : {None, "cpu", "cuda", "auto"}, default=None
        Where to decompose; None follows the input.

    Attributes
    ----------
    n_features_in_, feature_names_in_ : as in scikit-learn
    n_estimators_ : int, the rounds of the model
    df_ : ndarray [n_estimators], degrees of freedom after 1, 2, ... rounds
    rss_ : ndarray [n_estimators], weighted sums of squared residuals
    criteria_ : dict of ndarray [n_estimators], every criterion after 1, 2, ... rounds
    penalty_ : float, the penalty (ridge, l2) of the model
    model_ : KernelModel, LinearModel, SplineModel, NeighbourModel or AdditiveModel
    coef_, intercept_ : of the model, where it is linear in X; coef_path_ [rounds, p] after each
    chosen_ : ndarray [rounds], the group of each round, with componentwise=True
    feature_importances_ : ndarray [p], shares of the fall of the RSS, with componentwise=True
    """

    def __init__(
        self,
        smoother: Any = None,
        *,
        learning_rate: float = 0.1,
        n_estimators: int = 500,
        criterion: str | None = "aicc",
        componentwise: bool = False,
        init: str = "mean",
        n_folds: int = 5,
        random_state: Any = None,
        device: str | None = None,
    ) -> None:
        self.smoother = smoother
        self.learning_rate = learning_rate
        self.n_estimators = n_estimators
        self.criterion = criterion
        self.componentwise = componentwise
        self.init = init
        self.n_folds = n_folds
        self.random_state = random_state
        self.device = device

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = isinstance(self.smoother, Precomputed)
        return tags

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_real("learning_rate", self.learning_rate, 0.0)
        check_integer("n_estimators", self.n_estimators, 1)
        check_choice("criterion", self.criterion, CRITERIA)
        check_choice("init", self.init, INITS)
        check_flag("componentwise", self.componentwise)
        check_integer("n_folds", self.n_folds, 2)
        check_seed(self.random_state)
        if self.smoother is None or isinstance(self.smoother, Stumps):
            return  # its method would say less
        if not hasattr(as_smoother(self.smoother), "prepared"):
            raise TypeError(
                "smoother must be one of ensemble_gpu.smoothers (KernelRidge, Ridge, Spline, "
                f"Linear, Neighbours, Precomputed, Stumps) or None; got {self.smoother!r}."
            )

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> L2BoostRegressor:
        """Fit to X [n, p] and y [n], with weights >= 0.

        Returns
        -------
        self
        """
        with self._fitting():
            self._check_parameters()
            self._forget()
            rows, y = self._rows(X, y, sample_weight)
            found = self._boosted(rows, y)
            self._choose(found, rows, y)
        return self

    def _contained(self) -> tuple[str, ...]:
        """All numbers of rounds come from one decomposition, where no criterion chooses them."""
        return ("n_estimators",) if self.criterion is None else ()

    def _fit_all(self, name: str, values: list[Any], X: Any, y: Any, **weights: Any) -> list[Any]:
        self._check_values(name, values)
        self._forget()
        self.n_estimators = max(values)
        rows, y = self._rows(X, y, weights.get("sample_weight"))
        found = self._boosted(rows, y)
        models = []
        for k in values:
            first = [replace(one, rss=one.rss[:k], df=one.df[:k]) for one in found]
            models.append(self._with(n_estimators=k))
            models[-1]._choose(first, rows, y)
        return models

    def _rows(self, X: Any, y: Any, sample_weight: Any) -> tuple[SmootherRows, Any]:
        """The rows that take part, and their targets."""
        reading = read(self, X, y, sample_weight)
        rows, where = reading.rows, reading.where
        if reading.keep is not None and not bool(where.xp.all(reading.keep)):
            rows = rows.take(where.xp.nonzero(reading.keep)[0])
        return _smoother_rows(rows, where), rows.target

    def _settings(self) -> Settings:
        return Settings(float(self.learning_rate), int(self.n_estimators), self.init)

    def _smoother(self) -> Any:
        return KernelRidge() if self.smoother is None else as_smoother(self.smoother)

    def _boosted(self, rows: SmootherRows, y: Any) -> Sequence[Boosted]:
        """All rounds of each penalty."""
        smoother, settings = self._smoother(), self._settings()
        if self.componentwise:
            if settings.rate >= 2.0:
                raise ValueError(
                    f"learning_rate must be below 2 with componentwise=True; got {settings.rate!r}."
                )
            return [componentwise_boosted(dictionary_of(smoother, rows), y, rows, settings)]
        if isinstance(smoother, Stumps):
            raise ValueError("Stumps() needs componentwise=True.")
        parts = smoother.prepared(rows)
        if isinstance(parts, Iterated):
            return iterated_boosted(parts, y, rows, settings)
        return spectral_boosted(parts, y, rows, settings)

    def _choose(self, found: Sequence[Boosted], rows: SmootherRows, y: Any) -> None:
        """The penalty and the number of rounds by the criterion."""
        n, xp = rows.total, rows.where.xp
        squares = float(xp.sum(y * y if rows.weights is None else rows.weights * y * y))
        of_each = [curves(one.rss, one.df, n, squares) for one in found]
        if self.criterion == "cv":
            errors = self._cross_validated(rows, y)
            for one, own, curve in zip(of_each, found, errors, strict=True):
                one["cv"] = curve[: len(own.rss)]
        name = self.criterion
        if name is None:
            if len(found) > 1:
                raise ValueError("criterion=None cannot choose one of several penalties.")
            best, k = 0, len(found[0].rss)
        elif not len(found[0].rss):
            best, k = 0, 0
        else:
            best = int(np.argmin([one[name].min() for one in of_each]))
            k = first_minimum(of_each[best][name], name, found[best].df, n)
        chosen = found[best]
        self._warn(chosen, k)
        self.n_estimators_, self.df_, self.rss_ = k, chosen.df, chosen.rss
        self.criteria_, self.penalty_ = of_each[best], chosen.penalty
        self.model_ = chosen.model(k)
        if isinstance(chosen, Chosen):
            self._keep_groups(chosen, rows, k)

    def _keep_groups(self, chosen: Chosen, rows: SmootherRows, k: int) -> None:
        self.chosen_ = chosen.groups[:k]
        shares = np.zeros(rows.X.shape[1])
        features = chosen.features
        for j, fall in zip(self.chosen_.tolist(), chosen.falls[:k].tolist(), strict=True):
            if features[j]:
                shares[features[j]] += fall / len(features[j])
        total = shares.sum()
        self.feature_importances_ = shares / total if total > 0.0 else shares

    def _warn(self, chosen: Boosted, k: int) -> None:
        if self.criterion is not None and k == int(self.n_estimators) and k > 1:
            warnings.warn(
                f"criterion={self.criterion!r} is least at n_estimators = {k}, the most rounds "
                "allowed: more may be better.",
                ConvergenceWarning,
                stacklevel=4,
            )
        lowest = int(np.argmin(chosen.rss)) if len(chosen.rss) else 0
        if len(chosen.rss) and chosen.rss[-1] > 2.0 * chosen.rss[lowest] + 1e-300:
            warnings.warn(
                f"the residuals grow after {lowest + 1} rounds: the smoother has eigenvalues "
                "below 0. Use fewer rounds or a symmetric smoother.",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _cross_validated(self, rows: SmootherRows, y: Any) -> list[np.ndarray]:
        """Weighted mean squared error of rows left out [rounds], for each penalty."""
        where, xp, n = rows.where, rows.where.xp, rows.X.shape[0]
        if isinstance(self.smoother, Precomputed):
            raise ValueError("criterion='cv' needs rows; Precomputed() has a matrix. Use 'gcv'.")
        if n < int(self.n_folds):
            raise ValueError(f"n_folds = {self.n_folds} folds need as many rows; n_samples = {n}.")
        fold = check_random_state(self.random_state).permutation(n) % int(self.n_folds)
        sums: list[np.ndarray] = []
        for number in range(int(self.n_folds)):
            inside, out = (where.put(np.flatnonzero(m)) for m in (fold != number, fold == number))
            part, rest = _taken(rows, inside), _taken(rows, out)
            target = xp.take(y, out)
            for i, one in enumerate(self._boosted(part, xp.take(y, inside))):
                errors = np.zeros(int(self.n_estimators))
                for k, F in enumerate(one.model(len(one.rss)).staged(rest.X)):
                    left = F[:, 0] - target
                    square = left * left if rest.weights is None else rest.weights * left * left
                    errors[k:] = float(xp.sum(square))  # a fit that ended early stays
                if number == 0:
                    sums.append(errors)
                else:
                    sums[i] += errors
        return [errors / rows.total for errors in sums]

    def predict(self, X: Any) -> Any:
        """The predicted value of every row [n], in the namespace and on the device of X."""
        F, home, _ = self._outputs(X)
        return home.hand_over(F[:, 0])

    def staged_predict(self, X: Any, rounds: Sequence[int] | None = None) -> Iterator[Any]:
        """Predict after 1, 2, ... rounds, or after the chosen `rounds` (ascending)."""
        X, home, where, dtype = self._inputs(X)
        for F in self.model_.staged(X, rounds):
            yield home.hand_over(where.xp.astype(F[:, 0], dtype))

    def bias_variance(
        self, X: Any, f: Any, sigma: float | None = None, sample_weight: Any = None
    ) -> BiasVariance:
        """Expected squared error of F_k at the rows of X for y = f + noise, in closed form.

        Parameters
        ----------
        X : rows [n, p], decomposed again
        f : the true mean of y at the rows [n]
        sigma : float >= 0
            Standard deviation of the noise (of a row of weight 1); None: sqrt(RSS / (n - df)) of
            the fit.
        sample_weight : weights of the rows

        Returns
        -------
        BiasVariance, arrays [n_estimators]
        """
        check_is_fitted(self)
        check_not_negative("sigma", sigma, others=(None,))
        if self.componentwise:
            raise ValueError(
                "bias_variance needs a linear operator; with componentwise=True the choice of the "
                "columns depends on y."
            )
        rows, f = self._copy()._rows(X, f, sample_weight)
        k = self.n_estimators_ - 1
        noise = sigma
        if noise is None:
            noise = np.sqrt(self.rss_[k] / max(rows.total - self.df_[k], 1.0))
        parts = self._smoother().prepared(rows)
        penalty = 0
        if not isinstance(parts, Iterated):
            penalty = int(np.argmin(np.abs(parts.penalties - self.penalty_)))
        f = check_target(f, rows.X.shape[0], rows.where, "f")
        return bias_variance(parts, penalty, f, float(noise), rows, self._settings())

    def _copy(self) -> L2BoostRegressor:
        return L2BoostRegressor(**self.get_params(deep=False))

    @property
    def coef_(self) -> np.ndarray:
        return self._linear().coefficients.sum(axis=0)[0]

    @property
    def intercept_(self) -> float:
        model = self._linear()
        return float(model.intercept[0] + model.constants.sum())

    @property
    def coef_path_(self) -> np.ndarray:
        return np.cumsum(self._linear().coefficients[:, 0, :], axis=0)

    def _linear(self) -> LinearModel:
        """The model, where it is linear in X."""
        model = getattr(self, "model_", None)
        if not isinstance(model, LinearModel) or isinstance(self.smoother, Precomputed):
            raise AttributeError("coef_ needs a fitted model that is linear: Linear() or Ridge().")
        return model


def _smoother_rows(rows: Rows, where: Any) -> SmootherRows:
    return SmootherRows(where.as_float64(rows.X), rows.weights, where)


def _taken(rows: SmootherRows, at: Any) -> SmootherRows:
    xp = rows.where.xp
    weights = None if rows.weights is None else xp.take(rows.weights, at)
    return SmootherRows(xp.take(rows.X, at, axis=0), weights, rows.where)
