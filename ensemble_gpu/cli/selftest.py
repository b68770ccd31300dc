"""`doctor --selftest`: every kernel and whole fits on the GPU, compared with the CPU engine.

Without a GPU the same tests run in numba's simulator (NUMBA_ENABLE_CUDASIM=1) on tiny data.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ensemble_gpu import (
    AdaBoostClassifier,
    BoostingClassifier,
    BoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    use_engine,
)
from ensemble_gpu.arrays import cupy as gpu
from ensemble_gpu.arrays.namespace import locate, to_numpy
from ensemble_gpu.boosting.rules import rule_for
from ensemble_gpu.cli.text import seconds
from ensemble_gpu.data.matrix import bin_matrix, sort_by_class
from ensemble_gpu.kernels import fixedpoint
from ensemble_gpu.kernels.cuda import available
from ensemble_gpu.kernels.cuda.simulator import faithful_simulator
from ensemble_gpu.kernels.protocol import N_LEAVES, Criterion, Histograms, Layout, Split
from ensemble_gpu.kernels.select import engine_for


@dataclass(frozen=True)
class Target:
    """Where the engine under test runs: how arrays get there, and what must be switched on."""

    name: str
    put: Callable[[np.ndarray], Any]
    engine: str
    forced: bool

    @contextmanager
    def switch(self) -> Iterator[None]:
        if not self.forced:
            yield
            return
        with use_engine(self.engine), faithful_simulator():
            yield


@dataclass(frozen=True)
class Sizes:
    """How large the tests are; `timed` is (rows, features, rounds) of the speed test."""

    rows: int
    features: int
    classes: int
    rounds: int
    long_rounds: int
    timed: tuple[int, int, int] | None


# Long enough to requantise in the middle (every 256 rounds); one test at a size where speed shows.
ON_GPU = Sizes(20_000, 12, 12, 40, 600, (1_000_000, 28, 200))
IN_SIMULATOR = Sizes(20, 3, 3, 2, 4, None)


@dataclass(frozen=True)
class Case:
    """One fit; together they pass through every kernel and every branch of the score.

    With a `loss` it is gradient boosting (squared: of a real target), with a `criterion` a random
    forest (squared_error: of a real target), else AdaBoost. `packed` takes so many rows, on a GPU,
    that gradients are packed in pairs.
    """

    name: str
    variant: str = "real"
    n_classes: int = 2
    missing: str | None = None
    weighted: bool = False
    dtype: str = "float64"
    fortran: bool = False
    max_bins: int | None = 255
    long: bool = False
    loss: str | None = None
    packed: bool = False
    criterion: str | None = None
    max_features: int | None = None

    @property
    def real_target(self) -> bool:
        return self.loss == "squared" or self.criterion == "squared_error"


CASES = (
    Case("real, 2 classes, float32", dtype="float32"),
    Case("discrete, 2 classes, missing abstain", "discrete", missing="abstain"),
    Case("gentle, 2 classes, weights", "gentle", weighted=True),
    Case("real, 2 classes, missing learned", missing="learn", weighted=True),
    Case("real, 5 classes (MH), Fortran order", n_classes=5, fortran=True),
    Case("discrete, 5 classes (SAMME)", "discrete", n_classes=5),
    Case("gentle, 12 classes (MH), missing learned", "gentle", n_classes=12, missing="learn"),
    Case("real, exact bins (uint16 codes)", max_bins=None),
    Case("real, many rounds (requantise)", long=True),
    Case("squared loss, missing learned", loss="squared", missing="learn", weighted=True),
    Case("logistic loss, 2 classes", loss="logistic", dtype="float32"),
    Case("logistic loss, 2 classes, packed", loss="logistic", missing="abstain", packed=True),
    Case("logistic loss, 5 classes", loss="logistic", n_classes=5, weighted=True, packed=True),
    Case("random forest, gini", criterion="gini", missing="learn", max_features=2),
    Case("random forest, entropy, 5 classes", criterion="entropy", n_classes=5, weighted=True),
    Case("random forest, squared error", criterion="squared_error", missing="learn"),
)


@dataclass(frozen=True)
class Outcome:
    """One line of the report; `failure` is None where both engines agree."""

    name: str
    failure: str | None
    cpu_seconds: float
    first_seconds: float
    again_seconds: float | None = None

    def cells(self) -> list[str]:
        again = "" if self.again_seconds is None else seconds(self.again_seconds)
        verdict = "same" if self.failure is None else "FAILED"
        return [self.name, verdict, seconds(self.cpu_seconds), seconds(self.first_seconds), again]


def target() -> Target | None:
    """The GPU, or the simulator, or nothing to test."""
    if available.simulated():
        return Target("simulator", np.asarray, "cuda", forced=True)
    if gpu.available():
        return Target("GPU", gpu.to_gpu, "cuda", forced=False)
    return None


def sizes_for(where: Target) -> Sizes:
    return IN_SIMULATOR if where.forced else ON_GPU


def cases_for(sizes: Sizes) -> list[Case]:
    """The cases with no more classes than the sizes allow."""
    out = []
    for case in CASES:
        n = min(case.n_classes, sizes.classes)
        name = case.name.replace(f"{case.n_classes} classes", f"{n} classes")
        out.append(replace(case, name=name, n_classes=n))
    return out


def make_rows(case: Case, n: int, p: int) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Ties, a constant column, missing values and uneven weights, the same for every target."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(n, p))
    X[:, 1 % p] = np.round(X[:, 1 % p])
    score = X[:, 0] + 0.7 * X[:, 1 % p] * X[:, 2 % p] + 0.5 * rng.normal(size=n)
    y = np.argsort(np.argsort(score)) * case.n_classes // n
    X[:, -1] = 1.0
    if case.missing:
        X[rng.random((n, p)) < 0.2] = np.nan
    weights = rng.lognormal(sigma=2.0, size=n) if case.weighted else None
    X = np.asfortranarray(X) if case.fortran else X
    return X.astype(case.dtype), score if case.real_target else y.astype(np.int64), weights


def make_estimator(case: Case, rounds: int) -> Any:
    shared: dict[str, Any] = {
        "n_estimators": rounds, "max_bins": case.max_bins, "missing": case.missing or "abstain"
    }  # fmt: skip
    if case.criterion is not None:
        forest = RandomForestRegressor if case.real_target else RandomForestClassifier
        return forest(
            n_estimators=2, criterion=case.criterion, max_features=case.max_features,
            missing=case.missing or "error", random_state=0,
        )  # fmt: skip
    if case.loss is None:
        return AdaBoostClassifier(variant=case.variant, **shared)
    if case.loss == "squared":
        return BoostingRegressor(loss=case.loss, max_depth=1, **shared)
    return BoostingClassifier(loss=case.loss, max_depth=1, **shared)


# --- whole fits ------------------------------------------------------------------------------


def check_fits(where: Target, sizes: Sizes) -> Iterator[Outcome]:
    """The same fit on both engines: equal fingerprints, equal outputs."""
    for case in cases_for(sizes):
        rounds = sizes.long_rounds if case.long else sizes.rounds
        rows = 2 * sizes.rows if case.packed else sizes.rows
        again = sizes.timed is not None
        yield _check_fit(case, where, rows, sizes.features, rounds, again)
    if sizes.timed is not None:
        n, p, rounds = sizes.timed
        name = f"{n:,} x {p}, {rounds} rounds"
        yield _check_fit(Case(name, dtype="float32"), where, n, p, rounds, again=True)


def _check_fit(case: Case, where: Target, n: int, p: int, rounds: int, again: bool) -> Outcome:
    X, y, weights = make_rows(case, n, p)
    model = make_estimator(case, rounds)
    with use_engine("cpu"):
        model.fit(X, y, weights)  # compiles
        cpu_seconds = _time(lambda: model.fit(X, y, weights))
        expected, F = model.model_.fingerprint(), model.model_(X)
    start = time.perf_counter()
    try:
        placed = [None if a is None else where.put(a) for a in (X, y, weights)]
        with where.switch():
            start = time.perf_counter()
            model.fit(*placed)
            first = time.perf_counter() - start
            failure = _compare_fit(model, where, placed[0], expected, F)
            second = _time(lambda: model.fit(*placed)) if again else None
    except Exception as error:  # the report goes on: the other lines help to find the cause
        failure = f"{type(error).__name__}: {error}"
        return Outcome(case.name, failure, cpu_seconds, time.perf_counter() - start)
    return Outcome(case.name, failure, cpu_seconds, first, second)


def _compare_fit(model: Any, where: Target, X: Any, expected: str, F: np.ndarray) -> str | None:
    if model.engine_ != where.engine:
        return f"the {model.engine_} engine ran instead of {where.engine}"
    got = model.model_.fingerprint()
    if got != expected:
        return f"fingerprint {got[:16]}, on the CPU {expected[:16]}"
    if not np.array_equal(to_numpy(model.model_(X)), F):
        return "equal models, but different outputs"
    return None


def _time(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


# --- kernel by kernel ------------------------------------------------------------------------


def check_kernels(where: Target, sizes: Sizes) -> Iterator[Outcome]:
    """Every operation of the engine protocol, one after the other, on both engines."""
    for variant, n_classes in (("real", 2), ("gentle", 3), ("discrete", 3)):
        case = Case(f"{variant}, {n_classes} classes", variant, n_classes, missing="learn")
        X, y, _ = make_rows(case, sizes.rows, sizes.features)
        with use_engine("cpu"):
            model = AdaBoostClassifier(variant=variant, n_estimators=3).fit(X, y)
            expected = list(_operations(case, np.asarray, X, y, model.model_.packed))
        got: Iterator[Any] = _operations(case, where.put, X, y, model.model_.packed)
        for name, values, cpu_seconds in expected:
            start = time.perf_counter()
            label = f"{name} ({case.name})"
            try:
                with where.switch():
                    _, theirs, taken = next(got)
            except Exception as error:  # later operations need this one
                failure = f"{type(error).__name__}: {error}"
                yield Outcome(label, failure, cpu_seconds, time.perf_counter() - start)
                break
            yield Outcome(label, _compare_values(values, theirs), cpu_seconds, taken)


def _compare_values(expected: list[np.ndarray], got: list[np.ndarray]) -> str | None:
    for at, (a, b) in enumerate(zip(expected, got, strict=True)):
        if not np.array_equal(a, b):
            wrong = np.mean(a != b) if a.shape == b.shape else 1.0
            return f"result {at}: {wrong:.1%} of the values differ"
    return None


def _operations(
    case: Case, put: Callable[[np.ndarray], Any], X: np.ndarray, y: np.ndarray, tables: Any
) -> Iterator[tuple[str, list[np.ndarray], float]]:
    """(kernel, its results on the host, seconds) of one engine; the caller picks the engine."""
    start = time.perf_counter()

    def done(name: str, *results: Any) -> tuple[str, list[np.ndarray], float]:
        nonlocal start
        values = [np.array(to_numpy(r)) for r in results]  # engines reuse their buffers
        out = (name, values, time.perf_counter() - start)
        start = time.perf_counter()
        return out

    placed = put(X)
    engine = engine_for(locate(placed))
    placed, index = engine.view(placed), engine.view(put(y))
    rows = sort_by_class(index, case.n_classes, None, locate(placed))
    rule = rule_for(case.variant, case.n_classes)
    layout = Layout(rows.starts, rule.group_of)
    matrix = bin_matrix(engine, placed, rows.rows, layout, case.max_bins or 255)
    yield done("encode", *matrix.edges, matrix.codes.counts)
    histograms = engine.histograms(matrix.codes, layout, None)
    logs = np.zeros((layout.n_groups, matrix.codes.n_features, matrix.codes.width))
    exponent = histograms.requantise(fixedpoint.from_log(logs), np.zeros(0, dtype=np.int64))
    scale = np.ldexp(1.0, exponent - int(exponent.max()))
    yield done("requantise, histogram", exponent)
    learn = case.missing == "learn"
    criterion = Criterion(rule.kind, rule.chance * scale, learn, matrix.n_thresholds(learn))
    split = _split(histograms, scale, criterion)
    yield done("score", *_parts(split))
    _rescale(histograms, split, layout, matrix.codes.width)
    yield done("update", *_parts(_split(histograms, scale, criterion)))
    logs[0, split.feature, : split.bin + 1] = 0.75
    used = np.array([split.feature], dtype=np.int64)
    exponent = histograms.requantise(fixedpoint.from_log(logs), used)
    yield done("requantise, used", exponent, *_parts(_split(histograms, scale, criterion)))
    yield done("predict", engine.evaluate(placed, tables))


def _split(histograms: Histograms, scale: np.ndarray, criterion: Criterion) -> Split:
    split = histograms.split(scale, criterion)
    if split is None:
        raise RuntimeError("no split was found where the CPU engine has one")
    return split


def _parts(split: Split) -> list[Any]:
    """What must be equal; `largest` is only a bound."""
    return [
        np.array([split.feature, split.bin, split.missing_leaf]),
        np.array(split.score),
        split.sums,
    ]


def _rescale(histograms: Histograms, split: Split, layout: Layout, width: int) -> None:
    """Rows right of the split lose 3/8 of their weight, those left of it keep theirs."""
    leaf_of = np.full(width, 1, dtype=np.int64)
    leaf_of[: split.bin + 1] = 0
    leaf_of[-1] = split.missing_leaf
    ratio = np.ones((layout.n_groups, N_LEAVES))
    ratio[:, 1] = 0.625
    histograms.rescale(split.feature, leaf_of, ratio, 0)
