"""Fits on batches from Parquet files beside fits on the array: time, peak memory, fingerprint.

python -m bench.batches [--rows N] [--features P] [--rounds R] [--batch-rows B] [--fit NAME ...]

Every fit runs in a process of its own, on warm kernels. Memory is the highest size of the process
beyond what it had when all libraries were loaded and nothing was read. "array" reads the files into
one array and fits it. The file cache of the system is warm for all of them.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from bench.memory import OwnPages, forget_peak, peak

FILES = 10
MIB = 1 << 20
LABEL = "y"
FITS = {
    "AdaBoost": ("AdaBoostClassifier", {}),
    "AdaBoost, no calibration": ("AdaBoostClassifier", {"calibrate": False}),
    "boosted stumps": (
        "BoostingClassifier", {"max_depth": 1, "early_stopping": False, "learning_rate": 0.1},
    ),
    "boosted trees": ("BoostingClassifier", {"early_stopping": False}),
    "boosted trees, early stopping": ("BoostingClassifier", {"early_stopping": True}),
}  # fmt: skip
WAYS = ("read", "array", "batches", "codes_path")


def estimator(name: str, rounds: int) -> Any:
    import ensemble_gpu

    kind, parameters = FITS[name]
    return getattr(ensemble_gpu, kind)(n_estimators=rounds, random_state=0, **parameters)


def block(seed: int, n: int, p: int) -> tuple[np.ndarray, np.ndarray]:
    """Normal features, and two classes that depend on some of them."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p), dtype=np.float32)
    F = X[:, 0] + X[:, 1] * X[:, 2] + np.abs(X[:, 3]) + 0.5 * X[:, min(7, p - 1)] - 0.8
    return X, (F + rng.standard_normal(n, dtype=np.float32) > 0).astype(np.int8)


def write_files(folder: Path, rows: int, p: int) -> None:
    import pyarrow as pa
    import pyarrow.parquet as parquet

    for k in range(FILES):
        X, y = block(k, rows // FILES, p)
        columns = {f"x{f}": np.ascontiguousarray(X[:, f]) for f in range(p)} | {LABEL: y}
        parquet.write_table(
            pa.table(columns), folder / f"part-{k:02}.parquet", use_dictionary=False,
            row_group_size=1 << 20,
        )  # fmt: skip


def read_all(folder: Path, rows: int, p: int) -> tuple[np.ndarray, np.ndarray]:
    """The matrix, a column in a piece, from one column of a row group after the other.

    That takes the least time and memory of the ways to read it.
    """
    import pyarrow.parquet as parquet

    X, y, first = np.empty((rows, p), np.float32, order="F"), np.empty(rows, dtype=np.int8), 0
    for path in sorted(folder.glob("*.parquet")):
        with parquet.ParquetFile(path, buffer_size=MIB) as file:
            for group in range(file.num_row_groups):
                last = first + file.metadata.row_group(group).num_rows
                for f, name in enumerate(file.schema_arrow.names):
                    column = file.read_row_group(group, [name]).column(0).to_numpy()
                    (X[first:last, f] if f < p else y[first:last])[...] = column
                first = last
    return X, y


def child(given: argparse.Namespace) -> None:
    """One way, in this process."""
    import polars  # noqa: F401
    import pyarrow.parquet  # noqa: F401

    from ensemble_gpu import Batches

    folder, p = Path(given.folder), given.features
    warm = [block(0, 20_000, p)]
    estimator(given.only, 3).fit(*warm[0])
    estimator(given.only, 3).fit(Batches(warm))
    pattern = str(folder / "*.parquet")
    forget_peak()
    before = psutil.Process().memory_info().rss
    model, start, work = None, time.perf_counter(), time.process_time()
    with OwnPages() as own:
        if given.way in ("read", "array"):
            X, y = read_all(folder, given.rows, p)
        if given.way == "array":
            model = estimator(given.only, given.rounds).fit(X, y)
        elif given.way != "read":
            path = folder / "codes" if given.way == "codes_path" else None
            data = Batches(pattern, label=LABEL, batch_rows=given.batch_rows, codes_path=path)
            model = estimator(given.only, given.rounds).fit(data)
    told = {
        "seconds": time.perf_counter() - start,
        "cpu": time.process_time() - work,
        "memory": peak() - before,
        "own": own.most,
        "fingerprint": "" if model is None else model.model_.fingerprint(),
    }
    print(json.dumps(told))


def run(given: argparse.Namespace, folder: Path, fit: str, way: str) -> dict[str, Any]:
    numbers = {"rows": given.rows, "features": given.features, "rounds": given.rounds,
               "batch-rows": given.batch_rows}  # fmt: skip
    options = [text for name, n in numbers.items() for text in (f"--{name}", str(n))]
    command = [sys.executable, "-m", "bench.batches", *options, "--folder", str(folder)]
    done = subprocess.run(
        [*command, "--only", fit, "--way", way], check=True, capture_output=True, text=True
    )
    return json.loads(done.stdout.splitlines()[-1])


def table(given: argparse.Namespace, folder: Path) -> None:
    matrix = given.rows * given.features * 4
    batch = given.batch_rows * given.features * 4
    print(f"{given.rows:,} x {given.features}, float32, {given.rounds} rounds, batches of "
          f"{given.batch_rows:,} rows. Matrix: {matrix / MIB:,.0f} MiB, batch: "
          f"{batch / MIB:,.0f} MiB; {psutil.cpu_count()} threads.\n")  # fmt: skip
    print("| fit | way | seconds | of reading + array fit | CPU seconds | of reading + array fit | "
          "MiB | (MiB - batch) / matrix | MiB without files | model |")  # fmt: skip
    print("|---|---|---|---|---|---|---|---|---|---|")
    for fit in given.fit:
        known, whole = "", {"seconds": 0.0, "cpu": 0.0}
        for way in given.ways:
            told = run(given, folder, fit, way)
            if way == "array":
                known, whole = told["fingerprint"], told
            own = told["fingerprint"]
            told_apart = own and known and way != "array"
            model = "" if not told_apart else "same" if own == known else "ANOTHER"
            share = (told["memory"] - batch) / matrix
            times = [
                f"{told[name]:.1f} | {told[name] / whole[name]:.2f}" if whole[name]
                else f"{told[name]:.1f} | "
                for name in ("seconds", "cpu")
            ]  # fmt: skip
            print(f"| {fit} | {way} | {' | '.join(times)} | "
                  f"{told['memory'] / MIB:,.0f} | {share:.2f} | {told['own'] / MIB:,.0f} | "
                  f"{model} |", flush=True)  # fmt: skip


def main() -> None:
    """Write the files, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--features", type=int, default=28)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--batch-rows", type=int, default=1 << 20)
    parser.add_argument("--fit", nargs="+", choices=FITS, default=list(FITS))
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--folder", help="of a child, or where files are from an earlier run")
    parser.add_argument("--only", choices=FITS)
    parser.add_argument("--way", choices=WAYS)
    given = parser.parse_args()
    if given.way:
        child(given)
        return
    needed = 2 * given.rows * given.features * 4
    if given.folder:
        folder = Path(given.folder)
        folder.mkdir(exist_ok=True)
        if not list(folder.glob("*.parquet")):
            write_files(folder, given.rows, given.features)
        table(given, folder)
        return
    with tempfile.TemporaryDirectory() as name:
        if shutil.disk_usage(name).free < needed:
            sys.exit(f"{name} has less than {needed / MIB:,.0f} MiB of free disk")
        write_files(Path(name), given.rows, given.features)
        table(given, Path(name))


if __name__ == "__main__":
    main()
