"""Learners that are given, on the CUDA engine: sums of answers, and fits as on the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ensemble_gpu import AdaBoostClassifier, BoostingClassifier, BoostingRegressor, use_engine
from ensemble_gpu.kernels.protocol import ABSTAIN, LEFT, RIGHT
from ensemble_gpu.learners import Balls, Boxes, HalfSpaces, Pool, Rectangles
from tests.cuda.simulator.problems import cuda_engine

CORNERS = [0, 1, -1, 2**31, -(2**33), 2**62, -(2**63), 2**63 - 1]


@pytest.mark.parametrize(("n", "members"), [(1, 1), (64, 3), (65, 7), (150, 5)])
@pytest.mark.parametrize("abstaining", [False, True])
def test_sums_of_answers_are_those_of_a_matrix_product(n, members, abstaining):
    rng = np.random.default_rng(n)
    signs = np.array([-1, 0, 1] if abstaining else [-1, 1], dtype=np.int8)
    answers = rng.choice(signs, (members, n))
    q = rng.integers(0, 2**6, (2, n))
    q[1, : len(CORNERS)] = CORNERS[:n]
    engine = cuda_engine()
    packed = engine.pack_answers(iter([answers[:1].T, answers[1:].T]), n)
    sums = engine.answer_sums(packed, q)
    for plane in range(2):
        for side, vote in ((LEFT, -1), (RIGHT, 1)):
            expected = ((answers == vote) * q[plane]).sum(axis=1)
            np.testing.assert_array_equal(sums[plane, side], expected)
    leaf = np.array([LEFT, ABSTAIN, RIGHT])[answers[-1] + 1]
    np.testing.assert_array_equal(engine.answer(packed, members - 1), leaf)


FITS: dict[str, Any] = {
    "votes": AdaBoostClassifier(Pool(signed=True), variant="discrete"),
    "any loss": BoostingClassifier(estimator=Pool(signed=True)),
    "gram": BoostingRegressor(estimator=Pool(signed=True)),
}


@pytest.mark.parametrize("name", FITS)
def test_the_model_is_that_of_the_cpu_engine(name):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 40)
    X = np.where(rng.random((40, 5)) < 0.65, 1.0, -1.0) * (2 * y - 1)[:, None]
    X[rng.random(X.shape) < 0.1] = 0.0
    assert_as_on_the_cpu(FITS[name], X, y)


DRAWN: dict[str, Any] = {
    "half-spaces": AdaBoostClassifier(HalfSpaces(9), variant="real", random_state=0),
    "balls": BoostingClassifier(estimator=Balls(5), random_state=0),
    "boxes, drawn anew": AdaBoostClassifier(
        Boxes(9, redraw="round"), variant="discrete", random_state=0
    ),
    "half-spaces, drawn anew": BoostingRegressor(estimator=HalfSpaces(5, redraw="round")),
    "rectangles": AdaBoostClassifier(Rectangles(4), variant="discrete"),
}


@pytest.mark.parametrize("name", DRAWN)
def test_drawn_learners_have_the_model_of_the_cpu_engine(name):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 3))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    X[rng.random(X.shape) < 0.1] = np.nan
    assert_as_on_the_cpu(DRAWN[name], X, y)


def assert_as_on_the_cpu(estimator: Any, X: np.ndarray, y: np.ndarray) -> None:
    estimator.set_params(n_estimators=3)
    expected = estimator.fit(X, y).model_
    with use_engine("cuda"):
        assert estimator.fit(X, y).model_ == expected
        assert estimator.engine_ == "cuda"
