"""Exported models: their size, their speed beside `model_`, and whether they have its bits.

    python -m bench.export [--rows 20000]

Processor time of one thread, rows in blocks of 1,000, the least of several runs, all in turn.
Needs the extras onnx and treelite, and a C compiler.
"""

from __future__ import annotations

import argparse
import ctypes
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import ensemble_gpu as e
from bench.markdown import table

LOOP = """
void many(const double *x, double *scores, long n)
{{
    long i;
    for (i = 0; i < n; ++i) model_scores(x + i * {p}, scores + i * {K});
}}
"""
REPEATS = 5
ONE_ROW = 300
BLOCK = 1000


def session(model: Any) -> Callable:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    made = onnxruntime.InferenceSession(model.SerializeToString(), options)
    return lambda X: made.run(["scores"], {"X": X})[0]


def compiled(model: Any, folder: str) -> tuple[Callable, int]:
    """The C code in a loop over rows, and the size of the library."""
    p, K = model.n_features, model.n_outputs
    source, target = Path(folder) / "model.c", Path(folder) / f"{id(model)}.so"
    source.write_text(e.to_code(model, "c") + LOOP.format(p=p, K=K))
    subprocess.run(
        ["cc", "-std=c99", "-O2", "-shared", "-fPIC", source, "-o", target, "-lm"], check=True
    )
    many = ctypes.CDLL(str(target)).many

    def run(X: np.ndarray) -> np.ndarray:
        out = np.empty((len(X), K))
        many(ctypes.c_void_p(X.ctypes.data), ctypes.c_void_p(out.ctypes.data), len(X))
        return out

    return run, target.stat().st_size


def ways(model: Any, folder: str) -> dict[str, tuple[Callable, int]]:
    """Name -> what evaluates rows, and its bytes."""
    import treelite

    exact, fast, forest = e.to_onnx(model), e.to_onnx(model, exact=False), e.to_treelite(model)
    K = model.n_outputs
    return {
        "model_": (lambda X: model(X, n_jobs=1), 0),
        "ONNX, exact": (session(exact), exact.ByteSize()),
        "ONNX, TreeEnsemble": (session(fast), fast.ByteSize()),
        "Treelite (GTIL)": (
            lambda X: treelite.gtil.predict(forest, X, nthread=1).reshape(-1, K),
            len(forest.serialize_bytes()),
        ),
        "C": compiled(model, folder),
    }


def cost_of_blocks(run: Callable, X: np.ndarray) -> float:
    start = time.process_time()
    for first in range(0, len(X), BLOCK):
        run(X[first : first + BLOCK])
    return time.process_time() - start


def cost_of_one(run: Callable, X: np.ndarray) -> float:
    start = time.process_time()
    for _ in range(ONE_ROW):
        run(X[:1])
    return (time.process_time() - start) / ONE_ROW


def measured(model: Any, X: np.ndarray) -> list[list[str]]:
    with tempfile.TemporaryDirectory() as folder:
        every = ways(model, folder)
        least = {name: [np.inf, np.inf] for name in every}
        for _ in range(REPEATS):
            for name, (run, _) in every.items():
                found = cost_of_blocks(run, X), cost_of_one(run, X)
                least[name] = [min(pair) for pair in zip(least[name], found, strict=True)]
        expected = model(X)
        rows = []
        for name, (run, size) in every.items():
            many, one = least[name]
            off = np.abs(run(X) - expected)
            rows.append([
                name, f"{size / 1024:,.0f}" if size else "", f"{len(X) / many:,.0f}",
                f"{least['model_'][0] / many:.2f}", f"{one * 1e6:,.0f}",
                f"{int((off > 0.0).any(axis=1).sum())}", f"{off.max():.1e}",
            ])  # fmt: skip
    return rows


def models(n: int, p: int) -> tuple[dict[str, Any], np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, p))
    y = X[:, 0] * X[:, 1] + X[:, 2] + rng.normal(size=n) > 0.0
    X[rng.random(X.shape) < 0.02] = np.nan
    given = {"n_jobs": 1, "random_state": 0}
    made = {
        "AdaBoost, 1,000 stumps": e.AdaBoostClassifier(n_estimators=1000, **given),
        "boosted trees, 100 of depth 4": e.BoostingClassifier(n_estimators=100, **given),
        "forest, 50 trees of 256 leaves": e.RandomForestClassifier(50, max_leaf_nodes=256, **given),
    }
    return {name: one.fit(X, y).model_ for name, one in made.items()}, X


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000)
    rows = parser.parse_args().rows
    fitted, X = models(rows, 28)
    head = ["", "KiB", "rows/s", "of model_'s", "one row, us", "rows that differ", "by at most"]
    for name, model in fitted.items():
        print(f"\n## {name}; {rows:,} x {X.shape[1]}, blocks of {BLOCK:,}, one thread\n")
        print(table(head, measured(model, X)))


if __name__ == "__main__":
    main()
