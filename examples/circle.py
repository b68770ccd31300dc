"""AdaBoost on half-spaces learns a circle: `python -m examples.circle [picture.png]`.

x is uniform on [-1, 1]^2, y = +1 inside the circle of half the area. A round takes the best of
1,000 random half-spaces. With 30 % of the labels flipped the rounds learn the noise; small steps
(shrinkage, nu = 0.1) learn less of it.
"""

from __future__ import annotations

import numpy as np

from ensemble_gpu import AdaBoostClassifier
from ensemble_gpu.learners import HalfSpaces
from examples.experiment import Claim, Experiment, percent, report

ROUNDS = (1, 10, 50, 100, 200, 500)
CASES = {
    "clean, nu = 1": (0.0, 1.0),
    "30 % flipped, nu = 1": (0.3, 1.0),
    "30 % flipped, nu = 0.1": (0.3, 0.1),
}


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


def draw_scores(ax, model, title):
    """The decision function as an image, its zero as a line, the true circle dotted."""
    axis = np.linspace(-1.0, 1.0, 201)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1)
    F = model.decision_function(grid.reshape(-1, 2)).reshape(201, 201)
    most = np.abs(F).max()
    ax.imshow(F, origin="lower", extent=(-1, 1, -1, 1), cmap="RdBu", vmin=-most, vmax=most)
    ax.contour(axis, axis, F, levels=[0.0], colors="black")
    angle = np.linspace(0.0, 2.0 * np.pi, 200)
    radius = np.sqrt(2.0 / np.pi)
    ax.plot(radius * np.cos(angle), radius * np.sin(angle), "k:")
    ax.set_title(title)


def run(small=False):
    models, test, rows = {}, {}, []
    for title, (flipped, nu) in CASES.items():
        models[title] = fitted(flipped, nu, 100 if small else 1000)
        for name, where in (("train", (500, 5)), ("test", (10_000, 2))):
            found = errors(models[title], *circle(*where, flipped=flipped))
            rows.append([f"{title}, {name}", *map(percent, found)])
            test[title, name] = found[-1]
    clean, large, little = CASES
    claims = [
        Claim(
            "with clean labels the training error falls to zero and the circle is learnt",
            f"train {percent(test[clean, 'train'])}, test {percent(test[clean, 'test'])}",
            test[clean, "train"] == 0.0 and test[clean, "test"] < 0.08,
        ),
        Claim(
            "with 30 % noisy labels AdaBoost learns the noise",
            f"train {percent(test[large, 'train'])}, test {percent(test[large, 'test'])}",
            test[large, "train"] < 0.1 and test[large, "test"] > 0.35,
        ),
        Claim(
            "small steps help where nu = 1 overfits",
            f"test {percent(test[little, 'test'])} against {percent(test[large, 'test'])}",
            test[little, "test"] < test[large, "test"] - 0.02,
        ),
    ]

    def draw(figure):
        for ax, (title, model) in zip(figure.subplots(1, 3), models.items(), strict=True):
            draw_scores(ax, model, title)

    columns = ["error after rounds", *map(str, ROUNDS)]
    return Experiment("A circle from half-spaces", columns, rows, claims, draw)


if __name__ == "__main__":
    report(run)
