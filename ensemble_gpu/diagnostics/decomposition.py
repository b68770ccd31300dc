"""Bias, variance and noise of an estimator, from fits to replicates of its training set.

G_r(x) is what replicate r predicts at x, R the number of replicates that judge x.

Squared loss, F the true mean of y and sigma^2 its variance:

    mean_r (G_r - F)^2 + sigma^2 = (Gbar - F)^2 + mean_r (G_r - Gbar)^2 + sigma^2
              error              =     bias^2   +      variance         +  noise

exactly. Means over infinitely many replicates are estimated without bias by the variance with
R - 1 in place of R, s^2, and by bias^2 - s^2 / R.

0-1 loss of two classes, eta = P(y = larger label | x), main the majority of the G_r,
V = P(main != G), B = 1[main != Bayes], N = min(eta, 1 - eta) (Domingos 2000):

    error = B + (1 - 2 B) V + (2 P(G = Bayes) - 1) N.

Where F or eta is not known, y takes its place: the bias includes the noise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from ensemble_gpu.data.parameters import check_choice, check_flag, check_integer, check_real
from ensemble_gpu.diagnostics.replicates import Answers, Varied, all_answers
from ensemble_gpu.diagnostics.sources import Drawn, Points, Sampled, Source

METHODS = ("bootstrap", "splits")
SQUARED, ZERO_ONE = "squared", "zero_one"


@dataclass(frozen=True)
class Decomposition:
    """Parts of the error, means over the points; arrays [values of the parameter].

    Attributes
    ----------
    parameter, values : what was varied, None and (None,) where nothing was
    loss : "squared" or "zero_one"
    error : the measured error; its parts add up to it exactly
    bias : of the squared loss bias^2; with the noise, where `noise` is NaN
    variance : of the 0-1 loss (1 - 2 B) V: where the main vote is wrong variance lowers the error
    noise : sigma^2, or (2 P(G = Bayes) - 1) N; NaN where the truth is not known
    unbiased_bias, unbiased_variance : of the squared loss, corrected for the number of replicates;
        NaN of the 0-1 loss
    standard_error : of the error, over replicates
    n_replicates : int
    member_variance, correlation, n_members : of the members of an ensemble, s^2 and rho with
        variance = rho s^2 + (1 - rho) s^2 / M; None where they were not asked for
    """

    parameter: str | None
    values: tuple[Any, ...]
    loss: str
    error: np.ndarray
    bias: np.ndarray
    variance: np.ndarray
    noise: np.ndarray
    unbiased_bias: np.ndarray
    unbiased_variance: np.ndarray
    standard_error: np.ndarray
    n_replicates: int
    member_variance: np.ndarray | None = None
    correlation: np.ndarray | None = None
    n_members: np.ndarray | None = None

    @property
    def _columns(self) -> dict[str, np.ndarray]:
        columns = {
            name: getattr(self, name)
            for name in ("error", "bias", "variance", "noise", "standard_error")
        }
        if self.loss == SQUARED:
            columns |= {"unbiased bias": self.unbiased_bias,
                        "unbiased variance": self.unbiased_variance}  # fmt: skip
        if self.correlation is not None and self.member_variance is not None:
            columns |= {"member variance": self.member_variance, "correlation": self.correlation}
        return columns

    def to_frame(self) -> Any:
        """A pandas frame, a row a value of the parameter."""
        import pandas as pd

        index = pd.Index(list(self.values), name=self.parameter)
        return pd.DataFrame(self._columns, index=index if self.parameter else None)

    def __str__(self) -> str:
        columns, name = self._columns, self.parameter or ""
        lines = [f"{name:>16}" + "".join(f"{title:>18}" for title in columns)]
        for i, value in enumerate(self.values):
            cells = "".join(f"{column[i]:>18.5g}" for column in columns.values())
            lines.append(f"{'' if value is None else value!s:>16}{cells}")
        return "\n".join(lines)


def bias_variance(
    estimator: Any,
    X: Any,
    y: Any = None,
    *,
    X_test: Any = None,
    y_test: Any = None,
    truth: Any = None,
    sigma: Any = None,
    vary: tuple[str, Sequence[Any]] | None = None,
    n_replicates: int = 50,
    method: str = "bootstrap",
    test_size: float = 0.3,
    members: bool = False,
    random_state: int = 0,
) -> Decomposition:
    """Bias, variance and noise of an estimator, from fits to replicates of the training set.

    Parameters
    ----------
    estimator : regressor (squared loss) or classifier of two classes (0-1 loss), which is not
        changed. Where it has a `random_state`, every replicate has one of its own
    X : rows of one data set; or a function make_data(generator) -> (X, y) that draws a training set
        with a numpy.random.Generator
    y : targets of one data set; None with a function
    X_test, y_test : rows where the fits to drawn training sets are judged
    truth : with X_test, in place of y_test: the mean of y there, for classes the probability of the
        larger label, or a function of X_test
    sigma : with truth, of regression: standard deviation of y, a number or one a row; None: 0
    vary : (parameter, values): a decomposition for each, such as ("max_depth", [1, 2, 4, 8])
    n_replicates : int >= 2
    method : {"bootstrap", "splits"}
        Of one data set: samples drawn with replacement, judged by the rows that are in none of
        their places; or random parts, judged by the rest
    test_size : share of the rows that a split leaves out
    members : whether the correlation of the members of an ensemble is measured; of regressors
    random_state : int >= 0

    Returns
    -------
    Decomposition
    """
    check_integer("n_replicates", n_replicates, 2)
    check_integer("random_state", random_state, 0)
    check_choice("method", method, METHODS)
    check_real("test_size", test_size, 0.0, 1.0)
    check_flag("members", members)
    classes = bool(is_classifier(estimator))
    if members and classes:
        raise ValueError("members=True is for regressors; got a classifier.")
    if members and not callable(X):
        raise ValueError(
            "members=True needs replicates that are judged by the same rows: give a function that "
            "draws training sets, and X_test."
        )
    if classes and hasattr(estimator, "_for_order"):
        estimator = estimator._for_order()
    seeds = np.random.SeedSequence(random_state).generate_state(n_replicates) % 2**31
    varied = _varied(vary)
    if callable(X):
        source: Source = Drawn(X, seeds, X_test, y_test, truth, sigma, classes)
    else:
        if any(given is not None for given in (X_test, y_test, truth, sigma)):
            raise ValueError(
                "X_test, y_test, truth and sigma are for training sets that a function draws; X is "
                "a data set, whose own rows judge."
            )
        source = Sampled(estimator, X, y, seeds, method, test_size, classes)
    found = all_answers(
        estimator, varied, source.training, source.points, n_replicates, seeds, members
    )
    return _decomposed(found, source, varied, classes)


def _varied(vary: Any) -> Varied:
    if vary is None:
        return Varied(None, (None,))
    pair = isinstance(vary, tuple | list) and len(vary) == 2 and isinstance(vary[0], str)
    values = tuple(vary[1]) if pair and not isinstance(vary[1], str) else ()
    if not values:
        raise ValueError(
            f"vary must be a pair (parameter, values) with a value at least; got {vary!r}."
        )
    return Varied(vary[0], values)


def _decomposed(
    found: list[Answers], source: Source, varied: Varied, classes: bool
) -> Decomposition:
    G, points = source.scored(found)
    parts = [(_zero_one if classes else _squared)(G[:, v], points) for v in range(G.shape[1])]
    members = None
    if found[0].members is not None:
        members = [_correlated(found, v) for v in range(G.shape[1])]
    columns = {name: np.array([part[name] for part in parts]) for name in parts[0]}
    more: dict[str, Any] = {}
    if members is not None:
        for i, name in enumerate(("member_variance", "correlation", "n_members")):
            more[name] = np.array([one[i] for one in members])
    return Decomposition(
        parameter=varied.name,
        values=varied.values,
        loss=ZERO_ONE if classes else SQUARED,
        n_replicates=len(found),
        **columns,
        **more,
    )


def _means(values: np.ndarray, judged: np.ndarray) -> np.ndarray:
    """Mean of every point over the replicates that judge it."""
    return np.where(judged, values, 0.0).sum(axis=0) / judged.sum(axis=0)


def _over_replicates(losses: np.ndarray, judged: np.ndarray) -> float:
    """Standard error of the mean of the replicates' errors."""
    each = np.where(judged, losses, 0.0).sum(axis=1) / np.maximum(judged.sum(axis=1), 1)
    return float(each.std(ddof=1)) / math.sqrt(len(each))


def _squared(G: np.ndarray, points: Points) -> dict[str, float]:
    truth, judged = points.truth, points.judged
    known = np.isfinite(points.noise).all()
    noise = float(points.noise.mean()) if known else math.nan
    R = judged.sum(axis=0)
    center = _means(G, judged)
    bias, variance = (center - truth) ** 2, _means((G - center) ** 2, judged)
    corrected = variance * R / (R - 1)
    losses = (G - truth) ** 2
    return {
        "error": float(_means(losses, judged).mean()) + (noise if known else 0.0),
        "bias": float(bias.mean()),
        "variance": float(variance.mean()),
        "noise": noise,
        "unbiased_bias": float((bias - corrected / R).mean()),
        "unbiased_variance": float(corrected.mean()),
        "standard_error": _over_replicates(losses, judged),
    }


def _zero_one(G: np.ndarray, points: Points) -> dict[str, float]:
    bayes, judged = points.truth, points.judged
    known = np.isfinite(points.noise).all()
    N = points.noise if known else np.zeros_like(bayes)
    main = (_means(G, judged) > 0.5).astype(np.float64)
    B, V = (main != bayes).astype(np.float64), _means((main != G).astype(np.float64), judged)
    right = _means((bayes == G).astype(np.float64), judged)
    losses = np.where(bayes == G, N, 1.0 - N)
    return {
        "error": float(_means(losses, judged).mean()),
        "bias": float(B.mean()),
        "variance": float(((1.0 - 2.0 * B) * V).mean()),
        "noise": float(((2.0 * right - 1.0) * N).mean()) if known else math.nan,
        "unbiased_bias": math.nan,
        "unbiased_variance": math.nan,
        "standard_error": _over_replicates(losses, judged),
    }


def _correlated(found: list[Answers], v: int) -> tuple[float, float, int]:
    """s^2, rho and M of the members: variances and covariances over replicates, mean of points."""
    g = np.array([one.members[v] for one in found if one.members is not None])  # [R, M, points]
    M = g.shape[1]
    own = float(g.var(axis=0).mean())
    whole = float(g.mean(axis=1).var(axis=0).mean())
    common = (M * whole - own) / (M - 1)
    return own, common / own if own > 0.0 else math.nan, M
