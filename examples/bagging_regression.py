"""Bagging averages curves: `python -m examples.bagging_regression [picture.png]`.

200 points of a sine with noise. Trees that are grown fully follow the noise; the mean of trees on
bootstrap samples does so less. Over repeated training sets the variance of the mean of M trees is
rho s^2 + (1 - rho) s^2 / M, s^2 the variance of one tree and rho the correlation of two.
"""

from __future__ import annotations

import numpy as np

from ensemble_gpu import BaggingRegressor
from examples.experiment import Claim, Experiment, percent, report

SIGMA, MEMBERS = 0.4, (1, 2, 5, 10, 20)


def sample(n, rng):
    x = rng.uniform(0.0, 1.0, (n, 1))
    return x, np.sin(2.0 * np.pi * x[:, 0]) + SIGMA * rng.normal(size=n)


def run(small=False):
    rng = np.random.default_rng(3)
    grid = np.linspace(0.02, 0.98, 97)[:, None]
    f = np.sin(2.0 * np.pi * grid[:, 0])
    curves = []
    for repeat in range(40 if small else 150):
        bags = BaggingRegressor(n_estimators=MEMBERS[-1], random_state=repeat, n_jobs=1)
        bags.fit(*sample(200, rng))
        curves.append([one.predict(grid) for one in bags.estimators_])
    G = np.asarray(curves)  # [repeat, member, x]
    single = float(np.mean(np.var(G[:, 0], axis=0)))
    # Two members of one training set: their covariance over training sets is rho s^2.
    covariance = np.mean([_covariance(G[:, a], G[:, a + 1]) for a in range(0, MEMBERS[-1], 2)])
    s2 = float(np.mean(np.var(G, axis=0)))
    rho = float(covariance) / s2
    rows, variance, bias = [], [], []
    for m in MEMBERS:
        means = G[:, :m].mean(axis=1)
        variance.append(float(np.mean(np.var(means, axis=0))))
        bias.append(float(np.mean((means.mean(axis=0) - f) ** 2)))
        rows.append(
            [m, f"{bias[-1]:.4f}", f"{variance[-1]:.4f}", f"{rho * s2 + (1 - rho) * s2 / m:.4f}"]
        )
    predicted = rho * s2 + (1.0 - rho) * s2 / np.asarray(MEMBERS)
    off = float(np.max(np.abs(np.asarray(variance) / predicted - 1.0)))
    claims = [
        Claim(
            "bagging lowers the variance and keeps the bias",
            f"variance {variance[0]:.4f} -> {variance[-1]:.4f}, "
            f"bias^2 {bias[0]:.4f} -> {bias[-1]:.4f}",
            variance[-1] < 0.6 * variance[0] and abs(bias[-1] - bias[0]) < 0.1 * single,
        ),
        Claim(
            "the variance of the mean of M is rho s^2 + (1 - rho) s^2 / M",
            f"rho = {rho:.2f}; off by at most {percent(off)}",
            off < 0.1,
        ),
    ]

    def draw(figure):
        left, right = figure.subplots(1, 2)
        for curve in G[0]:
            left.plot(grid[:, 0], curve, color="lightsteelblue", linewidth=0.6)
        left.plot(grid[:, 0], G[0].mean(axis=0), color="navy", label="mean of 20 trees")
        left.plot(grid[:, 0], f, "k:", label="truth")
        left.set(title="20 trees on bags of one training set", xlabel="x", ylabel="y")
        left.legend(frameon=False)
        right.plot(MEMBERS, variance, "o", label="measured")
        m = np.linspace(1, MEMBERS[-1], 100)
        right.plot(m, rho * s2 + (1 - rho) * s2 / m, label=r"$\rho s^2 + (1-\rho) s^2/M$")
        right.plot(MEMBERS, bias, "s--", label="bias$^2$")
        right.set(xlabel="M, trees", ylabel="variance", ylim=(0, None))
        right.legend(frameon=False)

    columns = ["trees", "bias^2", "variance", "by the formula"]
    return Experiment("Bagging in regression", columns, rows, claims, draw)


def _covariance(a, b):
    return np.mean((a - a.mean(axis=0)) * (b - b.mean(axis=0)))


if __name__ == "__main__":
    report(run)
