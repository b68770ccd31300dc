"""Half-spaces, balls and boxes: exact numbers, the best of all candidates, one model everywhere."""

from __future__ import annotations

import math
import pickle
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pytest

from ensemble_gpu import AdaBoostClassifier, BoostingClassifier, BoostingRegressor, use_engine
from ensemble_gpu.arrays.namespace import NUMPY, locate
from ensemble_gpu.data.keys import row_keys
from ensemble_gpu.data.sampling import draw_seed, items_of
from ensemble_gpu.learners import Balls, Boxes, HalfSpaces
from ensemble_gpu.learners.source import DrawnFrom
from ensemble_gpu.model import generators
from ensemble_gpu.model.generators import HalfSpaceGenerators
from examples import circle as example
from tests.boosting.replaying import plans, whole_and_resumed
from tests.estimators.checks import LIGHT_ROWS, all_when_long, assert_checks_pass
from tests.learners.everywhere import the_same_everywhere
from tests.libraries import Torch
from tests.places import DEVICE

FAMILIES = [HalfSpaces, Balls, Boxes]


def circle(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Uniform on [-1, 1]^2; 1 inside the circle of half the area, 0 outside."""
    X, y = example.circle(n, seed)
    return X, (y > 0).astype(int)


def rows_of(n: int = 90, p: int = 3, missing: float = 0.1, seed: int = 0):
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(n, p)), 2)
    y = (X[:, 0] * X[:, 1] + X[:, -1] + 0.5 * rng.normal(size=n) > 0).astype(int)
    X[rng.random(X.shape) < missing] = np.nan
    return X, y


def boosted(learner: Any, **params: Any) -> AdaBoostClassifier:
    params = {"variant": "discrete", "n_estimators": 8, "random_state": 0, **params}
    return AdaBoostClassifier(learner, **params)


def drawn(learner: Any, model: Any, X: np.ndarray, y: np.ndarray, number: int) -> Any:
    """The generators of a round of a fit with random_state=0."""
    rng = np.random.default_rng([draw_seed(0), number])
    items = items_of(row_keys(y, X), None).rows
    return learner._draw(rng, DrawnFrom(model.grid, model.grid(X, NUMPY), items, NUMPY))


def exact(family: type, g: Any, u: np.ndarray) -> np.ndarray:
    """z of the formulas in integers of any size."""

    def whole(a: np.ndarray) -> np.ndarray:
        return np.array([[int(v) for v in row] for row in a], dtype=object)

    u = whole(np.nan_to_num(u))
    if family is HalfSpaces:
        return u @ whole(g.w).T
    far = u[:, None, :] - whole(g.c)[None]
    if family is Balls:
        return (far**2 * g.used[None]).sum(axis=2)
    return np.abs(far * whole(g.m)[None]).max(axis=2)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("n_features", [None, 2])
def test_the_numbers_of_generators_are_exact_on_every_library(family, n_features):
    X, y = rows_of(p=5)
    X[0] = 1e30  # cut to the grid's limit
    learner = family(20, n_features=n_features)
    model = boosted(learner).fit(X, y).model_
    g, u = drawn(learner, model, X, y, 0), model.grid(X, NUMPY)
    z = g(u, NUMPY)
    expected = exact(family, g, u)
    touched = (np.isnan(u)[:, None, :] & g.used[None]).any(axis=2)
    np.testing.assert_array_equal(np.isnan(z), touched)
    assert all(a == b for a, b in zip(z[~touched], expected[~touched], strict=True))
    assert np.abs(z[~touched]).max() < 2.0**53
    there = DEVICE.put(X)
    where = locate(there)
    np.testing.assert_array_equal(DEVICE.host(g(model.grid(there, where), where)), z)


def weighted_errors(z: np.ndarray, cuts: list[float], y: np.ndarray, D: np.ndarray) -> float:
    """The least wrong + abstaining / 2 of all thresholds, sides and constants on z."""
    known, s = ~np.isnan(z), 2.0 * y - 1.0
    best = math.inf
    for t in cuts:
        for leaf in ((-1, 1), (1, -1), (1, 1), (-1, -1)):
            h = np.where(z <= t, *leaf)
            wrong = D[known & (h != s)].sum() + 0.5 * D[~known].sum()
            best = min(best, wrong)
    return best


@pytest.mark.parametrize("redraw", ["once", "round"])
@pytest.mark.parametrize("family", FAMILIES)
def test_a_round_is_the_best_of_all_candidates_thresholds_and_sides(family, redraw):
    X, y = rows_of(n=40, p=2)
    learner = family(6, redraw=redraw)
    fit = boosted(learner, n_estimators=5).fit(X, y)
    model, s = fit.model_, 2.0 * y - 1.0
    for t in range(fit.n_estimators_):
        F = model.first(t)(X)[:, 0] if t else np.zeros(len(y))
        D = np.exp(-s * F)
        D /= D.sum()
        Z = drawn(learner, model, X, y, 0 if redraw == "once" else t)(model.grid(X, NUMPY), NUMPY)
        best = math.inf
        for z in Z.T:
            values = np.unique(z[~np.isnan(z)])
            cuts = list(0.5 * values[1:] + 0.5 * values[:-1])
            if redraw == "round":  # evenly spaced, a power of two apart, from the least z on
                size = 2.0 ** max(math.frexp(values[-1] - values[0])[1] - 8, 0)
                size = 2.0 * size if (values[-1] - values[0]) / size >= 255 else size
                cuts = list(np.arange(values[0] + size, values[-1] + 0.5, size) - 0.5)
                assert 127 <= len(cuts) <= 254
            best = min(best, weighted_errors(z, cuts, y, D))
        W0, _, wrong, _ = fit.history_.weights[t]
        assert wrong + 0.5 * W0 == pytest.approx(best, abs=1e-6)


@dataclass
class Fixed(HalfSpaces):
    """Directions that are given, instead of drawn."""

    directions: Any = None
    redraw: str = "once"
    n_features: Any = None

    @property
    def n_candidates(self) -> int:
        return len(self.directions)

    def _draw(self, rng: Any, rows: Any) -> Any:
        w = np.asarray(self.directions, dtype=np.float64)
        return HalfSpaceGenerators(w != 0.0, w * 2.0**10)


@pytest.mark.parametrize("variant", ["discrete", "real", "gentle", "logit"])
def test_axis_directions_are_the_stump_estimators_model(variant):
    X, y = rows_of()
    params = {"variant": variant, "n_estimators": 15}
    axes = AdaBoostClassifier(Fixed(np.eye(3)), **params).fit(X, y)
    stumps = AdaBoostClassifier(**params, calibrate=False).fit(X, y)
    np.testing.assert_array_equal(axes.alphas_, stumps.alphas_)
    np.testing.assert_array_equal(axes.errors_, stumps.errors_)
    np.testing.assert_array_equal(axes.decision_function(X), stumps.decision_function(X))
    np.testing.assert_allclose(axes.feature_importances_, stumps.feature_importances_)


@pytest.mark.parametrize("redraw", ["once", "round"])
def test_rotated_data_and_directions_have_the_same_rounds(redraw):
    X, y = rows_of(p=2)
    X = X[~np.isnan(X).any(axis=1)]
    y = y[: len(X)]
    w = np.random.default_rng(3).integers(-50, 50, (30, 2))
    quarter = np.array([[0, 1], [-1, 0]])
    fits = [
        boosted(Fixed(w @ R, redraw), n_estimators=12).fit(X @ R, y) for R in (np.eye(2), quarter)
    ]
    np.testing.assert_array_equal(fits[0].errors_, fits[1].errors_)
    np.testing.assert_array_equal(fits[0].predict(X), fits[1].predict(X @ quarter))


@pytest.mark.parametrize("redraw", ["once", "round"])
@pytest.mark.parametrize("family", FAMILIES)
def test_the_model_is_the_same_everywhere(family, redraw):
    X, y = rows_of()
    learner = family(12, redraw=redraw, n_features=2)
    model = the_same_everywhere(partial(boosted, learner), X, y)
    again = pickle.loads(pickle.dumps(model))
    assert again == model
    np.testing.assert_array_equal(again(X), model(X))


@pytest.mark.parametrize("family", FAMILIES)
def test_doubled_rows_are_doubled_weights(family):
    X, y = rows_of()
    w = np.where(np.arange(len(y)) < 30, 2.0, 1.0)
    rows = np.repeat(np.arange(len(y)), w.astype(int))
    for redraw in ("once", "round"):
        learner = family(10, redraw=redraw)
        one, other = (
            boosted(learner).fit(X, y, sample_weight=w),
            boosted(learner).fit(X[rows], y[rows]),
        )
        np.testing.assert_allclose(one.alphas_, other.alphas_, rtol=1e-5)
        np.testing.assert_allclose(one.decision_function(X), other.decision_function(X), atol=1e-4)


@pytest.mark.interop
@pytest.mark.parametrize("family", FAMILIES)
def test_the_model_is_the_same_on_torch(family):
    X, y = rows_of()
    place = Torch()
    other = boosted(family(12)).fit(place.put(X), place.put(y))
    assert other.model_ == boosted(family(12)).fit(X, y).model_
    place.check(other.decision_function(place.put(X)), "float64")


def test_blocks_change_nothing(monkeypatch):
    X, y = rows_of()
    fits = [boosted(HalfSpaces(40, redraw=redraw)).fit(X, y) for redraw in ("once", "round")]
    expected = [fit.decision_function(X) for fit in fits]
    staged = [list(fit.staged_decision_function(X))[-1] for fit in fits]
    monkeypatch.setattr(generators, "HOST_CELLS", 200)
    for fit, F, last in zip(fits, expected, staged, strict=True):
        np.testing.assert_array_equal(fit.decision_function(X), F)
        np.testing.assert_array_equal(list(fit.staged_decision_function(X))[-1], last)
        np.testing.assert_allclose(last, F, atol=1e-12)
        again = boosted(fit.estimator).fit(X, y)
        assert again.model_ == fit.model_


def test_a_missing_value_in_a_used_feature_abstains():
    X, y = rows_of(missing=0.0)
    model = boosted(HalfSpaces(30, n_features=1), n_estimators=12).fit(X, y).model_
    hidden = X.copy()
    hidden[:, 0] = np.nan
    own = model.generators.used[:, 0][model.rounds.feature]
    assert own.any()
    assert not own.all()
    kept = model.rounds.values[~own]
    assert np.abs(model(hidden)).max() <= np.abs(kept).max(axis=(1, 2)).sum() + 1e-12
    hidden[:] = np.nan
    np.testing.assert_array_equal(model(hidden), np.zeros((len(y), 1)))


@pytest.mark.parametrize("redraw", ["once", "round"])
@pytest.mark.parametrize("loss", ["logistic", "squared", "hinge"])
def test_any_loss_takes_generators(loss, redraw):
    X, y = circle(200, 1)
    params = {"estimator": HalfSpaces(60, redraw=redraw), "n_estimators": 15, "learning_rate": 0.5}
    fit = BoostingClassifier(loss, **params).fit(X, y)
    assert fit.score(X, y) > 0.8
    with use_engine("reference"):
        assert BoostingClassifier(loss, **params).fit(X, y).model_ == fit.model_


def test_regressions_and_several_classes_take_generators():
    X, _ = circle(200, 3)
    target = X[:, 0] + X[:, 1]
    for loss in ("squared", "huber", "absolute"):
        for redraw in ("once", "round"):
            learner = HalfSpaces(40, redraw=redraw)
            fit = BoostingRegressor(loss, estimator=learner, n_estimators=30, learning_rate=0.3)
            assert fit.fit(X, target).score(X, target) > 0.8
    y = np.digitize(target, [-0.5, 0.5])
    for variant in ("real", "discrete", "gentle", "logit"):
        fit = boosted(HalfSpaces(40), variant=variant, n_estimators=20).fit(X, y)
        assert fit.score(X, y) > 0.85
    for fit in (
        boosted(Balls(40, redraw="round"), n_estimators=20),
        BoostingClassifier(estimator=Balls(40, redraw="round"), n_estimators=20, learning_rate=0.3),
    ):
        assert fit.fit(X, y).score(X, y) > 0.8
    with pytest.raises(ValueError, match="redraw='round' is for two classes or variant"):
        boosted(HalfSpaces(5, redraw="round"), variant="real").fit(X, y)


REPLAYED = [
    boosted(HalfSpaces(9)),
    boosted(Balls(9, redraw="round"), variant="real"),
    BoostingClassifier(estimator=Boxes(9, redraw="round"), subsample=0.7),
    BoostingRegressor(estimator=HalfSpaces(9)),
]


@pytest.mark.parametrize("estimator", REPLAYED, ids=["rescale", "redrawn", "rebuild", "gram"])
def test_rounds_are_replayed(estimator):
    X, y = rows_of()
    whole, resumed = whole_and_resumed(plans(estimator, X, y), 10)
    assert whole[1].fingerprint() == resumed[1].fingerprint()


def test_a_fit_is_continued():
    X, y = rows_of()
    for learner in (HalfSpaces(9), HalfSpaces(9, redraw="round")):
        whole = boosted(learner).fit(X, y)
        part = boosted(learner, n_estimators=3, warm_start=True).fit(X, y)
        assert part.set_params(n_estimators=8).fit(X, y).model_ == whole.model_


def test_validation_rows_follow_the_rounds():
    X, y = circle(300, 1)
    for redraw in ("once", "round"):
        fit = boosted(HalfSpaces(30, redraw=redraw)).fit(
            X[:200], y[:200], X_val=X[200:], y_val=y[200:]
        )
        assert len(fit.validation_loss_) == 8
        assert fit.validation_loss_[-1] < fit.validation_loss_[0]


@pytest.mark.parametrize(
    "estimator",
    [
        boosted(HalfSpaces(10), n_estimators=4),
        boosted(Balls(10, redraw="round"), n_estimators=4),
        BoostingRegressor(estimator=Boxes(40), n_estimators=40, learning_rate=0.5),
    ],
    ids=["half-spaces", "balls", "boxes"],
)
@all_when_long
def test_scikit_learns_checks_for_models_pass(estimator, others):
    assert_checks_pass(estimator, LIGHT_ROWS, others=others)


@pytest.mark.parametrize(
    ("learner", "text"),
    [
        (HalfSpaces(0), "n_candidates must be"),
        (Balls(3, redraw="often"), "redraw must be one of"),
        (Boxes(3, n_features=0), "n_features must be"),
        (HalfSpaces(3, n_features=4), "n_features must be at most 2"),
        (HalfSpaces(2**40), "n_candidates must be at most .* for 60 rows"),
    ],
)
def test_bad_parameters_are_named_and_nothing_is_left_half_fitted(learner, text):
    X, y = circle(60, 0)
    for estimator in (boosted(learner), BoostingClassifier(estimator=learner)):
        with pytest.raises(ValueError, match=text):
            estimator.fit(X, y)
        assert not hasattr(estimator, "model_")
    with pytest.raises(ValueError, match=r"redraw='round' is for .* missing is 'learn'"):
        boosted(HalfSpaces(5, redraw="round"), missing="learn").fit(X, y)
