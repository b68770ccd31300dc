"""The lectures' experiments, one after the other: `python -m examples.gallery [folder]`.

Prints their tables and, at the end, every claim with what was measured; draws a picture of each
into the folder if one is named.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

EXPERIMENTS = (
    "circle",
    "circle_radius",
    "kernel_ridge",
    "bagging_regression",
    "overfitting",
    "digits_margins",
    "neighbours_capacity",
    "bias_variance_depth",
    "imbalance",
    "label_noise",
    "consistency",
    "reweighting",
)


def main() -> None:
    lines = ["| experiment | the lecture's claim | measured | agrees |", "|---|---|---|---|"]
    for name in EXPERIMENTS:
        found = import_module(f"examples.{name}").run()
        print(f"{found}\n")
        for folder in sys.argv[1:2]:
            found.save(Path(folder) / f"{name}.png")
        lines += [
            f"| {name} | {claim.says} | {claim.measured} | {'yes' if claim.holds else 'no'} |"
            for claim in found.claims
        ]
    print("\n".join(lines))


if __name__ == "__main__":
    main()
