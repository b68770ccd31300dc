"""The first fit of each estimator on a fresh machine: kernels compiled into an empty cache.

Prints a table of seconds; with --beside PATH, another checkout, both one after the other and what
the first takes of the second. What a fit leaves to another process (kernels/later.py) is waited for
before the next one, and its seconds from the start of the fit are in a column of their own.
Run: python -m bench.first_fit [--beside PATH] [estimator ...]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.markdown import table

FITS = {
    "AdaBoost": "AdaBoostClassifier(n_estimators=10)",
    "boosted stumps": "BoostingClassifier(n_estimators=10, max_depth=1)",
    "L2Boost stumps": "BoostingRegressor(n_estimators=10, max_depth=1)",
    "boosted trees": "BoostingClassifier(n_estimators=10, max_depth=4)",
    "tree": "DecisionTreeClassifier()",
    "regression tree": "DecisionTreeRegressor()",
    "forest": "RandomForestClassifier(n_estimators=10)",
    "regression forest": "RandomForestRegressor(n_estimators=10)",
    "bagging": "BaggingClassifier(n_estimators=3)",
}
PROGRAM = """
import sys, time
import numpy as np
import ensemble_gpu
from numba.core import event
from sklearn.base import is_classifier

class Counter(event.Listener):
    n = 0
    def on_start(self, event): Counter.n += 1
    def on_end(self, event): pass

event.register("numba:compile", Counter())
rng = np.random.default_rng(0)
X = rng.normal(size=(4000, 20)).astype(np.float32)
y = X[:, 0] + X[:, 1] ** 2 + rng.normal(size=4000)
model = eval("ensemble_gpu." + sys.argv[1])
start = time.perf_counter()
model.fit(X, y > 1.0 if is_classifier(model) else y)
fitted = time.perf_counter()
model.predict(X)
predicted = time.perf_counter()
later = sys.modules.get("ensemble_gpu.kernels.later")
for process in [] if later is None else later._PROCESSES.values():
    process.wait()
print(fitted - start, predicted - fitted, time.perf_counter() - start, Counter.n)
"""


def first_fit(checkout: Path, estimator: str) -> tuple[float, float, float, int]:
    """Seconds of fit, of predict, until nothing compiles; how many functions the fit compiled."""
    with tempfile.TemporaryDirectory() as cache:
        own = {"NUMBA_CACHE_DIR": cache, "PYTHONPATH": str(checkout), "ENSEMBLE_GPU_COMPILE": ""}
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, estimator], check=True, capture_output=True, text=True,
            env={**os.environ, **own}, cwd=checkout,
        )  # fmt: skip
    fit, predict, whole, compiled = done.stdout.split()[-4:]
    return float(fit), float(predict), float(whole), int(compiled)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.first_fit", description=__doc__)
    parser.add_argument("--beside", type=Path, help="another checkout of the package")
    parser.add_argument("fits", nargs="*", choices=[[], *FITS], help="which; default: all")
    arguments = parser.parse_args()
    own = Path(__file__).parent.parent
    columns = ["", "first fit", "first predict", "all compiled after", "functions compiled"]
    if arguments.beside:
        columns += [f"{column} (beside)" for column in columns[1:]] + ["fit / fit beside"]
    lines = []
    for name in arguments.fits or FITS:
        line, fits = [name], []
        for checkout in [own, arguments.beside] if arguments.beside else [own]:
            fit, predict, whole, compiled = first_fit(checkout, FITS[name])
            line += [f"{fit:.1f} s", f"{predict:.1f} s", f"{whole:.1f} s", str(compiled)]
            fits.append(fit)
        if arguments.beside:
            line.append(f"{100.0 * fits[0] / fits[1]:.0f} %")
        lines.append(line)
    print("### First fit into an empty cache, 4,000 x 20\n")
    print(table(columns, lines))


if __name__ == "__main__":
    main()
