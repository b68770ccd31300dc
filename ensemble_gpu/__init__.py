"""Boosting, trees and forests on any array library: three engines, the same model everywhere.

Importing this package starts no GPU and imports no array library; the names below are loaded
when they are first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ensemble_gpu.bagging.bagging import BaggingClassifier, BaggingRegressor
    from ensemble_gpu.bagging.random_forest import RandomForestClassifier, RandomForestRegressor
    from ensemble_gpu.batches.batches import Batches
    from ensemble_gpu.batches.predicting import predict_batches
    from ensemble_gpu.boosting.adaboost import AdaBoostClassifier
    from ensemble_gpu.boosting.boosting_ranker import BoostingRanker
    from ensemble_gpu.boosting.estimators import BoostingClassifier, BoostingRegressor
    from ensemble_gpu.boosting.watching import ProgressBar, TqdmBar
    from ensemble_gpu.estimators.checkpoint import Checkpoint
    from ensemble_gpu.estimators.progress import RoundInfo
    from ensemble_gpu.export.code import to_code
    from ensemble_gpu.export.onnx_model import to_onnx
    from ensemble_gpu.export.treelite_model import to_treelite
    from ensemble_gpu.kernels.select import use_engine
    from ensemble_gpu.l1.estimators import L1BoostingClassifier, L1BoostingRegressor
    from ensemble_gpu.linear.classifier import LinearClassifier
    from ensemble_gpu.linear.ridge import RidgeRegressor
    from ensemble_gpu.losses.schedules import consistent_radius, consistent_rounds
    from ensemble_gpu.model.additive import AdditiveModel
    from ensemble_gpu.model.export import export_text
    from ensemble_gpu.model.forest import Forest
    from ensemble_gpu.model.impurity import impurity
    from ensemble_gpu.model.rules import rules
    from ensemble_gpu.neighbours.estimators import NeighboursClassifier, NeighboursRegressor
    from ensemble_gpu.paths.path import Path
    from ensemble_gpu.paths.regularization import regularization_path
    from ensemble_gpu.plotting.tree import plot_tree
    from ensemble_gpu.reporting.report import report_html
    from ensemble_gpu.saving.files import load, read_header, save
    from ensemble_gpu.selection.cross_validation import cross_validate
    from ensemble_gpu.selection.tuning import tune
    from ensemble_gpu.smoothers.l2boost import L2BoostRegressor
    from ensemble_gpu.trees.tree import DecisionTreeClassifier, DecisionTreeRegressor

__version__ = "0.1.0"

_HOME = {
    "AdaBoostClassifier": "ensemble_gpu.boosting.adaboost",
    "AdditiveModel": "ensemble_gpu.model.additive",
    "BaggingClassifier": "ensemble_gpu.bagging.bagging",
    "BaggingRegressor": "ensemble_gpu.bagging.bagging",
    "Batches": "ensemble_gpu.batches.batches",
    "BoostingClassifier": "ensemble_gpu.boosting.estimators",
    "BoostingRanker": "ensemble_gpu.boosting.boosting_ranker",
    "BoostingRegressor": "ensemble_gpu.boosting.estimators",
    "Checkpoint": "ensemble_gpu.estimators.checkpoint",
    "DecisionTreeClassifier": "ensemble_gpu.trees.tree",
    "DecisionTreeRegressor": "ensemble_gpu.trees.tree",
    "Forest": "ensemble_gpu.model.forest",
    "L1BoostingClassifier": "ensemble_gpu.l1.estimators",
    "L1BoostingRegressor": "ensemble_gpu.l1.estimators",
    "L2BoostRegressor": "ensemble_gpu.smoothers.l2boost",
    "LinearClassifier": "ensemble_gpu.linear.classifier",
    "NeighboursClassifier": "ensemble_gpu.neighbours.estimators",
    "NeighboursRegressor": "ensemble_gpu.neighbours.estimators",
    "Path": "ensemble_gpu.paths.path",
    "ProgressBar": "ensemble_gpu.boosting.watching",
    "RandomForestClassifier": "ensemble_gpu.bagging.random_forest",
    "RandomForestRegressor": "ensemble_gpu.bagging.random_forest",
    "RidgeRegressor": "ensemble_gpu.linear.ridge",
    "RoundInfo": "ensemble_gpu.estimators.progress",
    "TqdmBar": "ensemble_gpu.boosting.watching",
    "consistent_radius": "ensemble_gpu.losses.schedules",
    "consistent_rounds": "ensemble_gpu.losses.schedules",
    "cross_validate": "ensemble_gpu.selection.cross_validation",
    "export_text": "ensemble_gpu.model.export",
    "impurity": "ensemble_gpu.model.impurity",
    "load": "ensemble_gpu.saving.files",
    "plot_tree": "ensemble_gpu.plotting.tree",
    "predict_batches": "ensemble_gpu.batches.predicting",
    "read_header": "ensemble_gpu.saving.files",
    "regularization_path": "ensemble_gpu.paths.regularization",
    "report_html": "ensemble_gpu.reporting.report",
    "rules": "ensemble_gpu.model.rules",
    "save": "ensemble_gpu.saving.files",
    "to_code": "ensemble_gpu.export.code",
    "to_onnx": "ensemble_gpu.export.onnx_model",
    "to_treelite": "ensemble_gpu.export.treelite_model",
    "tune": "ensemble_gpu.selection.tuning",
    "use_engine": "ensemble_gpu.kernels.select",
}

__all__ = [
    "AdaBoostClassifier",
    "AdditiveModel",
    "BaggingClassifier",
    "BaggingRegressor",
    "Batches",
    "BoostingClassifier",
    "BoostingRanker",
    "BoostingRegressor",
    "Checkpoint",
    "DecisionTreeClassifier",
    "DecisionTreeRegressor",
    "Forest",
    "L1BoostingClassifier",
    "L1BoostingRegressor",
    "L2BoostRegressor",
    "LinearClassifier",
    "NeighboursClassifier",
    "NeighboursRegressor",
    "Path",
    "ProgressBar",
    "RandomForestClassifier",
    "RandomForestRegressor",
    "RidgeRegressor",
    "RoundInfo",
    "TqdmBar",
    "__version__",
    "consistent_radius",
    "consistent_rounds",
    "cross_validate",
    "export_text",
    "impurity",
    "load",
    "plot_tree",
    "predict_batches",
    "read_header",
    "regularization_path",
    "report_html",
    "rules",
    "save",
    "to_code",
    "to_onnx",
    "to_treelite",
    "tune",
    "use_engine",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
