"""Any regressor or classifier as the weak learner of any loss: plain loops and native models."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.dummy import DummyRegressor
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from ensemble_gpu import BoostingClassifier, BoostingRegressor
from ensemble_gpu.losses import CLASSIFICATION, REGRESSION
from ensemble_gpu.model.committee import Committee
from ensemble_gpu.trees.tree import DecisionTreeRegressor as OwnTree
from tests.boosting.replaying import plans, whole_and_resumed
from tests.datasets import fitted_state
from tests.estimators.checks import LIGHT_ROWS, assert_checks_pass, each_setting
from tests.places import DEVICE

RNG = np.random.default_rng(3)
X = RNG.normal(size=(180, 3))
SCORE = X[:, 0] * X[:, 1] + X[:, 2] + 0.3 * RNG.normal(size=180)
LABELS = {2: (SCORE > 0).astype(int), 3: np.digitize(SCORE, [-0.7, 0.7])}
TREE = DecisionTreeRegressor(max_depth=2)
REGRESSORS = [TREE, Ridge(), KNeighborsRegressor(10)]
CLASSIFIERS = [DecisionTreeClassifier(max_depth=2), LinearSVC(), KNeighborsClassifier(10)]
# Trees of the package without what holds them back.
FREE: dict[str, Any] = {
    "min_samples_leaf": 1, "min_hessian": 0.0, "l2_regularization": 0.0, "subsample": 1.0,
    "max_features": None, "max_bins": None,
}  # fmt: skip


def regressor(learner: Any = TREE, loss: str = "squared", **params: Any) -> BoostingRegressor:
    return BoostingRegressor(loss, estimator=learner, **{"n_estimators": 8, **params})


def classifier(learner: Any = TREE, loss: str = "logistic", **params: Any) -> BoostingClassifier:
    return BoostingClassifier(loss, estimator=learner, **{"n_estimators": 8, **params})


def losses_of(model: Any, y: np.ndarray, weights: Any = None) -> np.ndarray:
    """The training loss before the first round and after each."""
    start: list[float] = []
    seen = model.set_params(callbacks=[lambda info: start.append(info.training_loss)])
    seen.fit(X, y, weights)
    constant = clone(model).set_params(estimator=Nothing(), callbacks=None)
    loss = constant._resolved_loss() if hasattr(constant, "_resolved_loss") else None
    if loss is None:
        return np.array(start)
    F = np.full(len(y), loss.best_constant(y, weights)[0])
    return np.array([np.average(loss.value(y, F), weights=weights), *start])


class Nothing(RegressorMixin, BaseEstimator):
    """Answers 0."""

    def fit(self, X: Any, y: Any) -> Nothing:
        return self

    def predict(self, X: Any) -> np.ndarray:
        return np.zeros(len(X))


# --- invariants -------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("rate", [1.0, 0.3])
def test_squared_loss_has_the_closed_step_and_the_sum_of_squares_falls_by_its_share(rate, weighted):
    w = RNG.gamma(2.0, size=180) if weighted else np.ones(180)
    ours = regressor(learning_rate=rate).fit(X, SCORE, w if weighted else None)
    F = np.full(180, ours.model_.intercept[0])
    assert F[0] == pytest.approx(np.average(SCORE, weights=w))
    for alpha, learner in zip(ours.alphas_, ours.estimators_, strict=True):
        r, h = SCORE - F, learner.predict(X)
        inner = (w * r * h).sum()
        assert alpha == pytest.approx(rate * inner / (w * h * h).sum(), rel=1e-12)
        F = F + alpha * h
        fall = rate * (2 - rate) * inner**2 / (w * h * h).sum()
        assert (w * r * r).sum() - (w * (SCORE - F) ** 2).sum() == pytest.approx(fall, rel=1e-9)
    np.testing.assert_allclose(ours.predict(X), F, rtol=1e-12)


@pytest.mark.parametrize("learner", REGRESSORS + CLASSIFIERS, ids=str)
@pytest.mark.parametrize("loss", REGRESSION)
def test_the_risk_of_a_regression_does_not_rise(loss, learner):
    y = np.floor(np.exp(SCORE)) if loss == "poisson" else SCORE
    falls = losses_of(regressor(learner, loss, learning_rate=1.0), y)
    assert len(falls) > 2
    assert (np.diff(falls) <= 1e-12 * falls[0]).all()


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("learner", [TREE, Ridge(), CLASSIFIERS[0], LinearSVC()], ids=str)
@pytest.mark.parametrize("loss", CLASSIFICATION)
def test_the_risk_of_classes_does_not_rise_and_they_are_learnt(loss, learner, n_classes):
    model = classifier(learner, loss, learning_rate=1.0)
    falls = losses_of(model, LABELS[n_classes])
    assert (np.diff(falls) <= 1e-12 * falls[0]).all()
    assert model.score(X, LABELS[n_classes]) > 1.2 / n_classes


def test_a_smoother_with_steps_of_one_gives_powers_of_its_residual_matrix():
    """F_k = (I - (I - S)^k) y for a linear smoother S and y of mean 0 (L2Boost)."""
    y = SCORE - SCORE.mean()
    K = np.exp(-0.5 * ((X[:, None] - X[None]) ** 2).sum(-1))
    S = K @ np.linalg.inv(K + 3.0 * np.eye(180))
    ours = regressor(KernelRidge(3.0, kernel="rbf", gamma=0.5), step="constant", learning_rate=1.0)
    ours.fit(X, y)
    left = y
    for k, stage in enumerate(ours.staged_predict(X), 1):
        left = left - S @ left
        np.testing.assert_allclose(stage, y - left, atol=1e-9, err_msg=str(k))


# --- our own trees are the native model -------------------------------------------------------


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("loss", ["squared", "huber", "poisson"])
def test_own_trees_as_regressors_give_the_native_model(loss, depth):
    y = np.floor(np.exp(SCORE)) if loss == "poisson" else SCORE
    native = BoostingRegressor(
        loss, max_depth=depth, n_estimators=8, step="line_search", **FREE
    ).fit(X, y)
    ours = regressor(OwnTree(max_depth=depth, max_bins=None), loss).fit(X, y)
    # a line search ends within a thousandth of the first slope
    close = {"rtol": 1e-6} if loss == "squared" else {"rtol": 2e-3, "atol": 1e-3}
    np.testing.assert_allclose(ours.predict(X), native.predict(X), **close)
    np.testing.assert_allclose(ours.feature_importances_, native.feature_importances_, rtol=1e-3)


@pytest.mark.parametrize(("depth", "n_classes"), [(1, 2), (1, 3), (2, 2)])
def test_own_trees_as_regressors_give_the_native_classifier(depth, n_classes):
    y = LABELS[n_classes]
    native = BoostingClassifier(
        max_depth=depth, n_estimators=8, step="line_search", multiclass="each", **FREE
    ).fit(X, y)
    ours = classifier(OwnTree(max_depth=depth, max_bins=None)).fit(X, y)
    np.testing.assert_allclose(
        ours.decision_function(X), native.decision_function(X), rtol=2e-3, atol=1e-3
    )


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_without_line_searches_own_trees_take_the_native_splits_for_every_class(depth):
    """A line search ends within a thousandth: splits that tie to six digits may then differ."""
    own = OwnTree(max_depth=depth, max_bins=None)
    ours = classifier(own, step="constant", learning_rate=1.0).fit(X, LABELS[3])
    native = BoostingClassifier(
        max_depth=depth, n_estimators=8, step="constant", learning_rate=1.0, multiclass="each",
        **FREE,
    ).fit(X, LABELS[3])  # fmt: skip
    np.testing.assert_allclose(ours.decision_function(X), native.decision_function(X), atol=1e-7)


# --- what a learner is fitted to --------------------------------------------------------------


class Spy(ClassifierMixin, BaseEstimator):
    """Remembers what it was fitted to; answers by the sign of the first feature."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Spy:
        self.classes_ = np.unique(y)
        calls.append((X, y, sample_weight))
        return self

    def predict(self, X: Any) -> Any:
        return np.where(X[:, 0] > 0, 1, -1)


calls: list[Any] = []


def test_a_classifier_is_fitted_to_the_signs_of_the_gradient_with_its_size_as_weight():
    calls.clear()
    w = RNG.gamma(2.0, size=180)
    ours = regressor(Spy(), "huber").fit(X, SCORE, w)
    F = np.full(180, ours.model_.intercept[0])
    g = np.clip(F - SCORE, -1.0, 1.0)
    _, labels, weights = calls[0]
    np.testing.assert_array_equal(labels, np.where(g < 0, 1, -1))
    np.testing.assert_allclose(weights, w * np.abs(g) * w.sum() / (w * np.abs(g)).sum())


class Against(Ridge):
    """The answers of a ridge regression, the other way round."""

    def predict(self, X: Any) -> Any:
        return -super().predict(X)


@pytest.mark.parametrize("loss", ["squared", "huber"])
def test_alpha_is_negative_where_the_answers_point_the_wrong_way(loss):
    right, wrong = (regressor(learner, loss).fit(X, SCORE) for learner in (Ridge(), Against()))
    assert (wrong.alphas_ < 0.0).all()
    np.testing.assert_allclose(wrong.alphas_, -right.alphas_, rtol=1e-9)
    np.testing.assert_allclose(wrong.predict(X), right.predict(X), rtol=1e-9)


@pytest.mark.parametrize("learner", [Nothing(), DummyRegressor()], ids=str)
def test_rounds_end_where_the_answers_lead_nowhere(learner):
    ours = regressor(learner).fit(X, SCORE)
    assert ours.n_estimators_ == 0
    assert ours.stop_reason_ == "no learner lowers the loss any further"
    np.testing.assert_allclose(ours.predict(X), SCORE.mean())
    done = regressor(LinearRegression(), learning_rate=1.0).fit(X, X @ [1.0, 2.0, 3.0])
    assert done.n_estimators_ < 8
    np.testing.assert_allclose(done.predict(X), X @ [1.0, 2.0, 3.0], atol=1e-12)


def test_a_learner_without_weights_sees_rows_drawn_by_weight_in_any_order():
    w = RNG.gamma(0.5, size=180)
    order = RNG.permutation(180)
    for learner, y in ((KNeighborsRegressor(5), SCORE), (KNeighborsClassifier(5), SCORE)):
        one = regressor(learner).fit(X, y, w)
        other = regressor(learner).fit(X[order], y[order], w[order])
        np.testing.assert_allclose(one.predict(X), other.predict(X), rtol=1e-9)
        equal = regressor(learner).fit(X, y)
        assert not np.allclose(one.predict(X), equal.predict(X))


def test_whole_weights_are_repeated_rows():
    w = np.random.default_rng(0).integers(0, 4, size=180)
    rows = np.repeat(np.arange(180), w)
    for learner in (Ridge(), LogisticRegression()):  # a line search ends within a thousandth
        weighted = regressor(learner, "huber").fit(X, SCORE, w)
        repeated = regressor(learner, "huber").fit(X[rows], SCORE[rows])
        np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), rtol=1e-3)
    # features that separate the rows of a node alike tie, in scikit-learn's trees but for rounding
    for learner, seen in (
        (OwnTree(max_depth=4), X),
        (DecisionTreeRegressor(max_depth=4), X[w > 0]),
    ):
        weighted = regressor(learner).fit(X, SCORE, w)
        repeated = regressor(learner).fit(X[rows], SCORE[rows])
        np.testing.assert_allclose(weighted.predict(seen), repeated.predict(seen), atol=1e-12)


def test_rows_are_drawn_for_every_round_where_subsample_asks_for_it():
    calls.clear()
    regressor(Spy(), subsample=0.5, n_estimators=3).fit(X, SCORE)
    sizes = [len(seen[1]) for seen in calls]
    assert all(60 < size < 120 for size in sizes)
    assert not np.array_equal(calls[0][0][:50], calls[1][0][:50])


@pytest.mark.parametrize("loss", ["squared", "hinge"])
def test_a_regressor_of_several_targets_is_fitted_once_for_all_classes(loss):
    """Ridge regressions of several targets are those of one each."""
    shared, each = (
        classifier(Ridge(), loss, multiclass=form).fit(X, LABELS[3]) for form in ("auto", "each")
    )
    assert repr(shared.model_) == "Committee(8 Ridge; 3 features, 3 output(s))"
    assert repr(each.model_) == "Committee(24 Ridge; 3 features, 3 output(s))"
    assert [len(own) for own in each.estimators_] == [3] * 8
    np.testing.assert_allclose(
        shared.decision_function(X), each.decision_function(X), rtol=1e-6, atol=1e-9
    )
    with pytest.raises(ValueError, match="multiclass='shared' needs a regressor for several"):
        classifier(LinearSVC(), loss, multiclass="shared").fit(X, LABELS[3])


def test_several_quantiles_have_a_regressor_each():
    ours = BoostingRegressor("quantile", quantile=[0.2, 0.8], estimator=TREE, n_estimators=30)
    share = (SCORE[:, None] < ours.fit(X, SCORE).predict(X)).mean(axis=0)
    np.testing.assert_allclose(share, [0.2, 0.8], atol=0.08)


# --- abstaining -------------------------------------------------------------------------------


class Unsure(DecisionTreeClassifier):
    """Abstains for rows whose first feature is small."""

    def predict(self, X: Any) -> Any:
        answer = super().predict(X).astype(float)
        answer[np.abs(X[:, 0]) < 0.2] = self.silence
        return answer

    silence = np.nan


class Silent(Unsure):
    silence = 0.0


def test_an_answer_of_nan_or_zero_adds_nothing():
    y = LABELS[2]
    by_nan, by_zero = (
        classifier(kind(max_depth=2), learning_rate=1.0).fit(X, y) for kind in (Unsure, Silent)
    )
    F = by_nan.decision_function(X)
    np.testing.assert_array_equal(F, by_zero.decision_function(X))
    np.testing.assert_array_equal(F[np.abs(X[:, 0]) < 0.2], by_nan.model_.intercept[0])


# --- the model --------------------------------------------------------------------------------


def test_stages_first_rounds_pickles_and_fingerprints():
    ours = classifier(OwnTree(max_depth=2)).fit(X, LABELS[3])
    model = ours.model_
    assert isinstance(model, Committee)
    stages = list(model.staged(X))
    np.testing.assert_array_equal(model.first(5)(X), stages[4])
    np.testing.assert_array_equal(stages[-1], model(X))
    np.testing.assert_allclose(model.first(0)(X), np.tile(model.intercept, (180, 1)))
    assert pickle.loads(pickle.dumps(model)) == model
    prints = {
        model.fingerprint(),
        model.first(5).fingerprint(),
        classifier(OwnTree(max_depth=1)).fit(X, LABELS[3]).model_.fingerprint(),
        classifier(OwnTree(max_depth=2), "hinge").fit(X, LABELS[3]).model_.fingerprint(),
    }
    assert len(prints) == 4
    with pytest.raises(TypeError, match="DecisionTreeRegressor has no fingerprint"):
        classifier().fit(X, LABELS[3]).model_.fingerprint()


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", [2, 3])
def test_estimators_of_the_package_are_boosted_where_the_arrays_live(place, n_classes):
    expected = classifier(OwnTree(max_depth=2)).fit(X, LABELS[n_classes])
    there = place.put(X)
    ours = classifier(OwnTree(max_depth=2)).fit(there, place.put(LABELS[n_classes]))
    F = ours.decision_function(there)
    place.check(F, "float64")
    np.testing.assert_allclose(place.host(F), expected.decision_function(X), rtol=1e-9, atol=1e-12)


def test_learners_of_the_host_refuse_other_devices_and_say_how():
    there, y = DEVICE.put(X), DEVICE.put(SCORE)
    with pytest.raises(ValueError, match=r"DecisionTreeRegressor works .*device='cpu'"):
        regressor().fit(there, y)
    ours = regressor(device="cpu").fit(there, y)
    host = regressor().fit(X, SCORE)
    np.testing.assert_array_equal(DEVICE.host(ours.predict(there)), host.predict(X))


@pytest.mark.interop
def test_arrays_of_another_library_on_the_host_give_the_same_model(library):
    expected = regressor(loss="huber").fit(X, SCORE)
    there = library.put(X)
    ours = regressor(loss="huber").fit(there, library.put(SCORE))
    predicted = ours.predict(there)
    library.check(predicted, "float64")
    np.testing.assert_array_equal(library.host(predicted), expected.predict(X))


@pytest.mark.parametrize(
    ("model", "y"),
    [
        (regressor(DecisionTreeRegressor(max_features=1, max_depth=2), "huber"), SCORE),
        (classifier(KNeighborsClassifier(5)), LABELS[3]),
        (classifier(subsample=0.5), LABELS[2]),
    ],
    ids=["random learners", "resampled rows", "rows drawn"],
)
def test_a_run_that_is_taken_up_goes_on_as_if_it_had_not_ended(model, y):
    (rounds, one, why), (again, other, too) = whole_and_resumed(plans(model, X, y), 6)
    assert why == too
    assert [r.alpha for r in rounds] == [r.alpha for r in again]
    np.testing.assert_array_equal(one(X), other(X))


def test_a_warm_start_adds_rounds():
    whole = regressor(loss="huber", learning_rate=0.1).fit(X, SCORE)
    warm = regressor(loss="huber", learning_rate=0.1, n_estimators=3, warm_start=True)
    warm.fit(X, SCORE).set_params(n_estimators=8).fit(X, SCORE)
    np.testing.assert_array_equal(warm.predict(X), whole.predict(X))
    with pytest.raises(ValueError, match="estimator__max_depth was 2 and is 3"):
        warm.set_params(estimator__max_depth=3).fit(X, SCORE)


def test_validation_rows_follow_the_rounds_and_stop_them():
    ours = regressor(
        DecisionTreeRegressor(max_depth=6), early_stopping=True, n_estimators=60, learning_rate=1.0,
        n_iter_no_change=3,
    )  # fmt: skip
    ours.fit(X[:100], SCORE[:100], X_val=X[100:], y_val=SCORE[100:])
    assert ours.n_estimators_ < 60
    error = ((ours.predict(X[100:]) - SCORE[100:]) ** 2).mean()
    assert ours.validation_loss_.min() == pytest.approx(error)


def test_an_offset_is_where_the_rounds_begin():
    offset = X[:, 2]
    ours = regressor(loss="huber").fit(X, SCORE, init_score=offset)
    assert ours.model_.intercept == 0.0
    plain = regressor(loss="huber").fit(X, SCORE - offset)
    assert np.corrcoef(ours.predict(X), plain.predict(X))[0, 1] > 0.9


# --- bad learners -----------------------------------------------------------------------------


class Changing(Ridge):
    """Writes to its input."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        X -= X.mean(axis=0)
        return super().fit(X, y, sample_weight)


class Wide(Ridge):
    def predict(self, X: Any) -> Any:
        return np.zeros((len(X), 2))


class Short(Ridge):
    def predict(self, X: Any) -> Any:
        return super().predict(X)[1:]


class Holes(Ridge):
    def predict(self, X: Any) -> Any:
        return np.where(X[:, 0] > 0, np.nan, super().predict(X))


class OtherLabels(DecisionTreeClassifier):
    def predict(self, X: Any) -> Any:
        return super().predict(X) + 3


@pytest.mark.parametrize(
    ("learner", "says"),
    [
        (Changing(), "estimator Changing writes to the X"),
        (Wide(), r"estimator Wide must predict 1 number.*shape \(180, 2\)"),
        (Short(), r"estimator Short must predict 1 number.*shape \(179,\)"),
        (Holes(), "estimator Holes predicts NaN or infinity"),
        (OtherLabels(), "estimator OtherLabels must predict the labels"),
    ],
    ids=["changes X", "wide", "short", "NaN", "labels"],
)
def test_a_learner_that_breaks_the_rules_is_named_and_nothing_is_half_fitted(learner, says):
    ours = regressor().fit(X, SCORE)
    before = fitted_state(ours)
    with pytest.raises(ValueError, match=says):
        ours.set_params(estimator=learner).fit(X.copy(), SCORE)
    assert fitted_state(ours) == before


@pytest.mark.slow
@each_setting([
    regressor(Ridge(), n_estimators=5, learning_rate=1.0), classifier(Ridge(), learning_rate=1.0),
    classifier(LogisticRegression(), learning_rate=0.5), classifier(OwnTree(max_depth=2)),
    # a line search stops early: the last digits of the learner's sums may decide where
    regressor(Ridge(), "huber", step="constant", n_estimators=20, learning_rate=0.5),
    regressor(OwnTree(max_depth=2), n_estimators=20, learning_rate=0.5),
])  # fmt: skip
def test_the_checks_of_scikit_learn_pass(estimator, first):
    assert_checks_pass(estimator, LIGHT_ROWS, others=first)


def test_whole_weights_are_repetitions_up_to_where_a_line_search_stops():
    weights = np.random.default_rng(4).integers(0, 4, len(X))
    ours = regressor(Ridge(), "huber", n_estimators=20, learning_rate=0.5)
    weighted = clone(ours).fit(X, SCORE, sample_weight=weights).predict(X)
    repeated = clone(ours).fit(np.repeat(X, weights, axis=0), np.repeat(SCORE, weights))
    np.testing.assert_allclose(weighted, repeated.predict(X), rtol=1e-3, atol=1e-3)
