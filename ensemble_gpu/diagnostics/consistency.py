"""Consistency of boosting in an L1 ball: how far the risk may be from the mean loss of m rows.

With probability 1 - delta, for all f of lambda co(H) at once and a convex loss phi >= 0,

    R(f) - R_m(f) <= 2 lambda L Rad_m(H) + B sqrt(ln(1 / delta) / (2 m)),

L = max |phi'| and B = max phi on [-lambda, lambda]: for a falling phi |phi'(-lambda)| and
phi(-lambda). The first term is symmetrisation and contraction (sums of lambda co(H) are no richer
than lambda H), the second McDiarmid's inequality. Where lambda grows with m so slowly that both
vanish (`consistent_radius`), the minimiser over the ball is consistent (Lugosi & Vayatis 2004).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier

from ensemble_gpu.arrays.namespace import is_array, locate, to_numpy
from ensemble_gpu.data.parameters import check_integer, check_real
from ensemble_gpu.diagnostics.complexity import vc_complexity
from ensemble_gpu.diagnostics.replicates import bins_of_all
from ensemble_gpu.losses import LogitBoost, Loss, consistent_radius
from ensemble_gpu.losses.risks import phi_of

# Cells of signs that are added up at a time.
CELLS = 2**21


@dataclass(frozen=True)
class DeviationBound:
    """R(f) - R_m(f) <= bound for all f in the ball; its terms add up to it.

    Attributes
    ----------
    loss : name
    m : rows
    radius : lambda
    slope, range : L and B
    complexity : Rad_m(H), or a bound on it
    delta : the bound fails with this probability at the most
    complexity_term : 2 lambda L Rad_m(H)
    confidence_term : B sqrt(ln(1 / delta) / (2 m))
    at_zero : phi(0), the risk of f = 0: a bound from there on says nothing (`vacuous`)
    """

    loss: str
    m: int
    radius: float
    slope: float
    range: float
    complexity: float
    delta: float
    at_zero: float

    @property
    def complexity_term(self) -> float:
        return 2.0 * self.radius * self.slope * self.complexity

    @property
    def confidence_term(self) -> float:
        return self.range * math.sqrt(math.log(1.0 / self.delta) / (2.0 * self.m))

    @property
    def bound(self) -> float:
        return self.complexity_term + self.confidence_term

    @property
    def vacuous(self) -> bool:
        return self.bound >= self.at_zero

    def __str__(self) -> str:
        said = "says nothing: f = 0 has the risk" if self.vacuous else "below the risk of f = 0,"
        return "\n".join([
            f"{self.loss} loss, {self.m} rows, radius {self.radius:.4g}, delta {self.delta:g}",
            f"complexity  2 lambda L Rad_m = 2 x {self.radius:.4g} x {self.slope:.4g} x "
            f"{self.complexity:.4g} = {self.complexity_term:.4g}",
            f"confidence  B sqrt(ln(1 / delta) / (2 m)) = {self.confidence_term:.4g}, B = "
            f"{self.range:.4g}",
            f"R - R_m <= {self.bound:.4g} ({said} {self.at_zero:.4g})",
        ])  # fmt: skip


def deviation_bound(
    loss: str | Loss,
    m: int,
    *,
    radius: float | None = None,
    vc_dimension: int | None = None,
    complexity: float | None = None,
    delta: float = 0.05,
) -> DeviationBound:
    """A bound on R(f) - R_m(f) for all f in an L1 ball, term by term.

    Parameters
    ----------
    loss : name or convex loss of the margin; a CustomLoss for classification
    m : int >= 3, rows
    radius : lambda > 0; None: `consistent_radius`
    vc_dimension : d of the learners, whose Rad_m is at most sqrt(2 d ln(e m / d) / m)
    complexity : Rad_m itself, or a bound on it (`rademacher_complexity`), in place of vc_dimension
    delta : in (0, 1)

    Returns
    -------
    DeviationBound
    """
    check_integer("m", m, 3)
    check_real("delta", delta, 0.0, 1.0)
    if (vc_dimension is None) == (complexity is None):
        raise ValueError(
            "Give one of vc_dimension and complexity; got "
            f"vc_dimension={vc_dimension!r}, complexity={complexity!r}."
        )
    if complexity is not None:
        check_real("complexity", complexity, 0.0)
    phi = phi_of(loss)
    if not phi.loss.convex or isinstance(phi.loss, LogitBoost):
        raise ValueError(
            "loss must be convex, with its true gradient; got "
            f"{phi.loss.name!r} (a CustomLoss says convex=True; for 'logitboost' take 'logistic')."
        )
    if radius is None:
        radius = consistent_radius(phi.loss, m)
    check_real("radius", radius, 0.0)
    ends = np.array([-float(radius), float(radius)])
    return DeviationBound(
        loss=phi.loss.name,
        m=int(m),
        radius=float(radius),
        slope=float(np.abs(phi.slope(ends)).max()),
        range=float(phi(ends).max()),
        complexity=_rademacher(vc_dimension, complexity, m),
        delta=float(delta),
        at_zero=float(phi(np.zeros(1))[0]),
    )


def _rademacher(vc_dimension: int | None, complexity: float | None, m: int) -> float:
    if complexity is not None:
        return float(complexity)
    assert vc_dimension is not None
    return vc_complexity(vc_dimension, m)


@dataclass(frozen=True)
class RademacherComplexity:
    """max_h |mean_i s_i h(x_i)| for random signs s, and its mean.

    Attributes
    ----------
    samples : a value a vector of signs
    m : rows
    """

    samples: np.ndarray
    m: int

    @property
    def value(self) -> float:
        """The empirical Rademacher complexity of the rows, up to the number of signs drawn."""
        return float(self.samples.mean())

    @property
    def standard_error(self) -> float:
        return float(self.samples.std(ddof=1)) / math.sqrt(len(self.samples))

    def upper(self, delta: float = 0.05) -> float:
        """A bound on Rad_m(H), the mean over rows too, that holds with probability 1 - delta.

        value + sqrt(2 ln(2 / delta) / m) (1 + 1 / sqrt S) of S vectors of signs: another row or
        sign changes a maximum by 2 / m at the most (McDiarmid).
        """
        check_real("delta", delta, 0.0, 1.0)
        width = math.sqrt(2.0 * math.log(2.0 / delta) / self.m)
        return self.value + width * (1.0 + 1.0 / math.sqrt(len(self.samples)))


def rademacher_complexity(
    X: Any, estimator: Any = None, *, n_signs: int = 100, random_state: int = 0
) -> RademacherComplexity:
    """How well weak learners fit random labels: mean over signs s of max_h |mean_i s_i h(x_i)|.

    That is 1 - 2 e, with e the least error of a learner or its negation on the labels s. Stumps are
    searched exactly, all thresholds and all vectors of signs in one pass over each feature. Other
    learners are fitted to each vector; those that do not find the least error give a value that is
    too small.

    Parameters
    ----------
    X : rows [m, p]; NaN abstains
    estimator : None, for stumps; an AdaBoostClassifier, for its weak learner; or a classifier
    n_signs : int >= 2
    random_state : int >= 0

    Returns
    -------
    RademacherComplexity
    """
    check_integer("n_signs", n_signs, 2)
    check_integer("random_state", random_state, 0)
    m = int(X.shape[0]) if hasattr(X, "shape") else len(X)
    if m < 2:
        raise ValueError(f"X must have two rows at least; got {m}.")
    rng = np.random.default_rng(random_state)
    signs = (2 * rng.integers(2, size=(n_signs, m)) - 1).astype(np.int32).T
    if estimator is None:
        return RademacherComplexity(_of_stumps(X, signs), m)
    if not is_classifier(estimator):
        raise TypeError(f"estimator must be a classifier or None; got {estimator!r}.")
    return RademacherComplexity(_of_learner(estimator, X, signs), m)


def _of_stumps(X: Any, signs: np.ndarray) -> np.ndarray:
    """The largest |sum_i s_i h(x_i)| / m of all stumps, where X lives; integers until the end.

    sum_i s_i h(x_i) = 2 sum_{x_i <= t} s_i - sum_i s_i over the rows whose feature is present.
    """
    if not is_array(X):
        X = np.asarray(X, dtype=np.float64)
    if X.ndim != 2:
        raise ValueError(f"X must be of shape [rows, features]; got {tuple(X.shape)}.")
    where = locate(X)
    xp, X = where.xp, where.as_float64(X)
    m, n_signs = signs.shape
    at_once, best = max(1, CELLS // m), []
    for at in range(0, n_signs, at_once):
        part = where.put(np.ascontiguousarray(signs[:, at : at + at_once]))
        largest = xp.abs(xp.sum(part, axis=0, dtype=xp.int32))  # of the constant
        for f in range(X.shape[1]):
            present = xp.nonzero(~xp.isnan(X[:, f]))[0]
            if present.shape[0]:
                largest = xp.maximum(largest, _largest_edges(X[:, f], part, present, xp))
        best.append(np.asarray(where.host(largest)))
    return np.concatenate(best) / m


def _largest_edges(x: Any, signs: Any, present: Any, xp: Any) -> Any:
    """Of the stumps of one feature, for every vector of signs."""
    present = xp.take(present, xp.argsort(xp.take(x, present)))
    ranked = xp.take(x, present)
    last = xp.concat([ranked[1:] != ranked[:-1], xp.ones_like(ranked[:1], dtype=xp.bool)])
    below = xp.cumulative_sum(xp.take(signs, present, axis=0), axis=0, dtype=xp.int32)
    at_edges = xp.take(below, xp.nonzero(last)[0], axis=0)
    return xp.max(xp.abs(2 * at_edges - below[-1:, :]), axis=0)


def _of_learner(estimator: Any, X: Any, signs: np.ndarray) -> np.ndarray:
    weak = hasattr(estimator, "variant")
    if weak:
        estimator = clone(estimator).set_params(
            n_estimators=1, variant="discrete", learning_rate=1.0, calibrate=False
        )
    bins = None
    found = []
    for s in signs.T:
        if abs(int(s.sum())) == len(s):  # a single label
            found.append(1.0)
            continue
        y = locate(X).hand_over(s.copy()) if is_array(X) else s
        if bins is None:
            bins = bins_of_all(estimator, X, y)
        model = clone(estimator)
        if bins is None:
            model.fit(X, y)
        else:
            with model._sharing(bins):
                model.fit(X, y)
        found.append(max(_edge(model, X, s, weak), abs(float(s.mean()))))
    return np.array(found)


def _edge(model: Any, X: Any, s: np.ndarray, weak: bool) -> float:
    """|W+ - W-| of the one round of AdaBoost, 0 where it has none; or |mean s_i h(x_i)|."""
    if not weak:
        return abs(float(np.mean(np.asarray(to_numpy(model.predict(X))) * s)))
    weights = model.history_.weights
    return abs(float(weights[0, 1] - weights[0, 2])) if len(weights) else 0.0
