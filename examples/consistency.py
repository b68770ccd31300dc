"""The excess error falls with the rows: `python -m examples.consistency [picture.png]`.

x is uniform on [-1, 1]^2, P(y = 1) = 0.85 inside the circle of half the area and 0.15 outside: the
Bayes error is 15 %, and a sum of stumps can be as good. Two ways to let the model grow with the
number m of rows, slowly enough: boosting in an L1 ball whose radius grows, and AdaBoost stopped
after about m^(1 - eps) rounds.
"""

from __future__ import annotations

import numpy as np

from ensemble_gpu import AdaBoostClassifier, L1BoostingClassifier
from examples.circle import circle
from examples.experiment import Claim, Experiment, percent, report

BAYES, EPSILON = 0.15, 0.5


def run(small=False):
    sizes = (100, 800, 6400) if small else (100, 200, 400, 800, 1600, 3200, 6400)
    repeats = 4 if small else 8
    X_test, y_test = circle(20_000, 99)
    ways = {
        "ball, consistent radius": lambda m: L1BoostingClassifier("logistic", radius="consistent"),
        f"AdaBoost, m^{1 - EPSILON:g} rounds": lambda m: AdaBoostClassifier(
            n_estimators=round(m ** (1.0 - EPSILON)), calibrate=False
        ),
        "AdaBoost, 10 m rounds": lambda m: AdaBoostClassifier(
            n_estimators=min(10 * m, 4000), calibrate=False
        ),
    }
    excess = {name: np.zeros(len(sizes)) for name in ways}
    for j, m in enumerate(sizes):
        for repeat in range(repeats):
            X, y = circle(m, 1000 * repeat + m, BAYES)
            for name, make in ways.items():
                wrong = np.mean(make(m).fit(X, y).predict(X_test) != y_test)
                # A row on the wrong side costs (1 - 2 BAYES) more than Bayes' rule.
                excess[name][j] += (1.0 - 2.0 * BAYES) * wrong / repeats
    rows = [[m, *(percent(excess[name][j]) for name in ways)] for j, m in enumerate(sizes)]
    ball, stopped, never = excess.values()
    claims = [
        Claim(
            "with a radius that grows slowly enough the error tends to that of Bayes' rule",
            f"excess {percent(ball[0])} of {sizes[0]} rows, {percent(ball[-1])} of {sizes[-1]}",
            ball[-1] < 0.5 * ball[0],
        ),
        Claim(
            "so it does with m^(1 - eps) rounds",
            f"excess {percent(stopped[0])} -> {percent(stopped[-1])}",
            stopped[-1] < 0.5 * stopped[0],
        ),
        Claim(
            "with rounds without end the noise is learnt: that is worse at every number of rows",
            f"excess {percent(never[0])} of {sizes[0]} rows, {percent(never[-1])} of {sizes[-1]}",
            np.all(never > stopped),
        ),
    ]

    def draw(figure):
        ax = figure.subplots()
        for name, curve in excess.items():
            ax.loglog(sizes, curve, "o-", label=name)
        ax.set(xlabel="m, rows", ylabel="excess error")
        ax.legend(frameon=False)

    columns = ["rows", *ways]
    return Experiment("Excess error against the number of rows", columns, rows, claims, draw)


if __name__ == "__main__":
    report(run)
