"""Margins grow after the training error is zero: `python -m examples.digits_margins [picture]`.

Recognition of handwritten digits (ships with scikit-learn), odd against even, by AdaBoost of trees:
more rounds raise the margins of the training rows, and the test error goes on falling.
"""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_digits

from ensemble_gpu import AdaBoostClassifier, DecisionTreeClassifier
from ensemble_gpu.diagnostics import margins
from examples.experiment import Claim, Experiment, percent, report

ROUNDS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
SHOWN = (5, 100, 1000)


def digits():
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    X, y = X[order], np.where(y[order] % 2 == 1, 1, -1)
    return (X[:900], y[:900]), (X[900:], y[900:])


def run(small=False):
    rounds, shown = (ROUNDS[:-2], (5, 20, 200)) if small else (ROUNDS, SHOWN)
    train, test = digits()
    trees = DecisionTreeClassifier(max_depth=5, max_bins=17)
    model = AdaBoostClassifier(trees, variant="discrete", n_estimators=rounds[-1]).fit(*train)
    errors = {
        name: [float(np.mean(s != y)) for s in model.staged_predict(X, rounds=rounds)]
        for name, (X, y) in (("train", train), ("test", test))
    }
    found = margins(model, *train, rounds=shown)
    least = [float(np.min(m)) for m in found]
    zero = next(i for i, e in enumerate(errors["train"]) if e == 0.0)
    rows = [[t, percent(a), percent(b)] for t, a, b in zip(rounds, *errors.values(), strict=True)]
    claims = [
        Claim(
            "the test error goes on falling when the training error is zero",
            f"zero after {rounds[zero]} rounds; test {percent(errors['test'][zero])} then, "
            f"{percent(errors['test'][-1])} after {rounds[-1]}",
            errors["test"][-1] < 0.8 * errors["test"][zero],
        ),
        Claim(
            "because more rounds raise the smallest margins",
            ", ".join(f"{m:.3f} after {t}" for m, t in zip(least, shown, strict=True)),
            least[0] < least[1] < least[2] and least[2] > 0.0,
        ),
    ]

    def draw(figure):
        left, right = figure.subplots(1, 2)
        for name, curve in errors.items():
            left.semilogx(rounds, curve, "o-", label=name)
        left.set(xlabel="rounds", ylabel="error", title="error")
        left.legend(frameon=False)
        for t, m, style in zip(shown, found, (":", "--", "-"), strict=True):
            right.step(np.sort(m), np.arange(1, len(m) + 1) / len(m), style, label=f"{t} rounds")
        right.set(xlabel="margin", ylabel="share of training rows", title="margins")
        right.legend(frameon=False)

    columns = ["rounds", "train", "test"]
    return Experiment("Digits: margins after 5, 100 and 1,000 rounds", columns, rows, claims, draw)


if __name__ == "__main__":
    report(run)
