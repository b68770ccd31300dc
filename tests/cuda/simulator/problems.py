"""Small problems for the engines, and what they hold, in one form for all three."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ensemble_gpu.arrays.namespace import NUMPY
from ensemble_gpu.boosting.rules import AdaBoostRule, rule_for
from ensemble_gpu.kernels import fixedpoint
from ensemble_gpu.kernels.cpu.engine import CpuEngine
from ensemble_gpu.kernels.cuda.engine import CudaEngine
from ensemble_gpu.kernels.cuda.launch import LaunchPlan
from ensemble_gpu.kernels.edges import edges_of
from ensemble_gpu.kernels.protocol import Codes, Criterion, Layout
from ensemble_gpu.kernels.reference.engine import ReferenceEngine


@dataclass(frozen=True)
class Problem:
    """X with its rows sorted by class, a rule, and fixed-point log weights or None."""

    X: np.ndarray
    rows: np.ndarray
    layout: Layout
    rule: AdaBoostRule
    log_weights: np.ndarray | None
    edges: list[np.ndarray]


@dataclass(frozen=True)
class State:
    """An engine's histograms as host arrays: q[plane, row], sums[group, feature, code]."""

    q: np.ndarray
    sums: np.ndarray


def problem(
    n: int = 50,
    p: int = 3,
    n_classes: int = 2,
    variant: str = "real",
    bins: int = 6,
    missing: float = 0.2,
    weighted: bool = False,
    seed: int = 0,
) -> Problem:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)).astype(np.float32)
    X[rng.random(X.shape) < missing] = np.nan
    y = np.concatenate([np.arange(n_classes), rng.integers(n_classes, size=n - n_classes)])
    rows = np.argsort(y, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(y))]).astype(np.int64)
    rule = rule_for(variant, n_classes)
    log_weights = None
    if weighted:
        log_weights = fixedpoint.log2_fixed(rng.gamma(1.0, size=n) + 1e-3, NUMPY)
    edges = edges_of(CpuEngine(1).gaps(X, rows, bins))
    return Problem(X, rows, Layout(starts, rule.group_of), rule, log_weights, edges)


def cuda_engine(plan: LaunchPlan | None = None) -> CudaEngine:
    return CudaEngine(NUMPY, plan)


def engines(plan: LaunchPlan | None = None) -> list[Any]:
    """The CUDA engine first, then the two that it is compared with."""
    return [cuda_engine(plan), CpuEngine(1), ReferenceEngine(NUMPY)]


def prepare(engine: Any, problem: Problem) -> tuple[Codes, Any]:
    """Codes and histograms of an engine, before the first requantisation."""
    codes = engine.encode(problem.X, problem.edges, problem.rows, problem.layout)
    return codes, engine.histograms(codes, problem.layout, problem.log_weights)


def state(engine: Any, codes: Codes, histograms: Any) -> State | None:
    """A copy of q and sums; the CPU engine keeps its own to itself and is judged by its splits."""
    if engine.name == "cpu":
        return None
    if engine.name == "reference":
        return State(np.stack(histograms.q), histograms.sums.copy())
    rows = histograms.rows
    sums = rows.sums.reshape(rows.groups, -1, rows.stride)
    return State(rows.q.copy(), sums[:, : codes.n_features, : codes.width].copy())


def log_tables(problem: Problem, codes: Codes, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Random tables of features 0 and p - 1, as if stumps had used them."""
    shape = (problem.layout.n_groups, codes.n_features, codes.width)
    values = np.random.default_rng(seed).normal(scale=2.0, size=shape)
    used = np.unique([0, codes.n_features - 1])
    values[:, np.setdiff1d(np.arange(codes.n_features), used)] = 0.0
    return fixedpoint.from_log(values), used


def criterion(problem: Problem, codes: Codes, learn_missing: bool) -> Criterion:
    n_thresholds = np.array([len(e) for e in problem.edges])
    if learn_missing:
        n_thresholds = n_thresholds + (codes.counts[:, :, -1] > 0).any(axis=0)
    groups = problem.layout.n_groups
    abstention = problem.rule.chance * scale(groups)
    return Criterion(problem.rule.kind, abstention, learn_missing, n_thresholds)


def scale(groups: int) -> np.ndarray:
    """Scales with odd fractions, so that a fused product would round differently."""
    return 1.0 / (3.0 + 2.0 * np.arange(groups))


def assert_equal_states(states: list[State | None]) -> None:
    first, *others = (s for s in states if s is not None)
    assert others
    for other in others:
        np.testing.assert_array_equal(first.q, other.q)
        np.testing.assert_array_equal(first.sums, other.sums)
