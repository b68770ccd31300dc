"""What rankings are worth: relevance y [n], scores [n] and the query of every row.

`qid` are labels of queries, in any order of the rows; None: all rows are one query. Results are
means over queries, each weighing the same or by `sample_weight` (one a query, in the order of the
sorted labels, or one a row: a query weighs the mean of its rows). Conventions differ between
libraries, so each is a parameter:

gains   "exponential" 2^y - 1 (whole y from 0 to 1023; LightGBM, XGBoost), "linear" y (scikit-learn)
empty   what a query without relevant rows counts: 1 (LightGBM), 0 (scikit-learn), or None: nothing
ties    rows of equal scores: "average" of all their orders (scikit-learn), the "worst", the "best"
k       ranks up to k count; None: all
"""

from __future__ import annotations

import math
import numbers
from typing import Any

import numpy as np

from ensemble_gpu.arrays.devices import to_workplace
from ensemble_gpu.arrays.namespace import check_same_place
from ensemble_gpu.data.groups import Groups, read_groups, read_weights
from ensemble_gpu.data.parameters import check_choice, check_integer
from ensemble_gpu.data.validation import check_length
from ensemble_gpu.metrics import by_query as formulas
from ensemble_gpu.metrics.reading import read_numbers


def _read(
    y: Any, scores: Any, qid: Any, sample_weight: Any, k: int | None
) -> tuple[Any, Any, Any, Groups]:
    """y, scores and weights of rows, and groups; rows of weight 0 are absent."""
    check_integer("k", k, 1, others=(None,))
    scores, home, where = read_numbers(scores, "scores")
    check_same_place(home, "scores", y=y, qid=qid, sample_weight=sample_weight)
    y, _, at = read_numbers(y, "y")
    if at.xp is not where.xp:  # a list beside an array of a device
        y = where.put(y)
    for array, name in ((scores, "scores"), (y, "y")):
        if array.ndim != 1 or array.shape[0] == 0:
            raise ValueError(f"{name} must have shape (n,), n > 0; got shape {tuple(array.shape)}.")
    n = scores.shape[0]
    check_length("y", y.shape[0], "scores", n)
    if qid is None:
        index, n_groups = where.zeros(n, where.xp.int64), 1
    else:
        index, n_groups = read_groups(to_workplace(qid), n, where)
    weights, of_groups = read_weights(
        to_workplace(sample_weight), n, n_groups, where, "sample_weight"
    )
    if weights is not None and bool(where.xp.any(weights == 0.0)):
        rows = where.xp.nonzero(weights > 0.0)[0]
        y, scores, index, weights = (where.xp.take(a, rows) for a in (y, scores, index, weights))
    return y, scores, weights, Groups(index, of_groups)


def _of_empty(empty: float | None) -> float:
    if empty is None:
        return math.nan
    if isinstance(empty, bool) or not isinstance(empty, numbers.Real):
        raise TypeError(f"empty must be a number or None; got {empty!r}.")
    return float(empty)


def _mean(values: np.ndarray, weights: Any, groups: Groups) -> float:
    return formulas.mean(values, formulas.query_weights(groups.index, weights, groups))


def dcg(
    y: Any,
    scores: Any,
    *,
    qid: Any = None,
    k: int | None = None,
    gains: str = "exponential",
    ties: str = "average",
    sample_weight: Any = None,
) -> float:
    """Discounted cumulative gain: the mean over queries of sum over ranks gain / log2(1 + rank).

    Parameters
    ----------
    y : relevance [n], >= 0
    scores : [n], higher for rows that should come first
    qid : the query of every row, any labels; None: one query
    k, gains, ties, sample_weight : see above (ensemble_gpu/metrics/queries.py)
    """
    check_choice("gains", gains, formulas.GAINS)
    check_choice("ties", ties, formulas.TIES)
    y, scores, weights, groups = _read(y, scores, qid, sample_weight, k)
    values = formulas.dcg_of_queries(y, scores, groups.index, k, gains, ties)
    return _mean(values, weights, groups)


def ndcg(
    y: Any,
    scores: Any,
    *,
    qid: Any = None,
    k: int | None = None,
    gains: str = "exponential",
    ties: str = "average",
    empty: float | None = 1.0,
    sample_weight: Any = None,
) -> float:
    """Mean over queries of DCG divided by the highest DCG of any order, in [0, 1].

    With gains="linear" and empty=0.0 it is scikit-learn's ndcg_score of every query. Parameters are
    those of `dcg`; `empty` is what a query without relevant rows counts (None: it is left out).
    """
    check_choice("gains", gains, formulas.GAINS)
    check_choice("ties", ties, formulas.TIES)
    nothing = _of_empty(empty)
    y, scores, weights, groups = _read(y, scores, qid, sample_weight, k)
    values = formulas.ndcg_of_queries(y, scores, groups.index, k, gains, ties, nothing)
    return _mean(values, weights, groups)


def average_precision_by_query(
    y: Any,
    scores: Any,
    *,
    qid: Any = None,
    k: int | None = None,
    relevant: float = 1.0,
    empty: float | None = 1.0,
    sample_weight: Any = None,
) -> float:
    """Mean average precision (MAP): the mean over queries of that over their relevant rows.

    A row with y >= `relevant` is relevant; the precision at its rank is the share of relevant rows
    up to it. Rows of equal scores all have the rank of the last of them, as in scikit-learn's
    average_precision_score. With k the mean is over min(k, relevant rows), ranks beyond k count 0.
    """
    nothing = _of_empty(empty)
    y, scores, weights, groups = _read(y, scores, qid, sample_weight, k)
    values = formulas.average_precisions(y, scores, groups.index, k, relevant, nothing)
    return _mean(values, weights, groups)


def reciprocal_rank(
    y: Any,
    scores: Any,
    *,
    qid: Any = None,
    k: int | None = None,
    relevant: float = 1.0,
    empty: float | None = 1.0,
    sample_weight: Any = None,
) -> float:
    """Mean reciprocal rank (MRR): the mean over queries of 1 / rank of the first relevant row.

    Parameters are those of `average_precision_by_query`; rows of equal scores have the last rank.
    """
    nothing = _of_empty(empty)
    y, scores, weights, groups = _read(y, scores, qid, sample_weight, k)
    values = formulas.reciprocal_ranks(y, scores, groups.index, k, relevant, nothing)
    return _mean(values, weights, groups)


def pairwise_error(
    y: Any, scores: Any, *, qid: Any = None, average: str = "pairs", sample_weight: Any = None
) -> float:
    """Share of the pairs of rows of a query that scores put in the wrong order, equal scores half.

    A pair is two rows with different y. Of one query and two levels it is 1 - `roc_auc`.

    Parameters
    ----------
    y, scores, qid : as of `dcg`; y may be any numbers
    average : {"pairs", "queries"}
        Every pair weighs the same; or every query that has pairs does.
    sample_weight : of rows: a pair weighs the product of two; of queries: as its query
    """
    check_choice("average", average, ("pairs", "queries"))
    y, scores, weights, groups = _read(y, scores, qid, sample_weight, None)
    wrong, every = formulas.misordered(y, scores, groups.index, weights)
    if not every.any():
        raise ValueError(
            "pairwise_error needs two rows of a query with different y; there are none: y is the "
            "same in every query."
        )
    if average == "pairs":
        return formulas.pairwise_error(y, scores, weights, groups)
    share = np.where(every > 0.0, wrong / np.where(every > 0.0, every, 1.0), math.nan)
    return _mean(share, weights, groups)
