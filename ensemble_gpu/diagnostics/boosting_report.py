"""What a fit of AdaBoost did, round by round, and what theory concludes from it."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from ensemble_gpu.arrays.namespace import to_numpy
from ensemble_gpu.data.parameters import check_integer, check_real
from ensemble_gpu.diagnostics.complexity import stump_dimension, vc_complexity
from ensemble_gpu.diagnostics.margin_bounds import THETAS, margin_terms
from ensemble_gpu.diagnostics.margin_values import WITH_MARGINS, margins
from ensemble_gpu.diagnostics.training import columns_of, labels_of, training_error_bound
from ensemble_gpu.diagnostics.weights import first_weights, next_weights
from ensemble_gpu.model.committee import CodedVoice
from ensemble_gpu.model.link import VOTES

DELTA = 0.05


@dataclass(frozen=True)
class RoundTable:
    """A value a round; W0, W+ and W- are the shares of the weight before it.

    Attributes
    ----------
    error : e_t = W- + c W0: the weighted error, where to abstain is to guess, wrong with chance
        c = 1/2 (SAMME: 1 - 1/K)
    edge : gamma_t = c - e_t; for two classes (W+ - W-) / 2
    alpha : coefficient of the round, `alphas_`
    Z : factor of the round on the mean loss
    abstaining : W0
    bound : on the training error, `training_error_bound`
    edge_bound : exp(-2 sum gamma_t^2), which is above the bound: of two classes, "discrete" and
        learning_rate=1; NaN else
    training_error : the (weighted) share of training rows classified wrong after the round
    effective_rows : 1 / sum D_i^2, D the weights after the round
    heaviest : the row of the largest of them
    largest_weight : that weight, a share
    """

    error: np.ndarray
    edge: np.ndarray
    alpha: np.ndarray
    Z: np.ndarray
    abstaining: np.ndarray
    bound: np.ndarray
    edge_bound: np.ndarray
    training_error: np.ndarray
    effective_rows: np.ndarray
    heaviest: np.ndarray
    largest_weight: np.ndarray

    @property
    def columns(self) -> dict[str, np.ndarray]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def to_frame(self) -> Any:
        """A pandas frame, a row a round, counted from 1."""
        import pandas as pd

        index = pd.RangeIndex(1, len(self.error) + 1, name="round")
        return pd.DataFrame(self.columns, index=index)


@dataclass(frozen=True)
class Suspect:
    """A row whose weight has grown most: an outlier, or a wrong label.

    `times` is its weight after the last round in units of the one that it began with.
    """

    row: int
    label: Any
    times: float
    margin: float


@dataclass(frozen=True)
class Condition:
    """One of the three conditions of a good classifier: whether it is met (None: unknown), why."""

    name: str
    met: bool | None
    reason: str


@dataclass(frozen=True)
class BoostingReport:
    """Result of `report`; printed it is a text.

    Attributes
    ----------
    rounds : RoundTable, `rounds.to_frame()` a pandas frame
    n_rows : int
    gamma : the least edge of all rounds: the weak-learning condition is gamma > 0
    rounds_to_zero : rounds of edge gamma that guarantee a training error of 0, the first
        T > ln(1 / least D_1) / (2 gamma^2), D_1 = 1/m without weights; None where `edge_bound` is
        NaN, or gamma <= 0
    suspects : rows with the largest weights after the last round
    effective_learners : (sum alpha)^2 / sum alpha^2
    vc_dimension : d of the learner, None where it is not known
    vc_term : sqrt(T d ln m / m): how far training and test error may be apart by counting rounds
    margin_term : the best sum of share(margin <= theta) and (4 / theta) Rad_m, which does not
        count them (`generalisation_bound` has the small terms as well)
    conditions : the lecture's: enough rows, a low training error, simplicity
    """

    rounds: RoundTable
    n_rows: int
    gamma: float
    rounds_to_zero: int | None
    suspects: tuple[Suspect, ...]
    effective_learners: float
    vc_dimension: int | None
    vc_term: float | None
    margin_term: float | None
    conditions: tuple[Condition, ...]

    def to_frame(self) -> Any:
        """`rounds` as a pandas frame."""
        return self.rounds.to_frame()

    def __str__(self) -> str:
        return "\n".join([*_table(self.rounds), "", *_summary(self)])


def report(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    sample_weight: Any = None,
    vc_dimension: int | None = None,
    low_error: float = 0.05,
    n_suspects: int = 10,
) -> BoostingReport:
    """What a fit did round by round, and the quantities of its theory.

    Parameters
    ----------
    estimator : a fitted AdaBoostClassifier, variant "real", "discrete" or "gentle"
    X, y : the rows that it was trained on
    sample_weight : the weights that it was trained with
    vc_dimension : d of the learner; None: `stump_dimension` for stumps, unknown else
    low_error : the training error that counts as low
    n_suspects : how many rows with the largest weights to name

    Returns
    -------
    BoostingReport
    """
    bound = training_error_bound(estimator)
    if isinstance(getattr(estimator.model_, "voice", None), CodedVoice):
        raise ValueError(
            "There is no report for multiclass='single', 'codes' or 'ovr' with an estimator; got "
            f"multiclass={estimator.multiclass!r}."
        )
    if vc_dimension is not None:
        check_integer("vc_dimension", vc_dimension, 1)
    check_real("low_error", low_error, 0.0, 1.0)
    check_integer("n_suspects", n_suspects, 0)
    if not estimator.n_estimators_:
        raise ValueError("A report needs a round at least; the model has none.")
    own = labels_of(estimator, y)
    first = first_weights(estimator, own, sample_weight)
    table, last = _rounds(estimator, X, own, first, bound)
    if vc_dimension is None and getattr(estimator, "estimator", None) is None:
        vc_dimension = stump_dimension(int(estimator.n_features_in_))
    gamma = float(table.edge.min())
    least = float(first[first > 0.0].min())
    sure = gamma > 0.0 and bool(np.isfinite(table.edge_bound).all())
    needed = math.floor(-math.log(least) / (2.0 * gamma**2)) + 1 if sure else None
    found = None
    if isinstance(estimator.model_, WITH_MARGINS):
        found = np.asarray(to_numpy(margins(estimator, X, y)))
    terms = _terms(len(own), len(table.error), vc_dimension, found, len(estimator.classes_))
    return BoostingReport(
        rounds=table,
        n_rows=len(own),
        gamma=gamma,
        rounds_to_zero=needed,
        suspects=_suspects(estimator, own, last, first, found, n_suspects),
        effective_learners=float(table.alpha.sum() ** 2 / (table.alpha**2).sum()),
        vc_dimension=vc_dimension,
        vc_term=terms[0],
        margin_term=terms[1],
        conditions=_conditions(table, len(own), gamma, vc_dimension, terms, low_error),
    )


def _rounds(
    estimator: Any, X: Any, own: np.ndarray, first: np.ndarray, bound: np.ndarray
) -> tuple[RoundTable, np.ndarray]:
    """The table, and the weights after the last round."""
    abstaining, _, wrong, Z = estimator.history_.weights[: estimator.n_estimators_].T
    n_classes, link = len(estimator.classes_), estimator.link_
    chance = 1.0 - 1.0 / n_classes if link == VOTES else 0.5
    error = wrong + chance * abstaining
    edge = chance - error
    textbook = estimator.variant == "discrete" and n_classes == 2 and estimator.learning_rate == 1.0
    edge_bound = np.exp(-2.0 * np.cumsum(edge**2)) if textbook else np.full_like(edge, np.nan)
    errors, effective, heaviest, largest = [], [], [], []
    D = first
    for outputs in estimator.staged_decision_function(X):
        F = columns_of(outputs)
        errors.append(float(first[F.argmax(axis=1) != own].sum()))
        D = next_weights(F, own, link, first)
        effective.append(1.0 / float((D * D).sum()))
        heaviest.append(int(D.argmax()))
        largest.append(float(D.max()))
    table = RoundTable(
        error=error,
        edge=edge,
        alpha=np.asarray(estimator.alphas_, dtype=np.float64),
        Z=Z.copy(),
        abstaining=abstaining.copy(),
        bound=bound,
        edge_bound=edge_bound,
        training_error=np.array(errors),
        effective_rows=np.array(effective),
        heaviest=np.array(heaviest),
        largest_weight=np.array(largest),
    )
    return table, D


def _suspects(
    estimator: Any,
    own: np.ndarray,
    last: np.ndarray,
    first: np.ndarray,
    found: np.ndarray | None,
    n_suspects: int,
) -> tuple[Suspect, ...]:
    times = np.where(first > 0.0, last / np.where(first > 0.0, first, 1.0), 0.0)
    rows = np.argsort(-times, kind="stable")[:n_suspects]
    labels = estimator.classes_[own].tolist()
    return tuple(
        Suspect(i, labels[i], float(times[i]), math.nan if found is None else float(found[i]))
        for i in rows.tolist()
    )


def _terms(
    m: int, n_rounds: int, d: int | None, found: np.ndarray | None, n_classes: int
) -> tuple[float | None, float | None]:
    """Distance of training and test error by the number of rounds, and by margins."""
    if d is None:
        return None, None
    by_rounds = math.sqrt(n_rounds * d * math.log(m) / m)
    if found is None or n_classes > 2:
        return by_rounds, None
    terms = margin_terms(found, vc_complexity(d, m), THETAS, DELTA)
    return by_rounds, min(term.share + term.complexity_term for term in terms)


def _conditions(
    table: RoundTable,
    m: int,
    gamma: float,
    d: int | None,
    terms: tuple[float | None, float | None],
    low_error: float,
) -> tuple[Condition, ...]:
    error = float(table.training_error[-1])
    low = Condition(
        "low training error",
        gamma > 0.0 and error <= low_error,
        f"every edge is at least {gamma:.4g}, the last training error is {error:.2%} (low: at most "
        f"{low_error:.2%})",
    )
    if d is None:
        unknown = "vc_dimension of the learner is not given"
        return Condition("enough rows", None, unknown), low, Condition("simple", None, unknown)
    rademacher = vc_complexity(d, m)
    enough = Condition(
        "enough rows",
        rademacher < 0.5,
        f"a learner of VC dimension {d} fits random labels of {m} rows with a mean edge "
        f"of {rademacher / 2:.3g} at most (enough: below 1/4)",
    )
    by_rounds, by_margins = terms
    least = min(term for term in terms if term is not None)
    said = f"sqrt(T d ln m / m) = {by_rounds:.3g}"
    said += "" if by_margins is None else f", by margins {by_margins:.3g}"
    return enough, low, Condition("simple", least < 1.0, f"{said} (simple: one of them below 1)")


def _table(rounds: RoundTable) -> list[str]:
    """The first rounds, the last, and some between."""
    n = len(rounds.error)
    shown = sorted({*range(min(3, n)), *np.geomspace(1, n, 8).round().astype(int) - 1, n - 1})
    head = (
        "round", "error", "edge", "alpha", "Z", "W0", "bound", "exp(-2sum)", "train", "eff. rows",
    )  # fmt: skip
    columns = (
        rounds.error, rounds.edge, rounds.alpha, rounds.Z, rounds.abstaining, rounds.bound,
        rounds.edge_bound, rounds.training_error, rounds.effective_rows,
    )  # fmt: skip
    lines = ["".join(f"{name:>11}" for name in head)]
    lines += [f"{t + 1:>11}" + "".join(f"{column[t]:>11.4g}" for column in columns) for t in shown]
    return lines


def _summary(found: BoostingReport) -> list[str]:
    rounds, n = found.rounds, len(found.rounds.error)
    needed = found.rounds_to_zero
    lines = [
        f"{n} rounds on {found.n_rows} rows; the least edge (gamma) is {found.gamma:.4g}",
        f"effective learners {found.effective_learners:.1f} of {n}, effective rows "
        f"{rounds.effective_rows[-1]:.1f} of {found.n_rows}",
    ]
    if needed is not None:
        lines.append(f"{needed} rounds of that edge guarantee a training error of zero")
    if found.suspects:
        lines.append("rows with the largest weights (noise suspects), times their first weight:")
        lines.append(
            "  "
            + ", ".join(f"{one.row} ({one.label!r}) x{one.times:.3g}" for one in found.suspects)
        )
    for condition in found.conditions:
        met = {True: "met", False: "not met", None: "unknown"}[condition.met]
        lines.append(f"{met:<9}{condition.name}: {condition.reason}")
    return lines
