"""The L1 ball instead of a number of rounds: `python -m examples.circle_radius [picture.png]`.

min R(f) over all sums of half-spaces with sum |a_h| <= lambda. On the circle with 30 % of the
labels flipped the radius is chosen by cross-validation; on a chessboard of 4 x 4 fields, whose
boundary sums of few half-spaces cannot follow, the error is drawn against the radius.
"""

from __future__ import annotations

import numpy as np

from ensemble_gpu import L1BoostingClassifier
from ensemble_gpu.learners import HalfSpaces, Rectangles
from examples.circle import circle, draw_scores, fitted
from examples.experiment import Claim, Experiment, percent, report

RADII = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0)


def chessboard(n, seed, flipped=0.1):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0.0, 4.0, (n, 2))
    y = np.where(np.sum(np.floor(X), axis=1) % 2 == 0, 1, -1)
    return X, np.where(rng.random(n) < flipped, -y, y)


def _error(model, X, y):
    return float(np.mean(model.predict(X) != y))


def on_the_circle(small):
    """Test errors in the ball whose radius was chosen, and of AdaBoost after 500 rounds."""
    X, y = circle(500, 5, 0.3)
    learner = HalfSpaces(100 if small else 300)
    ball = L1BoostingClassifier("logistic", estimator=learner, radii=RADII[:6], random_state=0).fit(
        X, y
    )
    test = circle(10_000, 2, 0.3)
    return ball, _error(ball, *test), _error(fitted(0.3, 1.0, 100 if small else 300), *test)


def on_the_chessboard(small):
    """Training and test errors for each radius."""
    train, test = chessboard(600, 1), chessboard(10_000, 2)
    radii = RADII[1::3] if small else RADII
    models = [
        L1BoostingClassifier("logistic", estimator=Rectangles(), radius=radius, tol=0.01).fit(
            *train
        )
        for radius in radii
    ]
    return radii, [_error(m, *train) for m in models], [_error(m, *test) for m in models]


def run(small=False):
    ball, in_ball, by_rounds = on_the_circle(small)
    radii, train, test = on_the_chessboard(small)
    best = int(np.argmin(test))
    rows = [["circle, AdaBoost, 500 rounds", "", "", percent(by_rounds)]]
    rows.append(["circle, ball by cross-validation", f"{ball.radius_:g}", "", percent(in_ball)])
    rows += [
        ["chessboard", f"{r:g}", percent(a), percent(b)]
        for r, a, b in zip(radii, train, test, strict=True)
    ]
    claims = [
        Claim(
            "the bound on the coefficients regularises: no number of rounds has to be chosen",
            f"test {percent(in_ball)} in the ball, {percent(by_rounds)} after 500 rounds",
            in_ball < by_rounds - 0.02,
        ),
        Claim(
            "a small radius underfits, a large one overfits: the training error falls, the test "
            "error has a minimum in between",
            f"chessboard: least test error {percent(test[best])} at radius {radii[best]:g}, "
            f"{percent(test[0])} at {radii[0]:g}, {percent(test[-1])} at {radii[-1]:g}",
            train[-1] < train[0] and test[0] > test[best] + 0.02 and test[-1] > test[best],
        ),
    ]

    def draw(figure):
        left, right = figure.subplots(1, 2)
        draw_scores(left, ball, f"30 % flipped, radius {ball.radius_:g} by cross-validation")
        right.semilogx(radii, train, "o-", label="train")
        right.semilogx(radii, test, "s-", label="test")
        right.axhline(0.1, color="grey", linestyle=":", label="Bayes")
        right.set(xlabel="radius", ylabel="error", title="chessboard, 10 % flipped")
        right.legend(frameon=False)

    columns = ["data", "radius", "train", "test"]
    return Experiment("Sums in an L1 ball", columns, rows, claims, draw)


if __name__ == "__main__":
    report(run)
