"""step="leaf": each leaf goes to its own best constant, and nothing else about a fit changes."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from sklearn.ensemble import HistGradientBoostingRegressor

from ensemble_gpu import BoostingClassifier, BoostingRegressor, use_engine
from ensemble_gpu.boosting.leaf_steps import MARKS, PLACE_BITS, huber_marks
from ensemble_gpu.learners.stump import ordered
from ensemble_gpu.losses import Absolute, Huber, Loss, Quantile
from tests.boosters import FREE, plain
from tests.boosting.replaying import plans, whole_and_resumed
from tests.datasets import Data

ENGINES = ("cpu", "reference")
SHAPES: dict[str, dict[str, Any]] = {
    "stumps": {"max_depth": 1},
    "trees": {"max_depth": 3, **FREE},
}
KINKED = [Absolute(), Quantile(0.9), Quantile(0.1)]
LOSSES: list[Loss] = [*KINKED, Huber(0.3), Huber(1e-3), Huber(50.0)]


def skewed(
    n: int = 200, weighted: bool = False, equal_values: bool = False, holes: bool = False
) -> Data:
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, 4))
    y = np.exp(X[:, 0] + np.sin(X[:, 1]) + 0.5 * rng.standard_t(3, size=n))
    if equal_values:
        X, y = np.round(X, 1), np.round(y)
    if holes:
        X[rng.random(X.shape) < 0.1] = np.nan
    return Data(X, y, rng.integers(0, 4, n).astype(np.float64) if weighted else None)


def fit(data: Data, loss: Any, **params: Any) -> Any:
    params = {"n_estimators": 12, "learning_rate": 1.0, **params}
    return BoostingRegressor(loss, **plain(params)).fit(data.X, data.y, data.weights)


def leaves_of(found: Any, X: np.ndarray, t: int) -> np.ndarray:
    """The leaf of every row in a round: a number; -1 where a stump abstains."""
    if hasattr(found.model_, "apply"):
        return found.model_.tree(t).apply(X).reshape(-1)
    rounds = found.model_.rounds
    x = X[:, rounds.feature[t]]
    return np.where(np.isnan(x), -1, x > rounds.threshold[t])


def outputs(found: Any, X: np.ndarray) -> list[np.ndarray]:
    start = np.tile(found.model_.intercept, (len(X), 1))
    return [F[:, 0] for F in (start, *found.model_.staged(X))]


def loss_of(loss: Loss, y: np.ndarray, F: np.ndarray, w: np.ndarray) -> float:
    return float(np.sum(w * loss.value(y, F)))


# --- the step of a leaf is its best constant -----------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("weighted", "equal_values"), list(product([False, True], repeat=2)))
@pytest.mark.parametrize("loss", KINKED, ids=repr)
def test_a_leaf_moves_by_numpys_weighted_quantile_of_its_residuals(
    loss, weighted, equal_values, shape, engine
):
    data = skewed(weighted=weighted, equal_values=equal_values, holes=True)
    w = np.ones(len(data.y)) if data.weights is None else data.weights
    with use_engine(engine):
        found = fit(data, loss, **SHAPES[shape])
    F, checked = outputs(found, data.X), 0
    quantum = 2.0 ** (np.ceil(np.log2(np.abs(data.y).max())) - 40)
    tau = getattr(loss, "quantile", 0.5)
    for t in range(found.n_estimators_):
        leaf = leaves_of(found, data.X, t)
        for one in np.unique(leaf):
            rows = (leaf == one) & (w > 0)
            moved = F[t + 1][rows] - F[t][rows]
            np.testing.assert_allclose(moved, moved[0], atol=quantum)
            if one == -1 and shape == "stumps":
                assert moved[0] == 0.0
                continue
            r = data.y[rows] - F[t][rows]
            best = np.quantile(r, tau, weights=w[rows], method="inverted_cdf")
            if moved[0] == 0.0:  # gradients of both signs balance: 0 is a minimum as well
                assert loss_of(loss, r, 0.0 * r, w[rows]) <= loss_of(loss, r, best, w[rows]) + 1e-9
            else:
                assert moved[0] == pytest.approx(best, abs=quantum)
                checked += 1
    assert checked >= found.n_estimators_


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("delta", [1e-3, 0.3, 1.0, 50.0])
def test_a_leaf_moves_nearly_to_the_minimum_of_hubers_loss_and_not_beyond(delta, weighted, shape):
    data, loss = skewed(weighted=weighted), Huber(delta)
    w = np.ones(len(data.y)) if data.weights is None else data.weights
    found = fit(data, loss, **SHAPES[shape])
    F = outputs(found, data.X)
    for t in range(found.n_estimators_):
        leaf = leaves_of(found, data.X, t)
        for one in np.unique(leaf):
            rows = (leaf == one) & (w > 0)
            r, moved = data.y[rows] - F[t][rows], (F[t + 1] - F[t])[rows][0]
            own = w[rows]
            least = minimize_scalar(
                lambda c, r=r, own=own: loss_of(loss, r, c + 0.0 * r, own),
                bounds=(r.min() - 1e-9, r.max() + 1e-9), method="bounded",
                options={"xatol": 1e-10},
            ).fun  # fmt: skip
            # at most a mark from the minimum, where the second derivative is at most the weight
            near = 0.5 * own.sum() * (delta / MARKS) ** 2 + 1e-9 * own.sum() * delta
            assert loss_of(loss, r, moved + 0.0 * r, own) <= least + near
            slope = np.sum(own * np.clip(moved - r, -delta, delta))
            assert slope * np.sign(moved) <= 1e-5 * own.sum() * delta


def test_marks_of_hubers_slope_are_exact_where_all_residuals_agree():
    n = 4 * MARKS + 4
    for place in (2 * MARKS + 1, 2 * MARKS + 2):
        sums = np.zeros((1, n, 2), dtype=np.int64)
        k = place << PLACE_BITS
        sums[0, place] = 7, 7 * k
        for first in (-500.0, 300.0):
            assert huber_marks(sums, np.array([first]))[0] == first + place


# --- the loss falls ------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    ("rate", "weighted", "subsample"), [(0.1, True, 1.0), (1.0, False, 1.0), (1.0, True, 0.5)]
)
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_the_training_loss_never_rises(loss, rate, weighted, subsample, shape):
    data = skewed(holes=True)
    rng = np.random.default_rng(1)
    data = Data(data.X, data.y, rng.uniform(0.1, 2.0, 200) if weighted else None)
    found = fit(data, loss, n_estimators=30, learning_rate=rate, **{
        **SHAPES[shape], "subsample": subsample,
    })  # fmt: skip
    losses = np.array([
        np.average(loss.value(data.y, F), weights=data.weights) for F in outputs(found, data.X)
    ])  # fmt: skip
    assert losses[-1] < losses[0]
    assert (np.diff(losses) <= 1e-9 * losses[0]).all(), np.diff(losses).max()


def test_the_loss_that_callbacks_see_is_the_loss_of_the_model():
    data, seen = skewed(), []
    found = fit(data, "absolute", callbacks=[lambda info: seen.append(info.training_loss)])
    expected = [np.abs(data.y - F).mean() for F in outputs(found, data.X)[1:]]
    np.testing.assert_allclose(seen, expected, rtol=1e-12)


@pytest.mark.parametrize("loss", ["absolute", "quantile", "huber"])
def test_the_default_step_of_a_loss_with_kinks_is_that_of_leaves(loss):
    data = skewed()
    named = fit(data, loss, step="leaf").model_.fingerprint()
    assert fit(data, loss).model_.fingerprint() == named
    assert fit(data, loss, step="line_search").model_.fingerprint() != named


def test_the_default_step_of_other_losses_is_as_before():
    data = skewed()
    for loss, step in (("poisson", "line_search"), ("squared", "line_search")):
        found = fit(data, loss), fit(data, loss, step=step)
        assert found[0].model_.fingerprint() == found[1].model_.fingerprint()
    labels = (data.y > 1).astype(int)
    for loss, stump, step in (
        ("logistic", "real", "newton"), ("hinge", "real", "line_search"),
        ("hinge", "discrete", "line_search"),
    ):  # fmt: skip
        found = [
            BoostingClassifier(loss, n_estimators=5, max_depth=1, stump=stump, step=one)
            .fit(data.X, labels)
            .model_.fingerprint()
            for one in (None, step)
        ]
        assert found[0] == found[1]


# --- where the best step is nothing --------------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES)
def test_a_median_that_is_zero_everywhere_ends_the_fit_with_a_reason(shape):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = np.where(rng.random(300) < 0.2, np.exp(X[:, 0]), 0.0)  # most are 0 in any larger leaf
    found = fit(Data(X, y), "absolute", n_estimators=50, min_samples_leaf=60, **{
        k: v for k, v in SHAPES[shape].items() if k != "min_samples_leaf"
    })  # fmt: skip
    kind = "tree"  # leaves of a least size are those of trees
    assert found.stop_reason_ == f"no {kind} lowers the loss any further"
    assert (found.predict(X) == 0.0).mean() > 0.5


def test_a_stump_that_leads_nowhere_gives_way_to_another_feature():
    # Feature 0 has the larger gradient sums, but the median of both its leaves is 0 already.
    x0 = np.repeat([0.0, 1.0], 50)
    y = np.where(np.arange(100) % 50 < 24, np.where(x0 == 0, -1.0, 1.0), 0.0)
    x1 = np.zeros(100)
    x1[:24] = 1.0  # all of these are -1
    found = fit(Data(np.stack([x0, x1], axis=1), y), "absolute", n_estimators=1)
    assert found.n_estimators_ == 1
    assert found.model_.rounds.feature[0] == 1
    assert np.abs(y - found.predict(np.stack([x0, x1], axis=1))).sum() == 24.0


# --- constraints ---------------------------------------------------------------------------------


def test_steps_in_the_wrong_order_become_the_one_nearer_to_zero():
    steps = np.array([[0.3, 0.2, 0.0], [0.3, -0.2, 0.0], [-0.1, -0.4, 0.0], [0.1, 0.4, 0.0]])
    rising = [[0.2, 0.2, 0.0], [0.0, 0.0, 0.0], [-0.1, -0.1, 0.0], [0.1, 0.4, 0.0]]
    np.testing.assert_array_equal(ordered(steps, 1), rising)
    np.testing.assert_array_equal(ordered(steps[:3], -1), steps[:3])


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("loss", [Absolute(), Quantile(0.8), Huber(0.2)], ids=repr)
def test_monotone_features_stay_monotone_and_the_loss_falls(loss, sign, shape):
    data = skewed(400)
    found = fit(data, loss, n_estimators=25, monotonic_cst=[sign, 0, 0, sign], **SHAPES[shape])
    grid = np.repeat(data.X[:40], 60, axis=0)
    for f in (0, 3):
        rows = grid.copy()
        rows[:, f] = np.tile(np.linspace(-3, 3, 60), 40)
        curves = found.predict(rows).reshape(40, 60)
        assert (sign * np.diff(curves, axis=1) >= 0.0).all()
    losses = [np.mean(loss.value(data.y, F)) for F in outputs(found, data.X)]
    assert (np.diff(losses) <= 1e-9 * losses[0]).all()
    assert losses[-1] < losses[0]


def test_l2_shrinks_the_step_of_a_leaf_by_its_weight():
    data = skewed()
    params = {"n_estimators": 1, "max_depth": 2}
    plain_, held = (fit(data, "absolute", l2_regularization=l2, **params) for l2 in (0.0, 30.0))
    start = plain_.model_.intercept[0]
    leaf = plain_.model_.tree(0).apply(data.X).reshape(-1)
    # l2 may choose other splits; in leaves of the same rows the step is the shrunk one
    other = held.model_.tree(0).apply(data.X).reshape(-1)
    same = 0
    for one in np.unique(leaf):
        rows = leaf == one
        if len(np.unique(other[rows])) == 1 and (other == other[rows][0]).sum() == rows.sum():
            n, i = rows.sum(), np.flatnonzero(rows)[:1]
            step = plain_.predict(data.X[i])[0] - start
            assert held.predict(data.X[i])[0] - start == pytest.approx(step * n / (n + 30.0))
            same += 1
    assert same


# --- one model -----------------------------------------------------------------------------------

CASES: list[tuple[Any, dict[str, Any]]] = [
    (Absolute(), {}), (Quantile(0.9), {"missing": "learn"}), (Huber(0.3), {}),
    (Absolute(), {"max_leaf_nodes": 6, "subsample": 0.6, "max_features": 2}),
    (Quantile(0.2), {"max_depth": 3, "monotonic_cst": [1, 0, 0, -1], "l2_regularization": 1.0}),
    (Huber(0.3), {"max_depth": 3, "n_bags": 2}), (Absolute(), {"n_bags": 2, "max_features": 2}),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("loss", "params"), CASES, ids=str)
@pytest.mark.parametrize("n", [200, 21_000])
def test_engines_and_threads_agree_on_the_model(loss, params, n):
    rng = np.random.default_rng(4)
    data = skewed(n, holes=True)
    data = Data(data.X, data.y, rng.uniform(0.1, 2.0, n))
    prints = set()
    for engine, n_jobs in (("cpu", 1), ("cpu", 3), ("reference", 1)):
        with use_engine(engine):
            found = fit(data, loss, n_estimators=4, n_jobs=n_jobs, max_bins=30, **params)
        prints.add(found.model_.fingerprint())
    assert len(prints) == 1


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("loss", [Absolute(), Huber(0.3)], ids=repr)
def test_rounds_are_followed_without_what_found_them(loss, shape):
    data = skewed()
    found = fit(data, loss, n_estimators=8, **SHAPES[shape])
    whole, resumed = whole_and_resumed(plans(found, data.X, data.y), 8)
    assert whole[1].fingerprint() == resumed[1].fingerprint() == found.model_.fingerprint()


def test_whole_weights_are_repetitions_of_rows():
    data = skewed(weighted=True)
    keep = data.weights > 0
    often = np.repeat(np.flatnonzero(keep), data.weights[keep].astype(int))
    for loss in LOSSES:
        weighed = fit(data, loss, max_bins=None)
        repeated = fit(Data(data.X[often], data.y[often]), loss, max_bins=None)
        np.testing.assert_array_equal(weighed.predict(data.X), repeated.predict(data.X))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("loss", "theirs"),
    [(Absolute(), {"loss": "absolute_error"}),
     (Quantile(0.9), {"loss": "quantile", "quantile": 0.9})],
    ids=["absolute", "quantile"],
)  # fmt: skip
def test_held_out_loss_is_that_of_scikit_learn_within_two_percent(loss, theirs):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6000, 5))
    y = (
        X[:, 0]
        + np.sin(2 * X[:, 1])
        + X[:, 2] * X[:, 3]
        + np.exp(0.4 * X[:, 4]) * rng.standard_t(4, size=6000)
    )
    common = {"learning_rate": 0.1, "max_leaf_nodes": 8, "min_samples_leaf": 20}
    ours = BoostingRegressor(loss, **plain(common, n_estimators=100)).fit(X[:3000], y[:3000])
    peer = HistGradientBoostingRegressor(
        **theirs, **common, max_iter=100, early_stopping=False, max_depth=None
    ).fit(X[:3000], y[:3000])
    own, other = (loss.value(y[3000:], m.predict(X[3000:])).mean() for m in (ours, peer))
    assert own <= 1.02 * other
