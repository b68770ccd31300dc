"""Bias and variance by the depth of a tree: `python -m examples.bias_variance_depth [picture.png]`.

Training sets of a known mean with noise of known variance. Squared error of a tree = bias^2 +
variance + noise; of a forest of such trees as well.
"""

from __future__ import annotations

import numpy as np

from ensemble_gpu import DecisionTreeRegressor, RandomForestRegressor
from examples.experiment import Claim, Experiment, report

SIGMA = 0.5
DEPTHS = (1, 2, 3, 4, 5, 6, 8, 10)


def mean(X):
    return np.sin(3.0 * X[:, 0]) + X[:, 1] * X[:, 2]


def sample(n, rng):
    X = rng.uniform(-1.0, 1.0, (n, 4))
    return X, mean(X) + SIGMA * rng.normal(size=n)


def parts(estimator, repeats, seed=0):
    """Bias^2, variance and the measured error on new rows, over repeated training sets."""
    rng = np.random.default_rng(seed)
    X, y = sample(2000, rng)
    G = np.asarray([estimator.fit(*sample(250, rng)).predict(X) for _ in range(repeats)])
    middle = G.mean(axis=0)
    variance = np.mean(G.var(axis=0, ddof=1))
    bias = np.mean((middle - mean(X)) ** 2) - variance / repeats
    return float(bias), float(variance), float(np.mean((G - y) ** 2))


def run(small=False):
    repeats = 20 if small else 100
    found = np.asarray([parts(DecisionTreeRegressor(max_depth=d), repeats) for d in DEPTHS])
    forest = parts(RandomForestRegressor(n_estimators=20, random_state=0, n_jobs=1), repeats // 2)
    noise = SIGMA**2
    best = int(np.argmin(found[:, 2]))
    rows = [
        [f"tree of depth {d}", f"{b:.3f}", f"{v:.3f}", f"{noise:.3f}", f"{e:.3f}"]
        for d, (b, v, e) in zip(DEPTHS, found, strict=True)
    ]
    rows.append(
        [
            "forest, full depth",
            f"{forest[0]:.3f}",
            f"{forest[1]:.3f}",
            f"{noise:.3f}",
            f"{forest[2]:.3f}",
        ]
    )
    off = np.max(np.abs(found[:, 0] + found[:, 1] + noise - found[:, 2]))
    claims = [
        Claim(
            "bias falls and variance rises with the depth; the error has its minimum in between",
            f"bias^2 {found[0, 0]:.3f} -> {found[-1, 0]:.3f}, variance {found[0, 1]:.3f} -> "
            f"{found[-1, 1]:.3f}, least error at depth {DEPTHS[best]}",
            found[-1, 0] < 0.5 * found[0, 0]
            and found[-1, 1] > 5.0 * found[0, 1]
            and 0 < best < len(DEPTHS) - 1,
        ),
        Claim(
            "error = bias^2 + variance + noise",
            f"the measured error differs by at most {off:.3f} (2,000 test rows)",
            off < 0.05,
        ),
        Claim(
            "a forest has the bias of deep trees and less variance",
            f"variance {forest[1]:.3f} against {found[-1, 1]:.3f}, bias^2 {forest[0]:.3f} against "
            f"{found[-1, 0]:.3f}",
            forest[1] < 0.5 * found[-1, 1] and forest[0] < found[2, 0],
        ),
    ]

    def draw(figure):
        ax = figure.subplots()
        labels = ("bias$^2$", "variance", "noise")
        ax.stackplot(DEPTHS, found[:, 0], found[:, 1], np.full(len(DEPTHS), noise), labels=labels)
        ax.plot(DEPTHS, found[:, 2], "ko-", label="measured error")
        ax.set(xlabel="depth of the tree", ylabel="squared error")
        ax.legend(frameon=False)

    columns = ["", "bias^2", "variance", "noise", "error"]
    return Experiment("Bias and variance by depth", columns, rows, claims, draw)


if __name__ == "__main__":
    report(run)
