"""AdaBoost may overfit, and its margins tell: `python -m examples.overfitting [picture.png]`.

Patients with diabetes (ships with scikit-learn), those whose disease progressed more than the
median against the others: a noisy problem with few rows, as the heart disease of the lecture.
Stumps of AdaBoost, errors by round over repeated halves of the rows, and the margins of the
training rows.
"""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_diabetes

from ensemble_gpu import AdaBoostClassifier
from ensemble_gpu.diagnostics import margins
from examples.experiment import Claim, Experiment, percent, report

ROUNDS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000)
SHOWN = (5, 100, 2000)


def halves(repeats):
    X, y = load_diabetes(return_X_y=True)
    y = np.where(y > np.median(y), 1, -1)
    for seed in range(repeats):
        order = np.random.default_rng(seed).permutation(len(y))
        a, b = order[: len(y) // 2], order[len(y) // 2 :]
        yield X[a], y[a], X[b], y[b]


def run(small=False):
    errors, kept = [], None
    for X, y, X_test, y_test in halves(5 if small else 20):
        model = AdaBoostClassifier(variant="discrete", n_estimators=ROUNDS[-1], calibrate=False)
        model.fit(X, y)
        errors.append([_errors(model, X, y), _errors(model, X_test, y_test)])
        kept = kept or (model, X, y)
    train, test = np.mean(errors, axis=0)
    best = int(np.argmin(test))
    found = margins(*kept, rounds=SHOWN)
    negative = [float(np.mean(m <= 0.0)) for m in found]
    median = [float(np.median(m)) for m in found]
    rows = [[t, percent(a), percent(b)] for t, a, b in zip(ROUNDS, train, test, strict=True)]
    claims = [
        Claim(
            "the training error falls to zero",
            f"{percent(train[-1])} after {ROUNDS[-1]} rounds",
            train[-1] < 0.01,
        ),
        Claim(
            "too many rounds overfit: the test error rises again",
            f"{percent(test[best])} after {ROUNDS[best]} rounds, "
            f"{percent(test[-1])} after {ROUNDS[-1]}",
            test[-1] > test[best] + 0.02 and ROUNDS[best] <= 100,
        ),
        Claim(
            "the error is fitted at the price of confidence: margins of the median row shrink",
            ", ".join(f"{m:.2f} after {t}" for m, t in zip(median, SHOWN, strict=True)),
            median[-1] < median[0] and negative[-1] <= negative[0],
        ),
    ]

    def draw(figure):
        left, right = figure.subplots(1, 2)
        left.semilogx(ROUNDS, train, "o-", label="train")
        left.semilogx(ROUNDS, test, "s-", label="test")
        left.set(xlabel="rounds", ylabel="error", title="mean of repeated halves")
        left.legend(frameon=False)
        for t, m in zip(SHOWN, found, strict=True):
            right.step(np.sort(m), np.arange(1, len(m) + 1) / len(m), label=f"{t} rounds")
        right.axvline(0.0, color="grey", linewidth=0.8)
        right.set(xlabel="margin", ylabel="share of training rows", title="margins")
        right.legend(frameon=False)

    columns = ["rounds", "train", "test"]
    return Experiment("Overfitting, and its margins", columns, rows, claims, draw)


def _errors(model, X, y):
    return [float(np.mean(labels != y)) for labels in model.staged_predict(X, rounds=ROUNDS)]


if __name__ == "__main__":
    report(run)
