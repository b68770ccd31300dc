"""The capacity of K nearest neighbours: `python -m examples.neighbours_capacity [picture.png]`.

Errors against n / K, on the circle with 20 % of the labels flipped: few neighbours follow every
label, many see the whole square. All K come from one sorting of the distances, and leaving one row
out costs nothing more.
"""

from __future__ import annotations

import numpy as np

from ensemble_gpu import NeighboursClassifier
from examples.circle import circle
from examples.experiment import Claim, Experiment, percent, report

FLIPPED = 0.2


def run(small=False):
    n = 300 if small else 1000
    X, y = circle(n, 1, FLIPPED)
    X_test, y_test = circle(3000, 2, FLIPPED)
    most = n // 2
    model = NeighboursClassifier(n_neighbors=most).fit(X, y)
    each = {
        "train": (model.predict_each(X), y),
        "leave one out": (model.leave_one_out(), y),
        "test": (model.predict_each(X_test), y_test),
    }
    errors = {
        name: np.asarray([np.mean(labels != truth) for labels in np.asarray(found)])
        for name, (found, truth) in each.items()
    }
    K = np.arange(1, most + 1)
    shown = [k for k in (1, 3, 5, 11, 21, 51, 101, 201, 401) if k <= most]
    rows = [[k, f"{n / k:.4g}", *(percent(errors[name][k - 1]) for name in errors)] for k in shown]
    chosen, best = (int(np.argmin(errors[name])) for name in ("leave one out", "test"))
    test = errors["test"]
    claims = [
        Claim(
            "the training error falls to zero with the capacity n / K",
            f"{percent(errors['train'][0])} at K = 1, {percent(errors['train'][-1])} at K = {most}",
            errors["train"][0] == 0.0 and errors["train"][-1] > 0.25,
        ),
        Claim(
            "the test error has its minimum in between",
            f"{percent(test[0])} at K = 1, {percent(test[best])} at K = {best + 1}, "
            f"{percent(test[-1])} at K = {most}",
            test[best] + 0.05 < min(test[0], test[-1]),
        ),
        Claim(
            "cross-validation finds it",
            f"leaving one out chooses K = {chosen + 1}: test {percent(test[chosen])}",
            test[chosen] < test[best] + 0.02,
        ),
    ]

    def draw(figure):
        ax = figure.subplots()
        for name, curve in errors.items():
            ax.semilogx(n / K, curve, label=name)
        ax.axhline(FLIPPED, color="grey", linestyle=":", label="Bayes")
        ax.set(xlabel="n / K", ylabel="error")
        ax.legend(frameon=False)

    columns = ["K", "n / K", *errors]
    return Experiment("K nearest neighbours against n / K", columns, rows, claims, draw)


if __name__ == "__main__":
    report(run)
