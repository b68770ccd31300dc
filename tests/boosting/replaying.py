"""Fits whose strategies can be made anew, to replay rounds into."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier as TheirTree

from ensemble_gpu import AdaBoostClassifier, BoostingClassifier, BoostingRegressor
from ensemble_gpu.boosting.loop import boost, replay
from ensemble_gpu.boosting.strategy import Plan
from tests.boosters import plain


class Resampled(GaussianNB):
    """Takes no sample weights: AdaBoost draws rows for it."""

    def fit(self, X: Any, y: Any) -> Any:
        return super().fit(X, y)


# What every strategy, step and draw of a round goes through; the number of classes (0: regression).
FITS: dict[str, tuple[Any, int]] = {
    "real": (AdaBoostClassifier(variant="real"), 2),
    "real, missing values learn a side": (AdaBoostClassifier(missing="learn"), 2),
    "gentle, MH": (AdaBoostClassifier(variant="gentle"), 3),
    "discrete": (AdaBoostClassifier(variant="discrete"), 2),
    "SAMME": (AdaBoostClassifier(variant="discrete"), 3),
    "one class at a time": (AdaBoostClassifier(multiclass="single"), 3),
    "logit": (AdaBoostClassifier(variant="logit"), 2),
    "gram": (BoostingRegressor(max_depth=1), 0),
    "gram, features drawn": (BoostingRegressor(max_features=2, random_state=3, max_depth=1), 0),
    "gram, K classes": (BoostingClassifier("squared", max_depth=1), 3),
    "newton": (BoostingClassifier(max_depth=1), 2),
    "newton, multinomial": (BoostingClassifier(max_depth=1, multiclass="shared"), 3),
    "a stump a class": (BoostingClassifier(max_depth=1, multiclass="each"), 3),
    "a stump a class, rows and features drawn": (
        BoostingClassifier(
            subsample=0.5, max_features=2, random_state=3, max_depth=1, multiclass="each"
        ), 3,
    ),
    "a stump a class, kinks": (
        BoostingClassifier("hinge", step="line_search", max_depth=1, multiclass="each"), 3,
    ),
    "newton, rows and features drawn": (
        BoostingClassifier(subsample=0.5, max_features=2, random_state=3, max_depth=1), 2,
    ),
    "steps of leaves": (BoostingRegressor("absolute", max_depth=1), 0),
    "steps of leaves, Huber": (BoostingRegressor("huber", max_depth=1), 0),
    "three quantiles": (BoostingRegressor("quantile", quantile=[0.1, 0.5, 0.9], max_depth=1), 0),
    "kinks": (BoostingRegressor("absolute", step="line_search", max_depth=1), 0),
    "kinks, rows drawn": (
        BoostingRegressor("quantile", quantile=0.8, subsample=0.6, random_state=1, max_depth=1), 0,
    ),
    "line search": (BoostingRegressor("huber", step="line_search", max_depth=1), 0),
    "trees": (BoostingClassifier(**plain(max_depth=3)), 2),
    "trees, rows and features drawn": (
        BoostingRegressor(**plain(max_leaf_nodes=5, subsample=0.5, max_features=2, random_state=3)),
        0,
    ),
    "trees, K classes": (BoostingClassifier(**plain(max_depth=2)), 3),
    "a tree a class": (BoostingClassifier(**plain(max_depth=2, multiclass="each")), 3),
    "a tree a class, rows and features drawn": (
        BoostingClassifier(
            **plain(max_leaf_nodes=4, subsample=0.5, max_features=2, multiclass="each")
        ), 3,
    ),
    "bags of a stump a class": (
        BoostingClassifier(max_depth=1, n_bags=2, multiclass="each", random_state=3), 3,
    ),
    "bags of a tree a class": (
        BoostingClassifier(**plain(max_depth=2, n_bags=2, multiclass="each", random_state=3)), 3,
    ),
    "bags of stumps": (
        BoostingClassifier(max_depth=1, n_bags=3, subsample=0.5, max_features=2, random_state=3), 2,
    ),
    "bags, gram": (BoostingRegressor(max_depth=1, n_bags=2, random_state=3), 0),
    "bags of trees": (
        BoostingRegressor(n_bags=2, max_depth=3, min_samples_leaf=1, random_state=3), 0,
    ),
}  # fmt: skip

FOREIGN: dict[str, tuple[Any, int]] = {
    "votes": (AdaBoostClassifier(TheirTree(max_depth=1), variant="discrete", random_state=0), 3),
    "confidences": (AdaBoostClassifier(TheirTree(max_depth=2), random_state=0), 2),
    "random learners": (
        AdaBoostClassifier(TheirTree(max_depth=2, max_features=2), random_state=5), 2,
    ),
    "resampled rows": (AdaBoostClassifier(Resampled(), variant="discrete", random_state=2), 2),
}  # fmt: skip


def problem(n_classes: int, n: int = 160) -> tuple[np.ndarray, np.ndarray]:
    """Five features with ties and missing values; labels, or a real target for 0 classes."""
    generator = np.random.default_rng(7)
    X = np.round(generator.normal(size=(n, 5)), 1)
    y = X[:, 0] - X[:, 1] ** 2 + 0.5 * X[:, 2] + generator.normal(size=n)
    if n_classes:
        y = np.digitize(y, np.quantile(y, np.arange(1, n_classes) / n_classes))
    X[generator.random(X.shape) < 0.1] = np.nan
    return X, y


def plans(estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> Callable[[], Plan]:
    """Makes the plan of a fit, afresh each time."""
    makers = []
    kind = type(estimator)

    class Seen(kind):  # type: ignore[misc, valid-type]
        def _plan(self, *arguments: Any) -> Plan:
            makers.append(lambda: kind._plan(self, *arguments))
            return super()._plan(*arguments)

    Seen(**estimator.get_params(deep=False)).set_params(n_estimators=1).fit(X, y, sample_weight)
    return makers[0]


def whole_and_resumed(make: Callable[[], Plan], n_rounds: int) -> tuple[Any, Any]:
    """(rounds, model, stop reason) of one run, and of one that is taken up halfway."""
    first, second = make(), make()
    whole = boost(first.strategy, n_rounds, [])
    known = whole.rounds[: n_rounds // 2]
    replay(second.strategy, known)
    resumed = boost(second.strategy, n_rounds, [], known)
    return tuple(
        (trace.rounds, plan.learner.outcome(trace.rounds, plan.start, plan.constant).model,
         trace.stop_reason)
        for trace, plan in ((whole, first), (resumed, second))
    )  # fmt: skip
