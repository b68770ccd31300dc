"""Boosted stumps on any array library: one codebase, three engines, the same model everywhere.

Importing this package starts no GPU and imports no array library; the names below are loaded
when they are first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ensemble_gpu.boosting.adaboost import AdaBoostClassifier
    from ensemble_gpu.boosting.gradient import BoostingClassifier, BoostingRegressor
    from ensemble_gpu.boosting.watching import ProgressBar, RoundInfo, TqdmBar
    from ensemble_gpu.kernels.select import use_engine
    from ensemble_gpu.model.additive import AdditiveModel

__version__ = "0.1.0"

_HOME = {
    "AdaBoostClassifier": "ensemble_gpu.boosting.adaboost",
    "AdditiveModel": "ensemble_gpu.model.additive",
    "BoostingClassifier": "ensemble_gpu.boosting.gradient",
    "BoostingRegressor": "ensemble_gpu.boosting.gradient",
    "ProgressBar": "ensemble_gpu.boosting.watching",
    "RoundInfo": "ensemble_gpu.boosting.watching",
    "TqdmBar": "ensemble_gpu.boosting.watching",
    "use_engine": "ensemble_gpu.kernels.select",
}

__all__ = [
    "AdaBoostClassifier",
    "AdditiveModel",
    "BoostingClassifier",
    "BoostingRegressor",
    "ProgressBar",
    "RoundInfo",
    "TqdmBar",
    "__version__",
    "use_engine",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
