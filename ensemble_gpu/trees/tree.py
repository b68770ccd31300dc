"""Decision trees (CART)."""

from __future__ import annotations

from typing import Any

from sklearn.utils import Bunch
from sklearn.utils.validation import check_is_fitted

from ensemble_gpu.arrays import cupy as gpu
from ensemble_gpu.arrays.namespace import locate
from ensemble_gpu.trees.build import grow_tree, to_forest
from ensemble_gpu.trees.fitting import PARAMETERS, TreeData, TreeEstimator
from ensemble_gpu.trees.prediction import TreeClassifier, TreeRegressor
from ensemble_gpu.trees.prune import pruned, pruning_path

_ATTRIBUTES = """

    Attributes
    ----------
    n_features_in_, feature_names_in_ : as in scikit-learn{classes}
    model_ : Forest of one tree
    feature_importances_ : ndarray, share of each feature in the fall of the impurity
    engine_ : str, the engine that ran: "cpu", "cuda" or "reference"
    """


class _OneTree(TreeEstimator):
    """A single tree on all rows."""

    def _grow(self, prepared: TreeData) -> None:
        engine, matrix, statistics = prepared.engine, prepared.matrix, prepared.statistics
        grown, described = grow_tree(engine, matrix, statistics, prepared.parameters, 0)
        self.model_ = to_forest(grown, described, matrix, statistics, prepared.categories.values)

    def _contained(self) -> tuple[str, ...]:
        """Trees that are pruned differently are grown alike."""
        return ("ccp_alpha",)

    def _fit_all(self, name: str, values: list[Any], X: Any, y: Any, **weights: Any) -> list[Any]:
        self._check_values(name, values)
        self._forget()
        self.ccp_alpha = 0.0
        with gpu.current(locate(X), "growing trees"):
            prepared = self._prepare(X, y, weights.get("sample_weight"))
            engine, matrix, statistics = prepared.engine, prepared.matrix, prepared.statistics
            grown, described = grow_tree(engine, matrix, statistics, prepared.parameters, 0)
        self.engine_ = engine.name
        categories, found = prepared.categories.values, []
        risk = described.risk(statistics.weight(grown.sums))
        for alpha in values:
            left = pruned(grown, risk, float(alpha)) if alpha > 0.0 else grown
            model = to_forest(left, described, matrix, statistics, categories)
            found.append(self._with(ccp_alpha=alpha, model_=model))
        return found

    def get_depth(self) -> int:
        """Edges on the longest way from the root to a leaf."""
        check_is_fitted(self, "model_")
        return self.model_.depth(0)

    def get_n_leaves(self) -> int:
        check_is_fitted(self, "model_")
        return self.model_.n_leaves(0)

    def apply(self, X: Any) -> Any:
        """The leaf of every row: int64 [n], a position among the nodes."""
        X, home, _, _ = self._inputs(X)
        return home.hand_over(self.model_.apply(X)[:, 0])

    def decision_path(self, X: Any) -> Any:
        """The nodes that each row passes: a sparse indicator [n, nodes] on the host."""
        X, _, _, _ = self._inputs(X)
        return self.model_.decision_path(X)[0]

    def cost_complexity_pruning_path(self, X: Any, y: Any, sample_weight: Any = None) -> Bunch:
        """The path of minimal cost-complexity pruning; the estimator itself stays as it is.

        Returns
        -------
        Bunch with `ccp_alphas`, ascending, and `impurities`, of the leaves of the tree from
        each alpha on
        """
        fresh = type(self)(**{**self.get_params(deep=False), "ccp_alpha": 0.0})
        fresh._check_parameters()
        with gpu.current(locate(X), "growing trees"):
            prepared = fresh._prepare(X, y, sample_weight)
            statistics, parameters = prepared.statistics, prepared.parameters
            grown, described = grow_tree(
                prepared.engine, prepared.matrix, statistics, parameters, 0
            )
        alphas, risks = pruning_path(grown, described.risk(statistics.weight(grown.sums)))
        return Bunch(ccp_alphas=alphas, impurities=risks)


class DecisionTreeClassifier(TreeClassifier, _OneTree):
    __doc__ = (
        """A classification tree, grown where the arrays live.

    Parameters
    ----------
    criterion : {"gini", "entropy", "log_loss", "error"}, default="gini"
        The impurity that splits lower: 1 - sum p_k^2, -sum p_k log2 p_k (two names), or the
        misclassified share 1 - max p_k."""
        + PARAMETERS.format(splitter="best", max_features="None", positive=" of the second class")
        + """
        Draws features and random thresholds; nothing else is random.
    class_weight : dict, "balanced" or None
        Weights of the labels; "balanced": n / (K n_k)."""
        + _ATTRIBUTES.format(classes=", classes_, n_classes_")
    )

    def __init__(
        self,
        *,
        criterion: str = "gini",
        splitter: str = "best",
        max_depth: int | None = None,
        min_samples_split: int | float = 2,
        min_samples_leaf: int | float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_features: Any = None,
        max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0,
        class_weight: Any = None,
        ccp_alpha: float = 0.0,
        monotonic_cst: Any = None,
        max_bins: int | None = 255,
        categorical_features: Any = "from_dtype",
        categorical_split: str = "subset",
        missing: str = "learn",
        device: str | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.criterion = criterion
        self.splitter = splitter
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.max_features = max_features
        self.max_leaf_nodes = max_leaf_nodes
        self.min_impurity_decrease = min_impurity_decrease
        self.class_weight = class_weight
        self.ccp_alpha = ccp_alpha
        self.monotonic_cst = monotonic_cst
        self.max_bins = max_bins
        self.categorical_features = categorical_features
        self.categorical_split = categorical_split
        self.missing = missing
        self.device = device
        self.n_jobs = n_jobs
        self.random_state = random_state


class DecisionTreeRegressor(TreeRegressor, _OneTree):
    __doc__ = (
        """A regression tree, grown where the arrays live.

    Parameters
    ----------
    criterion : {"squared_error", "poisson"}, default="squared_error"
        The impurity that splits lower: the variance, or the Poisson deviance mean of y ln(y / m),
        for y >= 0."""
        + PARAMETERS.format(splitter="best", max_features="None", positive="")
        + """
        Draws features and random thresholds; nothing else is random."""
        + _ATTRIBUTES.format(classes="")
    )

    def __init__(
        self,
        *,
        criterion: str = "squared_error",
        splitter: str = "best",
        max_depth: int | None = None,
        min_samples_split: int | float = 2,
        min_samples_leaf: int | float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_features: Any = None,
        max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0,
        ccp_alpha: float = 0.0,
        monotonic_cst: Any = None,
        max_bins: int | None = 255,
        categorical_features: Any = "from_dtype",
        categorical_split: str = "subset",
        missing: str = "learn",
        device: str | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.criterion = criterion
        self.splitter = splitter
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.max_features = max_features
        self.max_leaf_nodes = max_leaf_nodes
        self.min_impurity_decrease = min_impurity_decrease
        self.ccp_alpha = ccp_alpha
        self.monotonic_cst = monotonic_cst
        self.max_bins = max_bins
        self.categorical_features = categorical_features
        self.categorical_split = categorical_split
        self.missing = missing
        self.device = device
        self.n_jobs = n_jobs
        self.random_state = random_state
