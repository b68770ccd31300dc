"""The engine for a place: by device, not by library."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from ensemble_gpu.arrays.namespace import CUDA, HOST, Where
from ensemble_gpu.kernels.protocol import Engine
from ensemble_gpu.kernels.team import current_team

_FORCED: ContextVar[str | None] = ContextVar("ensemble_gpu_engine", default=None)
ENGINES = ("cpu", "cuda", "reference")


@contextmanager
def use_engine(name: str) -> Iterator[None]:
    """Fits and predictions inside the block run on the named engine.

    For comparing engines: the model is the same on all three, so there is no other reason.
    """
    if name not in ENGINES:
        raise ValueError(f"engine must be one of {', '.join(map(repr, ENGINES))}; got {name!r}.")
    token = _FORCED.set(name)
    try:
        yield
    finally:
        _FORCED.reset(token)


def engine_for(where: Where, n_jobs: int | None = None) -> Engine:
    """The engine that can reach an array's memory; with others, where rows are shared with them."""
    own, team = _own_engine(where, n_jobs), current_team()
    if team.alone:
        return own
    from ensemble_gpu.kernels.teams.engine import TeamEngine

    return TeamEngine(own, team)


def _own_engine(where: Where, n_jobs: int | None) -> Engine:
    name = _FORCED.get() or {HOST: "cpu", CUDA: "cuda"}.get(where.kind, "reference")
    if name == "cpu":
        from ensemble_gpu.kernels.cpu.engine import CpuEngine

        return CpuEngine(n_jobs)
    if name == "cuda":
        from ensemble_gpu.kernels.cuda import available

        if available.kernels():
            from ensemble_gpu.kernels.cuda.engine import CudaEngine

            return CudaEngine(where)
        warnings.warn(available.MISSING_KERNELS, RuntimeWarning, stacklevel=2)
    from ensemble_gpu.kernels.reference.engine import ReferenceEngine

    return ReferenceEngine(where)
