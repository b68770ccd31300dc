"""The estimator that boosts losses over pairs: rows of a query are compared, scores come out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ensemble_gpu.arrays.namespace import Where
from ensemble_gpu.boosting.fitting import Given
from ensemble_gpu.boosting.gradient_boosting import (
    AUTO,
    Defaults,
    GradientBoosting,
    Restraint,
    described,
)
from ensemble_gpu.boosting.plans import DescentParameters
from ensemble_gpu.boosting.rankboost import rankboost_plan
from ensemble_gpu.boosting.ranker import BoostedRanker
from ensemble_gpu.boosting.ranking import QueryRows, pair_loss, query_loss, ranking_plan
from ensemble_gpu.boosting.strategy import Plan
from ensemble_gpu.data.digests import array_digest, digest
from ensemble_gpu.data.pairs import read_pairs
from ensemble_gpu.data.parameters import check_choice, check_integer
from ensemble_gpu.data.rows import OrderedRows
from ensemble_gpu.estimators.contents import Contents
from ensemble_gpu.estimators.reading import GivenRows, TrainingData
from ensemble_gpu.learners.tree import splits_once
from ensemble_gpu.losses import ranking_loss
from ensemble_gpu.losses.by_query import QueryExponential, QueryLogistic
from ensemble_gpu.losses.lambdas import QueryLambda
from ensemble_gpu.losses.pairwise import PairLoss
from ensemble_gpu.metrics.by_query import EXPONENTIAL, gains_of

VARIANTS = GRADIENT, RANKBOOST = "gradient", "rankboost"
# Found on generated queries, and reported on others, by bench/ranking.py. The lambda loss weighs
# few of the rows, the first ranks, and needs more of them.
DEFAULTS = Defaults(Restraint(20, 1e-3, 1.0, 0.5, None), 30.0, (0.03, 0.2))
OF_LAMBDA = replace(DEFAULTS, trees=replace(DEFAULTS.trees, subsample=0.65))
FACTS = {"exponential": QueryExponential, "logistic": QueryLogistic, "lambda": QueryLambda}


class BoostingRanker(BoostedRanker, GradientBoosting):
    __doc__ = """Boosting of stumps or trees that rank the rows of queries, where the arrays live.

    R(f) = mean over pairs of phi(f(x_i) - f(x_j)), i to be ranked above j: rows of a query with
    different relevance, or pairs that are given. Queries may come in any order, and so may their
    rows: the model is the same. There is no n_bags, as a bootstrap sample of rows would cut
    queries: average the scores of rankers with sample_weight drawn, a whole number a query.

    Parameters
    ----------
    loss : {"exponential", "logistic", "lambda"}, default="exponential"
        "exponential": phi = e^-v, RankBoost's. Pairs factorise by query and level: a round costs
        O(rows + queries x levels), whatever their number. "logistic": phi = ln(1 + e^-v),
        RankNet's; a division for each pair, none of which is kept. "lambda": the logistic loss,
        each pair times the change of NDCG (gains 2^y - 1) if its rows changed places, as in
        LambdaMART; its own value, in `history_`, is 1 - NDCG.
    variant : {"gradient", "rankboost"}, default="gradient"
        "gradient": a round fits the gradient of the loss. "rankboost": the textbook's algorithm
        for the exponential loss. Every stump h in {0, 1} is scored by its exact
        Z = W0 + 2 sqrt(W+ W-), W+ and W- the weights of the pairs that it orders right and wrong,
        alpha = 1/2 ln((W+ + s) / (W- + s)), s the weight of half a pair; R = product of Z_t, which
        `history_.weights` holds, and the share of misordered pairs is at most R. NaN goes to the
        side with the smaller Z, whatever `missing` is.
        `learning_rate=None` is 1 here, the whole alpha.
    truncation : int, default=30
        Of loss="lambda": pairs with a row among so many first ranks count.""" + (
        described(
            ("init", "n_bags"),
            DEFAULTS,
            subsample='0.5 (0.65 for loss="lambda")',
            depth=1,
            step='"newton"',
            prediction="scores",
            classes="",
            class_weight="",
            stopping="False",
            held="queries",
            metrics='"ndcg", "map", "mrr" (with ranks: "ndcg@5"),\n        "pairwise_error"',
        )
    )

    _smooth_step = "newton"
    # A constant changes no pair; bags of rows would cut queries.
    init = "zero"
    n_bags = 1

    def __init__(
        self,
        loss: str = "exponential",
        *,
        variant: str = GRADIENT,
        truncation: int = 30,
        estimator: Any = None,
        n_estimators: int | None = None,
        learning_rate: float | None = None,
        step: str | None = None,
        candidates: int = 1,
        max_depth: int | None = 1,
        max_leaf_nodes: int | None = None,
        min_samples_leaf: int | None = None,
        min_hessian: float | None = None,
        l2_regularization: float | None = None,
        subsample: float | None = None,
        max_features: Any = AUTO,
        monotonic_cst: Any = None,
        interaction_cst: Any = None,
        max_bins: int | None = 255,
        categorical_features: Any = "from_dtype",
        categorical_split: str = "subset",
        missing: str = "abstain",
        early_stopping: bool | str = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 20,
        metric: Any = None,
        device: str | None = None,
        n_jobs: int | None = None,
        callbacks: list[Any] | None = None,
        warm_start: bool = False,
        random_state: Any = 0,
    ) -> None:
        self.loss = loss
        self.variant = variant
        self.truncation = truncation
        self.estimator = estimator
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.step = step
        self.candidates = candidates
        self.max_depth = max_depth
        self.max_leaf_nodes = max_leaf_nodes
        self.min_samples_leaf = min_samples_leaf
        self.min_hessian = min_hessian
        self.l2_regularization = l2_regularization
        self.subsample = subsample
        self.max_features = max_features
        self.monotonic_cst = monotonic_cst
        self.interaction_cst = interaction_cst
        self.max_bins = max_bins
        self.categorical_features = categorical_features
        self.categorical_split = categorical_split
        self.missing = missing
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.metric = metric
        self.device = device
        self.n_jobs = n_jobs
        self.callbacks = callbacks
        self.warm_start = warm_start
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        qid: Any = None,
        pairs: Any = None,
        pair_weight: Any = None,
        X_val: Any = None,
        y_val: Any = None,
        qid_val: Any = None,
        sample_weight_val: Any = None,
        init_score: Any = None,
        init_score_val: Any = None,
        eval_set: Any = None,
        eval_names: Any = None,
        stop_on: Any = None,
        resume: Any = None,
    ) -> Any:
        """Boost on X [n, p] with relevance y [n] by query, or on pairs of rows.

        Parameters
        ----------
        X : array of any array-API library, frame, matrix of scipy.sparse or list; NaN and masked
            cells are missing
        y : relevance, any finite numbers (loss="lambda" and NDCG: whole ones from 0 on); rows of a
            query are compared where they differ
        sample_weight : weights of rows >= 0, a pair weighs the product of two; or of queries, one
            for each in the order of the sorted labels: all its pairs weigh so much
        qid : the query of every row, any labels in any order
        pairs : integers [m, 2] in place of y and qid, positions of rows: the first is to be
            ranked above the second. Contradictory pairs are allowed: they pull both ways
        pair_weight : weights of the pairs >= 0, or None
        X_val, y_val, qid_val, sample_weight_val, init_score_val : a single validation set
        init_score : array [n]
            Added to the scores of the rows in training, as an offset; not part of predictions.
        eval_set : list of (X, y, qid), (X, y, qid, sample_weight) or (X, y, qid, sample_weight,
            init_score), validation sets in place of X_val, y_val, qid_val
        eval_names : list of their names in `history_.evals`; None: validation_0, validation_1, ...
        stop_on : name of a set, of a metric, or a pair (set, metric)
            What early stopping goes by; None: the first metric of the last set
        resume : path of a `Checkpoint` to go on from; one that does not exist begins anew

        Returns
        -------
        self
        """
        short = GivenRows(X_val, y_val, sample_weight_val, init_score_val, qid_val)
        given = Given(X, y, sample_weight, init_score, stop_on, qid, resume=resume)
        self._check_what_is_given(given, pairs, pair_weight)
        if pairs is None:
            return self._fit_given(given, eval_set, eval_names, short)
        self._check_loss_of_pairs()
        shape = getattr(X, "shape", None)
        n_rows = int(shape[0]) if shape is not None and len(shape) else len(X)
        self._given_pairs = read_pairs(pairs, pair_weight, n_rows)
        try:
            return self._fit_given(given, eval_set, eval_names, short)
        finally:
            del self._given_pairs

    def _check_what_is_given(self, given: Given, pairs: Any, pair_weight: Any) -> None:
        if pairs is None:
            if pair_weight is not None:
                raise ValueError("pair_weight is for pairs, which is None.")
            if given.y is None:
                raise ValueError(
                    "requires y to be passed, but the target y is None: give y and qid, or pairs."
                )
            if given.qid is None:
                raise ValueError(
                    "qid must say which query each row belongs to, a label a row; got None. All "
                    "rows are one query where qid is one label, such as zeros."
                )
            return
        both = {"y": given.y, "qid": given.qid, "sample_weight": given.sample_weight}
        for name, value in both.items():
            if value is not None:
                instead = "pair_weight" if name == "sample_weight" else "pairs alone"
                raise ValueError(f"pairs and {name} were both given; give {instead}.")

    def _check_loss_of_pairs(self) -> None:
        if ranking_loss(self.loss) == "lambda":
            raise ValueError(
                "loss='lambda' weighs pairs by their ranks in queries; with pairs loss must be "
                "'exponential' or 'logistic'."
            )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("variant", self.variant, VARIANTS)
        check_integer("truncation", self.truncation, 1)
        loss = ranking_loss(self.loss)
        if loss == "lambda" and self.step not in (None, "newton", "constant"):
            raise ValueError(
                "step must be None, 'newton' or 'constant' for loss='lambda', whose gradient is "
                f"not that of a function; got {self.step!r}."
            )
        if loss == "lambda" and self.candidates > 1:
            raise ValueError(
                f"candidates={self.candidates!r} compares losses, which loss='lambda' has none of."
            )
        if self.variant == RANKBOOST:
            self._check_rankboost(loss)

    def _defaults(self) -> Defaults:
        return OF_LAMBDA if ranking_loss(self.loss) == "lambda" else DEFAULTS

    def _resolved_rate(self) -> float:
        if self.variant == RANKBOOST and self.learning_rate is None:
            return 1.0
        return super()._resolved_rate()

    def _check_rankboost(self, loss: str) -> None:
        wrong = {
            "loss": loss != "exponential",
            "estimator": self.estimator is not None,
            "step": self.step is not None,
            "candidates": self.candidates != 1,
            "max_depth": not splits_once(self.max_depth, self.max_leaf_nodes),
            "subsample": self.subsample not in (None, 1.0),
            "max_features": self.max_features not in (None, AUTO),
            "monotonic_cst": self.monotonic_cst is not None,
            "interaction_cst": self.interaction_cst is not None,
            "min_samples_leaf": self.min_samples_leaf not in (None, 1),
            "min_hessian": self.min_hessian not in (None, 0.0),
            "l2_regularization": self.l2_regularization not in (None, 0.0),
        }
        for name in [name for name, clash in wrong.items() if clash]:
            raise ValueError(
                f"{name}={getattr(self, name)!r} is for variant='gradient'; variant='rankboost' is "
                "the exponential loss over stumps of all rows and features, each scored by its Z."
            )

    def _contents(self, data: TrainingData, plan: Plan) -> Contents:
        found, pairs = super()._contents(data, plan), self._given_pairs
        if pairs is None:
            return found
        arrays = (pairs.upper, pairs.lower, pairs.weights)
        return found.with_others(pairs=digest(*(array_digest(a).encode() for a in arrays)))

    def _loss_of(self, rows: OrderedRows, where: Where) -> PairLoss:
        name = ranking_loss(self.loss)
        if self._given_pairs is not None:
            return pair_loss(name, self._given_pairs, rows.n_rows, where)
        assert rows.groups is not None
        ordered = QueryRows(rows.target, rows.groups, rows.weights, rows.keys)
        return query_loss(name, ordered, where, int(self.truncation))

    def _plan(self, data: TrainingData) -> Plan:
        name, where = ranking_loss(self.loss), data.engine.where
        if name == "lambda":
            gains_of(data.where.as_float64(data.rows.target), EXPONENTIAL)
        facts: Any = FACTS[name]  # of the class: a loss is made once there are rows
        if self.variant == RANKBOOST:
            descent = self._descent(data, facts, votes=False)
            if not descent.stump:
                raise ValueError(
                    "variant='rankboost' is for thresholds; categorical_features says that "
                    f"features {list(descent.categories.values)} are categories. Use "
                    "variant='gradient', or categorical_features=None."
                )
            binned = self._binned(data, descent.n_ranges)
            loss = self._loss_of(binned, where)
            return rankboost_plan(binned, data.where, loss, descent)

        def made(rows: Any, descent: DescentParameters, learner: Any) -> Plan:
            loss = self._loss_of(rows, where)
            return ranking_plan(
                rows, data.where, name, loss, descent, learner, int(self.truncation)
            )

        keyed = name == "lambda"
        if self.estimator is not None:
            return self._given_plan(data, facts, made, 1, keyed=keyed)
        descent = self._descent(data, facts, votes=False)
        binned = self._binned(data, descent.n_ranges, keyed=keyed or descent.subsample < 1.0)
        return made(binned, descent, self._learner(binned, descent))
