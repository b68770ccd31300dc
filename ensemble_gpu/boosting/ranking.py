"""Rankings for the loop: from ordered rows to a loss over pairs, and to what the loop runs on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ensemble_gpu.arrays.means import weighted_mean
from ensemble_gpu.arrays.namespace import Where
from ensemble_gpu.boosting.plans import DescentParameters, descent_plan
from ensemble_gpu.boosting.strategy import Plan
from ensemble_gpu.data.groups import Groups
from ensemble_gpu.data.pairs import Pairs
from ensemble_gpu.data.queries import queries_of, term_bits
from ensemble_gpu.data.rows import OrderedRows, Rows, positions
from ensemble_gpu.kernels.host.scalar import log
from ensemble_gpu.kernels.queries import Queries
from ensemble_gpu.learners.directions import Directions
from ensemble_gpu.learners.protocol import GradientLearner
from ensemble_gpu.losses.by_query import QueryExponential, QueryLogistic
from ensemble_gpu.losses.lambdas import QueryLambda, Ranks
from ensemble_gpu.losses.pairwise import PairExponential, PairList, PairLogistic, PairLoss
from ensemble_gpu.metrics.by_query import EXPONENTIAL, gains_of

OF_QUERIES: dict[str, type[Any]] = {"exponential": QueryExponential, "logistic": QueryLogistic}
OF_PAIRS: dict[str, type[Any]] = {"exponential": PairExponential, "logistic": PairLogistic}


@dataclass(frozen=True)
class QueryRows:
    """Rows in order of query and relevance; `keys` order equal scores of the lambda loss."""

    target: Any
    groups: Groups
    weights: Any | None
    keys: np.ndarray | None


def query_loss(
    name: str, rows: QueryRows, where: Where, truncation: int
) -> QueryExponential | QueryLogistic:
    """The loss of a name for ordered rows."""
    keys = rows.keys if name == "lambda" else None
    queries = queries_of(rows.target, rows.groups, rows.weights, where, keys)
    if name == "lambda":
        return lambda_loss(queries, truncation)
    return OF_QUERIES[name](queries=queries)


def lambda_loss(queries: Queries, truncation: int) -> QueryLambda:
    """Of queries whose relevance is whole; every query weighs the same, or as it was given."""
    gains = gains_of(queries.levels, EXPONENTIAL)
    sizes = np.diff(queries.row_starts)
    ln2 = log(2.0)
    discounts = np.array([ln2 / log(2.0 + rank) for rank in range(int(sizes.max()))])
    best = np.zeros(queries.n_queries)
    segment_sizes = np.diff(queries.starts)
    running = np.concatenate([[0.0], np.cumsum(discounts[:truncation])])
    for q in range(queries.n_queries):  # from the highest level down
        rank, total = 0, 0.0
        for s in range(queries.first[q + 1] - 1, queries.first[q] - 1, -1):
            end = min(rank + int(segment_sizes[s]), len(running) - 1)
            total += gains[s] * (running[end] - running[min(rank, len(running) - 1)])
            rank += int(segment_sizes[s])
        best[q] = 1.0 / total if total > 0.0 else 0.0
    shares = queries.factor / queries.factor.max()
    factor = shares * (float(queries.n_rows) / float(shares.sum()))
    if queries.weights is not None:
        factor = factor / float(np.mean(queries.where.host(queries.weights)))
    own = Queries(
        queries.starts, queries.first, queries.levels, factor, queries.weights, queries.bits,
        queries.where, queries.ties,
    )  # fmt: skip
    return QueryLambda(queries=own, ranks=Ranks(gains, best, discounts, truncation))


def pair_loss(name: str, pairs: Pairs, n_rows: int, where: Where) -> PairLoss:
    """The loss of a name for given pairs."""
    total = int(pairs.weights.sum())
    given = PairList(
        where.put(pairs.upper), where.put(pairs.lower), where.put(pairs.weights), total, n_rows,
        term_bits(total), where,
    )  # fmt: skip
    return OF_PAIRS[name](pairs=given)


class QueryMeanLoss:
    """The mean loss of validation queries; their order is found once."""

    def __init__(self, name: str, where: Where, truncation: int) -> None:
        self.name, self.where, self.truncation = name, where, truncation

    def __call__(self, F: Any, target: Any, weights: Any) -> float:
        raise TypeError("a loss over pairs needs the queries of its rows: `watched`")

    def watched(
        self, target: Any, weights: Any | None, groups: Groups | None = None
    ) -> Callable[[Any], float]:
        """The loss as a function of the outputs F [rows, 1]."""
        where, xp = self.where, self.where.xp
        assert groups is not None
        order = positions(Rows(target, target, weights, None, groups), None)
        weights = None if weights is None else xp.take(weights, order)
        # equal scores share their discounts in the value of the lambda loss: any keys will do
        keys = where.host(order).astype(np.uint64)
        rows = QueryRows(xp.take(target, order), groups.taken(order), weights, keys)
        loss = query_loss(self.name, rows, where, self.truncation)

        def mean(F: Any) -> float:
            value = loss.value(rows.target, where.as_float64(xp.take(F[:, 0], order)))
            return weighted_mean(value, weights, where)

        return mean


def ranking_plan(
    rows: OrderedRows,
    where: Where,
    name: str,
    loss: PairLoss,
    descent: DescentParameters,
    learner: GradientLearner | Directions,
    truncation: int,
) -> Plan:
    """Descent on a loss over pairs, from F = 0 on."""
    mean_loss = QueryMeanLoss(name, where, truncation)
    return descent_plan(rows, loss, 1, 1.0, descent, learner, mean_loss)
