"""Gradient boosting of trees: the trees are right, and the same everywhere; the API fits."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.metrics import log_loss, mean_poisson_deviance, mean_squared_error
from sklearn.tree import DecisionTreeRegressor as PeerTree
from threadpoolctl import threadpool_limits

from ensemble_gpu import (
    AdaBoostClassifier,
    BoostingClassifier,
    BoostingRegressor,
    DecisionTreeClassifier,
    use_engine,
)
from ensemble_gpu.boosting import integers
from ensemble_gpu.boosting.steps import STEPS
from ensemble_gpu.kernels.cpu import engine as cpu_engine
from ensemble_gpu.kernels.cpu.trees import grower as cpu_grower
from ensemble_gpu.kernels.tree_protocol import LEAF
from ensemble_gpu.losses import CLASSIFICATION, REGRESSION, CustomLoss
from ensemble_gpu.model.additive import AdditiveModel
from ensemble_gpu.model.forest import Forest
from tests.boosters import plain
from tests.datasets import ADVERSARIAL, Data, random_data
from tests.estimators.checks import all_when_long, assert_checks_pass, each_setting
from tests.places import DEVICE, NARROW, Place

PSEUDO_HUBER = CustomLoss(
    lambda y, F: (1.0 + (y - F) ** 2) ** 0.5 - 1.0,
    lambda y, F: (F - y) * (1.0 + (y - F) ** 2) ** -0.5,
    lambda y, F: (1.0 + (y - F) ** 2) ** -1.5,
    name="pseudo-Huber",
    convex=True,
    longest_step=2.0,
)


@cache
def untied(n: int = 240, p: int = 5, seed: int = 0) -> Data:
    """Real values and targets: no two splits are equally good."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)).astype(np.float32).astype(np.float64)
    y = np.sin(2.0 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=n)
    return Data(X, y, rng.gamma(2.0, size=n))


def positive(data: Data) -> Data:
    """A skewed target above 0, for any loss of a regression."""
    y = np.exp(0.3 * data.X[:, 0] - 0.2 * data.X[:, 1] * data.X[:, 2] + 0.3 * data.y)
    return Data(data.X, y.astype(np.float32).astype(np.float64), data.weights)


# --- the trees are right -----------------------------------------------------------------------


def same_partition(a: np.ndarray, b: np.ndarray) -> bool:
    return len(set(a)) == len(set(b)) == len(set(zip(a.tolist(), b.tolist(), strict=True)))


EXACT = [
    {"max_depth": 2},
    {"max_depth": 5},
    {"max_leaf_nodes": 9},
    {"max_depth": 4, "max_leaf_nodes": 7},
    {"max_depth": 4, "min_samples_leaf": 13},
    {"max_leaf_nodes": 20, "min_samples_leaf": 5},
]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("size", EXACT, ids=str)
def test_one_round_of_the_squared_loss_is_the_regression_tree_of_scikit_learn(size, weighted):
    data = untied()
    weights = data.weights if weighted else None
    ours = BoostingRegressor(**plain(size, n_estimators=1, learning_rate=1.0, max_bins=None))
    ours.fit(data.X, data.y, weights)
    peer = PeerTree(random_state=0, **size).fit(data.X, data.y, weights)
    assert same_partition(ours.model_.apply(data.X)[:, 0], peer.apply(data.X))
    np.testing.assert_allclose(ours.predict(data.X), peer.predict(data.X), atol=1e-6)


def newton_tree(X: np.ndarray, g: np.ndarray, h: np.ndarray, depth: int) -> np.ndarray:
    """What a tree adds to each row: greedy by G^2 / H, leaf values -G / H."""
    found, best = None, g.sum() ** 2 / h.sum() + 1e-9
    for f in range(X.shape[1] if depth else 0):
        for threshold in np.unique(X[:, f])[:-1]:
            left = X[:, f] <= threshold
            score = sum(g[side].sum() ** 2 / h[side].sum() for side in (left, ~left))
            if score > best:
                best, found = score, left
    if found is None:
        return np.full(len(g), -g.sum() / h.sum())
    out = np.empty(len(g))
    for side in (found, ~found):
        out[side] = newton_tree(X[side], g[side], h[side], depth - 1)
    return out


def logistic_rounds(data: Data, F: Any, rate: float, depth: int, n_rounds: int) -> np.ndarray:
    """Plain NumPy boosting of the logistic loss by Newton steps."""
    F = np.full(len(data.y), float(F))
    for _ in range(n_rounds):
        p = 1.0 / (1.0 + np.exp(-F))
        g, h = data.weights * (p - data.y), data.weights * p * (1.0 - p)
        F = F + rate * newton_tree(data.X, g, h, depth)
    return F


@pytest.mark.parametrize(("rate", "n_rounds"), [(1.0, 1), (0.3, 4)])
def test_newton_rounds_of_the_logistic_loss_are_those_of_plain_numpy(engine, rate, n_rounds):
    data = untied(100, 3)
    data = Data(data.X, (data.y > 0.0).astype(np.int64), data.weights)
    ours = BoostingClassifier(
        **plain(max_depth=3, n_estimators=n_rounds, learning_rate=rate, max_bins=None)
    ).fit(data.X, data.y, data.weights)
    share = np.average(data.y, weights=data.weights)
    expected = logistic_rounds(data, np.log(share / (1.0 - share)), rate, 3, n_rounds)
    np.testing.assert_allclose(ours.decision_function(data.X), expected, atol=2e-6)


@pytest.mark.parametrize("size", [{"max_depth": 3}, {"max_leaf_nodes": 9}], ids=str)
def test_gains_and_importances_are_those_of_the_splits(size):
    data = untied()
    ours = BoostingRegressor(**plain(size, n_estimators=1, learning_rate=1.0, max_bins=None))
    ours.fit(data.X, data.y)
    fall = np.var(data.y) - np.mean((data.y - ours.predict(data.X)) ** 2)
    assert ours.errors_[0] == pytest.approx(2.0 * len(data.y) * fall, rel=1e-6)
    peer = PeerTree(random_state=0, **size).fit(data.X, data.y)
    np.testing.assert_allclose(ours.feature_importances_, peer.feature_importances_, atol=1e-7)


# --- as good as histogram gradient boosting ----------------------------------------------------

SIZES = [
    {"max_depth": 3},
    {"max_leaf_nodes": 8},
    {"max_depth": 3, "min_samples_leaf": 20},
    {"max_leaf_nodes": 8, "min_samples_leaf": 20},
]
PEER = {
    "max_depth": None, "max_leaf_nodes": None, "min_samples_leaf": 1, "early_stopping": False,
    "max_iter": 30,
}  # fmt: skip


def both(ours: Any, peer: Any, X: np.ndarray, y: np.ndarray) -> list[np.ndarray]:
    with threadpool_limits(1):
        models = [model.fit(X, y) for model in (ours, peer)]
    return [getattr(m, "predict_proba", m.predict)(X) for m in models]


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_log_loss_of_two_classes_is_that_of_hist_gradient_boosting(size):
    X, y = load_breast_cancer(return_X_y=True)
    ours = BoostingClassifier(**plain(size, n_estimators=30, n_jobs=1))
    found = both(ours, HistGradientBoostingClassifier(**PEER | size), X, y)
    assert log_loss(y, found[0]) == pytest.approx(log_loss(y, found[1]), rel=0.06)


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_squared_error_is_that_of_hist_gradient_boosting(size):
    X, y = load_diabetes(return_X_y=True)
    ours = BoostingRegressor(**plain(size, n_estimators=30, n_jobs=1))
    found = both(ours, HistGradientBoostingRegressor(**PEER | size), X, y)
    errors = [mean_squared_error(y, p) for p in found]
    assert errors[0] == pytest.approx(errors[1], rel=0.04)


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_poisson_deviance_is_that_of_hist_gradient_boosting(size):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 4))
    y = rng.poisson(np.exp(0.5 * X[:, 0] + np.sin(X[:, 1]) + 0.3)).astype(float)
    ours = BoostingRegressor("poisson", **plain(size, step="newton", n_estimators=30, n_jobs=1))
    found = both(ours, HistGradientBoostingRegressor(loss="poisson", **PEER | size), X, y)
    deviances = [mean_poisson_deviance(y, p) for p in found]
    assert deviances[0] == pytest.approx(deviances[1], rel=0.02)


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("load", [load_iris, load_wine])
def test_log_loss_of_three_classes_is_no_worse_than_that_of_hist_gradient_boosting(load, size):
    # a round of the peer is a tree for each class, ours one tree with three values: three rounds
    X, y = load(return_X_y=True)
    peer = HistGradientBoostingClassifier(**PEER | size | {"max_iter": 10})
    ours = BoostingClassifier(**plain(size, n_estimators=30, n_jobs=1))
    found = both(ours, peer, X, y)
    assert log_loss(y, found[0]) <= log_loss(y, found[1])


# --- every loss, every step --------------------------------------------------------------------


def losses() -> list[tuple[Any, str, int | None]]:
    """(loss, step, classes) of all that is allowed."""
    found: list[tuple[Any, str, int | None]] = []
    for step in STEPS:

        def allowed(loss: Any, step: str = step) -> bool:
            return {"newton": loss.has_hessian, "leaf": loss.has_leaf_step}.get(step, True)

        for name, loss in CLASSIFICATION.items():
            found += [(name, step, k) for k in (2, 3) if allowed(loss)]
        found += [(name, step, None) for name, loss in REGRESSION.items() if allowed(loss)]
        found += [(PSEUDO_HUBER, step, None)] if allowed(PSEUDO_HUBER) else []
    return found


def boosting(loss: Any, step: str, n_classes: int | None, **params: Any) -> Any:
    kind = BoostingRegressor if n_classes is None else BoostingClassifier
    return kind(loss, **plain(params, step=step))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("loss", "step", "n_classes"), losses(), ids=lambda v: getattr(v, "name", str(v))
)
def test_the_training_loss_falls_and_line_searches_and_leaves_never_let_it_rise(
    loss, step, n_classes
):
    data = random_data(n_classes or 2, n=150, p=4)
    data = positive(data) if n_classes is None else data
    model = boosting(
        loss, step, n_classes, max_depth=3, n_estimators=15, callbacks=[lambda info: None]
    )
    model.fit(data.X, data.y)
    history = model.history_.training
    assert model.n_estimators_ == 15
    assert isinstance(model.model_, Forest)
    assert history[-1] < 0.999 * history[0]
    if step in ("line_search", "leaf"):
        assert (np.diff(history) <= 1e-12 * history[:-1]).all()


@pytest.mark.parametrize("loss", ["squared", "poisson"])
def test_a_line_search_looks_at_all_rows_although_some_were_drawn(loss):
    data = positive(random_data(n=150))
    model = BoostingRegressor(
        loss,
        **plain(
            max_depth=5,
            n_estimators=30,
            learning_rate=1.0,
            subsample=0.2,
            callbacks=[lambda info: None],
            random_state=0,
        ),
    ).fit(data.X, data.y)
    history = model.history_.training
    assert (np.diff(history) <= 1e-12 * history[:-1]).all()


# --- one model, bit for bit --------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """What is fitted to what; `n_classes` is None for a regression."""

    loss: str
    step: str
    n_classes: int | None
    size: dict[str, Any] = field(hash=False)
    weighted: bool = False
    holes: bool = False
    sampled: bool = False
    monotone: bool = False
    n: int = 110
    p: int = 4

    def __str__(self) -> str:
        words = [self.loss, self.step, f"{self.n_classes or 'no'} classes", str(self.size)]
        words += ["weighted"] * self.weighted + ["holes"] * self.holes
        words += ["sampled"] * self.sampled + ["monotone"] * self.monotone
        return ", ".join(words)

    def estimator(self, **more: Any) -> Any:
        params = {"n_estimators": 4, "learning_rate": 0.5, **self.size, **more}
        if self.sampled:
            params = {"subsample": 0.5, "max_features": 2, "random_state": 7, **params}
        if self.monotone:
            params["monotonic_cst"] = [1, -1] + [0] * (self.p - 2)
        return boosting(self.loss, self.step, self.n_classes, **params)

    @property
    def data(self) -> Data:
        data = random_data(self.n_classes or 2, n=self.n, p=self.p)
        data = positive(data) if self.n_classes is None else data
        data = data.with_weights() if self.weighted else data
        return data.with_missing() if self.holes else data

    def fit(self, **more: Any) -> Any:
        data = self.data
        return self.estimator(**more).fit(data.X, data.y, data.weights)


@cache
def standard(case: Case) -> str:
    """Fingerprint on the CPU engine, one thread."""
    found = case.fit(n_jobs=1)
    assert found.engine_ == "cpu"
    assert found.n_estimators_ > 0
    return found.model_.fingerprint()


DEPTH, LEAVES = {"max_depth": 3}, {"max_leaf_nodes": 6}
LARGE_LEAVES = {"max_depth": 4, "min_samples_leaf": 7}
DRAWN = {"max_depth": 9, "max_features": 2, "random_state": 3}
CASES = [
    Case("logistic", "newton", 2, DEPTH),
    Case("logistic", "newton", 2, LEAVES, weighted=True, holes=True),
    Case("logistic", "line_search", 2, LARGE_LEAVES, holes=True, monotone=True),
    Case("logistic", "newton", 3, DEPTH, weighted=True, holes=True),
    Case("logistic", "line_search", 3, LEAVES, sampled=True),
    Case("exponential", "newton", 2, LEAVES, weighted=True),
    Case("squared", "newton", 3, LARGE_LEAVES, holes=True),
    Case("truncated_squared", "constant", 2, DEPTH, holes=True, sampled=True),
    Case("hinge", "line_search", 2, DEPTH, weighted=True),
    Case("squared", "line_search", None, LEAVES, weighted=True, holes=True),
    Case("squared", "line_search", None, LARGE_LEAVES, sampled=True, monotone=True),
    Case("absolute", "line_search", None, DEPTH, holes=True),
    Case("huber", "newton", None, DEPTH, weighted=True, monotone=True),
    Case("quantile", "line_search", None, LARGE_LEAVES, weighted=True, sampled=True),
    Case("poisson", "newton", None, DEPTH, weighted=True, holes=True, sampled=True),
    Case("squared", "line_search", None, {"min_samples_leaf": 20}),
    Case("logistic", "newton", 2, {"max_depth": 3, "max_bins": None}, holes=True, n=400),
    Case("logistic", "newton", 2, DRAWN, holes=True, n=400),
    Case("squared", "line_search", None, DRAWN, weighted=True, n=400),
]
# One of each kind: fine and packed sums, one and several outputs, all rows and some.
FEW = [CASES[1], CASES[2], CASES[4], CASES[14]]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_reference_engine_gives_the_model_of_the_cpu_engine(case):
    with use_engine("reference"):
        found = case.fit()
    assert found.engine_ == "reference"
    assert found.model_.fingerprint() == standard(case)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_packed_gradients_give_one_model_on_both_engines(case, monkeypatch):
    fine = standard(case)
    monkeypatch.setattr(integers, "FINE_ROWS", 0)  # the format for many rows
    here = case.fit().model_
    with use_engine("reference"):
        assert case.fit().model_ == here
    assert here.fingerprint() != fine


@pytest.mark.parametrize("case", FEW, ids=str)
def test_every_namespace_and_device_gives_the_same_model(place: Place, case):
    data = case.data
    X = place.put(data.X)
    found = case.estimator().fit(X, place.put(data.y), place.put(data.weights))
    assert found.model_.fingerprint() == standard(case)
    predicted = found.predict(X)
    place.check(predicted, "float64" if case.n_classes is None else "int64")
    np.testing.assert_array_equal(place.host(predicted), case.fit().predict(data.X))


@pytest.mark.parametrize("place", NARROW, ids=str)
def test_a_device_without_wide_types_gives_the_same_model(place):
    case = CASES[0]
    X, y = place.put(case.data.X.astype(np.float32)), place.put(case.data.y.astype(np.int32))
    assert case.estimator(device="cpu").fit(X, y).model_.fingerprint() == standard(case)


@pytest.mark.parametrize("case", [case for case in CASES if not case.sampled], ids=str)
def test_the_order_of_the_rows_does_not_change_the_model(case):
    data, order = case.data, np.random.default_rng(10).permutation(case.n)
    weights = None if data.weights is None else data.weights[order]
    found = case.estimator().fit(data.X[order], data.y[order], weights)
    assert found.model_.fingerprint() == standard(case)


@pytest.mark.slow
@pytest.mark.parametrize("form", ["fine", "packed"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_threads_and_kept_sums_do_not_change_the_model(case, form, monkeypatch):
    monkeypatch.setattr(integers, "FINE_ROWS", 0 if form == "packed" else 10**6)
    alone = case.fit(n_jobs=1).model_
    monkeypatch.setattr(cpu_grower, "KEEP_ROWS", 8)
    assert case.fit(n_jobs=1).model_ == alone
    for module in (cpu_engine, cpu_grower):
        monkeypatch.setattr(module, "CELLS_PER_THREAD", 1)
    assert case.fit(n_jobs=4).model_ == alone
    monkeypatch.setattr(cpu_grower, "KEEP_ROWS", 10**6)
    assert case.fit(n_jobs=2).model_ == alone


MANY = [
    Case("logistic", "newton", 2, {"max_depth": 5}, n=20_500, p=3),
    Case("logistic", "newton", 3, {"max_leaf_nodes": 12}, weighted=True, n=20_500, p=3),
    Case("poisson", "line_search", None, {"max_depth": 4, "min_samples_leaf": 30}, weighted=True,
         holes=True, sampled=True, n=20_500, p=3),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("case", MANY, ids=str)
def test_many_rows_give_one_model_for_any_thread_count_and_on_the_reference_engine(
    case, monkeypatch
):
    assert standard(case)
    for module in (cpu_engine, cpu_grower):
        monkeypatch.setattr(module, "CELLS_PER_THREAD", 1)
    for n_jobs in (2, 4):
        assert case.fit(n_jobs=n_jobs).model_.fingerprint() == standard(case)
    with use_engine("reference"):
        assert case.fit().model_.fingerprint() == standard(case)


@pytest.mark.parametrize("name", ADVERSARIAL)
def test_adversarial_data_gives_one_finite_model_on_both_engines(name):
    data = ADVERSARIAL[name]()
    estimator = BoostingClassifier(
        **plain(max_depth=3, n_estimators=5, callbacks=[lambda info: None])
    )
    here = estimator.fit(data.X, data.y, data.weights).model_
    for array in (here.nodes.value, here.intercept, estimator.errors_, here(data.X)):
        assert np.isfinite(array).all()
    assert np.isfinite(estimator.history_.training).all()
    with use_engine("reference"):
        assert estimator.fit(data.X, data.y, data.weights).model_ == here


@pytest.mark.interop
@pytest.mark.parametrize("case", FEW, ids=str)
def test_torch_and_jax_give_the_model_of_numpy_and_get_their_own_arrays(library, case, engine):
    data = case.data
    X = library.put(data.X)
    found = case.estimator().fit(X, library.put(data.y), library.put(data.weights))
    assert found.engine_ == engine
    assert found.model_.fingerprint() == standard(case)
    library.check(found.predict(X), "float64" if case.n_classes is None else "int64")


# --- rows, features and sizes ------------------------------------------------------------------


def test_another_seed_draws_other_rows_and_features():
    data = random_data(n=150)
    for params in ({"subsample": 0.5}, {"max_features": 2}):
        fits = [
            BoostingClassifier(**plain(params, max_depth=3, n_estimators=3, random_state=seed))
            for seed in (0, 0, 1)
        ]
        one, again, other = (estimator.fit(data.X, data.y).model_ for estimator in fits)
        assert one == again != other


def test_a_tree_grows_from_the_rows_that_were_drawn():
    data = random_data(n=1000)
    model = BoostingClassifier(**plain(max_depth=3, n_estimators=6, subsample=0.3, random_state=0))
    model.fit(data.X, data.y)
    rows = model.model_.nodes.n_samples[model.model_.starts]
    assert (np.abs(rows - 300) < 60).all()
    assert len(set(rows.tolist())) > 1


def test_rows_that_give_no_tree_are_drawn_again():
    data = random_data(n=400)
    model = BoostingClassifier(
        **plain(max_depth=2, min_samples_leaf=20, subsample=0.1, n_estimators=40, random_state=0)
    ).fit(data.X, data.y)
    assert model.n_estimators_ == 40
    assert (model.model_.nodes.n_samples[model.model_.starts] >= 40).all()


def test_one_feature_for_each_node_still_uses_them_all():
    data = untied()
    model = BoostingRegressor(**plain(max_depth=3, max_features=1, n_estimators=10, random_state=0))
    nodes = model.fit(data.X, data.y).model_.nodes
    inner = nodes.feature != LEAF
    share = np.bincount(nodes.feature[inner], minlength=5) / inner.sum()
    assert (np.abs(share - 0.2) < 0.15).all()
    first = model.model_.tree(0).nodes.feature
    assert len(set(first[first != LEAF].tolist())) > 1


def rises(model: Any, X: np.ndarray, f: int) -> np.ndarray:
    """Steps of the model along a grid of feature f, from each of a few rows."""
    grid = np.linspace(X[:, f].min() - 1.0, X[:, f].max() + 1.0, 40)
    rows = X[:25].repeat(len(grid), axis=0)
    rows[:, f] = np.tile(grid, 25)
    return np.diff(model(rows)[:, 0].reshape(25, len(grid)), axis=1)


@pytest.mark.parametrize("kind", ["logistic", "squared", "absolute", "poisson"])
@pytest.mark.parametrize("size", [{"max_depth": 5}, {"max_leaf_nodes": 15}], ids=str)
def test_constraints_make_trees_monotone(kind, size):
    data = untied()
    params = {"n_estimators": 12, "learning_rate": 0.5, **size}
    if kind == "logistic":
        estimator: Any = BoostingClassifier(**plain(params))
        data = Data(data.X, (data.y > 0.0).astype(np.int64))
    else:
        estimator = BoostingRegressor(kind, **plain(params))
        data = positive(data)
    free = estimator.fit(data.X, data.y).model_
    assert (rises(free, data.X, 0) < 0.0).any()
    assert (rises(free, data.X, 1) > 0.0).any()
    bound = estimator.set_params(monotonic_cst=[1, -1, 0, 0, 0]).fit(data.X, data.y).model_
    assert (rises(bound, data.X, 0) >= 0.0).all()
    assert (rises(bound, data.X, 1) <= 0.0).all()
    assert (rises(bound, data.X, 0) > 0.0).any()


def test_a_monotone_child_without_curvature_stays_finite_and_small():
    # Huber: the rows at x = 0 are beyond delta, where the second derivative is 0
    X = np.repeat([[0.0], [1.0]], [60, 240], axis=0)
    y = np.where(X[:, 0] == 0.0, -100.0, np.tile([0.1, 0.4], 150))
    model = BoostingRegressor(
        "huber",
        **plain(step="newton", max_depth=2, n_estimators=3, learning_rate=1.0, monotonic_cst=[1]),
    ).fit(X, y)
    assert np.abs(model.predict(X)).max() <= 100.0


@pytest.mark.parametrize("missing", ["abstain", "learn"])
def test_missing_values_learn_a_side(missing):
    data = untied()
    gone = np.random.default_rng(3).random(len(data.y)) < 0.3
    X = data.X.copy()
    X[gone, 3] = np.nan
    y = (gone ^ (data.X[:, 0] > 0.0)).astype(np.int64)  # which side depends on the node
    model = BoostingClassifier(**plain(max_depth=2, n_estimators=40, missing=missing)).fit(X, y)
    assert model.score(X, y) == 1.0


def test_missing_values_that_training_had_not_go_to_the_child_with_more_rows():
    X = np.arange(10.0)[:, None]
    for cut, side in ((3, 9.0), (7, 0.0)):
        model = BoostingRegressor(**plain(max_depth=2, n_estimators=1)).fit(X, X[:, 0] >= cut)
        assert model.predict([[np.nan]]) == model.predict([[side]])


def test_missing_values_are_refused_where_they_are_errors():
    with pytest.raises(ValueError, match="missing"):
        BoostingRegressor(**plain(max_depth=2, missing="error")).fit(
            [[1.0], [np.nan], [2.0]], [1, 2, 3]
        )


@pytest.mark.parametrize("case", [CASES[0], CASES[3], CASES[5], CASES[9], CASES[12]], ids=str)
def test_a_row_of_weight_three_is_three_rows(case):
    data, repeats = case.data, np.random.default_rng(14).integers(1, 4, size=case.n)
    one = case.estimator().fit(data.X, data.y, repeats.astype(float)).model_
    other = case.estimator().fit(data.X.repeat(repeats, axis=0), data.y.repeat(repeats)).model_
    np.testing.assert_array_equal(one.nodes.feature, other.nodes.feature)
    np.testing.assert_array_equal(one.nodes.threshold, other.nodes.threshold)
    np.testing.assert_allclose(one(data.X), other(data.X), rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("case", [c for c in CASES if c.weighted and not c.sampled], ids=str)
def test_a_row_of_weight_zero_is_as_if_absent(case):
    data = case.data
    kept = data.weights > 0.0
    assert not kept.all()
    found = case.estimator().fit(data.X[kept], data.y[kept], data.weights[kept])
    assert found.model_.fingerprint() == standard(case)


def test_as_many_leaves_as_the_depth_allows_change_nothing():
    data = random_data(3, n=150)
    deep = BoostingClassifier(**plain(max_depth=3, n_estimators=5)).fit(data.X, data.y).model_
    both = BoostingClassifier(**plain(max_depth=3, max_leaf_nodes=8, n_estimators=5)).fit(
        data.X, data.y
    )
    assert both.model_ == deep


@pytest.mark.parametrize("size", [{"max_depth": 4}, {"max_leaf_nodes": 11}, {}], ids=str)
def test_sizes_are_kept(size):
    data = random_data(n=300)
    model = BoostingClassifier(**plain(size, min_samples_leaf=12, n_estimators=8)).fit(
        data.X, data.y
    )
    forest = model.model_
    leaves = forest.apply(data.X)
    for t in range(len(forest)):
        nodes = forest.tree(t).nodes
        counts = np.bincount(leaves[:, t], minlength=len(nodes))
        is_leaf = nodes.feature == LEAF
        assert counts[is_leaf].min() >= 12
        np.testing.assert_array_equal(counts[is_leaf], nodes.n_samples[is_leaf])
        assert forest.n_leaves(t) <= size.get("max_leaf_nodes", 2 ** size.get("max_depth", 1))
        assert forest.depth(t) <= size.get("max_depth", 1 if not size else 10)
    assert max(forest.n_leaves(t) for t in range(len(forest))) > (2 if size else 1)


@pytest.mark.parametrize("estimator", [BoostingClassifier, BoostingRegressor])
def test_single_splits_are_stumps_and_more_are_forests(estimator):
    data = random_data(n=100)

    def kind(**size: Any) -> type:
        return type(estimator(n_estimators=2, **size).fit(data.X, data.y).model_)

    assert kind(max_depth=1) is kind(max_leaf_nodes=2) is AdditiveModel
    assert kind() is kind(max_depth=2) is kind(max_leaf_nodes=3) is Forest
    for condition in ("min_samples_leaf", "min_hessian", "l2_regularization"):
        assert kind(max_depth=1, **{condition: 2}) is Forest


def test_a_single_split_of_a_tree_is_the_stump():
    data = untied()
    X, y = data.X.repeat(2, axis=0), data.y.repeat(2)  # no leaf has a single row
    stump = BoostingRegressor(n_estimators=10, max_bins=None, max_depth=1).fit(X, y)
    tree = clone(stump).set_params(min_samples_leaf=2).fit(X, y)
    assert isinstance(stump.model_, AdditiveModel)
    assert isinstance(tree.model_, Forest)
    np.testing.assert_allclose(tree.predict(X), stump.predict(X), atol=1e-7)


BAD = [
    ("max_depth", 0, ValueError, "max_depth must be an integer >= 1 or None; got 0"),
    ("max_depth", 2.0, TypeError, "max_depth must be an integer >= 1 or None; got 2.0"),
    ("max_depth", True, TypeError, "max_depth must be an integer >= 1 or None; got True"),
    ("max_leaf_nodes", 1, ValueError, "max_leaf_nodes must be an integer >= 2 or None; got 1"),
    ("max_leaf_nodes", "8", TypeError, "max_leaf_nodes must be an integer >= 2 or None; got '8'"),
    ("min_samples_leaf", 0, ValueError, "min_samples_leaf must be an integer >= 1 or None; got 0"),
    ("min_samples_leaf", 0.1, TypeError, "must be an integer >= 1 or None; got 0.1"),
    ("min_hessian", -1.0, ValueError, "min_hessian must be a finite number >= 0 or None; got -1.0"),
    ("min_hessian", "1", TypeError, "min_hessian must be a number >= 0 or None; got '1'"),
    ("l2_regularization", np.inf, ValueError, "must be a finite number >= 0 or None; got inf"),
]


@pytest.mark.parametrize("estimator", [BoostingClassifier, BoostingRegressor])
@pytest.mark.parametrize(("name", "value", "error", "message"), BAD)
def test_bad_sizes_are_refused_and_leave_nothing_behind(estimator, name, value, error, message):
    data = random_data(n=40)
    model = estimator(**{name: value})
    with pytest.raises(error) as caught:
        model.fit(data.X, data.y)
    assert message in str(caught.value)
    assert not hasattr(model, "model_")


@pytest.mark.parametrize(
    "size", [{"max_depth": 2}, {"max_leaf_nodes": 3}, {"min_samples_leaf": 2}], ids=str
)
def test_discrete_trees_are_refused(size):
    data = random_data(n=40)
    with pytest.raises(ValueError, match=r"stump='discrete' is for stumps; .* ask for trees"):
        BoostingClassifier(**plain(size, stump="discrete")).fit(data.X, data.y)


def test_monotone_trees_of_three_classes_are_refused():
    data = random_data(3, n=60)
    with pytest.raises(ValueError, match="monotonic_cst is for two classes; y holds 3 classes"):
        BoostingClassifier(**plain(max_depth=2, monotonic_cst=[1, 0, 0, 0, 0, 0])).fit(
            data.X, data.y
        )


# --- stages, watching, scikit-learn ------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [2, 3])
def test_stages_are_the_first_rounds_to_the_last_bit(n_classes):
    data = random_data(n_classes, n=120).with_missing()
    model = BoostingClassifier(**plain(max_depth=3, n_estimators=7)).fit(data.X, data.y)
    short = [
        BoostingClassifier(**plain(max_depth=3, n_estimators=n)).fit(data.X, data.y)
        for n in range(1, 8)
    ]
    for name in ("predict", "predict_proba", "decision_function"):
        stages = list(getattr(model, f"staged_{name}")(data.X))
        assert len(stages) == 7
        for stage, fewer in zip(stages, short, strict=True):
            np.testing.assert_array_equal(stage, getattr(fewer, name)(data.X))
    for n, fewer in enumerate(short, 1):
        assert model.model_.first(n) == fewer.model_


def noisy(seed: int, n: int) -> Data:
    data = random_data(n=n, seed=20)
    rng = np.random.default_rng(seed)
    wrong = rng.random(n) < 0.3
    X = data.X + 0.3 * rng.normal(size=data.X.shape)
    return Data(X, np.where(wrong, 1 - data.y, data.y))


def test_early_stopping_keeps_the_best_round(engine):
    train, other = noisy(1, 160), noisy(2, 90)
    model = BoostingClassifier(
        **plain(
            max_depth=3, n_estimators=60, early_stopping=True, n_iter_no_change=4, learning_rate=0.5
        )
    ).fit(train.X, train.y, X_val=other.X, y_val=other.y)
    history = model.validation_loss_
    assert model.n_estimators_ == len(model.model_) == history.argmin() + 1
    assert len(history) == len(model.history_.training) == model.n_estimators_ + 4
    assert "validation loss" in model.stop_reason_
    stages = [log_loss(other.y, p) for p in model.staged_predict_proba(other.X)]
    np.testing.assert_allclose(history[: len(stages)], stages, rtol=1e-9)
    full = BoostingClassifier(
        **plain(max_depth=3, n_estimators=model.n_estimators_, learning_rate=0.5)
    )
    assert full.fit(train.X, train.y).model_ == model.model_


def test_history_is_the_training_loss_after_each_round():
    data = untied()
    model = BoostingRegressor(
        **plain(max_leaf_nodes=6, n_estimators=8, callbacks=[lambda info: None])
    )
    model.fit(data.X, data.y, data.weights)
    expected = [
        np.average((data.y - F) ** 2, weights=data.weights) for F in model.staged_predict(data.X)
    ]
    np.testing.assert_allclose(model.history_.training, expected, rtol=1e-9)
    assert len(model.fit(data.X, data.y).set_params(callbacks=None).history_.training) == 8
    assert len(model.fit(data.X, data.y).history_.training) == 0


def test_callbacks_are_told_of_each_tree():
    data, seen = random_data(3, n=120), []
    model = BoostingClassifier(
        **plain(
            max_depth=2,
            n_estimators=20,
            callbacks=[lambda info: seen.append(info) or len(seen) == 5],
        )
    ).fit(data.X, data.y)
    assert model.n_estimators_ == 5
    assert "callback" in model.stop_reason_
    forest = model.model_
    assert [info.round for info in seen] == [1, 2, 3, 4, 5]
    np.testing.assert_array_equal(
        [info.feature for info in seen], forest.nodes.feature[forest.starts]
    )
    np.testing.assert_array_equal(
        [info.threshold for info in seen], forest.nodes.threshold[forest.starts]
    )
    np.testing.assert_array_equal([info.error for info in seen], model.errors_)
    np.testing.assert_array_equal([info.alpha for info in seen], model.alphas_)
    np.testing.assert_array_equal([info.training_loss for info in seen], model.history_.training)
    for t, info in enumerate(seen):
        assert info.values.shape[0] == 3
        np.testing.assert_array_equal(np.sort(info.values, axis=1), np.sort(
            forest.tree(t).nodes.value.T, axis=1
        ))  # fmt: skip


def test_a_constant_target_has_no_rounds(engine):
    X = random_data(n=60).X
    model = BoostingRegressor(**plain(max_depth=3)).fit(X, np.full(60, 2.5))
    assert model.n_estimators_ == len(model.model_) == 0
    assert model.stop_reason_ == "no tree lowers the loss any further"
    np.testing.assert_array_equal(model.predict(X), 2.5)
    np.testing.assert_array_equal(model.feature_importances_, np.zeros(6))
    assert list(model.staged_predict(X)) == []


def test_importances_are_shares_of_the_used_features():
    data = random_data(3, n=120)
    data.X[:, 2] = 0.0
    model = BoostingClassifier(**plain(max_depth=3, n_estimators=10)).fit(data.X, data.y)
    assert model.feature_importances_.sum() == pytest.approx(1.0)
    assert (model.feature_importances_ >= 0.0).all()
    assert model.feature_importances_[2] == 0.0


@pytest.mark.parametrize("case", FEW, ids=str)
def test_a_pickle_predicts_the_same_and_a_clone_has_no_model(case):
    found, X = case.fit(), case.data.X
    copy = pickle.loads(pickle.dumps(found))
    assert copy.model_.fingerprint() == standard(case)
    np.testing.assert_array_equal(copy.predict(X), found.predict(X))
    fresh = clone(found)
    assert fresh.get_params() == found.get_params()
    assert not hasattr(fresh, "model_")


@pytest.mark.parametrize("case", FEW, ids=str)
def test_a_model_from_numpy_predicts_on_every_namespace_and_device(place: Place, case):
    found, X = case.fit(), case.data.X
    names = ["predict"] if case.n_classes is None else ["predict_proba", "decision_function"]
    for name in names:
        there = getattr(found, name)(place.put(X))
        place.check(there, "float64")
        np.testing.assert_allclose(place.host(there), getattr(found, name)(X), rtol=1e-12)


CHECKED = [
    BoostingClassifier(**plain(max_depth=3, n_estimators=5)),
    BoostingRegressor(**plain(max_leaf_nodes=5, n_estimators=5)),
]


@each_setting(CHECKED)
@all_when_long
def test_the_checks_of_scikit_learn_for_models_pass(estimator, first, others):
    assert_checks_pass(estimator, others=others)


# --- AdaBoost around a tree --------------------------------------------------------------------


@cache
def chequered() -> Data:
    """Classes that no single feature tells apart."""
    X = np.random.default_rng(0).normal(size=(150, 3))
    return Data(X, ((X[:, 0] > 0.0) ^ (X[:, 1] > 0.0)).astype(np.int64))


def test_adaboost_around_trees_learns_what_stumps_cannot():
    data = chequered()
    stumps = AdaBoostClassifier(n_estimators=10).fit(data.X, data.y)
    trees = AdaBoostClassifier(DecisionTreeClassifier(max_depth=2), n_estimators=10)
    assert trees.fit(data.X, data.y).score(data.X, data.y) > 0.97
    assert stumps.score(data.X, data.y) < 0.85


def test_adaboost_around_trees_is_the_same_on_a_device():
    data, place = chequered(), DEVICE
    boosted = AdaBoostClassifier(DecisionTreeClassifier(max_depth=2), n_estimators=4)
    here = boosted.fit(data.X, data.y).predict(data.X)
    there = boosted.fit(place.put(data.X), place.put(data.y)).predict(place.put(data.X))
    place.check(there, "int64")
    np.testing.assert_array_equal(place.host(there), here)
