"""Bagging against boosting under label noise: `python -m examples.label_noise [picture.png]`.

The same trees in AdaBoost and in bagging, with 0 to 40 % of the training labels flipped; test
labels are clean.
"""

from __future__ import annotations

import numpy as np

from ensemble_gpu import AdaBoostClassifier, BaggingClassifier, DecisionTreeClassifier
from examples.experiment import Claim, Experiment, percent, report

SHARES = (0.0, 0.1, 0.2, 0.3, 0.4)


def sample(n, rng, flipped):
    X = rng.normal(size=(n, 10))
    y = np.where(np.sum(X**2, axis=1) > 9.34, 1, -1)
    return X, np.where(rng.random(n) < flipped, -y, y)


def run(small=False):
    repeats, members = (2, 30) if small else (4, 100)
    error = np.zeros((2, len(SHARES)))
    for repeat in range(repeats):
        rng = np.random.default_rng(repeat)
        X_test, y_test = sample(5000, rng, 0.0)
        for j, share in enumerate(SHARES):
            X, y = sample(600, rng, share)
            tree = DecisionTreeClassifier(max_depth=6)
            contestants = (
                AdaBoostClassifier(tree, variant="discrete", n_estimators=members),
                BaggingClassifier(tree, n_estimators=members, random_state=repeat, n_jobs=1),
            )
            for i, model in enumerate(contestants):
                error[i, j] += np.mean(model.fit(X, y).predict(X_test) != y_test) / repeats
    boosting, bagging = error
    rows = [[percent(s), percent(a), percent(b)] for s, a, b in zip(SHARES, *error, strict=True)]
    ahead = boosting - bagging
    claims = [
        Claim(
            "with clean labels boosting is better than bagging",
            f"{percent(boosting[0])} against {percent(bagging[0])}",
            boosting[0] < bagging[0] - 0.02,
        ),
        Claim(
            "boosting suffers more from wrong labels",
            f"with 30 % flipped {percent(boosting[3])} against {percent(bagging[3])}; it lost "
            f"{percent(boosting[3] - boosting[0])}, bagging {percent(bagging[3] - bagging[0])}",
            ahead[3] > ahead[0] + 0.03,
        ),
    ]

    def draw(figure):
        ax = figure.subplots()
        ax.plot(SHARES, boosting, "o-", label="AdaBoost of trees")
        ax.plot(SHARES, bagging, "s-", label="bagged trees")
        ax.set(xlabel="share of flipped training labels", ylabel="test error (clean labels)")
        ax.legend(frameon=False)

    columns = ["flipped", "AdaBoost of trees", "bagged trees"]
    return Experiment("Bagging and boosting under label noise", columns, rows, claims, draw)


if __name__ == "__main__":
    report(run)
