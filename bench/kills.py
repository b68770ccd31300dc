"""Fits that are killed while they run, and resumed: is it the model of a fit without a break?

    python -m bench.kills [kills a case, default 3]

Every case runs in a process of its own, which writes a checkpoint after every round and gets
SIGKILL at a random moment. The fit is then resumed here, on another engine or with another number
of threads, and compared with one that nobody has disturbed.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.tree import DecisionTreeClassifier as TheirTree

from ensemble_gpu import (
    AdaBoostClassifier,
    BoostingClassifier,
    BoostingRanker,
    BoostingRegressor,
    Checkpoint,
    DecisionTreeClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
    read_header,
    use_engine,
)
from ensemble_gpu.learners import HalfSpaces, Pool

# Rounds that a fit would have if nobody killed it, and those that a resumed one adds.
ENDLESS, MORE = 100_000, 4
# Seconds to wait for the first checkpoint, and after it at the most.
FIRST, LONGEST = 120.0, 0.4


@dataclass(frozen=True)
class Case:
    """An estimator, the number of classes of its target (0: numbers), and what else `fit` takes."""

    estimator: Any
    n_classes: int = 0
    engine: str = "reference"
    weighted: bool = False
    with_sets: bool = False
    plain: bool = False
    more: dict[str, Any] = field(default_factory=dict)


def _drawn(**parameters: Any) -> dict[str, Any]:
    return {
        "subsample": 0.6,
        "max_features": 3,
        "random_state": 3,
        "learning_rate": 0.1,
    } | parameters


_PATIENT = {"early_stopping": True, "n_iter_no_change": ENDLESS}
CASES: dict[str, Case] = {
    "rescale": Case(AdaBoostClassifier(calibrate=False), 2, weighted=True),
    "rescale, early stopping": Case(
        AdaBoostClassifier(calibrate=False, random_state=0, **_PATIENT), 2
    ),
    "rescale, MH": Case(AdaBoostClassifier(variant="gentle", calibrate=False), 3),
    "rescale, SAMME": Case(AdaBoostClassifier(variant="discrete", calibrate=False), 3),
    "one class at a time": Case(AdaBoostClassifier(multiclass="single", calibrate=False), 3),
    "logit": Case(AdaBoostClassifier(variant="logit", calibrate=False), 3),
    "gram": Case(BoostingRegressor(max_depth=1, learning_rate=0.001), weighted=True),
    "gram, features drawn": Case(
        BoostingRegressor(max_depth=1, learning_rate=0.001, max_features=2, random_state=3)
    ),
    "rebuild": Case(BoostingClassifier(max_depth=1, learning_rate=0.1), 2, with_sets=True),
    "rebuild, rows and features drawn": Case(
        BoostingClassifier(**_drawn(max_depth=1)), 3, weighted=True
    ),
    "rebuild, steps of leaves": Case(BoostingRegressor("absolute", **_drawn(max_depth=1))),
    "trees": Case(BoostingClassifier(learning_rate=0.1, **_PATIENT), 2, weighted=True),
    "trees, rows and features drawn": Case(
        BoostingRegressor("huber", **_drawn(), **_PATIENT), with_sets=True
    ),
    "trees in bags": Case(BoostingRegressor(n_bags=2, **_drawn(max_depth=3))),
    "directions drawn anew": Case(
        AdaBoostClassifier(HalfSpaces(30, redraw="round"), random_state=0, calibrate=False), 2,
        plain=True,
    ),
    "a pool": Case(BoostingRegressor(estimator=Pool(), learning_rate=0.001), plain=True),
    "our trees as learners": Case(
        AdaBoostClassifier(DecisionTreeClassifier(max_depth=2), learning_rate=0.1), 2, "cpu"
    ),
    "scikit-learn's trees as learners": Case(
        AdaBoostClassifier(TheirTree(max_depth=2), learning_rate=0.1, random_state=0), 2, "cpu",
        plain=True,
    ),
    "ranking": Case(BoostingRanker("lambda", learning_rate=0.1), 3, more={"qid": True}),
    "forest": Case(RandomForestClassifier(random_state=0), 3),
    "forest, extremely random": Case(
        RandomForestRegressor(random_state=0, splitter="random", max_samples=0.5), weighted=True
    ),
}  # fmt: skip


def arguments(case: Case) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """What `fit` is given."""
    generator = np.random.default_rng(7)
    X = np.round(generator.normal(size=(240, 6)), 1)
    y = X[:, 0] - X[:, 1] ** 2 + 0.5 * X[:, 2] + 2.0 * generator.normal(size=240)
    if case.n_classes:
        y = np.digitize(y, np.quantile(y, np.arange(1, case.n_classes) / case.n_classes))
    if case.plain and isinstance(getattr(case.estimator, "estimator", None), Pool):
        X = np.sign(X)
    if not case.plain:
        X[generator.random(X.shape) < 0.1] = np.nan
    weights = generator.integers(0, 4, len(y)).astype(float)
    more: dict[str, Any] = {"sample_weight": weights} if case.weighted else {}
    if case.with_sets:
        more["eval_set"] = [(X[:50], y[:50]), (X[50:120] + 0.1, y[50:120])]
    if case.more.get("qid"):
        more["qid"] = np.arange(len(y)) // 8
    return (X, y), more


def run_until_killed(name: str, path: str) -> None:
    """The child: a fit without end that writes after every round."""
    case = CASES[name]
    rows, more = arguments(case)
    estimator = clone(case.estimator).set_params(
        n_estimators=ENDLESS, n_jobs=1, callbacks=[Checkpoint(path, every=1, share=None)]
    )
    estimator.fit(*rows, **more)


def kill(name: str, path: Path, delay: float) -> None:
    """Start a child, and kill it some time after its first checkpoint."""
    child = subprocess.Popen([sys.executable, "-m", "bench.kills", "--child", name, str(path)])
    try:
        end = time.monotonic() + FIRST
        while not path.exists() and time.monotonic() < end and child.poll() is None:
            time.sleep(0.005)
        time.sleep(delay)
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()
    if not path.exists() or child.returncode != -signal.SIGKILL:
        raise RuntimeError(f"{name}: the fit ended with {child.returncode} before it was killed.")


def rounds_in(path: Path) -> int:
    """Rounds (trees) in a checkpoint."""
    shapes = read_header(path)["arrays"]
    for array in ("run.rounds.alpha", "model_.starts"):
        if array in shapes:
            return shapes[array][0]
    return next(shape[0] for array, shape in shapes.items() if array.startswith("run.rounds."))


def outcome(model: Any, X: Any) -> Any:
    """What two fits are compared by: the fingerprint, or for learners without one all outputs."""
    try:
        return model.fingerprint()
    except TypeError:
        return model(X).tobytes()


def resumed_and_whole(name: str, path: Path) -> tuple[int, Any, Any]:
    """Rounds at the kill, and the outcomes of the resumed fit and of one without a break."""
    case, found = CASES[name], rounds_in(path)
    rows, more = arguments(case)
    estimator = clone(case.estimator).set_params(n_estimators=found + MORE)
    with use_engine(case.engine):
        resumed = clone(estimator).fit(*rows, **more, resume=path)
    whole = estimator.fit(*rows, **more)
    return found, *(outcome(fit.model_, rows[0]) for fit in (resumed, whole))


def main(n_kills: int) -> None:
    print("| strategy | rounds at the kill | resumed on | same model |")
    print("|---|---|---|---|")
    seed = random.Random(0)
    with tempfile.TemporaryDirectory() as folder:
        for name, case in CASES.items():
            at, same = [], 0
            for number in range(n_kills):
                path = Path(folder) / f"{number}.safetensors"
                path.unlink(missing_ok=True)
                kill(name, path, seed.uniform(0.0, LONGEST))
                found, resumed, whole = resumed_and_whole(name, path)
                at.append(found)
                same += resumed == whole
            told = ", ".join(map(str, at))
            print(f"| {name} | {told} | {case.engine} | {same} of {n_kills} |", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        run_until_killed(*sys.argv[2:])
    else:
        os.environ.setdefault("PYTHONPATH", os.getcwd())
        main(int(sys.argv[1]) if sys.argv[1:] else 3)
