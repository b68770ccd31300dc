"""L2Boost with kernel ridge regression: `python -m examples.kernel_ridge [picture.png]`.

500 points of a curve with Gaussian noise. F_k = F_k-1 + nu S (y - F_k-1) with S of a Gaussian
kernel of some width and the ridge C. Bias and variance of every k in closed form (the mean is
known); a learner that is too strong overfits at once, one that is too weak has not learnt after 50.
"""

from __future__ import annotations

import numpy as np

from ensemble_gpu import L2BoostRegressor
from ensemble_gpu.smoothers import KernelRidge
from examples.experiment import Claim, Experiment, report

SIGMA, ROUNDS = 0.5, 50
CASES = {"too strong": (0.1, 1.0, 1.0), "too weak": (0.5, 1.0, 1.0), "good": (0.2, 5.0, 0.8)}


def mean(x):
    return np.sin(3.0 * x) + np.sin(9.0 * x) * np.exp(-(x**2))


def run(small=False):
    n = 200 if small else 500
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(-2.0, 2.0, n))[:, None]
    f = mean(x[:, 0])
    y = f + SIGMA * rng.normal(size=n)
    parts, fits, rows = {}, {}, []
    for name, (width, ridge, nu) in CASES.items():
        model = L2BoostRegressor(
            KernelRidge(width, ridge), learning_rate=nu, n_estimators=ROUNDS, criterion=None
        ).fit(x, y)
        found = parts[name] = model.bias_variance(x, f, SIGMA)
        fits[name] = model.predict(x)
        total = found.bias2 + found.variance
        best = int(np.argmin(total))
        for k in sorted({1, best + 1, ROUNDS}):
            rows.append([f"{name}: width {width}, C {ridge:g}, nu {nu}", k, *_three(found, k - 1)])
    error = {name: found.bias2 + found.variance for name, found in parts.items()}
    best = {name: int(np.argmin(e)) + 1 for name, e in error.items()}
    last = {name: float(e[-1]) for name, e in error.items()}
    claims = [
        Claim(
            "bias falls and variance rises with the rounds, in every case",
            "yes" if (monotone := all(map(_monotone, parts.values()))) else "no",
            monotone,
        ),
        Claim(
            "a strong learner is best after few rounds and overfits, a weak one needs many",
            f"best after {best['too strong']} and {best['too weak']} rounds; the strong one ends "
            f"at {error['too strong'][-1] / error['too strong'].min():.2f} times its least error",
            best["too strong"] < 10 < best["too weak"]
            and error["too strong"][-1] > 1.1 * error["too strong"].min(),
        ),
        Claim(
            "the third setting is the best of the three after 50 rounds",
            ", ".join(f"{name} {value:.4f}" for name, value in last.items()),
            last["good"] == min(last.values()),
        ),
    ]

    def draw(figure):
        figure.set_size_inches(11.0, 6.0)
        above, below = figure.subplots(2, 3)
        for ax, under, (name, found) in zip(above, below, parts.items(), strict=True):
            k = np.arange(1, ROUNDS + 1)
            ax.plot(k, found.bias2, label="bias$^2$")
            ax.plot(k, found.variance, label="variance")
            ax.plot(k, found.bias2 + found.variance, "k", label="sum")
            ax.set(title=name, xlabel="rounds", yscale="log")
            under.plot(x[:, 0], y, ".", color="lightgrey", markersize=3)
            under.plot(x[:, 0], f, "k:", label="mean")
            under.plot(x[:, 0], fits[name], label="after 50 rounds")
        above[0].legend(frameon=False)
        below[0].legend(frameon=False)

    columns = ["setting", "rounds", "bias^2", "variance", "sum"]
    return Experiment("L2Boost with kernel ridge regression", columns, rows, claims, draw)


def _three(found, k):
    bias, variance = float(found.bias2[k]), float(found.variance[k])
    return f"{bias:.4f}", f"{variance:.4f}", f"{bias + variance:.4f}"


def _monotone(found):
    return np.all(np.diff(found.bias2) <= 1e-12) and np.all(np.diff(found.variance) >= -1e-12)


if __name__ == "__main__":
    report(run)
