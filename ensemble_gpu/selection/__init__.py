"""Choose and judge models: cross-validation in one pass, grids, thresholds."""

from ensemble_gpu.selection.cross_validation import cross_validate
from ensemble_gpu.selection.result import CrossValidation
from ensemble_gpu.selection.thresholds import ThresholdClassifier, choose_threshold
from ensemble_gpu.selection.tuning import Risk, RiskTable, tune

__all__ = [
    "CrossValidation",
    "Risk",
    "RiskTable",
    "ThresholdClassifier",
    "choose_threshold",
    "cross_validate",
    "tune",
]
