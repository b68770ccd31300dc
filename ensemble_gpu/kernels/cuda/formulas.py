"""kernels/formulas.py compiled for the device, as globals that kernels can call."""

from ensemble_gpu.kernels.cuda._numba import cuda, product
from ensemble_gpu.kernels.formulas import formulas

__all__ = [
    "confidence", "gentle", "mean", "pair_gini", "square_share", "weight", "weighted_log",
]  # fmt: skip

_compiled = formulas(cuda.jit(device=True), product)

weight, confidence, gentle = _compiled.weight, _compiled.confidence, _compiled.gentle
pair_gini, square_share = _compiled.pair_gini, _compiled.square_share
mean, weighted_log = _compiled.mean, _compiled.weighted_log
