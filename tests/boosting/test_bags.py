"""n_bags: models on bootstrap weights, in step, averaged into one."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold, cross_val_predict, train_test_split

from ensemble_gpu import BoostingClassifier, BoostingRegressor, use_engine
from ensemble_gpu.data.bags import learner_seed, make_bags
from ensemble_gpu.data.keys import repetitions
from ensemble_gpu.model.additive import AdditiveModel
from ensemble_gpu.model.forest import Forest
from tests.boosters import plain
from tests.places import DEVICE

B = 3


def problem(n_classes: int, n: int = 240) -> tuple[np.ndarray, np.ndarray]:
    """Few values and none missing by chance: bins do not depend on who is in the bag."""
    rng = np.random.default_rng(2)
    X = rng.integers(0, 6, size=(n, 5)).astype(float)
    y = X[:, 0] - 0.3 * X[:, 1] * X[:, 2] + 0.2 * X[:, 3] ** 2 + rng.normal(size=n)
    if n_classes:
        y = np.digitize(y, np.quantile(y, np.arange(1, n_classes) / n_classes))
    return X, y


def with_holes(X: np.ndarray) -> np.ndarray:
    return np.where(np.random.default_rng(5).random(X.shape) < 0.1, np.nan, X)


# Strategy, learner, number of classes (0: regression).
FITS: dict[str, tuple[Any, int]] = {
    "gram": (BoostingRegressor(max_depth=1), 0),
    "gram, K classes": (BoostingClassifier("squared", max_depth=1), 3),
    "stumps": (BoostingClassifier(max_depth=1), 2),
    "stumps, rows and features drawn": (
        BoostingClassifier(max_depth=1, subsample=0.6, max_features=2),
        2,
    ),
    "stumps, K classes": (BoostingClassifier(max_depth=1), 3),
    "line search": (BoostingRegressor("huber", max_depth=1), 0),
    "kinks": (BoostingRegressor("quantile", quantile=0.7, max_depth=1), 0),
    "exponential": (
        BoostingClassifier("exponential", **plain(max_depth=2)),
        2,
    ),
    "exponential, not AdaBoost": (BoostingClassifier("exponential", max_depth=1), 2),
    "trees": (BoostingClassifier(**plain(max_depth=3)), 2),
    "trees, K classes": (BoostingClassifier(**plain(max_depth=2)), 3),
    "trees, squared": (
        BoostingRegressor(**plain(max_leaf_nodes=6)),
        0,
    ),
    "trees, rows and features drawn": (
        BoostingRegressor(**plain(max_depth=3, subsample=0.7, max_features=2)),
        0,
    ),
    "large leaves": (BoostingRegressor(**plain(max_depth=3, min_samples_leaf=10)), 0),
    "categories": (
        BoostingClassifier(**plain(max_depth=3, categorical_features=[1, 2])),
        2,
    ),
}


def bagged(name: str, **more: Any) -> tuple[Any, np.ndarray, np.ndarray]:
    estimator, n_classes = FITS[name]
    X, y = problem(n_classes)
    params = estimator.get_params() | {"n_estimators": 8, "n_bags": B, "random_state": 4} | more
    return type(estimator)(**params), X, y


def bootstrap(X: np.ndarray, y: np.ndarray, seed: int, weights: Any = None) -> list[np.ndarray]:
    target = np.unique(y, return_inverse=True)[1] if y.dtype.kind == "i" else y
    bags = make_bags(
        X, target, *repetitions(weights), seed=seed, replace=True, max_samples=1.0,
        takes_weights=True,
    )  # fmt: skip
    return [bags.weights(bags.counts(bag)) for bag in range(B)]


def seed_of(random_state: int) -> int:
    return int(np.random.RandomState(random_state).randint(np.iinfo(np.int32).max))


def outputs(model: Any, X: np.ndarray) -> np.ndarray:
    return model.model_(X)


@pytest.mark.parametrize(
    "name", [name for name in FITS if "drawn" not in name and "not" not in name]
)
def test_the_model_is_the_average_of_fits_on_the_bootstrap_weights(name):
    model, X, y = bagged(name)
    model.fit(X, y)
    single = type(model)(**model.get_params() | {"n_bags": 1})
    own = [single.fit(X, y, w).model_(X) for w in bootstrap(X, y, seed_of(4))]
    np.testing.assert_allclose(outputs(model, X), np.mean(own, axis=0), rtol=0, atol=2e-7)
    assert np.ptp(own, axis=0).max() > 0.05  # the bags do differ


@pytest.mark.parametrize("name", ["stumps", "trees", "trees, K classes"])
def test_importances_are_averaged_and_rounds_are_those_of_each_bag(name):
    model, X, y = bagged(name)
    model.fit(X, y)
    single = type(model)(**model.get_params() | {"n_bags": 1})
    fits = [pickle.loads(pickle.dumps(single.fit(X, y, w))) for w in bootstrap(X, y, seed_of(4))]
    expected = np.mean([fit.feature_importances_ for fit in fits], axis=0)
    np.testing.assert_allclose(model.feature_importances_, expected, atol=1e-6)
    assert model.n_estimators_ == len(model.alphas_) == len(model.errors_) == 8
    np.testing.assert_allclose(model.alphas_, np.mean([fit.alphas_ for fit in fits], axis=0))
    np.testing.assert_allclose(
        model.errors_, np.mean([fit.errors_ for fit in fits], axis=0), rtol=1e-5
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", FITS)
def test_the_model_is_the_same_everywhere(name):
    model, X, y = bagged(name, n_estimators=4)
    if "categories" not in name:
        X = with_holes(X)
    prints = {model.set_params(n_jobs=jobs).fit(X, y).model_.fingerprint() for jobs in (1, 2)}
    with use_engine("reference"):
        prints.add(model.fit(X, y).model_.fingerprint())
    prints.add(model.fit(DEVICE.put(X), DEVICE.put(y)).model_.fingerprint())
    assert model.engine_ == "reference"
    assert len(prints) == 1


@pytest.mark.parametrize("name", ["gram", "stumps", "trees"])
def test_neither_the_order_of_the_rows_nor_repetitions_matter(name):
    model, X, y = bagged(name)
    alone = model.fit(X, y).model_.fingerprint()
    order = np.random.default_rng(0).permutation(len(y))
    assert model.fit(X[order], y[order]).model_.fingerprint() == alone
    weights = np.random.default_rng(1).integers(0, 4, len(y)).astype(float)
    repeated = np.repeat(np.arange(len(y)), weights.astype(int))
    weighted = model.fit(X, y, weights).model_(X)
    np.testing.assert_allclose(model.fit(X[repeated], y[repeated]).model_(X), weighted, atol=1e-7)


@pytest.mark.parametrize("name", FITS)
def test_stages_are_the_first_rounds_of_every_bag(name):
    model, X, y = bagged(name)
    model.fit(X, y)
    whole = model.model_
    assert isinstance(whole, AdditiveModel if "max_depth=1" in repr(FITS[name][0]) else Forest)
    staged = list(whole.staged(X))
    assert len(staged) == whole.n_rounds == 8
    np.testing.assert_array_equal(staged[-1], whole(X))
    for n, F in enumerate(staged, 1):
        np.testing.assert_array_equal(whole.first(n)(X), F)
    if "drawn" not in name:
        fewer, _, _ = bagged(name, n_estimators=5)
        assert fewer.fit(X, y).model_ == whole.first(5)
    some = list(whole.staged(X, [2, 5]))
    np.testing.assert_array_equal(some, [staged[1], staged[4]])
    np.testing.assert_array_equal(list(model.staged_predict(X))[-1], model.predict(X))
    again = pickle.loads(pickle.dumps(whole))
    assert again == whole
    assert again.n_rounds == 8
    assert len(whole.first(0)(X)) == len(X)
    assert whole.first(99) == whole


def test_stumps_stay_one_table_a_feature():
    model, X, y = bagged("stumps", n_estimators=50)
    tables = model.fit(X, y).model_.tables
    assert len(tables) <= X.shape[1]
    F = model.model_.intercept + sum(table(X[:, f]) for f, table in tables.items())
    np.testing.assert_allclose(F, model.model_(X), atol=1e-12)
    assert repr(model.model_).startswith("AdditiveModel(50 rounds on ")


def test_a_bag_is_another_model_than_the_whole_and_than_others():
    prints = set()
    for n_bags, seed in ((1, 0), (2, 0), (3, 0), (3, 1)):
        model, X, y = bagged("trees", n_bags=n_bags, random_state=seed)
        prints.add(model.fit(X, y).model_.fingerprint())
    assert len(prints) == 4
    assert len({learner_seed(7, bag, 0) for bag in range(50)}) == 50


def test_early_stopping_watches_the_average_of_all_bags():
    X, y = load_breast_cancer(return_X_y=True)
    X, X_val, y, y_val = train_test_split(X, y, random_state=0)
    model = BoostingClassifier(
        **plain(
            n_estimators=300,
            max_depth=4,
            learning_rate=0.3,
            n_bags=B,
            early_stopping=True,
            random_state=0,
        )
    ).fit(X, y, X_val=X_val, y_val=y_val)
    assert model.n_estimators_ == model.model_.n_rounds < 300
    assert len(model.model_) == B * model.n_estimators_
    staged = [log_loss(y_val, p) for p in model.staged_predict_proba(X_val)]
    np.testing.assert_allclose(model.validation_loss_[: len(staged)], staged, rtol=1e-9)
    assert np.argmin(model.validation_loss_) + 1 == model.n_estimators_
    assert len(model.history_.training) == len(model.validation_loss_)


def test_the_recorded_training_loss_is_the_mean_of_each_bags_own():
    model, X, y = bagged("trees", callbacks=[lambda info: None])
    model.fit(X, y)
    single = type(model)(**model.get_params() | {"n_bags": 1})
    own = [single.fit(X, y, w).history_.training for w in bootstrap(X, y, seed_of(4))]
    np.testing.assert_allclose(model.history_.training, np.mean(own, axis=0), rtol=1e-6)


def test_callbacks_see_rounds_of_all_bags_and_can_stop():
    seen = []
    model, X, y = bagged("trees", callbacks=[lambda info: seen.append(info) or info.round == 3])
    model.fit(X, y)
    assert [info.round for info in seen] == [1, 2, 3]
    assert seen[0].feature is None
    assert model.stop_reason_ == "a callback asked to stop"
    assert len(model.model_) == 3 * B


def test_a_bag_that_has_learnt_all_waits_for_the_others():
    """Rows of one value each but two: only a bag that holds both kinds goes on."""
    X = np.arange(12.0)[:, None] // 11.0
    y = np.where(np.arange(12) == 11, 1.0, 0.0)
    model = BoostingRegressor(
        **plain(n_estimators=6, max_depth=2, learning_rate=1.0, n_bags=6, random_state=0)
    ).fit(X, y)
    assert model.stop_reason_ == "no tree lowers the loss any further in any bag"
    assert 0 < len(model.model_) < 6 * model.n_estimators_
    assert model.model_.ends[-1] == len(model.model_)
    held = [w[11] > 0 for w in _bags_of(X, y, 6)]
    assert len(model.model_) == sum(held) * 1
    np.testing.assert_allclose(model.predict(X)[[0, 11]], [0.0, np.mean(held)], atol=1e-9)


def _bags_of(X: np.ndarray, y: np.ndarray, n: int) -> list[np.ndarray]:
    bags = make_bags(
        X, y, None, None, seed=seed_of(0), replace=True, max_samples=1.0, takes_weights=True
    )
    return [bags.counts(bag) for bag in range(n)]


@pytest.mark.parametrize("loss", ["logistic", "exponential", "squared", "hinge"])
def test_a_class_that_is_missing_from_a_bag_is_no_harm(loss):
    X = np.arange(10.0)[:, None]
    y = np.array([0] * 9 + [1])
    step = "constant" if loss == "hinge" else "newton"
    for depth in (1, 2):
        model = BoostingClassifier(
            loss, **plain(n_estimators=5, step=step, max_depth=depth, n_bags=8, random_state=0)
        ).fit(X, y)
        p = model.predict_proba(X)
        assert np.isfinite(p).all()
        assert (p[9, 1] > p[:5, 1]).all()
    three = BoostingClassifier(**plain(n_estimators=5, max_depth=2, n_bags=4, random_state=0))
    p = three.fit(X, np.array([0] * 5 + [1] * 4 + [2])).predict_proba(X)
    assert np.isfinite(p).all()


@pytest.mark.slow
def test_bags_lower_the_loss_on_rows_that_were_held_out():
    X, y = load_wine(return_X_y=True)
    loss = {}
    for n_bags in (1, 6):
        model = BoostingClassifier(
            **plain(max_depth=4, n_estimators=25, n_bags=n_bags, random_state=0)
        )
        folds = StratifiedKFold(4, shuffle=True, random_state=0)
        p = cross_val_predict(model, X, y, cv=folds, method="predict_proba")
        loss[n_bags] = log_loss(y, p)
    assert loss[6] < 0.7 * loss[1]


@pytest.mark.parametrize("n_bags", [0, -1, 1.5, "two", None])
def test_a_bad_number_of_bags_is_refused(n_bags):
    X, y = problem(0, 40)
    with pytest.raises((TypeError, ValueError), match="n_bags must be an integer >= 1; got"):
        BoostingRegressor(n_bags=n_bags, max_depth=1).fit(X, y)


@pytest.mark.slow
def test_bags_work_on_real_sets_with_weights_and_missing_values():
    X, y = load_wine(return_X_y=True)
    weights = np.random.default_rng(0).gamma(2.0, size=len(y))
    model = BoostingClassifier(**plain(n_bags=2, n_estimators=20, max_depth=3, random_state=0))
    assert model.fit(with_holes(X), y, weights).score(X, y) > 0.95
    X, y = load_diabetes(return_X_y=True)
    assert (
        BoostingRegressor(**plain(n_bags=2, max_depth=3, random_state=0)).fit(X, y).score(X, y)
        > 0.5
    )
