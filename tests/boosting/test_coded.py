"""K classes from learners that know two: plain loops are the oracles, the bounds hold."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from ensemble_gpu import AdaBoostClassifier
from ensemble_gpu.boosting.coded import Codes
from ensemble_gpu.diagnostics import margins, staged_errors, training_error_bound
from ensemble_gpu.trees.tree import DecisionTreeClassifier as OwnTree
from tests.boosting.replaying import plans, whole_and_resumed
from tests.datasets import fitted_state
from tests.estimators.checks import LIGHT_ROWS, all_when_long, assert_checks_pass
from tests.places import Place
from tests.products import every_pair

RNG = np.random.default_rng(5)
X = RNG.normal(size=(150, 3))
SCORE = X[:, 0] * X[:, 1] + X[:, 2] + 0.3 * RNG.normal(size=150)
LABELS = {
    2: (SCORE > 0).astype(int), 3: np.digitize(SCORE, [-0.5, 0.5]),
    5: np.digitize(SCORE, [-1.0, -0.3, 0.3, 1.0]),
}  # fmt: skip
TREE = DecisionTreeClassifier(max_depth=2, random_state=0)
FORMS = ["single", "codes", "ovr"]


def boosted(learner: Any = TREE, form: str = "single", **params: Any) -> AdaBoostClassifier:
    params = {"variant": "discrete", "n_estimators": 10, "random_state": 0, **params}
    return AdaBoostClassifier(learner, multiclass=form, **params)


class TwoOnly(LinearSVC):
    """Refuses more than two classes, and says so."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        assert len(np.unique(y)) == 2
        return super().fit(X, y, sample_weight)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


# --- against plain loops ----------------------------------------------------------------------


def signs(learner: Any, Y: np.ndarray, D: np.ndarray) -> np.ndarray:
    """Answers in {-1, +1} of a learner fitted to labels Y in {-1, +1} with weights D."""
    weights = np.maximum(len(D) * D / D.sum(), 1e-300)
    return 2.0 * learner.fit(X, (Y > 0).astype(int), sample_weight=weights).predict(X) - 1.0


def test_single_is_boosting_of_the_class_with_the_least_z():
    y, n_classes = LABELS[5], 5
    ours = boosted().fit(X, y)
    Y = np.where(y[:, None] == np.arange(n_classes), 1.0, -1.0)
    D, F, Zs = np.full(Y.shape, 1.0 / Y.size), np.zeros(Y.shape), []
    for _ in range(10):
        h = np.array([signs(TREE, Y[:, k], D[:, k]) for k in range(n_classes)]).T
        right = (D * (h == Y)).sum(axis=0)
        wrong = (D * (h != Y)).sum(axis=0)
        Z = 1.0 - (right + wrong) + 2.0 * np.sqrt(right * wrong)
        k = int(Z.argmin())
        alpha = 0.5 * np.log(right[k] / wrong[k])
        F[:, k] += alpha * h[:, k]
        D[:, k] *= np.exp(-alpha * Y[:, k] * h[:, k])
        D /= D.sum()
        Zs.append(Z[k])
    np.testing.assert_allclose(ours.decision_function(X), F, atol=1e-9)
    np.testing.assert_allclose(ours.history_.Z, Zs, rtol=1e-9)
    np.testing.assert_allclose(ours.history_.training, np.exp(-Y * F).mean() * np.cumprod(Zs)
                               / np.prod(Zs), rtol=1e-9)  # fmt: skip


def test_codes_are_boosting_of_coloured_classes():
    y, n_classes = LABELS[3], 3
    ours = boosted(form="codes").fit(X, y)
    plan = plans(boosted(form="codes"), X, y)()
    assert isinstance(plan.strategy, Codes)
    other = y[:, None] != np.arange(n_classes)
    D, F = other / other.sum(), np.zeros((150, n_classes))
    for t in range(10):
        mu = plan.strategy.colouring(t)
        assert set(mu) == {-1.0, 1.0}
        own = mu[y]
        w = (D * (mu[None, :] != own[:, None])).sum(axis=1)
        h = signs(TREE, own, w)
        alpha = 0.5 * np.log(w[h == own].sum() / w[h != own].sum())
        F += alpha * h[:, None] * mu[None, :]
        D = D * np.exp(0.5 * alpha * h[:, None] * (mu[None, :] - own[:, None]))
        D /= D.sum()
    np.testing.assert_allclose(ours.decision_function(X), F, atol=1e-9)
    loss = (other * np.exp(0.5 * (F - F[np.arange(150), y][:, None]))).sum(axis=1).mean() / 2
    assert ours.history_.training[-1] == pytest.approx(loss)


@pytest.mark.parametrize("variant", ["discrete", "real"])
def test_ovr_is_an_adaboost_for_every_class(variant):
    y = LABELS[3]
    ours = boosted(form="ovr", variant=variant).fit(X, y)
    for k in range(3):
        alone = boosted(variant=variant, calibrate=False).fit(X, y == k)
        np.testing.assert_allclose(
            ours.decision_function(X)[:, k], alone.decision_function(X), atol=1e-9
        )


@pytest.mark.parametrize("variant", ["discrete", "real"])
@pytest.mark.parametrize("form", FORMS)
def test_two_classes_are_the_binary_model(form, variant):
    one = boosted(OwnTree(max_depth=2), form, variant=variant).fit(X, LABELS[2])
    plain = boosted(OwnTree(max_depth=2), "auto", variant=variant).fit(X, LABELS[2])
    assert one.model_ == plain.model_


# --- bounds -----------------------------------------------------------------------------------


@every_pair(
    "form, n_classes, variant, weighted", FORMS, [3, 5], ["discrete", "real"], [False, True]
)
def test_the_training_error_stays_below_its_bound(form, n_classes, variant, weighted):
    y = LABELS[n_classes]
    w = RNG.gamma(1.0, size=150) if weighted else np.ones(150)
    ours = boosted(form=form, variant=variant, n_estimators=25)
    ours.fit(X, y, w if weighted else None)
    bound = training_error_bound(ours)
    constant = n_classes - 1 if form == "codes" else 0.5 * n_classes
    np.testing.assert_allclose(bound, constant * np.cumprod(ours.history_.Z))
    np.testing.assert_allclose(np.cumprod(ours.history_.Z), ours.history_.training, rtol=1e-9)
    errors = [np.average(p != y, weights=w) for p in ours.staged_predict(X)]
    assert (np.array(errors) <= bound + 1e-12).all()
    assert bound[-1] < bound[0]
    if not weighted:
        np.testing.assert_allclose(staged_errors(ours, X, y), errors)


@pytest.mark.parametrize("form", FORMS)
def test_no_margin_is_larger_than_the_largest(form):
    ours = boosted(form=form).fit(X, LABELS[3])
    assert np.abs(margins(ours, X, LABELS[3])).max() <= 1.0 + 1e-12


# --- which learners ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "learner", [LogisticRegression(solver="liblinear"), TwoOnly(), LinearSVC()], ids=str
)
@pytest.mark.parametrize("form", ["auto", *FORMS])
def test_learners_of_two_classes_learn_three(learner, form):
    ours = boosted(learner, form).fit(X, LABELS[3])
    assert ours.score(X, LABELS[3]) > 0.55
    several = isinstance(learner, LinearSVC) and not isinstance(learner, TwoOnly)
    shares = form == "auto" and several
    assert (ours.link_ == "votes") == (shares or form == "codes")


def test_the_real_variant_takes_their_probabilities():
    for form in ("auto", *FORMS):
        ours = boosted(LogisticRegression(solver="liblinear"), form, variant="real")
        assert ours.fit(X, LABELS[3]).score(X, LABELS[3]) > 0.55
        assert (np.diff(ours.history_.training) <= 1e-12).all()


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_learners_without_weights_see_rows_drawn_by_weight(form):
    ours = boosted(KNeighborsClassifier(15), form).fit(X, LABELS[3])
    again = boosted(KNeighborsClassifier(15), form).fit(X, LABELS[3])
    np.testing.assert_array_equal(ours.decision_function(X), again.decision_function(X))
    assert ours.score(X, LABELS[3]) > 0.6


def test_only_the_class_that_spoke_is_fitted_anew():
    fits: list[int] = []

    class Counted(DecisionTreeClassifier):
        def fit(self, *arguments: Any, **more: Any) -> Any:
            fits.append(1)
            return super().fit(*arguments, **more)

    boosted(Counted(max_depth=2), n_estimators=10).fit(X, LABELS[5])
    assert len(fits) == 5 + 9


# --- the model --------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_stages_first_rounds_pickles_and_fingerprints(form):
    ours = boosted(OwnTree(max_depth=2), form).fit(X, LABELS[3])
    model = ours.model_
    stages = list(model.staged(X))
    np.testing.assert_array_equal(model.first(4)(X), stages[3])
    assert pickle.loads(pickle.dumps(model)) == model
    others = {f: boosted(OwnTree(max_depth=2), f).fit(X, LABELS[3]).model_ for f in FORMS}
    assert [f for f, other in others.items() if other == model] == [form]
    assert "DecisionTreeClassifier; 3 features, 3 output(s)" in repr(model)
    assert len(ours.estimators_) == ours.n_estimators_
    assert ours.feature_importances_.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("form", FORMS)
def test_estimators_of_the_package_are_boosted_where_the_arrays_live(place: Place, form):
    expected = boosted(OwnTree(max_depth=2), form, n_estimators=4).fit(X, LABELS[3])
    ours = boosted(OwnTree(max_depth=2), form, n_estimators=4)
    ours.fit(place.put(X), place.put(LABELS[3]))
    assert ours.model_.fingerprint() == expected.model_.fingerprint()
    place.check(ours.predict_proba(place.put(X)), "float64")


@pytest.mark.parametrize("learner", [TREE, KNeighborsClassifier(15)], ids=str)
@pytest.mark.parametrize("form", FORMS)
def test_a_run_that_is_taken_up_goes_on_as_if_it_had_not_ended(form, learner):
    make = plans(boosted(learner, form), X, LABELS[3])
    (rounds, one, why), (again, other, too) = whole_and_resumed(make, 6)
    assert why == too
    assert [r.alpha for r in rounds] == [r.alpha for r in again]
    np.testing.assert_array_equal(one(X), other(X))


@pytest.mark.parametrize("form", ["codes", "ovr"])
def test_stumps_know_any_number_of_classes(form):
    with pytest.raises(ValueError, match=f"multiclass='{form}' is for an estimator"):
        AdaBoostClassifier(multiclass=form).fit(X, LABELS[3])


@pytest.mark.slow
@pytest.mark.parametrize(
    "form", [FORMS[0], *(pytest.param(form, marks=pytest.mark.long) for form in FORMS[1:])]
)
@all_when_long
def test_the_checks_of_scikit_learn_for_models_pass(form, others):
    estimator = boosted(LogisticRegression(solver="liblinear"), form)
    assert_checks_pass(estimator, LIGHT_ROWS, others=others)


# --- abstaining -------------------------------------------------------------------------------


class Shy(ClassifierMixin, BaseEstimator):
    """Answers by the sign of a feature, and with `silence` where it is small."""

    def __init__(self, silence: float = np.nan, silent: float = 0.4) -> None:
        self.silence, self.silent = silence, silent

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Shy:
        self.classes_ = np.unique(y)
        right = [(sample_weight * (self._side(X, f) == y)).sum() for f in range(X.shape[1])]
        self.feature_ = int(np.argmax(right))
        return self

    def _side(self, X: Any, f: int) -> Any:
        return np.where(X[:, f] > 0, self.classes_[1], self.classes_[0])

    def predict(self, X: Any) -> Any:
        answer = self._side(X, self.feature_).astype(float)
        answer[np.abs(X[:, self.feature_]) < self.silent] = self.silence
        return answer


class ShyByZero(Shy):
    abstains = True


@pytest.mark.parametrize("learner", [Shy(), ShyByZero(0.0), ShyByZero(np.nan)], ids=str)
def test_abstaining_rows_keep_their_weight(learner):
    y = 2 * LABELS[2] - 1
    ours = boosted(learner, n_estimators=8).fit(X, LABELS[2])
    D, F = np.full(150, 1 / 150), np.zeros(150)
    for alpha, shares, own in zip(
        ours.alphas_, ours.history_.weights, ours.estimators_, strict=True
    ):
        x = X[:, own.feature_]
        h = np.where(np.abs(x) < 0.4, 0.0, np.sign(x))
        W = [D[h * y == sign].sum() for sign in (0, 1, -1)]
        np.testing.assert_allclose(shares[:3], W, atol=1e-12)
        assert alpha == pytest.approx(0.5 * np.log(W[1] / W[2]))
        D = D * np.exp(-alpha * y * h)
        Z = D.sum()
        assert shares[3] == pytest.approx(Z)
        assert pytest.approx(W[0] + 2 * np.sqrt(W[1] * W[2])) == Z
        D, F = D / Z, F + alpha * h
    np.testing.assert_allclose(ours.decision_function(X), F, atol=1e-12)
    assert ours.history_.training[-1] == pytest.approx(np.exp(-y * F).mean())
    assert (staged_errors(ours, X, LABELS[2]) <= training_error_bound(ours)).all()


def test_a_learner_that_always_abstains_is_of_no_use():
    with pytest.raises(ValueError, match="Shy is not better than chance"):
        boosted(Shy(silent=100.0)).fit(X, LABELS[2])


@pytest.mark.parametrize("form", FORMS)
def test_a_learner_of_no_use_for_any_class_is_an_error(form):
    ours = boosted(Shy(silent=100.0), form)
    with pytest.raises(ValueError, match="estimator Shy is of no use in the first round"):
        ours.fit(X, LABELS[3])
    assert not fitted_state(ours)


# --- bad learners -----------------------------------------------------------------------------


class Changing(DecisionTreeClassifier):
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        X *= 2.0
        return super().fit(X, y, sample_weight)


class Other(DecisionTreeClassifier):
    def predict(self, X: Any) -> Any:
        return super().predict(X) + 7


class Table(DecisionTreeClassifier):
    def predict(self, X: Any) -> Any:
        return super().predict_proba(X)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("form", ["auto", "single"])
@pytest.mark.parametrize(
    ("learner", "says"),
    [
        (Changing(), "estimator Changing writes to the X"),
        (Other(), "estimator Other must predict the labels that it was fitted to"),
        (Table(), r"estimator Table must predict a label a row.*shape \(150, [23]\)"),
    ],
    ids=["changes X", "other labels", "probabilities"],
)
def test_a_learner_that_breaks_the_rules_is_named(learner, says, form, n_classes):
    ours = boosted().fit(X, LABELS[3])
    before = fitted_state(ours)
    with pytest.raises(ValueError, match=says):
        ours.set_params(estimator=learner, multiclass=form).fit(X.copy(), LABELS[n_classes])
    assert fitted_state(ours) == before
