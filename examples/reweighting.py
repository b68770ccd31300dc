"""Rows are reweighted round by round: `python -m examples.reweighting [picture.png]`.

AdaBoost with stumps on the circle. The weight of a row is D(i) = exp(-y_i F(x_i)) / sum. After a
round the stump just taken is worth nothing: under the new weights it is wrong on exactly half.
"""

from __future__ import annotations

import numpy as np

from ensemble_gpu import AdaBoostClassifier
from examples.circle import circle
from examples.experiment import Claim, Experiment, percent, report

SHOWN = (0, 1, 2, 5, 20, 100)


def run(small=False):
    X, y = circle(120, 4)
    model = AdaBoostClassifier(variant="discrete", n_estimators=SHOWN[-1], calibrate=False)
    model.fit(X, y)
    F = np.asarray([np.zeros(len(y)), *model.staged_decision_function(X)])
    weight = np.exp(-y * F)
    D = weight / weight.sum(axis=1, keepdims=True)
    answers = np.sign(np.diff(F, axis=0))
    n = len(answers)
    new = np.asarray([D[t + 1][answers[t] != y].sum() for t in range(n)])
    old = np.asarray([D[t][answers[t] != y].sum() for t in range(n)])
    heavy = {t: int(np.argmax(D[t])) for t in SHOWN}
    radius = np.sqrt(2.0 / np.pi)
    # How far rows are from the circle, on average and by weight.
    distance = np.abs(np.sqrt(np.sum(X**2, axis=1)) - radius)
    by_weight = D @ distance
    rows = [
        [t, f"{1.0 / np.sum(D[t] ** 2):.0f}", f"{D[t].max() * len(y):.1f}", f"{by_weight[t]:.3f}",
         percent(np.mean(np.where(F[t] >= 0, 1, -1) != y))]
        for t in SHOWN
    ]  # fmt: skip
    claims = [
        Claim(
            "a round's learner has the weighted error 1/2 under the next weights",
            f"|error - 1/2| at most {np.max(np.abs(new - 0.5)):.1e}; under its own at most "
            f"{old.max():.3f}",
            np.max(np.abs(new - 0.5)) < 1e-8 and old.max() < 0.5,
        ),
        Claim(
            "weight gathers on rows that are hard: those near the boundary",
            f"mean distance to the circle {by_weight[0]:.3f}, by weight {by_weight[-1]:.3f}",
            by_weight[-1] < 0.7 * by_weight[0],
        ),
    ]

    def draw(figure):
        figure.set_size_inches(9.0, 6.4)
        angle = np.linspace(0.0, 2.0 * np.pi, 200)
        for ax, t in zip(np.ravel(figure.subplots(2, 3, sharey=True)), SHOWN, strict=True):
            for label, colour in ((1, "tab:blue"), (-1, "tab:red")):
                own = y == label
                ax.scatter(*X[own].T, s=12.0 * len(y) * D[t][own], color=colour, alpha=0.6, lw=0)
            ax.plot(*X[heavy[t]], "k+")
            ax.plot(radius * np.cos(angle), radius * np.sin(angle), "k:", linewidth=0.8)
            ax.set(title=f"after {t} rounds", aspect="equal", xticks=[], yticks=[])

    columns = ["rounds", "effective rows", "largest n D", "distance by weight", "train"]
    return Experiment("Weights round by round", columns, rows, claims, draw)


if __name__ == "__main__":
    report(run)
