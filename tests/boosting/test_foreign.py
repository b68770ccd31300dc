"""AdaBoost with any classifier: scikit-learn's AdaBoost and plain loops are the oracles."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.ensemble import AdaBoostClassifier as Peer
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.validation import check_is_fitted

from ensemble_gpu import AdaBoostClassifier, RoundInfo
from ensemble_gpu.arrays.namespace import NUMPY
from ensemble_gpu.model.calibration import best_scale
from ensemble_gpu.model.link import probabilities
from ensemble_gpu.trees.tree import DecisionTreeClassifier as OwnTree
from tests.datasets import Data, fitted_state
from tests.estimators.checks import LIGHT_ROWS, assert_checks_pass, each_setting
from tests.places import DEVICE, PLACES, Place
from tests.products import every_pair

TREE = DecisionTreeClassifier(max_depth=2)


def noisy(n_classes: int = 2, n: int = 300, seed: int = 0) -> Data:
    """Continuous features (no two splits are equally good) and labels with noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    score = X[:, 0] + X[:, 1] * X[:, 2] + 0.7 * rng.normal(size=n)
    y = np.digitize(score, np.quantile(score, np.arange(1, n_classes) / n_classes))
    return Data(X, y)


TWO, THREE = noisy(2), noisy(3)
DATA = {2: TWO, 3: THREE}


def boosted(learner: Any = TREE, **params: Any) -> AdaBoostClassifier:
    return AdaBoostClassifier(learner, **{"n_estimators": 12, "random_state": 0, **params})


# --- scikit-learn's AdaBoost is the discrete variant ------------------------------------------


@pytest.mark.slow
@every_pair("depth, n_classes, weighted, rate", [1, 2, 3], [2, 3], [False, True], [1.0, 0.4])
def test_discrete_rounds_with_trees_are_those_of_scikit_learn(depth, n_classes, weighted, rate):
    data = DATA[n_classes]
    weights = np.random.default_rng(1).gamma(2.0, size=len(data.y)) if weighted else None
    tree = DecisionTreeClassifier(max_depth=depth)
    peer = Peer(tree, n_estimators=12, learning_rate=rate, random_state=0)
    peer.fit(data.X, data.y, weights)
    ours = boosted(tree, variant="discrete", learning_rate=rate).fit(data.X, data.y, weights)
    same_rounds(ours, peer, data.X)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_discrete_rounds_with_naive_bayes_are_those_of_scikit_learn(n_classes):
    data = DATA[n_classes]
    peer = Peer(GaussianNB(), n_estimators=12).fit(data.X, data.y)
    same_rounds(boosted(GaussianNB(), variant="discrete").fit(data.X, data.y), peer, data.X)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_discrete_rounds_with_logistic_regressions_are_those_of_scikit_learn(n_classes):
    """Weights sum to 1 there and to n here, which a penalty feels: C is n times as large there."""
    data = DATA[n_classes]
    n = len(data.y)
    peer = Peer(LogisticRegression(C=0.1 * n, solver="newton-cholesky"), n_estimators=8).fit(
        data.X, data.y
    )
    ours = boosted(
        LogisticRegression(C=0.1, solver="newton-cholesky"), variant="discrete", n_estimators=8
    )
    same_rounds(ours.fit(data.X, data.y), peer, data.X)


def same_rounds(ours: AdaBoostClassifier, peer: Peer, X: np.ndarray) -> None:
    """Equal errors and votes; alpha of two classes is half of scikit-learn's.

    Theirs may go on with learners that are as good as chance but for a rounding error.
    """
    n, n_classes = ours.n_estimators_, len(ours.classes_)
    more = peer.estimator_errors_[n : len(peer.estimators_)]
    assert n > 0
    assert (more > 1.0 - 1.0 / n_classes - 1e-9).all()
    half = 0.5 if n_classes == 2 else 1.0
    np.testing.assert_allclose(ours.errors_, peer.estimator_errors_[:n], rtol=1e-9)
    np.testing.assert_allclose(ours.alphas_, half * peer.estimator_weights_[:n], rtol=1e-9)
    for own, theirs in zip(ours.estimators_, peer.estimators_[:n], strict=True):
        np.testing.assert_array_equal(own.predict(X), theirs.predict(X))
    F = ours.decision_function(X)
    theirs = peer.decision_function(X) * peer.estimator_weights_.sum()
    if n_classes == 2:
        np.testing.assert_allclose(F, 0.25 * theirs, atol=1e-9)  # theirs adds both columns
    else:  # theirs has -1 / (K - 1) where ours has 0
        scale = (n_classes - 1) / n_classes
        F = F - F.mean(axis=1, keepdims=True)
        np.testing.assert_allclose(F, scale * theirs, atol=1e-9)
    np.testing.assert_array_equal(ours.predict(X), peer.predict(X))


# --- the real variant is the plain loop -------------------------------------------------------


def real_adaboost(learner: Any, data: Data, n_rounds: int, rate: float):
    """Friedman, Hastie & Tibshirani 2000, algorithm 2: F and Z of every round."""
    y, n = 2 * data.y - 1, len(data.y)
    w, F = np.full(n, 1 / n), np.zeros(n)
    for _ in range(n_rounds):
        p = clone(learner).fit(data.X, data.y, sample_weight=n * w).predict_proba(data.X)[:, 1]
        p = np.clip(p, 0.5 / n, 1 - 0.5 / n)
        h = 0.5 * np.log(p / (1 - p))
        F, w = F + rate * h, w * np.exp(-rate * y * h)
        yield F, w.sum()
        w = w / w.sum()


def samme_r(learner: Any, data: Data, n_rounds: int, rate: float, n_classes: int):
    """Zhu, Zou, Rosset & Hastie 2009, algorithm 4: F and the weight of every round."""
    K, n = n_classes, len(data.y)
    code = np.where(data.y[:, None] == np.arange(K), 1.0, -1.0 / (K - 1))
    w, F = np.full(n, 1 / n), np.zeros((n, K))
    for _ in range(n_rounds):
        p = clone(learner).fit(data.X, data.y, sample_weight=n * w).predict_proba(data.X)
        logs = np.log(np.clip(p, 0.5 / n, 1 - 0.5 / n))
        F = F + rate * (K - 1) * (logs - logs.mean(axis=1, keepdims=True))
        w = w * np.exp(-rate * (K - 1) / K * (code * logs).sum(axis=1))
        yield F, w.sum()
        w = w / w.sum()


LEARNERS = [TREE, DecisionTreeClassifier(max_depth=3), LogisticRegression(tol=1e-10), GaussianNB()]


@pytest.mark.parametrize("rate", [1.0, 0.3])
@pytest.mark.parametrize("learner", LEARNERS, ids=str)
def test_real_rounds_are_those_of_real_adaboost(learner, rate):
    ours = boosted(learner, learning_rate=rate).fit(TWO.X, TWO.y)
    n = ours.n_estimators_
    stages = list(ours.staged_decision_function(TWO.X))
    for t, (F, Z) in enumerate(real_adaboost(learner, TWO, n, rate)):
        np.testing.assert_allclose(stages[t], F, atol=1e-7)
        assert ours.errors_[t] == pytest.approx(Z, rel=1e-9)
    np.testing.assert_array_equal(ours.alphas_, rate)
    np.testing.assert_allclose(ours.history_.training, np.cumprod(ours.errors_), rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("rate", [1.0, 0.3])
@pytest.mark.parametrize("learner", LEARNERS[:3], ids=str)
def test_real_rounds_with_three_classes_are_those_of_samme_r(learner, rate):
    ours = boosted(learner, learning_rate=rate).fit(THREE.X, THREE.y)
    n = ours.n_estimators_
    assert n > 1
    stages = list(ours.staged_decision_function(THREE.X))
    for t, (F, Z) in enumerate(samme_r(learner, THREE, n, rate, 3)):
        np.testing.assert_allclose(2.0 * stages[t], F, atol=1e-7)
        assert ours.errors_[t] == pytest.approx(Z, rel=1e-9)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_probabilities_after_one_real_round_are_those_of_the_learner(n_classes):
    data = DATA[n_classes]
    ours = boosted(LogisticRegression(), n_estimators=1).fit(data.X, data.y)
    alone = LogisticRegression().fit(data.X, data.y)
    np.testing.assert_allclose(
        ours.predict_proba(data.X), alone.predict_proba(data.X), rtol=1e-6, atol=0.5 / len(data.y)
    )


def test_training_losses_are_mean_weights():
    """Of the exponential loss: mean of exp(-y F), after every round."""
    for variant in ("real", "discrete"):
        ours = boosted(variant=variant).fit(TWO.X, TWO.y)
        y = 2 * TWO.y - 1
        expected = [np.exp(-y * F).mean() for F in ours.staged_decision_function(TWO.X)]
        np.testing.assert_allclose(ours.history_.training, expected, rtol=1e-9)
        assert (np.diff(ours.history_.training) < 0.0).all()


# --- what a learner is given ------------------------------------------------------------------


class Nosy(ClassifierMixin, BaseEstimator):
    """Predicts the sign of the first feature, and keeps what it was fitted with."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Nosy:
        self.X_, self.y_, self.weights_ = X, y, sample_weight
        self.classes_ = np.unique(y)
        return self

    def predict(self, X: Any) -> Any:
        return (X[:, 0] > 0.0).astype(np.int64)


class NosyWithoutWeights(Nosy):
    def fit(self, X: Any, y: Any) -> Nosy:
        return super().fit(X, y)


def test_a_learner_gets_the_array_itself_and_weights_of_mean_one():
    ours = boosted(Nosy(), variant="discrete").fit(TWO.X, TWO.y)
    first = ours.estimators_[0]
    assert np.shares_memory(first.X_, TWO.X)
    np.testing.assert_allclose(first.weights_, 1.0, rtol=1e-14)
    assert first.y_.dtype == np.int64
    np.testing.assert_array_equal(first.y_, TWO.y)


def test_the_first_learner_gets_the_weights_of_the_user_and_no_row_of_weight_zero():
    data = TWO.with_weights()
    heavy = data.weights > 0.0
    first = boosted(Nosy(), variant="discrete").fit(data.X, data.y, data.weights).estimators_[0]
    np.testing.assert_allclose(first.weights_, data.weights[heavy], rtol=1e-12)
    np.testing.assert_array_equal(first.X_, data.X[heavy])


def test_learners_know_the_classes_by_number():
    names = np.array(["low", "high"])
    ours = boosted(variant="discrete").fit(TWO.X, names[TWO.y])
    np.testing.assert_array_equal(ours.classes_, ["high", "low"])
    np.testing.assert_array_equal(ours.estimators_[0].classes_, [0, 1])
    numbers = boosted(variant="discrete").fit(TWO.X, 1 - TWO.y)
    np.testing.assert_array_equal(ours.predict(TWO.X), names[1 - numbers.predict(TWO.X)])


def test_a_learner_without_weights_gets_rows_drawn_by_weight():
    data = noisy(n=4000)
    first, *_ = boosted(NosyWithoutWeights(), variant="discrete").fit(data.X, data.y).estimators_
    assert len(first.X_) == 4000
    wrong = np.mean(first.predict(first.X_) != first.y_)
    assert wrong == pytest.approx(np.mean(first.predict(data.X) != data.y), abs=0.03)
    weights = np.where(first.predict(data.X) != data.y, 2.0, 1.0)
    drawn, *_ = (
        boosted(NosyWithoutWeights(), variant="discrete").fit(data.X, data.y, weights).estimators_
    )
    expected = weights[first.predict(data.X) != data.y].sum() / weights.sum()
    assert np.mean(drawn.predict(drawn.X_) != drawn.y_) == pytest.approx(expected, abs=0.03)
    assert set(map(tuple, drawn.X_)) <= set(map(tuple, data.X))


@pytest.mark.slow
@pytest.mark.parametrize(
    "learner",
    [KNeighborsClassifier(15), RandomForestClassifier(3, max_depth=2),
     make_pipeline(StandardScaler(), DecisionTreeClassifier(max_depth=2, max_features=1))],
    ids=["neighbours", "forest", "pipeline"],
)  # fmt: skip
def test_one_seed_gives_one_model(learner):
    def run(seed: int) -> np.ndarray:
        return boosted(learner, variant="discrete", random_state=seed).fit(
            THREE.X, THREE.y
        ).decision_function(THREE.X)  # fmt: skip

    np.testing.assert_array_equal(run(0), run(0))
    assert not np.array_equal(run(0), run(1))


def test_random_learners_differ_from_round_to_round():
    ours = boosted(DecisionTreeClassifier(max_depth=2, random_state=7)).fit(TWO.X, TWO.y)
    assert len({tree.random_state for tree in ours.estimators_}) == 12


def test_a_resample_without_a_class_leaves_its_probability_to_the_others():
    data = Data(np.concatenate([TWO.X, np.zeros((1, 4))]), np.append(TWO.y, 2))
    learner = KNeighborsClassifier(15)
    ours = boosted(learner, n_estimators=6, learning_rate=0.1, random_state=0)
    ours.fit(data.X, data.y)
    assert {len(member.classes_) for member in ours.estimators_} == {2, 3}
    p = ours.predict_proba(data.X)
    assert p.shape == (301, 3)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)


def test_resamples_of_one_class_are_an_error_in_the_first_round():
    weights = np.where(np.arange(300) == 0, 1e30, 1.0)
    with pytest.raises(ValueError, match="KNeighborsClassifier takes no sample weights, and 10"):
        boosted(KNeighborsClassifier()).fit(TWO.X, TWO.y, weights)


def test_boosting_lifts_a_learner_without_weights():
    X, y = TWO.X, TWO.X[:, 0] * TWO.X[:, 1] > 0.0
    learner = make_pipeline(StandardScaler(), DecisionTreeClassifier(max_depth=2))
    alone = clone(learner).fit(X, y).score(X, y)
    ours = boosted(learner, variant="discrete", n_estimators=40).fit(X, y)
    assert ours.score(X, y) > alone + 0.1


# --- when the rounds end ----------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("variant", ["real", "discrete"])
def test_a_perfect_learner_is_kept_with_a_finite_alpha_and_ends_the_fit(variant, n_classes):
    data = DATA[n_classes]
    ours = boosted(DecisionTreeClassifier(), variant=variant).fit(data.X, data.y)
    assert ours.n_estimators_ == 1
    assert ours.stop_reason_ == "a learner classifies every row correctly"
    assert ours.score(data.X, data.y) == 1.0
    assert np.isfinite(ours.decision_function(data.X)).all()
    if variant == "discrete":
        alpha = np.log((1.0 - 1e-10) / 1e-10) + np.log(n_classes - 1)
        assert ours.alphas_[0] == pytest.approx(alpha / (2.0 if n_classes == 2 else 1.0))


def test_a_learner_that_ignores_the_weights_is_dropped_in_the_second_round():
    """After a round its error is one half: no better than chance."""
    ours = boosted(Nosy(), variant="discrete").fit(TWO.X, TWO.y)
    assert ours.n_estimators_ == len(ours.estimators_) == len(ours.errors_) == 1
    assert ours.stop_reason_.startswith("no learner is better than chance")
    assert "0.500000" in ours.stop_reason_


class Stubborn(Nosy):
    """Always says what is least likely."""

    def predict(self, X: Any) -> Any:
        return 1 - super().predict(X)

    def predict_proba(self, X: Any) -> Any:
        p = 0.1 + 0.8 * self.predict(X)
        return np.stack([1.0 - p, p], axis=1)


class Boastful(Stubborn):
    """Right more often than not, but never in doubt."""

    def predict(self, X: Any) -> Any:
        return Nosy.predict(self, X)

    def predict_proba(self, X: Any) -> Any:
        return np.eye(2)[self.predict(X)]


@pytest.mark.parametrize("variant", ["real", "discrete"])
def test_a_learner_that_never_beats_chance_is_an_error(variant):
    ours = boosted(Stubborn(), variant=variant)
    with pytest.raises(ValueError, match=r"Stubborn is not better than chance.*below 0\.5 for 2"):
        ours.fit(TWO.X, TWO.y)
    with pytest.raises(NotFittedError):
        check_is_fitted(ours)
    assert not fitted_state(ours)


def test_probabilities_that_raise_the_loss_are_an_error_that_names_the_way_out():
    with pytest.raises(ValueError, match=r"Boastful is too sure of itself.*variant='discrete'"):
        boosted(Boastful()).fit(TWO.X, TWO.y)
    assert boosted(Boastful(), variant="discrete").fit(TWO.X, TWO.y).n_estimators_ == 1


@pytest.mark.parametrize("rate", [1e-20, 1e-14, 1e300])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_extreme_learning_rates_give_finite_models(n_classes, rate):
    data = DATA[n_classes]
    for variant, learner in [("discrete", TREE), ("real", DecisionTreeClassifier())]:
        ours = boosted(learner, variant=variant, learning_rate=rate).fit(data.X, data.y)
        assert np.isfinite(ours.decision_function(data.X)).all()
        assert np.isfinite(ours.predict_log_proba(data.X)).all()
        assert np.isfinite(ours.feature_importances_).all()


@pytest.mark.parametrize("scale", [2.0**-1070, 2.0**-700, 2.0**1015])
def test_trees_do_not_depend_on_the_scale_of_the_weights(scale):
    weights = np.random.default_rng(0).integers(1, 4, size=len(TWO.y)).astype(np.float64)
    expected = boosted().fit(TWO.X, TWO.y, weights)
    scaled = boosted().fit(TWO.X, TWO.y, weights * scale)
    np.testing.assert_allclose(scaled.errors_, expected.errors_, rtol=1e-9)


# --- the estimator around it ------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("variant", ["real", "discrete"])
def test_stages_end_with_the_model(variant, n_classes):
    data = DATA[n_classes]
    ours = boosted(variant=variant).fit(data.X, data.y)
    stages = list(ours.staged_decision_function(data.X))
    assert len(stages) == 12
    np.testing.assert_array_equal(stages[-1], ours.decision_function(data.X))
    some = list(ours.staged_predict_proba(data.X, rounds=[3, 3, 12]))
    np.testing.assert_array_equal(some[2], ours.predict_proba(data.X))
    short = boosted(variant=variant, n_estimators=3).fit(data.X, data.y)
    np.testing.assert_array_equal(some[0], short.predict_proba(data.X))
    np.testing.assert_array_equal(some[0], some[1])
    last = list(ours.staged_predict(data.X))[-1]
    np.testing.assert_array_equal(last, ours.predict_proba(data.X).argmax(axis=1))


@pytest.mark.parametrize("variant", ["real", "discrete"])
def test_early_stopping_keeps_the_best_round(variant):
    other = noisy(seed=1)
    tree = DecisionTreeClassifier(max_depth=3)
    ours = boosted(tree, variant=variant, n_estimators=200, early_stopping=True, n_iter_no_change=5)
    ours.fit(TWO.X, TWO.y, X_val=other.X, y_val=other.y)
    losses = ours.history_.validation
    best = int(losses.argmin()) + 1
    assert ours.n_estimators_ == len(ours.estimators_) == len(ours.alphas_) == best
    assert len(losses) == best + 5 < 200
    assert "not improved for 5 rounds" in ours.stop_reason_
    F = ours.decision_function(other.X)[:, None]
    scale = best_scale(F, other.y, None, ours.link_, NUMPY)
    p = probabilities(F, ours.link_, NUMPY, scale)[np.arange(300), other.y]
    assert -np.log(p).mean() == pytest.approx(losses[best - 1], rel=1e-9)


def test_held_out_rows_and_a_metric_of_the_user():
    seen: list[int] = []

    def metric(y: Any, p: Any) -> float:
        seen.append(len(y))
        return float(np.mean(p.argmax(axis=1) != y))

    ours = boosted(early_stopping=True, validation_fraction=0.2, metric=metric).fit(TWO.X, TWO.y)
    assert set(seen) == {60}
    assert len(ours.validation_loss_) == len(seen)
    assert ours.estimators_[0].tree_.n_node_samples[0] == 240


def test_a_callback_sees_rounds_and_losses_and_can_stop():
    seen: list[RoundInfo] = []
    other = noisy(seed=1)
    ours = boosted(callbacks=[seen.append, lambda info: info.round == 5])
    ours.fit(TWO.X, TWO.y, X_val=other.X, y_val=other.y)
    assert [info.round for info in seen] == [1, 2, 3, 4, 5]
    assert ours.stop_reason_ == "a callback asked to stop"
    np.testing.assert_array_equal([info.error for info in seen], ours.errors_)
    np.testing.assert_array_equal([info.alpha for info in seen], ours.alphas_)
    np.testing.assert_array_equal([info.training_loss for info in seen], ours.history_.training)
    np.testing.assert_array_equal([info.validation_loss for info in seen], ours.history_.validation)
    assert {(info.feature, info.threshold, info.values) for info in seen} == {(None, None, None)}


@pytest.mark.parametrize("variant", ["real", "discrete"])
def test_importances_are_the_weighted_mean_of_the_learners(variant):
    ours = boosted(variant=variant).fit(TWO.X, TWO.y)
    worth = ours.alphas_ if variant == "discrete" else -np.log(ours.errors_)
    own = np.array([tree.feature_importances_ for tree in ours.estimators_])
    expected = worth @ own / worth.sum()
    np.testing.assert_allclose(ours.feature_importances_, expected, rtol=1e-12)
    assert ours.feature_importances_.sum() == pytest.approx(1.0)


def test_learners_without_importances_give_none():
    ours = boosted(GaussianNB(), variant="discrete").fit(TWO.X, TWO.y)
    with pytest.raises(AttributeError, match="feature_importances_"):
        _ = ours.feature_importances_


def test_stumps_are_not_estimators():
    with pytest.raises(AttributeError, match="estimators_"):
        _ = AdaBoostClassifier(n_estimators=2).fit(TWO.X, TWO.y).estimators_


def test_missing_values_are_the_affair_of_the_learner():
    data = TWO.with_missing()
    assert boosted().fit(data.X, data.y).score(data.X, data.y) > 0.8
    with pytest.raises(ValueError, match="missing='error'"):
        boosted(missing="error").fit(data.X, data.y)
    with pytest.raises(ValueError, match="LogisticRegression does not accept missing values"):
        boosted(LogisticRegression()).fit(data.X, data.y)


def test_a_pickle_predicts_the_same_and_a_clone_is_unfitted():
    ours = boosted().fit(THREE.X, THREE.y)
    copy = pickle.loads(pickle.dumps(ours))
    np.testing.assert_array_equal(copy.predict_proba(THREE.X), ours.predict_proba(THREE.X))
    assert not hasattr(clone(ours), "model_")


def test_parameters_of_the_learner_can_be_searched():
    search = GridSearchCV(boosted(), {"estimator__max_depth": [1, 3]}, cv=2).fit(TWO.X, TWO.y)
    assert search.best_estimator_.estimators_[0].max_depth == search.best_params_[
        "estimator__max_depth"
    ]  # fmt: skip


@pytest.mark.slow
@each_setting([
    boosted(random_state=None), boosted(variant="discrete", random_state=None),
    boosted(LogisticRegression(), variant="discrete"), boosted(OwnTree(max_depth=2)),
])  # fmt: skip
def test_the_checks_of_scikit_learn_pass(estimator, first):
    assert_checks_pass(estimator, LIGHT_ROWS, others=first)


# --- arrays of other libraries and devices ----------------------------------------------------

# An estimator of this package: it takes arrays of any library where they are.
OWN = AdaBoostClassifier(n_estimators=2, n_jobs=1)


@pytest.mark.slow
@every_pair("place, variant, n_classes", PLACES, ["real", "discrete"], [2, 3], ids=str)
def test_estimators_of_this_package_are_boosted_where_the_arrays_live(
    place: Place, variant, n_classes
):
    data = DATA[n_classes].with_weights()
    expected = boosted(OWN, variant=variant, n_estimators=4).fit(data.X, data.y, data.weights)
    ours = boosted(OWN, variant=variant, n_estimators=4)
    ours.fit(place.put(data.X), place.put(data.y), place.put(data.weights))
    assert ours.model_.fingerprint() == expected.model_.fingerprint()
    F = ours.decision_function(place.put(data.X))
    place.check(F, "float64")
    np.testing.assert_allclose(place.host(F), expected.decision_function(data.X), atol=1e-12)
    predicted = ours.predict(place.put(data.X))
    place.check(predicted, "int64")
    np.testing.assert_array_equal(place.host(predicted), expected.predict(data.X))
    for stage in ours.staged_predict_proba(place.put(data.X), rounds=[1, 2]):
        place.check(stage, "float64")


@pytest.mark.slow
@every_pair("place, variant, n_classes", PLACES, ["real", "discrete"], [2, 3], ids=str)
def test_exact_trees_of_this_package_boost_as_those_of_scikit_learn(
    place: Place, variant, n_classes
):
    data = DATA[n_classes]
    theirs = boosted(variant=variant).fit(data.X, data.y)
    ours = boosted(OwnTree(max_depth=2, max_bins=None), variant=variant)
    ours.fit(place.put(data.X), place.put(data.y))
    np.testing.assert_allclose(ours.errors_, theirs.errors_, rtol=1e-6)
    host = boosted(OwnTree(max_depth=2, max_bins=None), variant=variant).fit(data.X, data.y)
    assert ours.model_.fingerprint() == host.model_.fingerprint()
    place.check(ours.predict_proba(place.put(data.X)), "float64")


def test_fingerprints_tell_models_apart():
    def model(**params: Any) -> Any:
        return boosted(OWN, n_estimators=3, **params).fit(TWO.X, TWO.y).model_

    prints = [
        model(**p).fingerprint() for p in ({}, {"learning_rate": 0.5}, {"variant": "discrete"})
    ]
    assert model().fingerprint() == prints[0]
    assert len(set(prints)) == 3
    with pytest.raises(TypeError, match="DecisionTreeClassifier has no fingerprint"):
        boosted().fit(TWO.X, TWO.y).model_.fingerprint()


def test_learners_of_the_host_refuse_other_devices_and_say_how():
    strict = DEVICE
    X, y = strict.put(TWO.X), strict.put(TWO.y)
    with pytest.raises(ValueError, match=r"DecisionTreeClassifier works .*device1.*device='cpu'"):
        boosted().fit(X, y)
    ours = boosted(device="cpu").fit(X, y)
    p = ours.predict_proba(X)
    strict.check(p, "float64")
    host = boosted().fit(TWO.X, TWO.y)
    np.testing.assert_array_equal(strict.host(p), host.predict_proba(TWO.X))
    with pytest.raises(ValueError, match=r"device='cpu'"):
        host.predict(X)


@pytest.mark.interop
def test_arrays_of_another_library_on_the_host_give_the_same_model(library):
    expected = boosted().fit(TWO.X, TWO.y)
    X = library.put(TWO.X)
    ours = boosted().fit(X, library.put(TWO.y))
    F = ours.decision_function(X)
    library.check(F, "float64")
    np.testing.assert_array_equal(library.host(F), expected.decision_function(TWO.X))


def test_float32_in_float32_out():
    X = TWO.X.astype(np.float32)
    assert boosted().fit(X, TWO.y).predict_proba(X).dtype == np.float32


# --- bad input --------------------------------------------------------------------------------


class Plain:
    """Neither fit nor predict."""


@pytest.mark.parametrize(
    ("params", "error", "says"),
    [
        ({"estimator": "tree"}, TypeError, ("None", "classifier", "'tree'")),
        ({"estimator": Plain()}, TypeError, ("fit and predict", "Plain")),
        ({"estimator": Ridge()}, TypeError, ("classifier", "Ridge()")),
        ({"estimator": DecisionTreeClassifier}, TypeError, ("instance", "TreeClassifier()")),
        ({"variant": "gentle"}, ValueError, ("'real', 'discrete'", "'gentle'", "stumps")),
        ({"variant": "logit"}, ValueError, ("'real', 'discrete'", "'logit'", "stumps")),
        ({"estimator": RidgeClassifier()}, ValueError, ("predict_proba", "variant='discrete'")),

    ],
    ids=["a text", "no fit", "a regressor", "a class", "gentle", "logit", "no probabilities",
         ],
)  # fmt: skip
def test_bad_parameters_say_what_is_allowed_and_leave_the_estimator_as_it_was(params, error, says):
    ours = boosted().fit(TWO.X, TWO.y)
    before = fitted_state(ours)
    with pytest.raises(error) as caught:
        ours.set_params(**params).fit(TWO.X, TWO.y)
    for text in says:
        assert text in str(caught.value)
    assert fitted_state(ours) == before


# --- the committee ----------------------------------------------------------------------------


def test_a_committee_is_immutable_and_has_a_past():
    model = boosted().fit(TWO.X, TWO.y).model_
    with pytest.raises(AttributeError):
        model.alphas = np.zeros(12)
    with pytest.raises(ValueError, match="read-only"):
        model.alphas[0] = 1.0
    stages = list(model.staged(TWO.X))
    assert (len(model), len(stages), stages[0].shape) == (12, 12, (300, 1))
    np.testing.assert_array_equal(model.first(5)(TWO.X), stages[4])
    np.testing.assert_array_equal(model.first(0)(TWO.X), 0.0)
    assert repr(model) == "Committee(12 DecisionTreeClassifier; 4 features, 1 output(s))"


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("variant", ["real", "discrete"])
def test_no_margin_is_larger_than_the_largest_and_a_perfect_learner_reaches_it(variant, n_classes):
    data = DATA[n_classes]
    for learner, reached in [(TREE, False), (DecisionTreeClassifier(), True)]:
        model = boosted(learner, variant=variant).fit(data.X, data.y).model_
        F = model(data.X)
        F = np.sort(np.concatenate([-F, F], axis=1) if n_classes == 2 else F, axis=1)
        largest = (F[:, -1] - F[:, -2]).max()
        assert largest <= model.largest_margin * (1.0 + 1e-12)
        assert reached == (largest == pytest.approx(model.largest_margin))


@pytest.mark.parametrize(
    ("rounds", "error"),
    [([3, 2], ValueError), ([13], ValueError), ([True], TypeError), ([1.5], TypeError),
     (3, TypeError)],
)  # fmt: skip
def test_stages_of_a_committee_must_ascend(rounds, error):
    model = boosted().fit(TWO.X, TWO.y).model_
    with pytest.raises(error, match="rounds must"):
        list(model.staged(TWO.X, rounds))


def test_a_committee_checks_the_shape_of_x():
    model = boosted().fit(TWO.X, TWO.y).model_
    with pytest.raises(ValueError, match=r"shape \(rows, 4\)"):
        model(TWO.X[:, :3])
    with pytest.raises(ValueError, match="n_rounds must be"):
        model.first(-1)
