"""Named fits whose models are on record, so that a change inside changes none of them.

    python -m tests.record.fits                compare with the record
    python -m tests.record.fits --write        write the record (fingerprints.json) anew
    python -m tests.record.fits --n-jobs 2 --engine reference

Every parameter that a model depends on is spelled out: a new default changes nothing here.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.tree import DecisionTreeClassifier as TheirTreeClassifier
from sklearn.tree import DecisionTreeRegressor as TheirTreeRegressor

import ensemble_gpu
from ensemble_gpu import use_engine
from ensemble_gpu.learners import Balls, Boxes, HalfSpaces, Rectangles
from ensemble_gpu.losses import RANKING, CustomLoss, Huber, Quantile
from tests.record.data import Data, data

RECORD = Path(__file__).with_name("fingerprints.json")

# Groups: the same bits everywhere; those that follow NumPy's exp and log (which differ in the last
# digit from one processor to another); those with learners of scikit-learn, which follow both.
EXACT, NUMPY, SKLEARN = GROUPS = ("exact", "numpy", "scikit-learn")

# --- every parameter, once ---------------------------------------------------------------------

_STOPPING = {
    "early_stopping": False,
    "validation_fraction": 0.1,
    "n_iter_no_change": 10,
    "metric": None,
}
_CATEGORIES = {"categorical_features": None, "categorical_split": "subset"}
ADABOOST = {
    "estimator": None,
    "variant": "real",
    "multiclass": "shared",
    "n_estimators": 20,
    "learning_rate": 1.0,
    "max_bins": 255,
    **_CATEGORIES,
    "missing": "abstain",
    "calibrate": False,
    **_STOPPING,
    "random_state": 0,
}
_GRADIENT = {
    "n_estimators": 15,
    "learning_rate": 0.3,
    "max_depth": 1,
    "max_leaf_nodes": None,
    "min_samples_leaf": 1,
    "min_hessian": 0.0,
    "l2_regularization": 0.0,
    "subsample": 1.0,
    "max_features": None,
    "monotonic_cst": None,
    "max_bins": 255,
    **_CATEGORIES,
    "missing": "abstain",
    **_STOPPING,
    "random_state": 0,
}
BOOSTING_CLASSIFIER = {
    "loss": "logistic",
    "stump": "real",
    "multiclass": "shared",
    "step": None,
    **_GRADIENT,
}
BOOSTING_REGRESSOR = {"loss": "squared", "quantile": None, "step": None, **_GRADIENT}
BOOSTING_RANKER = {
    "loss": "exponential",
    "variant": "gradient",
    "truncation": 30,
    "estimator": None,
    "step": None,
    "candidates": 1,
    "interaction_cst": None,
    **_GRADIENT,
}
_BALL = {
    "radius": 3.0,
    "alpha": None,
    "estimator": None,
    "max_depth": 1,
    "max_leaf_nodes": None,
    "n_estimators": 60,
    "tol": 0.001,
    "step": "corrective",
    "init": "constant",
    "radii": 10,
    "n_folds": 5,
    "max_bins": 255,
    "missing": "abstain",
    "random_state": 0,
}
L1_CLASSIFIER = {"loss": "logistic", "class_weight": None, **_BALL}
L1_REGRESSOR = {"loss": "squared", **_BALL}
_GROWING = {
    "splitter": "best",
    "max_depth": None,
    "min_samples_split": 2,
    "min_samples_leaf": 1,
    "min_weight_fraction_leaf": 0.0,
    "max_features": None,
    "max_leaf_nodes": None,
    "min_impurity_decrease": 0.0,
    "ccp_alpha": 0.0,
    "monotonic_cst": None,
    "max_bins": 255,
    **_CATEGORIES,
    "missing": "learn",
    "random_state": 0,
}
TREE_CLASSIFIER = {"criterion": "gini", "class_weight": None, **_GROWING}
TREE_REGRESSOR = {"criterion": "squared_error", **_GROWING}
_FOREST = {
    "n_estimators": 6,
    "bootstrap": True,
    "max_samples": None,
    "oob_score": False,
    "warm_start": False,
    "capacity": None,
    "capacity_grid": None,
    "validation": "oob",
    "validation_fraction": 0.2,
    "validation_folds": 5,
}
FOREST_CLASSIFIER = {
    **TREE_CLASSIFIER, **_FOREST, "max_features": "sqrt", "validation_loss": "error"
}  # fmt: skip
FOREST_REGRESSOR = {**TREE_REGRESSOR, **_FOREST, "max_features": 1.0}
BAGGING_REGRESSOR = {
    "estimator": None,
    "n_estimators": 5,
    "max_samples": 1.0,
    "max_features": 1.0,
    "bootstrap": True,
    "bootstrap_features": False,
    "oob_score": False,
    "warm_start": False,
    "random_state": 0,
}
BAGGING_CLASSIFIER = {**BAGGING_REGRESSOR, "voting": "soft"}
_THEIR_TREE = {
    "splitter": "best",
    "max_depth": 3,
    "min_samples_split": 2,
    "min_samples_leaf": 2,
    "max_features": None,
    "random_state": 0,
}

PARAMETERS: dict[Any, dict[str, Any]] = {
    "AdaBoostClassifier": ADABOOST,
    "BoostingClassifier": BOOSTING_CLASSIFIER,
    "BoostingRegressor": BOOSTING_REGRESSOR,
    "BoostingRanker": BOOSTING_RANKER,
    "L1BoostingClassifier": L1_CLASSIFIER,
    "L1BoostingRegressor": L1_REGRESSOR,
    "DecisionTreeClassifier": TREE_CLASSIFIER,
    "DecisionTreeRegressor": TREE_REGRESSOR,
    "RandomForestClassifier": FOREST_CLASSIFIER,
    "RandomForestRegressor": FOREST_REGRESSOR,
    "BaggingClassifier": BAGGING_CLASSIFIER,
    "BaggingRegressor": BAGGING_REGRESSOR,
    TheirTreeClassifier: {"criterion": "gini", **_THEIR_TREE},
    TheirTreeRegressor: {"criterion": "squared_error", **_THEIR_TREE},
    GaussianNB: {"priors": None, "var_smoothing": 1e-9},
    KNeighborsClassifier: {"n_neighbors": 9, "weights": "uniform", "algorithm": "kd_tree"},
    KNeighborsRegressor: {"n_neighbors": 9, "weights": "uniform", "algorithm": "kd_tree"},
}


@dataclass(frozen=True)
class Made:
    """An estimator that is not made before it is fitted: a name of this package, or a class."""

    kind: Any
    changes: dict[str, Any]

    def __post_init__(self) -> None:
        unknown = sorted(self.changes.keys() - PARAMETERS[self.kind].keys())
        if unknown:
            raise ValueError(f"{self.kind}: {unknown} are not among its parameters.")

    def make(self, n_jobs: int | None = None) -> Any:
        kind = getattr(ensemble_gpu, self.kind) if isinstance(self.kind, str) else self.kind
        params = {**PARAMETERS[self.kind], **self.changes}
        made = {
            name: value.make(n_jobs) if isinstance(value, Made) else value
            for name, value in params.items()
        }
        if n_jobs is not None and isinstance(self.kind, str):
            made["n_jobs"] = n_jobs
        return kind(**made)

    def __str__(self) -> str:
        name = self.kind if isinstance(self.kind, str) else self.kind.__name__
        return f"{name}({', '.join(f'{n}={v}' for n, v in self.changes.items())})"


def of(kind: Any, **changes: Any) -> Made:
    return Made(kind, changes)


# --- what identifies a model -------------------------------------------------------------------


def digest(*parts: Any) -> str:
    """SHA-256 of arrays (float64 or int64, little endian) and texts."""
    found = hashlib.sha256()
    for part in parts:
        if isinstance(part, str):
            found.update(part.encode())
            continue
        array = np.asarray(part)
        kind = "<f8" if array.dtype.kind == "f" else "<i8"
        found.update(np.array(array.shape, dtype="<i8").tobytes())
        found.update(np.ascontiguousarray(array, dtype=kind).tobytes())
    return found.hexdigest()


def own_fingerprint(estimator: Any, rows: Data) -> str:
    return estimator.model_.fingerprint()


def answers(learner: Any, X: Any) -> np.ndarray:
    return (learner.predict_proba if hasattr(learner, "predict_proba") else learner.predict)(X)


def committee(estimator: Any, rows: Data) -> str:
    """Of learners without a fingerprint: their coefficients and answers."""
    learners = (answers(learner, rows.X) for learner in estimator.estimators_)
    return digest(estimator.alphas_, *learners)


def members(estimator: Any, rows: Data) -> str:
    """Of a bagged estimator: rows, features and model or answers of every member."""
    parts: list[Any] = []
    drawn = zip(estimator.estimators_samples_, estimator.estimators_features_, strict=True)
    for learner, (samples, features) in zip(estimator.estimators_, drawn, strict=True):
        own = hasattr(learner, "model_")
        answer = learner.model_.fingerprint() if own else answers(learner, rows.X[:, features])
        parts += [samples, features, answer]
    return digest(*parts)


def predictions(estimator: Any, rows: Data) -> str:
    return digest(answers(estimator, rows.X))


@dataclass(frozen=True)
class Fit:
    """An estimator, its data, and what identifies the model; `then` are further fits of it."""

    estimator: Made
    data: str
    group: str = EXACT
    read: Callable[[Any, Data], str] = own_fingerprint
    then: tuple[dict[str, Any], ...] = ()

    def fingerprint(self, n_jobs: int | None = None) -> str:
        rows = data(self.data)
        estimator = self.estimator.make(n_jobs)
        for changes in ({}, *self.then):
            estimator.set_params(**changes)
            estimator.fit(rows.X, rows.y, rows.weights, **rows.validation, **rows.ranking)
        return self.read(estimator, rows)

    def __str__(self) -> str:
        return f"{self.estimator} on {self.data!r}"


FITS: dict[str, Fit] = {}


def add(name: str, fit: Fit) -> None:
    if name in FITS:
        raise ValueError(f"two fits are called {name!r}.")
    FITS[name] = fit


# --- functions that estimators are given --------------------------------------------------------


def share_wrong(y: Any, P: Any, sample_weight: Any = None) -> float:
    """A metric of classes 0 ... K - 1: the share of rows whose largest probability is wrong."""
    wrong = (np.argmax(P, axis=1) != y).astype(np.float64)
    return float(np.average(wrong, weights=sample_weight))


def largest_miss(y: Any, prediction: Any, sample_weight: Any = None) -> float:
    return float(np.max(np.abs(y - prediction)))


def _quartic(y: Any, F: Any) -> Any:
    r = F - y
    return r * r + r * r * r * r


def _quartic_gradient(y: Any, F: Any) -> Any:
    r = F - y
    return 2.0 * r + 4.0 * (r * r * r)


def _quartic_hessian(y: Any, F: Any) -> Any:
    r = F - y
    return 2.0 + 12.0 * (r * r)


def _rational(y: Any, F: Any) -> Any:
    r = F - y
    return r * r / (1.0 + r * r)


def _rational_gradient(y: Any, F: Any) -> Any:
    r = F - y
    d = 1.0 + r * r
    return 2.0 * r / (d * d)


QUARTIC = CustomLoss(
    _quartic, _quartic_gradient, _quartic_hessian, name="quartic", convex=True, curvature=40.0
)
RATIONAL = CustomLoss(_rational, _rational_gradient, name="rational", curvature=2.0)
QUARTIC_MARGIN = CustomLoss(
    _quartic, _quartic_gradient, _quartic_hessian, name="quartic margin", task="classification",
    link_name="linear", convex=True, curvature=40.0,
)  # fmt: skip

# --- AdaBoost over stumps -----------------------------------------------------------------------


def adaboost(name: str, rows: str, group: str = EXACT, **changes: Any) -> None:
    add(f"adaboost: {name}", Fit(of("AdaBoostClassifier", **changes), rows, group))


for variant in ("real", "discrete", "gentle", "logit"):
    adaboost(variant, "two classes", variant=variant)
    adaboost(f"{variant}, 4 classes", "four classes", variant=variant)
    adaboost(f"{variant}, abstain", "two classes, holes", variant=variant)
    adaboost(
        f"{variant}, learn, weights", "two classes, holes and weights", variant=variant,
        missing="learn",
    )  # fmt: skip
    adaboost(
        f"{variant}, 4 classes, learn, weights", "four classes, holes and weights",
        variant=variant, missing="learn",
    )  # fmt: skip
    adaboost(f"{variant}, small steps", "two classes, weights", variant=variant, learning_rate=0.3)
    adaboost(f"{variant}, held-out rows", "two classes, noise", variant=variant, n_estimators=60,
             early_stopping=True, validation_fraction=0.25, n_iter_no_change=5)  # fmt: skip
    adaboost(f"{variant}, categories", "categories, two classes, weights", variant=variant,
             categorical_features=[2, 3])  # fmt: skip
    adaboost(f"{variant}, single categories, 3 classes", "categories, three classes",
             variant=variant, categorical_features=[2, 3],
             categorical_split="single")  # fmt: skip
for variant in ("real", "gentle"):
    adaboost(f"{variant}, single", "four classes", variant=variant, multiclass="single")
    adaboost(
        f"{variant}, single, learn, weights", "four classes, holes and weights", variant=variant,
        multiclass="single", missing="learn", n_estimators=40, learning_rate=0.5,
    )  # fmt: skip
adaboost("four classes that abstain", "four classes, holes")
adaboost("long steps", "two classes", learning_rate=1.7)
adaboost("few bins", "two classes, 1500 rows", max_bins=4)
adaboost("255 bins", "two classes, 1500 rows", max_bins=255)
adaboost("all values", "two classes, 1500 rows", max_bins=None)
adaboost("discrete, all values", "two classes, 1500 rows", variant="discrete", max_bins=None)
adaboost("300 rounds", "two classes", n_estimators=300)
adaboost("300 rounds of 4 classes", "four classes, noise", variant="gentle", n_estimators=300)
adaboost("whole weights", "two classes, whole weights")
adaboost("extreme weights", "two classes, extreme weights")
adaboost("float32", "two classes, float32")
adaboost("odd columns", "two classes, odd columns", missing="learn")
adaboost("one row against many", "one row against many")
adaboost("labels", "three classes, labels")
adaboost("digits", "digits", n_estimators=10)
adaboost("breast cancer", "breast cancer")
adaboost("20500 rows", "two classes, 20500 rows", n_estimators=10)
adaboost("20500 rows, 3 classes, logit", "three classes, 20500 rows", variant="logit",
         n_estimators=4)  # fmt: skip
adaboost("140000 rows", "two classes, 140000 rows", n_estimators=4)
_patient = {
    "early_stopping": True, "n_iter_no_change": 6, "n_estimators": 60, "learning_rate": 0.4,
}  # fmt: skip
adaboost("validation rows", "two classes, validation", **_patient)
adaboost("validation rows, logit", "two classes, validation", variant="logit", **_patient)
adaboost("validation rows, weights", "two classes, weights, validation", **_patient)
adaboost("validation rows, 4 classes", "four classes, validation", variant="gentle", **_patient)
adaboost("validation metric", "two classes, validation", metric=share_wrong, **_patient)
adaboost("held-out rows, metric, 4 classes", "four classes, noise", metric=share_wrong, **_patient)

# --- AdaBoost around learners -------------------------------------------------------------------

_small_tree = of("DecisionTreeClassifier", max_depth=2)
for variant, (k, rows) in product(
    ("discrete", "real"), ((2, "two classes"), (4, "four classes, noise"))
):
    params = {"variant": variant, "n_estimators": 6}
    adaboost(f"own trees, {variant}, {k} classes", rows, NUMPY, estimator=_small_tree, **params)
    add(
        f"adaboost: their trees, {variant}, {k} classes",
        Fit(of("AdaBoostClassifier", estimator=of(TheirTreeClassifier), **params), rows, SKLEARN,
            committee),
    )  # fmt: skip
adaboost("own trees, weights, small steps", "two classes, holes and weights", NUMPY,
         estimator=_small_tree, n_estimators=6, learning_rate=0.4)  # fmt: skip
adaboost("own random trees", "four classes", NUMPY, variant="discrete", n_estimators=6,
         estimator=of("DecisionTreeClassifier", max_depth=3, max_features=2, splitter="random"),
         )  # fmt: skip
adaboost("own trees, categories", "categories, two classes", NUMPY, n_estimators=6,
         estimator=of("DecisionTreeClassifier", max_leaf_nodes=6, categorical_features=[2, 3]),
         )  # fmt: skip
adaboost("own trees, held-out rows", "two classes, noise", NUMPY, estimator=_small_tree,
         n_estimators=25, early_stopping=True, validation_fraction=0.25, n_iter_no_change=4,
         )  # fmt: skip
adaboost("own trees, validation rows", "two classes, weights, validation", NUMPY,
         estimator=_small_tree, variant="discrete", n_estimators=25, early_stopping=True,
         n_iter_no_change=4)  # fmt: skip
adaboost("own forests", "three classes", NUMPY, variant="discrete", n_estimators=3,
         estimator=of("RandomForestClassifier", n_estimators=3, max_depth=2))  # fmt: skip
for name, rows, learner, params in (
    ("their trees, weights", "two classes, weights", of(TheirTreeClassifier), {}),
    ("naive Bayes, real", "four classes", of(GaussianNB), {"learning_rate": 0.2}),
    ("naive Bayes, discrete", "two classes, weights", of(GaussianNB), {"variant": "discrete"}),
    ("neighbours", "two classes, noise", of(KNeighborsClassifier), {"variant": "discrete"}),
    (
        "neighbours, 3 classes, weights",
        "three classes, weights",
        of(KNeighborsClassifier),
        {"learning_rate": 0.1},
    ),
):
    changes = {"estimator": learner, "n_estimators": 5, **params}
    made = of("AdaBoostClassifier", **changes)
    add(f"adaboost: {name}", Fit(made, rows, SKLEARN, committee))

# --- learners that are drawn, and rectangles -----------------------------------------------------

for name, learner in {
    "half-spaces": HalfSpaces(40),
    "half-spaces of 2 features, drawn anew": HalfSpaces(30, redraw="round", n_features=2),
    "balls": Balls(30),
    "balls, drawn anew": Balls(30, redraw="round"),
    "boxes": Boxes(30, n_features=3),
    "boxes, drawn anew": Boxes(30, redraw="round"),
}.items():
    given: dict[str, Any] = {"estimator": learner, "random_state": 3}
    adaboost(name, "two classes, holes and weights", **given)
    adaboost(f"{name}, 4 classes", "four classes", variant="discrete", **given)
for outside in ("against", "abstain"):
    adaboost(
        f"rectangles, outside {outside}", "two classes, holes and weights", variant="discrete",
        estimator=Rectangles(outside=outside),
    )  # fmt: skip

# --- gradient boosting --------------------------------------------------------------------------


def classifier(name: str, rows: str, **changes: Any) -> None:
    add(f"boosting classifier: {name}", Fit(of("BoostingClassifier", **changes), rows))


def regressor(name: str, rows: str, **changes: Any) -> None:
    add(f"boosting regressor: {name}", Fit(of("BoostingRegressor", **changes), rows))


CLASS_LOSSES = ("logistic", "exponential", "squared", "truncated_squared", "hinge")
REAL_LOSSES = ("squared", "absolute", "huber", "quantile", "poisson")
NO_NEWTON = ("hinge", "absolute", "quantile")
LEAF_STEPS = ("absolute", "quantile", "huber")
SHAPES = {"stumps": {}, "trees": {"max_depth": 3, "n_estimators": 8, "learning_rate": 0.8}}


def allowed(losses: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    for loss, step in product(losses, ("leaf", "line_search", "newton", "constant")):
        needed = {"newton": loss not in NO_NEWTON, "leaf": loss in LEAF_STEPS}
        if needed.get(step, True):
            yield loss, step


for (loss, step), (shape, size) in product(allowed(CLASS_LOSSES), SHAPES.items()):
    params = {"loss": loss, "step": step, **size}
    classifier(f"{loss}, {step}, {shape}", "two classes", **params)
for (loss, step), (shape, size) in product(allowed(REAL_LOSSES), SHAPES.items()):
    rows = "counts" if loss == "poisson" else "real"
    regressor(f"{loss}, {step}, {shape}", rows, loss=loss, step=step, **size)
for loss in CLASS_LOSSES:
    step = "line_search" if loss == "hinge" else "newton"
    params = {"loss": loss, "step": step}
    classifier(f"{loss}, 4 classes, stumps", "four classes, holes and weights", **params)
    classifier(f"{loss}, 4 classes, trees", "four classes", max_depth=2, n_estimators=6, **params)
    classifier(
        f"{loss}, discrete stumps", "two classes, weights", loss=loss, stump="discrete",
        step="line_search",
    )  # fmt: skip
classifier("logistic, discrete stumps, newton, 4 classes", "four classes", stump="discrete")
classifier("logistic, line search, 4 classes", "four classes", step="line_search")
classifier("logistic, constant, 4 classes, trees", "four classes", step="constant", max_depth=2)
for shape, size in SHAPES.items():
    each = {"multiclass": "each", **size}
    classifier(f"a learner a class, {shape}", "four classes", **each)
    classifier(f"a learner a class, holes and weights, {shape}", "four classes, holes and weights",
               missing="learn", **each)  # fmt: skip
    classifier(f"a learner a class, rows and features drawn, {shape}", "four classes",
               subsample=0.5, max_features=2, **each)  # fmt: skip
    classifier(f"a learner a class, hinge, {shape}", "four classes", loss="hinge",
               step="line_search", **each)  # fmt: skip
    classifier(f"a learner a class, 20500 rows, {shape}", "three classes, 20500 rows",
               **each | {"n_estimators": 3})  # fmt: skip
classifier("a learner a class, categories", "categories, three classes", multiclass="each",
           categorical_features=[2, 3])  # fmt: skip

_cst = [1, 0, 0, -1, 0, 1]
for kind, two, holes, weights, cat, noise in (
    (classifier, "two classes", "two classes, holes", "two classes, weights",
     "categories, two classes", "two classes, noise"),
    (regressor, "real", "real, holes", "real, weights", "categories, real", "real, noise"),
):  # fmt: skip
    kind("abstain", holes)
    kind("learn", holes, missing="learn")
    kind("holes, trees", holes, max_depth=4)
    kind("weights, stumps", weights)
    kind("weights, trees", weights, max_depth=3)
    kind("subsample, stumps", two, subsample=0.5)
    kind("subsample, trees", weights, subsample=0.5, max_depth=3)
    kind("drawn features, stumps", two, max_features=2)
    kind("drawn features, trees", two, max_features="sqrt", max_depth=3)
    kind("drawn rows and features, trees", two, max_features=0.5, subsample=0.7,
         max_depth=None, max_leaf_nodes=6)  # fmt: skip
    kind("monotone stumps", two, monotonic_cst=_cst)
    kind("monotone trees", two, monotonic_cst=_cst, max_depth=4)
    kind("best first", two, max_depth=None, max_leaf_nodes=7)
    kind("best first to a depth", weights, max_leaf_nodes=7, max_depth=3, min_samples_leaf=12)
    kind("large leaves", two, min_samples_leaf=25)
    kind("few bins", two, max_bins=5)
    kind("all values", two, max_bins=None)
    kind("all values, trees", two, max_bins=None, max_depth=3)
    kind("categories, stumps", cat, categorical_features=[2, 3])
    kind("categories, trees", cat, categorical_features=[2, 3], max_depth=3)
    kind("single categories", f"{cat}, weights", categorical_features=[2, 3], max_depth=3,
         categorical_split="single")  # fmt: skip
    kind("held-out rows", noise, early_stopping=True, validation_fraction=0.25,
         n_iter_no_change=4, n_estimators=80, learning_rate=1.0)  # fmt: skip
    kind("held-out rows, trees", noise, early_stopping=True, validation_fraction=0.25,
         n_iter_no_change=4, n_estimators=40, learning_rate=0.8, max_depth=4)  # fmt: skip
_patient = {
    "early_stopping": True, "n_iter_no_change": 5, "n_estimators": 60, "learning_rate": 0.5,
}  # fmt: skip
classifier("validation rows", "two classes, validation", max_depth=2, **_patient)
classifier("validation rows, weights", "two classes, weights, validation", **_patient)
classifier("validation metric, 4 classes", "four classes, validation", metric=share_wrong,
           **_patient)  # fmt: skip
regressor("validation rows", "real, validation", loss="absolute", **_patient)
regressor("validation metric", "real, validation", metric=largest_miss, max_depth=3, **_patient)
classifier("categories, 3 classes", "categories, three classes", max_depth=3,
           categorical_features=[2, 3])  # fmt: skip
classifier("frame", "frame, two classes", categorical_features="from_dtype", max_depth=3,
           monotonic_cst={"a": 1})  # fmt: skip
regressor("frame", "frame, real", categorical_features="from_dtype", max_depth=3,
          monotonic_cst={"a": 1, "b": -1})  # fmt: skip
classifier("odd columns", "two classes, odd columns", missing="learn")
regressor("odd columns, trees", "real, odd columns", max_depth=3)
regressor("float32", "real, float32")
regressor("whole weights, trees", "real, whole weights", max_depth=3)
regressor("upper quantile", "real", loss="quantile", quantile=0.9, max_depth=2)
regressor("a quantile loss", "real, weights", loss=Quantile(0.2))
regressor("three quantiles", "real, weights", loss="quantile", quantile=[0.1, 0.5, 0.9])
regressor("three quantiles, trees", "real, holes", loss="quantile", quantile=[0.1, 0.5, 0.9],
          max_depth=3, subsample=0.7)  # fmt: skip
regressor("absolute, monotone stumps", "real", loss="absolute", monotonic_cst=_cst)
regressor("quantile, monotone trees", "real, weights", loss="quantile", quantile=0.8,
          monotonic_cst=_cst, max_depth=4, l2_regularization=2.0)  # fmt: skip
regressor("a Huber loss", "real, weights", loss=Huber(0.4), step="newton")
regressor("a Huber loss, trees", "real, noise", loss=Huber(0.4), max_depth=3)
for step, (shape, size) in product(("line_search", "newton", "constant"), SHAPES.items()):
    regressor(f"custom loss, {step}, {shape}", "real, weights", loss=QUARTIC, step=step, **size)
regressor("custom loss, not convex", "real", loss=RATIONAL, step="constant")
classifier("custom loss", "two classes", loss=QUARTIC_MARGIN, max_depth=2)
regressor("poisson, weights", "counts, weights", loss="poisson", step="newton", max_depth=3)
regressor("diabetes", "diabetes", max_depth=None, max_leaf_nodes=8)
classifier("wine", "wine", max_depth=2)
classifier("digits", "digits", n_estimators=4)
classifier("22500 rows, weights", "two classes, 22500 rows, weights", n_estimators=6)
classifier("20500 rows, 3 classes, trees", "three classes, 20500 rows", n_estimators=2,
           max_depth=4)  # fmt: skip
regressor("20500 rows, squared", "real, 20500 rows", n_estimators=8)
regressor("22500 rows, absolute, trees", "real, 22500 rows, weights", loss="absolute",
          n_estimators=3, max_depth=None, max_leaf_nodes=12)  # fmt: skip

# --- rankings -----------------------------------------------------------------------------------


def ranker(name: str, rows: str, **changes: Any) -> None:
    add(f"boosting ranker: {name}", Fit(of("BoostingRanker", **changes), rows))


for loss, (shape, size) in product(RANKING, SHAPES.items()):
    ranker(f"{loss}, {shape}", "ranking", loss=loss, **size)
    ranker(f"{loss}, holes and weights, {shape}", "ranking, holes and weights", loss=loss, **size)
    ranker(f"{loss}, rows and features drawn, {shape}", "ranking", loss=loss, subsample=0.5,
           max_features=3, **size)  # fmt: skip
for loss, step in product(("exponential", "logistic"), ("line_search", "constant")):
    ranker(f"{loss}, {step}", "ranking", loss=loss, step=step)
ranker("lambda, constant", "ranking", loss="lambda", step="constant")
ranker("lambda of the first ranks", "ranking", loss="lambda", truncation=3)
for loss in RANKING:
    ranker(f"{loss}, weights of queries", "ranking, weights of queries", loss=loss)
for name, rows in {
    "plain": "ranking",
    "holes": "ranking, holes",
    "weights": "ranking, weights",
    "weights of queries": "ranking, weights of queries",
    "pairs": "pairs",
    "pairs with weights": "pairs, weights",
}.items():
    ranker(f"RankBoost, {name}", rows, variant="rankboost", learning_rate=1.0)
ranker("RankBoost, small steps", "ranking", variant="rankboost", learning_rate=0.2)
for loss, (shape, size) in product(("exponential", "logistic"), SHAPES.items()):
    ranker(f"{loss}, pairs, {shape}", "pairs", loss=loss, **size)
    ranker(f"{loss}, pairs with weights, {shape}", "pairs, weights", loss=loss, **size)
ranker("learn", "ranking, holes", missing="learn")
ranker("monotone stumps", "ranking", monotonic_cst=_cst)
ranker("monotone trees", "ranking", monotonic_cst=_cst, max_depth=3)
ranker("categories", "ranking, categories", categorical_features=[4, 5], max_depth=3)
ranker("no interactions", "ranking", interaction_cst="no_interactions", max_depth=3)
ranker("best first, restrained", "ranking", max_depth=None, max_leaf_nodes=6, min_samples_leaf=10,
       l2_regularization=1.0, min_hessian=0.5)  # fmt: skip
ranker("all values", "ranking", max_bins=None)
ranker("candidates", "ranking", step="line_search", candidates=3)
ranker("20500 rows", "ranking, 20500 rows", n_estimators=4)
ranker("20500 rows, trees", "ranking, 20500 rows", n_estimators=2, max_depth=4)
# parameters of stumps and trees are refused beside a learner
_not_given = {
    "min_samples_leaf": None, "min_hessian": None, "l2_regularization": None,
    "max_features": "auto",
}  # fmt: skip
ranker("half-spaces", "ranking, holes and weights", estimator=HalfSpaces(30), random_state=3,
       **_not_given)  # fmt: skip
ranker("own trees", "ranking", n_estimators=4, estimator=of("DecisionTreeRegressor", max_depth=2),
       **_not_given)  # fmt: skip
_stopping_late = {
    "early_stopping": True, "n_iter_no_change": 4, "n_estimators": 60, "learning_rate": 1.0,
    "metric": "pairwise_error",
}  # fmt: skip
ranker("validation queries", "ranking, validation", **_stopping_late)
ranker("held-out queries", "ranking, noise", validation_fraction=0.25, **_stopping_late)

# --- trees --------------------------------------------------------------------------------------


def tree(name: str, rows: str, **changes: Any) -> None:
    add(f"tree classifier: {name}", Fit(of("DecisionTreeClassifier", **changes), rows))


def real_tree(name: str, rows: str, **changes: Any) -> None:
    add(f"tree regressor: {name}", Fit(of("DecisionTreeRegressor", **changes), rows))


tree("log_loss", "two classes", criterion="log_loss")
for criterion in ("gini", "entropy", "error"):
    tree(criterion, "two classes", criterion=criterion)
    tree(f"{criterion}, 4 classes, weights", "four classes, holes and weights",
         criterion=criterion, min_samples_leaf=3)  # fmt: skip
    tree(f"{criterion}, best first", "two classes, noise", criterion=criterion, max_leaf_nodes=9)
    tree(f"{criterion}, best first, 4 classes", "four classes", criterion=criterion,
         max_leaf_nodes=9)  # fmt: skip
for criterion in ("squared_error", "poisson"):
    real_tree(criterion, "counts", criterion=criterion)
    real_tree(f"{criterion}, weights", "counts, weights", criterion=criterion)
    real_tree(f"{criterion}, best first", "counts", criterion=criterion, max_leaf_nodes=9)
for kind, two, holes, weights, cat in (
    (tree, "two classes", "two classes, holes", "two classes, weights", "categories, two classes"),
    (real_tree, "real", "real, holes", "real, weights", "categories, real"),
):
    kind("depth", two, max_depth=4)
    kind("depth and best first", two, max_depth=4, max_leaf_nodes=6)
    kind("random thresholds", two, splitter="random")
    kind("random thresholds of drawn features", holes, splitter="random", max_features=2)
    kind("drawn features", weights, max_features="log2", min_samples_leaf=2)
    kind("a share of the features, best first", two, max_features=0.4, max_leaf_nodes=15)
    kind("holes", holes)
    kind("holes, all values", holes, max_bins=None)
    kind("few bins", two, max_bins=7)
    kind("large splits", two, min_samples_split=0.1, min_samples_leaf=0.02)
    kind("weight of leaves", weights, min_weight_fraction_leaf=0.03)
    kind("fall of the impurity", two, min_impurity_decrease=0.01)
    kind("pruned", two, ccp_alpha=0.004)
    kind("monotone", two, monotonic_cst=_cst)
    kind("monotone, best first", weights, monotonic_cst=_cst, max_leaf_nodes=12)
    kind("categories", cat, categorical_features=[2, 3])
    kind("single categories", f"{cat}, weights", categorical_features=[2, 3],
         categorical_split="single")  # fmt: skip
    kind("random categories", cat, categorical_features=[2, 3], splitter="random")
tree("labels and weights of classes", "three classes, labels",
     class_weight={"wren": 2.0, "lark": 0.5, "kite": 1.0})  # fmt: skip
tree("balanced", "three classes, weights", class_weight="balanced", max_depth=5)
tree("whole weights", "two classes, whole weights", max_depth=5)
tree("extreme weights", "two classes, extreme weights")
tree("odd columns", "two classes, odd columns")
tree("categories, 3 classes", "categories, three classes", categorical_features=[2, 3])
tree("single categories, 3 classes", "categories, three classes", categorical_features=[2, 3],
     categorical_split="single")  # fmt: skip
tree("random thresholds, 4 classes", "four classes, holes", splitter="random", max_features=3)
tree("frame", "frame, two classes", categorical_features="from_dtype", max_depth=5)
tree("float32", "two classes, float32", max_bins=None)
tree("255 bins, 1500 rows", "two classes, 1500 rows", max_bins=255)
tree("all values, 1500 rows", "two classes, 1500 rows", max_bins=None)
tree("digits, all values", "digits", max_bins=None)
tree("iris", "iris")
tree("20500 rows", "two classes, 20500 rows", max_depth=8)
real_tree("255 bins, 1500 rows", "real, 1500 rows", max_bins=255)
real_tree("all values, 1500 rows", "real, 1500 rows", max_bins=None)
real_tree("whole weights", "real, whole weights", max_bins=None)
real_tree("odd columns", "real, odd columns")
real_tree("frame", "frame, real", categorical_features="from_dtype", monotonic_cst={"b": 1})
real_tree("diabetes", "diabetes", max_bins=None, ccp_alpha=2.0)
real_tree("20500 rows, all values", "real, 20500 rows", max_bins=None, min_samples_leaf=50)

# --- forests ------------------------------------------------------------------------------------


def forest(name: str, rows: str, then: tuple[dict[str, Any], ...] = (), **changes: Any) -> None:
    made = of("RandomForestClassifier", **changes)
    add(f"forest classifier: {name}", Fit(made, rows, then=then))


def real_forest(
    name: str, rows: str, then: tuple[dict[str, Any], ...] = (), **changes: Any
) -> None:
    made = of("RandomForestRegressor", **changes)
    add(f"forest regressor: {name}", Fit(made, rows, then=then))


for kind, two, holes, weights, cat in (
    (forest, "two classes", "two classes, holes", "two classes, weights",
     "categories, two classes"),
    (real_forest, "real", "real, holes", "real, weights", "categories, real"),
):  # fmt: skip
    kind("bootstrap", two)
    kind("all rows", two, bootstrap=False, max_features=2)
    kind("half of the rows", two, max_samples=0.5)
    kind("fifty rows, best first", two, max_samples=50, max_leaf_nodes=12)
    kind("out of bag", two, oob_score=True, n_estimators=25, max_depth=3)
    kind("more trees later", two, warm_start=True, n_estimators=3, then=({"n_estimators": 6},))
    kind("extremely randomised", holes, splitter="random", bootstrap=False)
    kind("randomised on bootstrap samples", two, splitter="random")
    kind("holes", holes)
    kind("weights", weights, max_depth=6)
    kind("categories", cat, categorical_features=[2, 3], max_features=2)
    kind("monotone", two, monotonic_cst=_cst, min_samples_leaf=5)
    kind("all values", holes, max_bins=None)
    kind("pruned", weights, ccp_alpha=0.005, min_impurity_decrease=0.001)
    kind("depths that rows out of the bag choose", weights, capacity="max_depth")
    kind("leaves that folds choose", holes, capacity="max_leaf_nodes", validation="cv")
    kind("alphas that held-out rows choose", two, capacity="ccp_alpha", validation="holdout")
forest("leaves by log-loss, 4 classes", "four classes, holes and weights",
       capacity="max_leaf_nodes", validation_loss="log_loss")  # fmt: skip
forest("depths by the Brier score", "two classes", capacity="max_depth", validation_loss="brier")
forest("whole weights", "two classes, whole weights")
forest("entropy, 4 classes", "four classes, holes and weights", criterion="entropy")
forest("error, 3 classes", "three classes", criterion="error", max_depth=6)
forest("balanced", "three classes, weights", class_weight="balanced")
forest("balanced bags", "three classes, weights", class_weight="balanced_subsample")
forest("balanced without bags", "three classes", class_weight="balanced_subsample",
       bootstrap=False)  # fmt: skip
forest("weights of classes", "three classes, labels", class_weight={"wren": 3.0})
forest("categories, 3 classes", "categories, three classes", categorical_features=[2, 3])
forest("single categories, 3 classes", "categories, three classes", categorical_features=[2, 3],
       categorical_split="single", splitter="random")  # fmt: skip
forest("digits", "digits", max_depth=8)
forest("22500 rows", "two classes, 22500 rows, weights", n_estimators=2, max_depth=7)
real_forest("whole weights", "real, whole weights")
real_forest("poisson", "counts, weights", criterion="poisson", max_features=0.5)
real_forest("frame", "frame, real", categorical_features="from_dtype", max_features=2)
real_forest("diabetes", "diabetes", max_features="sqrt", min_samples_leaf=3)

# --- the L1 ball --------------------------------------------------------------------------------


def ball(name: str, rows: str, kind: str = "L1BoostingClassifier", **changes: Any) -> None:
    add(f"ball: {name}", Fit(of(kind, **changes), rows))


ball("logistic", "two classes")
ball("exponential, greedy steps", "two classes", loss="exponential", step="frank_wolfe")
ball("penalised", "two classes, holes", alpha=0.01, radius=None, missing="learn")
ball("trees, weights", "two classes, weights", max_depth=2)
ball("3 classes", "three classes", radius=6.0, init="zero")
ball("chosen by folds", "two classes", radius="cv", radii=(1.0, 2.0, 4.0), n_folds=3)
ball("squared", "real, weights", "L1BoostingRegressor")
ball("huber", "real, holes", "L1BoostingRegressor", loss="huber")

# --- bagging ------------------------------------------------------------------------------------


def bagging(
    name: str, rows: str, learner: Made, *, group: str = EXACT, read: Any = members,
    then: tuple[dict[str, Any], ...] = (), real: bool = False, **changes: Any,
) -> None:  # fmt: skip
    kind, label = ("BaggingRegressor", "regressor") if real else ("BaggingClassifier", "classifier")
    made = of(kind, estimator=learner, **changes)
    add(f"bagging {label}: {name}", Fit(made, rows, group, read, then))


_tree, _real_tree = of("DecisionTreeClassifier"), of("DecisionTreeRegressor")
bagging("trees", "two classes", _tree)
bagging("trees, 4 classes, weights", "four classes, holes and weights", _tree)
bagging("trees, whole weights", "two classes, whole weights", _tree)
bagging("trees, half of the rows", "two classes", _tree, max_samples=0.5, bootstrap=False)
bagging("trees, drawn features", "two classes", _tree, max_features=0.5, max_samples=150)
bagging("trees, features drawn again", "four classes", _tree, max_features=4,
        bootstrap_features=True)  # fmt: skip
bagging("trees, votes", "four classes, noise", of("DecisionTreeClassifier", max_depth=3),
        voting="hard", read=predictions)  # fmt: skip
bagging("trees, out of bag", "two classes", of("DecisionTreeClassifier", max_depth=3),
        oob_score=True, n_estimators=25)  # fmt: skip
bagging("trees, more later", "two classes", _tree, n_estimators=2, warm_start=True,
        then=({"n_estimators": 5},))  # fmt: skip
bagging("random trees", "two classes", of("DecisionTreeClassifier", splitter="random"))
bagging("categories", "categories, three classes",
        of("DecisionTreeClassifier", categorical_features=[2, 3]), max_features=3)  # fmt: skip
bagging("small bags", "digits", of("DecisionTreeClassifier", max_depth=3), max_samples=8)
bagging("stumps", "two classes, holes", of("AdaBoostClassifier", n_estimators=6))
bagging("boosted trees", "three classes",
        of("BoostingClassifier", n_estimators=3, max_depth=2, subsample=0.5))  # fmt: skip
bagging("forests", "three classes", of("RandomForestClassifier", n_estimators=3))
bagging("trees", "real", _real_tree, real=True)
bagging("trees, weights", "real, holes and weights", _real_tree, real=True)
bagging("trees, half of the rows", "real", _real_tree, real=True, max_samples=0.5,
        bootstrap=False, max_features=0.7)  # fmt: skip
bagging("stumps", "real, weights", of("BoostingRegressor", n_estimators=8), real=True)
bagging("categories", "categories, real",
        of("BoostingRegressor", n_estimators=3, max_depth=2, categorical_features=[2, 3]),
        real=True, max_features=3)  # fmt: skip
bagging("their trees", "two classes", of(TheirTreeClassifier), group=SKLEARN)
bagging("their trees, weights", "four classes, noise", of(TheirTreeClassifier), group=SKLEARN,
        max_features=0.5)  # fmt: skip
bagging("naive Bayes", "three classes, weights", of(GaussianNB), group=SKLEARN)
bagging("neighbours", "two classes, weights", of(KNeighborsClassifier), group=SKLEARN,
        max_samples=0.6)  # fmt: skip
bagging("their trees", "real, weights", of(TheirTreeRegressor), group=SKLEARN, real=True)
bagging("neighbours", "real", of(KNeighborsRegressor), group=SKLEARN, real=True,
        bootstrap=False, max_samples=0.5)  # fmt: skip

# --- the record ---------------------------------------------------------------------------------


def numpy_functions() -> str:
    """Digest of NumPy's exp and log on this processor."""
    x = np.arange(1, 4097) / 64.0
    return digest(np.exp(-x), np.exp(x / 8.0), np.log(x))[:16]


def circumstances() -> dict[str, str]:
    """What fits that are not exact depend on."""
    return {"scikit-learn": sklearn.__version__, "numpy functions": numpy_functions()}


def comparable(group: str, recorded: dict[str, Any]) -> str:
    """Why fits of a group cannot be compared here; empty where they can."""
    needed = {EXACT: (), NUMPY: ("numpy functions",), SKLEARN: ("scikit-learn", "numpy functions")}
    now, then = circumstances(), recorded["made with"]
    other = [f"{name} {then[name]} (here {now[name]})" for name in needed[group]
             if then[name] != now[name]]  # fmt: skip
    return f"recorded with {', '.join(other)}" if other else ""


def read_record() -> dict[str, Any]:
    if not RECORD.exists():
        return {"made with": circumstances(), **{group: {} for group in GROUPS}}
    return json.loads(RECORD.read_text())


def write_record(found: dict[str, str]) -> None:
    groups = {
        group: {name: found[name] for name in sorted(found) if FITS[name].group == group}
        for group in GROUPS
    }
    RECORD.write_text(json.dumps({"made with": circumstances(), **groups}, indent=1) + "\n")


def compare(found: dict[str, str], recorded: dict[str, Any]) -> dict[str, list[str]]:
    """Names by what has become of them."""
    old = {name: text for group in GROUPS for name, text in recorded[group].items()}
    why = {group: comparable(group, recorded) for group in GROUPS}
    states: dict[str, list[str]] = {
        "the same": [], "changed": [], "changed, but not comparable": [], "new": [], "gone": [],
    }  # fmt: skip
    for name, text in found.items():
        if name not in old:
            state = "new"
        elif old[name] == text:
            state = "the same"
        else:
            state = "changed, but not comparable" if why[FITS[name].group] else "changed"
        states[state].append(name)
    states["gone"] = [name for name in old if name not in found]
    return states


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.record.fits")
    parser.add_argument("--write", action="store_true", help="write the record")
    parser.add_argument("--n-jobs", type=int, help="threads of the estimators")
    parser.add_argument("--engine", help="cpu (default), reference or cuda")
    parser.add_argument("--times", action="store_true", help="print the slowest fits")
    chosen = parser.parse_args(arguments)
    found, seconds = {}, {}
    with use_engine(chosen.engine) if chosen.engine else nullcontext():
        for name, fit in FITS.items():
            start = time.perf_counter()
            found[name] = fit.fingerprint(chosen.n_jobs)
            seconds[name] = time.perf_counter() - start
    states = compare(found, read_record())
    for state, names in states.items():
        if names or state == "the same":
            print(f"{len(names)} {state}")
        if state not in ("the same", "new"):
            print(*(f"  {name}" for name in names), sep="\n", end="\n" if names else "")
    if chosen.times:
        print(f"{sum(seconds.values()):.1f} s; the slowest:")
        for name in sorted(seconds, key=seconds.__getitem__)[:-21:-1]:
            print(f"  {seconds[name]:.3f} s  {name}")
    if chosen.write:
        write_record(found)
        return 0
    return int(bool(states["changed"] or states["new"] or states["gone"]))


if __name__ == "__main__":
    sys.exit(main())
