"""What a file can hold: the classes by their names in it, and what each of their fields has to be.

Another type is one entry. A class is looked up here and nowhere else, so that a file cannot name
code. Modules are written as text: they are imported when a file needs them, and no room that can
be saved is known to this one.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from ensemble_gpu.saving.fields import (
    LARGEST,
    Check,
    anything,
    array,
    each,
    finite,
    flag,
    instance,
    integer,
    items,
    labels,
    mapping,
    numbers,
    optional,
    real,
    text,
)


@dataclass(frozen=True)
class Value:
    """A class that is made from its fields: a frozen dataclass, or a model from its state.

    Those in `absent` are left to the class where the file does not have them. What is `derived`
    follows from the others, and is written for readers in other languages: its name in the file,
    and the attribute that it is.
    """

    module: str
    fields: Mapping[str, Check]
    absent: frozenset[str] = frozenset()
    derived: Mapping[str, str] = field(default_factory=dict)
    name: str | None = None  # of the class, where it is another than in the file


@dataclass(frozen=True)
class Estimator:
    """A class with parameters; a fitted one has the attributes `required` at least."""

    module: str
    required: frozenset[str] = frozenset()
    name: str | None = None


def vector(*kinds: str) -> Check:
    return array(1, *kinds)


def matrix(*kinds: str) -> Check:
    return array(2, *kinds)


FLOAT, INT = "float64", "int64"
COUNT, OUTPUTS = integer(), vector(FLOAT)
LINK = text("margins", "votes", "logistic", "linear", "identity", "log", "increasing")
MODELS = (
    "AdditiveModel", "Committee", "DerivedModel", "Forest", "KernelModel", "LinearModel",
    "NeighbourModel", "SplineModel", "VoteModel",
)  # fmt: skip
VOICES, VOTERS = ("Answers", "CodedVoice", "Voice"), ("AnswersOnly", "Member", "Rectangle")
GENERATORS = ("BallGenerators", "BoxGenerators", "HalfSpaceGenerators")

_TABLES = {
    "feature": vector(INT), "start": vector(INT), "thresholds": vector(FLOAT),
    "values": matrix(FLOAT), "missing": matrix(FLOAT),
}  # fmt: skip
_ROUNDS = {
    "feature": vector(INT, "int32"), "threshold": vector(FLOAT),
    "missing_leaf": vector(INT, "int32", "int8", "uint8"), "values": array(3, FLOAT),
    "alpha": vector(FLOAT), "error": vector(FLOAT),
}  # fmt: skip
_ADDITIVE = {
    "rounds": instance("Rounds"), "n_features": COUNT, "intercept": OUTPUTS,
    "ends": optional(vector(INT)),
}  # fmt: skip
_NODES = {
    "feature": vector("int32"), "threshold": vector(FLOAT), "missing_left": vector("bool"),
    "left": vector("int32"), "right": vector("int32"), "subset": vector("int32"),
    "value": matrix(FLOAT), "impurity": vector(FLOAT), "n_samples": vector("int32"),
    "weight": vector(FLOAT),
}  # fmt: skip
_FOREST = {
    "nodes": instance("Nodes"), "starts": vector(INT), "n_features": COUNT,
    "subsets": matrix("uint64"), "categories": mapping(COUNT, vector(FLOAT)),
    "intercept": OUTPUTS, "average": flag, "ends": optional(vector(INT)),
}  # fmt: skip
_COMMITTEE = {
    "learners": each(anything, tuple), "alphas": vector(FLOAT), "voice": instance(*VOICES),
    "n_features": COUNT, "intercept": OUTPUTS,
}  # fmt: skip
_VOTES = {
    "voters": each(instance(*VOTERS), tuple), "chosen": vector(INT), "alphas": vector(FLOAT),
    "n_features": COUNT, "intercept": OUTPUTS,
}  # fmt: skip
_NEIGHBOURS = {
    "rows": matrix(FLOAT), "values": array(3, FLOAT), "n_neighbors": integer(1),
    "shift": vector(FLOAT), "scale": vector(FLOAT), "intercept": OUTPUTS,
}  # fmt: skip
_SPLINE = {
    "features": vector(INT), "knots": each(vector(FLOAT), tuple), "terms": vector(INT),
    "values": matrix(FLOAT), "constants": vector(FLOAT), "intercept": OUTPUTS, "n_features": COUNT,
}  # fmt: skip
_KERNEL = {
    "rows": matrix(FLOAT), "coefficients": matrix(FLOAT), "width": finite, "intercept": OUTPUTS,
}  # fmt: skip
_HISTORY = {
    "training": vector(FLOAT), "validation": vector(FLOAT), "weights": matrix(FLOAT),
    "evals": mapping(text(), mapping(text(), vector(FLOAT))),
    "decides": optional(items(text(), text())), "greater_is_better": flag,
}  # fmt: skip
_BAGS = {
    "seed": COUNT, "replace": flag, "n_draws": COUNT, "n_rows": COUNT,
    "rows": optional(vector(INT, "int32")), "repeats": optional(numbers(1)),
    "chances": optional(vector(FLOAT)), "factor": optional(vector(FLOAT)),
}  # fmt: skip
_BACKGROUND = {
    "features": vector(INT), "starts": vector(INT), "thresholds": vector(FLOAT),
    "weight": vector(FLOAT), "missing": vector(FLOAT),
}  # fmt: skip
_SHAPE = {
    "n_features": COUNT, "names": optional(each(anything)), "classes": optional(each(anything)),
    "categories": instance("Categories"),
}  # fmt: skip
_RECTANGLE = {
    "f": COUNT, "g": COUNT, "limits": items(real, real, real, real), "sign": integer(-1, 1),
    "outside": integer(-1, 1),
}  # fmt: skip


def _model(file: str, fields: Mapping[str, Check], **more: Any) -> Value:
    return Value(f"ensemble_gpu.model.{file}", fields, **more)


def _loss(file: str, **fields: Check) -> Value:
    return Value(f"ensemble_gpu.losses.{file}", fields)


VALUES: dict[str, Value] = {
    "Rounds": _model("additive", _ROUNDS),
    "JoinedTables": _model("additive", _TABLES),
    "AdditiveModel": _model(
        "additive", _ADDITIVE, derived={"tables": "joined"}
    ),
    "Nodes": _model("nodes", _NODES, absent=frozenset({"subset"})),
    "Forest": _model("forest", _FOREST),
    "Committee": _model("committee", _COMMITTEE),
    "Voice": _model(
        "committee", {"n_classes": integer(2), "least": optional(finite), "signed": flag}
    ),
    "CodedVoice": _model(
        "committee", {"n_classes": integer(2), "binary": instance("Voice"), "link": LINK}
    ),
    "Answers": _model("answers", {"n_outputs": integer(1), "signs": flag}),
    "Each": _model("answers", {"learners": each(anything, tuple)}),
    "Coded": _model("answers", {"learner": anything, "code": each(real, tuple)}),
    "Always": _model("answers", {"label": integer(-LARGEST)}),
    "VoteModel": _model("votes", _VOTES),
    "DerivedModel": _model(
        "derived",
        {
            "grid": instance("Grid"), "generators": instance(*GENERATORS),
            "model": instance("AdditiveModel"),
        },
    ),
    "Grid": _model("generators", {"centre": vector(FLOAT), "scale": vector(FLOAT)}),
    "HalfSpaceGenerators": _model("generators", {"used": matrix("bool"), "w": matrix(FLOAT)}),
    "BallGenerators": _model("generators", {"used": matrix("bool"), "c": matrix(FLOAT)}),
    "BoxGenerators": _model(
        "generators", {"used": matrix("bool"), "c": matrix(FLOAT), "m": matrix(FLOAT)}
    ),
    "LinearModel": _model(
        "linear",
        {"coefficients": array(3, FLOAT), "constants": matrix(FLOAT), "intercept": OUTPUTS},
    ),
    "NeighbourModel": _model("neighbours", _NEIGHBOURS),
    "KernelModel": _model("kernel", _KERNEL),
    "SplineModel": _model("spline", _SPLINE),
    "Member": Value(
        "ensemble_gpu.learners.members",
        {"number": COUNT, "source": anything, "classes": optional(labels)},
    ),
    "AnswersOnly": Value("ensemble_gpu.learners.members", {"number": COUNT}),
    "Rectangle": Value("ensemble_gpu.learners.rectangles", _RECTANGLE),
    "History": Value("ensemble_gpu.boosting.watching", _HISTORY),
    "Categories": Value(
        "ensemble_gpu.data.categories",
        {"values": mapping(COUNT, vector(FLOAT)), "labels": mapping(COUNT, each(anything))},
    ),
    "Shape": Value("ensemble_gpu.estimators.shape", _SHAPE),
    "Bags": Value("ensemble_gpu.data.bags", _BAGS),
    "Background": Value("ensemble_gpu.explaining.background", _BACKGROUND),
    "RadiusScores": Value(
        "ensemble_gpu.l1.radius",
        {"radii": vector(FLOAT), "losses": anything, "errors": anything},
    ),
    "Exponential": _loss("margin"),
    "Logistic": _loss("margin"),
    "LogitBoost": _loss("margin"),
    "SquaredMargin": _loss("margin"),
    "TruncatedSquared": _loss("margin"),
    "Hinge": _loss("margin"),
    "Multinomial": _loss("multinomial", n_classes=optional(integer(2))),
    "Quantiles": _loss("quantiles", quantiles=each(real, tuple)),
    "Squared": _loss("regression"),
    "Absolute": _loss("regression"),
    "Huber": _loss("regression", delta=real),
    "Quantile": _loss("regression", quantile=real),
    "Poisson": _loss("regression"),
}  # fmt: skip

_MODELLED = frozenset({"n_features_in_", "model_"})
_BOOSTED = _MODELLED | {"link_", "n_estimators_"}
_CLASSES = frozenset({"classes_"})
_BAGGED = frozenset({
    "n_features_in_", "estimator_", "estimators_", "estimators_features_", "bags_", "_categories",
    "_fitted_for",
})  # fmt: skip
_GROWN = frozenset({"_categories", "_seed", "_grown_for", "_grown_with", "_drawn"})


def _estimator(module: str, *required: Set[str], name: str | None = None) -> Estimator:
    return Estimator(f"ensemble_gpu.{module}", frozenset().union(*required), name)


ESTIMATORS: dict[str, Estimator] = {
    "AdaBoostClassifier": _estimator("boosting.adaboost", _BOOSTED, _CLASSES, {"scale_"}),
    "BoostingClassifier": _estimator("boosting.estimators", _BOOSTED, _CLASSES),
    "BoostingRegressor": _estimator("boosting.estimators", _BOOSTED),
    "BoostingRanker": _estimator("boosting.boosting_ranker", _BOOSTED),
    "L1BoostingClassifier": _estimator("l1.estimators", _BOOSTED, _CLASSES),
    "L1BoostingRegressor": _estimator("l1.estimators", _BOOSTED),
    "L2BoostRegressor": _estimator("smoothers.l2boost", _MODELLED),
    "DecisionTreeClassifier": _estimator("trees.tree", _MODELLED, _CLASSES, {"_categories"}),
    "DecisionTreeRegressor": _estimator("trees.tree", _MODELLED, {"_categories"}),
    "RandomForestClassifier": _estimator("bagging.random_forest", _MODELLED, _CLASSES, _GROWN),
    "RandomForestRegressor": _estimator("bagging.random_forest", _MODELLED, _GROWN),
    "BaggingClassifier": _estimator("bagging.bagging", _BAGGED, _CLASSES, {"n_classes_"}),
    "BaggingRegressor": _estimator("bagging.bagging", _BAGGED),
    "OneClass": _estimator("bagging.learners", _CLASSES),
    "NeighboursClassifier": _estimator("neighbours.estimators", _MODELLED, _CLASSES),
    "NeighboursRegressor": _estimator("neighbours.estimators", _MODELLED),
    "LinearClassifier": _estimator("linear.classifier", _MODELLED, _CLASSES, {"link_"}),
    "RidgeRegressor": _estimator("linear.ridge", _MODELLED),
    "ThresholdClassifier": _estimator(
        "selection.thresholds", _CLASSES, {"estimator_", "threshold_"}
    ),
    "Pool": _estimator("learners.pool"),
    "HalfSpaces": _estimator("learners.half_spaces"),
    "Balls": _estimator("learners.balls"),
    "Boxes": _estimator("learners.boxes"),
    "Rectangles": _estimator("learners.rectangles"),
    "Neighbours": _estimator("learners.neighbours"),
    "Ridge": _estimator("learners.ridge"),
    "smoothers.Ridge": _estimator("smoothers.linear", name="Ridge"),
    "smoothers.Linear": _estimator("smoothers.linear", name="Linear"),
    "smoothers.Neighbours": _estimator("smoothers.neighbours", name="Neighbours"),
    "smoothers.KernelRidge": _estimator("smoothers.kernel", name="KernelRidge"),
    "smoothers.Spline": _estimator("smoothers.spline", name="Spline"),
    "smoothers.Stumps": _estimator("smoothers.dictionary", name="Stumps"),
    "smoothers.Precomputed": _estimator("smoothers.precomputed", name="Precomputed"),
}

# What a fit leaves on an estimator and a file keeps; a name means the same for all of them.
FITTED: dict[str, Check] = {
    "n_features_in_": integer(1),
    "feature_names_in_": labels,
    "classes_": labels,
    "n_classes_": integer(1),
    "model_": instance(*MODELS),
    "link_": LINK,
    "scale_": finite,
    "history_": instance("History"),
    "validation_loss_": vector(FLOAT),
    "feature_importances_": vector(FLOAT),
    "n_estimators_": COUNT,
    "alphas_": vector(FLOAT),
    "errors_": vector(FLOAT),
    "stop_reason_": text(),
    "engine_": text("cpu", "cuda", "reference"),
    "background_": instance("Background"),
    "_categories": instance("Categories"),
    "_class_factor": vector(FLOAT),
    "oob_score_": real,
    "oob_decision_function_": matrix(FLOAT),
    "oob_prediction_": vector(FLOAT),
    "_seed": COUNT,
    "_grown_for": instance("Shape"),
    "_grown_with": mapping(text(), anything),
    "_drawn": each(items(optional(COUNT), integer(0, 2**32))),
    "capacity_grid_": each(anything, tuple),
    "capacities_": each(anything, tuple),
    "validation_curves_": matrix(FLOAT),
    "estimator_": anything,
    "estimators_": each(anything),
    "estimators_features_": each(vector(INT)),
    "bags_": each(instance("Bags")),
    "_fitted_for": instance("Shape"),
    "threshold_": real,
    "coef_": anything,
    "intercept_": anything,
    "n_iter_": COUNT,
    "converged_": flag,
    "certified_": flag,
    "cv_": instance("RadiusScores"),
    "l1_norm_": real,
    "penalty_": anything,
    "radius_": real,
    "loss_": vector(FLOAT),
    "gap_": vector(FLOAT),
    "coefficients_": vector(FLOAT),
    "df_": vector(FLOAT),
    "rss_": vector(FLOAT),
    "criteria_": mapping(text(), vector(FLOAT)),
    "chosen_": vector(INT),
}

# Parameters that belong to a run and not to the model: None in a file.
RUN_ONLY = frozenset({"callbacks"})

_BY_CLASS = {
    (entry.module, entry.name or name): name
    for table in (VALUES, ESTIMATORS)
    for name, entry in table.items()
}


def name_of(value: Any) -> str | None:
    """What a file calls the class of an object; None where it cannot hold one."""
    kind = type(value)
    return _BY_CLASS.get((kind.__module__, kind.__qualname__))


def class_of(name: str) -> Any:
    entry = VALUES.get(name) or ESTIMATORS[name]
    return getattr(import_module(entry.module), entry.name or name)
