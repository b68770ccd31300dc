"""What a boosted ranker does: relevance by query in, scores in the namespace of X out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ensemble_gpu.arrays.namespace import Where, check_same_place, locate
from ensemble_gpu.boosting.fitting import BoostedEstimator
from ensemble_gpu.boosting.rows import set_aside
from ensemble_gpu.data.pairs import Pairs
from ensemble_gpu.data.queries import with_pairs
from ensemble_gpu.data.rows import Rows
from ensemble_gpu.data.sampling import Items, draw_seed
from ensemble_gpu.data.validation import check_target, check_weights
from ensemble_gpu.estimators.reading import Reading
from ensemble_gpu.metrics import RANKING, ndcg

# Ranks that `score` counts.
SCORED_RANKS = 10


class BoostedRanker(BoostedEstimator):
    """Scores of an estimator whose `model_` has one output; rows have a query and a relevance."""

    _task = RANKING
    _needs_queries = True
    _given_pairs: Pairs | None = None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.estimator_type = "ranker"
        tags.target_tags.required = True
        tags.target_tags.one_d_labels = True
        return tags

    def _mean(self, F: Any) -> Any:
        return F[:, 0]

    def predict(self, X: Any) -> Any:
        """The score of every row [n], in the namespace and on the device of X.

        Rows of a query are ranked by falling score; scores of two queries are not comparable.
        """
        F, home, _ = self._outputs(X)
        return home.hand_over(self._mean(F))

    def staged_predict(self, X: Any, rounds: Sequence[int] | None = None) -> Iterator[Any]:
        """Predict after 1, 2, ... rounds, or after the chosen `rounds` (ascending)."""
        for F, home, _ in self._staged(X, rounds):
            yield home.hand_over(self._mean(F))

    def score(self, X: Any, y: Any, qid: Any = None, sample_weight: Any = None) -> float:
        """Mean NDCG@10 of the queries (`ensemble_gpu.metrics.ndcg`: gains 2^y - 1).

        Queries without relevant rows count 1. `sample_weight` are weights of queries or of rows.
        """
        if qid is None:
            raise ValueError("qid must say which query each row belongs to; got None.")
        scores = self.predict(X)
        check_same_place(locate(scores), y=y, qid=qid, sample_weight=sample_weight)
        return ndcg(y, scores, qid=qid, k=SCORED_RANKS, sample_weight=sample_weight)

    def _read_target(self, y: Any, n_rows: int, w: Any, where: Where) -> tuple[Any, Any]:
        if self._given_pairs is not None:
            return where.zeros(n_rows, where.xp.float64), None
        target = check_target(y, n_rows, where, "y")
        return target, check_weights(w, n_rows, where, "sample_weight")

    def _read_validation_target(self, y: Any, n_rows: int, where: Where, name: str) -> Any:
        return check_target(y, n_rows, where, name)

    def _n_strata(self) -> int:
        return 1

    def _n_outputs(self) -> int:
        return 1

    def _metric_truth(self, target: Any, where: Where) -> Any:
        return target

    def _prediction(self, F: Any, target: Any, where: Where) -> Any:
        return self._mean(F)

    def _pairs_only(self, reading: Reading) -> Reading:
        """Rows of queries with two levels at least: the others add nothing, not even to bins."""
        rows, where = reading.rows, reading.where
        if rows.groups is None:
            return reading
        taking_part = np.ones(rows.target.shape[0], dtype=bool)
        if reading.keep is not None:
            taking_part = where.host(reading.keep)
        if rows.groups.weights is not None:
            taking_part = taking_part & (rows.groups.weights > 0.0)[where.host(rows.groups.index)]
        kept = with_pairs(where.host(rows.target), where.host(rows.groups.index), taking_part)
        if not kept.any():
            raise ValueError(
                "y must hold two levels of relevance in at least one query (with weight > 0); in "
                "every query of qid all rows have the same y, so that there is nothing to learn: "
                f"n_samples = {len(kept)}."
            )
        return reading if kept.all() else replace(reading, keep=where.put(kept))

    def _hold_out(self, reading: Reading) -> tuple[Rows, Rows, Any]:
        """Whole queries, drawn by the seed; rows of weight 0 stay where they are."""
        rows, where = reading.rows, reading.where
        if rows.groups is None:
            raise ValueError(
                "early_stopping=True with pairs needs validation queries: give X_val, y_val and "
                "qid_val, or eval_set; or early_stopping=False."
            )
        index = where.host(rows.groups.index)
        keep = np.ones(len(index), bool) if reading.keep is None else where.host(reading.keep)
        queries = np.unique(index[keep])
        if len(queries) < 2:
            raise ValueError(
                "early_stopping=True holds out queries, and needs two at least with two levels; "
                "there is one. Give X_val, y_val and qid_val, or early_stopping=False."
            )
        generator = np.random.default_rng(draw_seed(self.random_state))
        size = min(max(1, round(self.validation_fraction * len(queries))), len(queries) - 1)
        held = np.isin(index, generator.permutation(queries)[:size]) & keep
        apart, rest, _ = set_aside(
            rows, Items(np.arange(len(index)), None, False), np.flatnonzero(held), where
        )
        return apart, rest, where.put(keep & ~held)
