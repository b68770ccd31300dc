"""`python -m ensemble_gpu compile`: every kernel into the cache, for images and CI.

A kernel is compiled for the types of its arguments, so what has to be compiled is found by fits:
small ones of every estimator, with the losses, numbers of classes, types and layouts of arrays that
lead to other kernels. They are dealt to processes, one after the other, so that each finds in the
cache what the others have compiled; then one process goes through all of them again, because two
that write into the cache at the same moment may lose an entry.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from itertools import product
from multiprocessing import get_context
from typing import Any

import numpy as np

import ensemble_gpu
from ensemble_gpu.learners import HalfSpaces, Pool, Rectangles
from ensemble_gpu.losses import CLASSIFICATION, RANKING, REGRESSION

N_ROWS, N_FEATURES = 2_500, 12
# So many that gradients are packed in pairs.
MANY_ROWS = 20_500
LAYOUTS = list(product(("float32", "float64"), "CF"))
Parameters = dict[str, Any]
STUMP: Parameters = {"max_depth": 1}
# Trees of all rows and features: by default boosting draws.
WHOLE: Parameters = {"max_depth": 3, "subsample": 1.0, "max_features": None}
# What makes boosting draw, trees grow and forests draw in other ways.
SAMPLED: tuple[Parameters, ...] = ({"subsample": 0.5}, {"max_features": 3})
GROWN: tuple[Parameters, ...] = (
    {}, {"min_samples_leaf": 5}, {"max_features": 3}, {"splitter": "random"},
    {"max_leaf_nodes": 20},
)  # fmt: skip
DRAWN: tuple[Parameters, ...] = ({"bootstrap": False}, {"oob_score": True}, {"max_samples": 0.5})


def above_zero(X: np.ndarray) -> np.ndarray:
    """A member of a pool."""
    return np.sign(X[:, 1])


DRAWN_LEARNERS: tuple[Any, ...] = (HalfSpaces(20), HalfSpaces(20, redraw="round"))
# Of two classes.
VOTERS: tuple[Any, ...] = (Pool([above_zero], signed=True), Rectangles())
ESTIMATORS = (
    "AdaBoostClassifier",
    "BoostingClassifier",
    "BoostingRegressor",
    "BoostingRanker",
    "L1BoostingClassifier",
    "L1BoostingRegressor",
    "DecisionTreeClassifier",
    "DecisionTreeRegressor",
    "RandomForestClassifier",
    "RandomForestRegressor",
    "BaggingClassifier",
    "BaggingRegressor",
)

RANKER = "BoostingRanker"


@dataclass(frozen=True)
class Case:
    """A fit and its predictions. `classes` = 0: regression; of a ranker they are levels."""

    estimator: str
    classes: int
    parameters: Parameters = field(default_factory=dict)
    dtype: str = "float32"
    order: str = "C"
    missing: bool = False
    weights: bool = False
    n_rows: int = N_ROWS

    def run(self) -> None:
        rng, n = np.random.default_rng(0), self.n_rows
        X = rng.normal(size=(n, N_FEATURES))
        X[:, 0] = rng.integers(0, 12, n)
        value = X[:, 0] % 3 + X[:, 1] + rng.normal(size=n)
        cuts = np.quantile(value, np.arange(1, self.classes) / max(1, self.classes))
        y = np.searchsorted(cuts, value) if self.classes else np.abs(value)
        if self.missing:
            X[::7, 1] = np.nan
        X = np.asarray(X, dtype=self.dtype, order=self.order)  # type: ignore[call-overload]
        weight = rng.uniform(0.5, 2.0, n) if self.weights else None
        model = getattr(ensemble_gpu, self.estimator)(**self.parameters)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            queries = {"qid": np.arange(n) // 25} if self.estimator == RANKER else {}
            model.fit(X, y, sample_weight=weight, **queries)
            for rows in (X, X[:1]):
                model.predict(rows)
                with suppress(TypeError):  # not every model can be explained
                    model.explain(rows)


def cases(estimators: Sequence[str]) -> list[Case]:
    """All fits of some estimators; families that share kernels lie far apart."""
    by_family = [list(_cases(name)) for name in estimators]
    longest = max(map(len, by_family))
    return [family[i] for i in range(longest) for family in by_family if i < len(family)]


def _cases(name: str) -> Iterator[Case]:
    """The fits of one estimator, the commonest first."""
    few: Parameters = {} if name.startswith("DecisionTree") else {"n_estimators": 3}
    classes = (2, 3) if name.endswith("Classifier") else (3,) if name == RANKER else (0,)
    for (dtype, order), k in product(LAYOUTS, classes):
        yield Case(name, k, few, dtype, order)
    for k in classes:
        yield from _variants(name, k, few)


def _ranker_variants(k: int, few: Parameters) -> Iterator[Case]:
    for loss, shape, n_rows in product(RANKING, (STUMP, WHOLE), (N_ROWS, MANY_ROWS)):
        yield Case(RANKER, k, {**few, "loss": loss, **shape}, n_rows=n_rows)
    for missing, weights in product((False, True), (False, True)):
        for variant in ("gradient", "rankboost"):
            yield Case(RANKER, k, {**few, "variant": variant}, missing=missing, weights=weights)


def _ball_variants(name: str, k: int, few: Parameters) -> Iterator[Case]:
    for missing, weights in product((False, True), (False, True)):
        yield Case(name, k, {**few, "radius": 2.0}, missing=missing, weights=weights)
    yield Case(name, k, {**few, "alpha": 0.01})
    for step, depth in (("frank_wolfe", 1), ("corrective", 2)):
        yield Case(name, k, {**few, "radius": 2.0, "step": step, "max_depth": depth})
    yield Case(name, k, {**few, "radius": 2.0}, n_rows=MANY_ROWS)


def _variants(name: str, k: int, few: Parameters) -> Iterator[Case]:
    if name == RANKER:
        yield from _ranker_variants(k, few)
        return
    if name.startswith("L1"):
        yield from _ball_variants(name, k, few)
        return
    if name.startswith("Bagging"):
        yield Case(name, k, {**few, "oob_score": True, "bootstrap_features": True})
        yield Case(name, k, few, weights=True)
        return
    exact = {**few, "max_bins": None}
    for parameters, missing, weights in product((few, exact), (False, True), (False, True)):
        yield Case(name, k, parameters, missing=missing, weights=weights)
    yield Case(name, k, {**few, "missing": "learn"}, missing=True)
    if name == "AdaBoostClassifier":
        yield Case(name, k, {**exact, "n_jobs": 2, "multiclass": "single"})
        for variant in ("discrete", "gentle", "logit"):
            yield Case(name, k, {**few, "variant": variant})
        yield Case(name, k, {**few, "categorical_features": [0]})
        for learner in (*DRAWN_LEARNERS, *(VOTERS if k == 2 else ())):
            yield Case(name, k, {**few, "variant": "discrete", "estimator": learner})
        return
    categories = {**few, "categorical_features": [0]}
    if name.startswith("Boosting"):
        losses = CLASSIFICATION if k else REGRESSION
        for loss, shape in product(losses, (STUMP, WHOLE)):
            quantile = {"quantile": 0.5} if loss == "quantile" else {}
            yield Case(name, k, {**few, "loss": loss, **shape, **quantile})
        for extra in SAMPLED:
            yield Case(name, k, {**few, **STUMP, **extra})
            yield Case(name, k, {**few, **WHOLE, **extra}, missing=True, weights=True)
        if k > 2:
            for form, shape in product(("shared", "each"), (STUMP, WHOLE)):
                yield Case(name, k, {**few, **shape, "multiclass": form})
        for parameters, shape in product((exact, categories), ({}, STUMP, WHOLE)):
            yield Case(name, k, {**parameters, **shape})
        for shape in ({}, STUMP, WHOLE):
            yield Case(name, k, {**few, **shape}, n_rows=MANY_ROWS)
        return
    criteria = ("gini", "entropy") if k else ("squared_error",)
    for criterion, extra in product(criteria, GROWN):
        yield Case(name, k, {**few, "criterion": criterion, **extra})
    yield Case(name, k, categories)
    if name.startswith("RandomForest"):
        for extra in DRAWN:
            yield Case(name, k, {**few, **extra})


def run(jobs: int | None, estimators: Sequence[str]) -> int:
    """Compile, with a line that says how far it is; returns the exit code."""
    from ensemble_gpu.kernels.cpu.threads import Run
    from ensemble_gpu.kernels.jit import cache_is_missing, cached_kernels, temporary_cache

    _load()
    if cache_is_missing() or temporary_cache():
        print(
            "No folder for compiled kernels can be written, but for temporary ones: set "
            "NUMBA_CACHE_DIR to one."
        )
        return 1
    workers = Run.of(jobs).threads
    todo = cases(estimators)
    rounds = [workers, 1] if workers > 1 else [1]
    started = time.monotonic()
    for number, processes in enumerate(rounds, 1):
        # New processes: those that this one could fork have its threads' locks, not its threads.
        with ProcessPoolExecutor(processes, get_context("spawn"), _begin) as pool:
            fits = [pool.submit(case.run) for case in todo]
            for done, fit in enumerate(as_completed(fits), 1):
                fit.result()
                text = f"{done} of {len(todo)} fits, round {number} of {len(rounds)}"
                print(f"\r{text}, {time.monotonic() - started:.0f} s ", end="", flush=True)
        print()
    files = cached_kernels()
    folders = sorted({str(path.parent) for path in files})
    print(f"{len(files)} compiled functions are in the cache:", *folders, sep="\n  ")
    return 0


def _load() -> None:
    """Import all kernels."""
    import_module("ensemble_gpu.kernels.cpu.engine")
    for name in ESTIMATORS:
        getattr(ensemble_gpu, name)


def _begin() -> None:
    """A process that compiles says nothing of its own."""
    from ensemble_gpu.kernels.compiling import ANNOUNCER
    from ensemble_gpu.kernels.later import compile_now

    _load()
    compile_now()
    ANNOUNCER.announced = True
