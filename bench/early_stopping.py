"""What early stopping costs: fits that watch held-out rows beside the same fits without, in turns.

All rounds are run in both, on two threads; calibration is off. Prints a table of the best times and
of the medians. Run: python -m bench.early_stopping [--rows N] [--rounds N] [--repeats N]
"""

from __future__ import annotations

import argparse
from statistics import median
from time import perf_counter

from bench.data import Shape, generated
from bench.markdown import table
from ensemble_gpu import AdaBoostClassifier, BoostingClassifier

FEATURES = 28


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.early_stopping", description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--repeats", type=int, default=15)
    arguments = parser.parse_args()
    shape, rounds = Shape(arguments.rows, FEATURES), arguments.rounds
    data = generated(shape)
    common = {"n_estimators": rounds, "n_iter_no_change": rounds, "random_state": 0}
    works = {
        "AdaBoost": AdaBoostClassifier(calibrate=False, **common),
        "logistic stumps": BoostingClassifier(max_depth=1, **common),
        "boosted trees": BoostingClassifier(**common),
    }
    lines = []
    for name, estimator in works.items():
        spent: dict[bool, list[float]] = {False: [], True: []}
        for turn in range(arguments.repeats + 1):
            for stops in spent:
                estimator.set_params(early_stopping=stops)
                start = perf_counter()
                estimator.fit(data.X, data.y)
                if turn:  # the first compiles
                    spent[stops].append(perf_counter() - start)
        best, middle = ({s: of(t) for s, t in spent.items()} for of in (min, median))
        lines.append([
            name, f"{best[False]:.3f} s", f"{best[True]:.3f} s",
            f"{best[True] / best[False]:.2f}", f"{middle[True] / middle[False]:.2f}",
        ])  # fmt: skip
    columns = ["", "plain", "early stopping", "ratio", "ratio of medians"]
    print(f"### Early stopping, {shape}, {rounds} rounds, two threads\n")
    print(table(columns, lines))


if __name__ == "__main__":
    main()
