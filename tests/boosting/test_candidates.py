"""h and alpha chosen together: brute force over the features is the oracle."""

from __future__ import annotations

import numpy as np
import pytest

from ensemble_gpu import BoostingClassifier, BoostingRegressor, use_engine
from ensemble_gpu.losses import classification_loss, regression_loss
from tests.boosting.replaying import plans, whole_and_resumed

RNG = np.random.default_rng(0)
X = np.round(RNG.normal(size=(160, 5)), 1)
SCORE = X[:, 0] - X[:, 1] ** 2 + 0.5 * X[:, 2] + RNG.standard_t(2, size=160)
LABELS = (SCORE > -0.5).astype(int)


def of_one_feature(make, y: np.ndarray, f: int, n: int):
    """The first round on feature f alone: the best stump by gain, at the end of its step."""
    alone = np.zeros_like(X)
    alone[:, f] = X[:, f]
    return make(n).fit(alone, y).model_(alone)[:, 0]


@pytest.mark.parametrize(
    ("loss", "step"),
    [("logistic", "newton"), ("logistic", "line_search"), ("exponential", "newton"),
     ("truncated_squared", "line_search"), ("exponential", "line_search")],
)  # fmt: skip
def test_the_stump_that_lowers_the_loss_of_classes_most_is_taken(loss, step):
    def make(q: int) -> BoostingClassifier:
        return BoostingClassifier(
            loss, candidates=q, max_depth=1, step=step, n_estimators=1, learning_rate=1.0
        )

    function, signs = classification_loss(loss, 2), 2.0 * LABELS - 1.0
    risks = [function.value(signs, of_one_feature(make, LABELS, f, 2)).mean() for f in range(5)]
    ours = make(5).fit(X, LABELS)
    assert ours.model_.rounds.feature[0] == int(np.argmin(risks))
    risk = function.value(signs, ours.model_(X)[:, 0]).mean()
    assert risk == pytest.approx(min(risks), rel=1e-9)


@pytest.mark.parametrize("loss", ["huber", "absolute", "quantile", "poisson"])
def test_the_stump_that_lowers_the_loss_of_a_regression_most_is_taken(loss):
    y = np.floor(np.exp(SCORE / 3.0)) if loss == "poisson" else SCORE

    def make(q: int) -> BoostingRegressor:
        return BoostingRegressor(loss, candidates=q, max_depth=1, n_estimators=1, learning_rate=1.0)

    function = regression_loss(loss)
    risks = [function.value(y, of_one_feature(make, y, f, 2)).mean() for f in range(5)]
    ours = make(5).fit(X, y)
    # kinks: the integral of the slope is that of five points
    close = 1e-9 if loss in ("huber", "poisson") else 5e-3
    assert function.value(y, ours.model_(X)[:, 0]).mean() == pytest.approx(min(risks), rel=close)


def test_the_squared_loss_takes_the_same_stumps_for_any_number():
    one, many = (
        BoostingRegressor(candidates=q, max_depth=1, n_estimators=10).fit(X, SCORE) for q in (1, 5)
    )
    assert one.model_ == many.model_


@pytest.mark.parametrize("loss", ["logistic", "exponential", "hinge", "truncated_squared"])
def test_the_model_is_the_same_on_every_engine(loss):
    def model(engine: str) -> str:
        with use_engine(engine):
            return BoostingClassifier(
                loss, candidates=3, max_depth=1, n_estimators=12, random_state=0
            ).fit(X, LABELS).model_.fingerprint()  # fmt: skip

    assert model("cpu") == model("reference")


@pytest.mark.parametrize("loss", ["huber", "absolute"])
def test_a_regression_is_the_same_on_every_engine_and_can_be_taken_up(loss):
    make = BoostingRegressor(loss, candidates=3, max_depth=1, n_estimators=10)
    prints = set()
    for engine in ("cpu", "reference"):
        with use_engine(engine):
            prints.add(make.fit(X, SCORE).model_.fingerprint())
    assert len(prints) == 1
    (_, one, _), (_, other, _) = whole_and_resumed(plans(make, X, SCORE), 8)
    assert one == other


def test_three_classes_share_the_stump():
    y = np.digitize(SCORE, [-1.0, 0.5])
    ours = BoostingClassifier(candidates=3, max_depth=1, n_estimators=20).fit(X, y)
    assert ours.model_.n_rounds == 20
    assert ours.score(X, y) > 0.5
    with pytest.raises(ValueError, match="candidates=3 is for one stump a round"):
        ours.set_params(multiclass="each").fit(X, y)


@pytest.mark.parametrize(
    ("params", "says"),
    [
        ({"candidates": 0}, "candidates must be an integer >= 1"),
        ({"candidates": 2, "max_depth": 2}, "candidates=2 is for stumps"),
        ({"candidates": 2, "max_features": 2}, "max_features must be None or 'auto', got 2"),
    ],
)
def test_bad_parameters_are_named(params, says):
    with pytest.raises(ValueError, match=says):
        BoostingClassifier(**{"max_depth": 1, **params}).fit(X, LABELS)
