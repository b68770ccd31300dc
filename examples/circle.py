"""AdaBoost on half-spaces learns a circle: `python examples/circle.py [picture.png]`.

x is uniform on [-1, 1]^2, y = +1 inside the circle of half the area. A round takes the best of
1,000 random half-spaces. With clean labels some 100 rounds separate 500 rows. With 30 % of the
labels flipped the rounds learn the noise; small steps (nu = 0.1) learn less of it. With the name of
a picture the decision functions are drawn (needs matplotlib).
"""

from __future__ import annotations

import sys

import numpy as np

from ensemble_gpu import AdaBoostClassifier
from ensemble_gpu.learners import HalfSpaces

ROUNDS = (1, 10, 50, 100, 200, 500)


def circle(n, seed, flipped=0.0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (n, 2))
    y = np.where(np.sum(X**2, axis=1) < 2.0 / np.pi, 1, -1)
    return X, np.where(rng.random(n) < flipped, -y, y)


def fitted(flipped, learning_rate, n_candidates=1000):
    X, y = circle(500, seed=5, flipped=flipped)
    model = AdaBoostClassifier(
        HalfSpaces(n_candidates),
        variant="discrete",
        n_estimators=ROUNDS[-1],
        learning_rate=learning_rate,
        random_state=0,
    )
    return model.fit(X, y)


def errors(model, X, y):
    """The share of wrong labels after each of ROUNDS."""
    return [float(np.mean(labels != y)) for labels in model.staged_predict(X, rounds=ROUNDS)]


def draw(models, path):
    import matplotlib.pyplot as plt

    axis = np.linspace(-1.0, 1.0, 201)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1)
    figure, axes = plt.subplots(1, len(models), figsize=(4.2 * len(models), 4.0))
    for ax, (title, model) in zip(axes, models.items(), strict=True):
        F = model.decision_function(grid.reshape(-1, 2)).reshape(201, 201)
        most = np.abs(F).max()
        ax.imshow(F, origin="lower", extent=(-1, 1, -1, 1), cmap="RdBu", vmin=-most, vmax=most)
        ax.contour(axis, axis, F, levels=[0.0], colors="black")
        ax.add_patch(plt.Circle((0, 0), np.sqrt(2.0 / np.pi), fill=False, linestyle=":"))
        ax.set_title(title)
    figure.savefig(path)


def main(path=None, n_candidates=1000):
    cases = {
        "clean, nu = 1": (0.0, 1.0),
        "30 % flipped, nu = 1": (0.3, 1.0),
        "30 % flipped, nu = 0.1": (0.3, 0.1),
    }
    models = {}
    print(f"{'error in % after rounds':31s}" + "".join(f"{t:>7d}" for t in ROUNDS))
    for title, (flipped, nu) in cases.items():
        model = models[title] = fitted(flipped, nu, n_candidates)
        for name, rows in (("train", (500, 5)), ("test", (10_000, 2))):
            found = errors(model, *circle(*rows, flipped=flipped))
            print(f"{title + ', ' + name:31s}" + "".join(f"{100 * e:7.1f}" for e in found))
    if path is not None:
        draw(models, path)


if __name__ == "__main__":
    main(*sys.argv[1:2])
