"""The first fit of each estimator on a fresh machine: kernels compiled into an empty cache.

Prints a table of seconds; with --beside PATH, another checkout, both one after the other and what
the first takes of the second. Run: python -m bench.first_fit [--beside PATH] [estimator ...]
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
    "AdaBoost": "AdaBoostClassifier(n_estimators=10, calibrate=False)",
    "boosted stumps": "BoostingClassifier(n_estimators=10, max_depth=1)",
    "L2Boost stumps": "BoostingRegressor(n_estimators=10, max_depth=1)",
    "boosted trees": "BoostingClassifier(n_estimators=10)",
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
print(fitted - start, time.perf_counter() - fitted, Counter.n)
"""


def first_fit(checkout: Path, estimator: str) -> tuple[float, float, int]:
    """Seconds of fit and predict, and how many functions were compiled."""
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "NUMBA_CACHE_DIR": cache, "PYTHONPATH": str(checkout)}
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, estimator], check=True, capture_output=True, text=True,
            env=environment, cwd=checkout,
        )  # fmt: skip
    fit, predict, compiled = done.stdout.split()[-3:]
    return float(fit), float(predict), int(compiled)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.first_fit", description=__doc__)
    parser.add_argument("--beside", type=Path, help="another checkout of the package")
    parser.add_argument("fits", nargs="*", choices=[[], *FITS], help="which; default: all")
    arguments = parser.parse_args()
    own = Path(__file__).parent.parent
    lines = []
    for name in arguments.fits or FITS:
        fit, predict, compiled = first_fit(own, FITS[name])
        line = [name, f"{fit:.1f} s", f"{predict:.1f} s", str(compiled)]
        if arguments.beside:
            other, other_predict, other_compiled = first_fit(arguments.beside, FITS[name])
            line += [
                f"{other:.1f} s", f"{other_predict:.1f} s", str(other_compiled),
                f"{100.0 * fit / other:.0f} %",
            ]  # fmt: skip
        lines.append(line)
    columns = ["", "first fit", "first predict", "functions compiled"]
    if arguments.beside:
        columns += ["fit beside", "predict beside", "functions beside", "fit / fit beside"]
    print("### First fit into an empty cache, 4,000 x 20\n")
    print(table(columns, lines))


if __name__ == "__main__":
    main()
