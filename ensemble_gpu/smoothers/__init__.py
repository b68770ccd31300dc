"""Linear smoothers for L2BoostRegressor, and what theory says about repeated smoothing."""

from ensemble_gpu.smoothers.dictionary import Stumps
from ensemble_gpu.smoothers.kernel import KernelRidge
from ensemble_gpu.smoothers.linear import Linear, Ridge
from ensemble_gpu.smoothers.neighbours import Neighbours
from ensemble_gpu.smoothers.precomputed import Precomputed
from ensemble_gpu.smoothers.spectrum import (
    BestRounds,
    BiasVariance,
    another_fit_helps,
    best_rounds,
)
from ensemble_gpu.smoothers.spline import Spline

__all__ = [
    "BestRounds",
    "BiasVariance",
    "KernelRidge",
    "Linear",
    "Neighbours",
    "Precomputed",
    "Ridge",
    "Spline",
    "Stumps",
    "another_fit_helps",
    "best_rounds",
]
