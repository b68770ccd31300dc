import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.exceptions import NotFittedError

from ensemble_gpu import (
    AdaBoostClassifier,
    BoostingClassifier,
    BoostingRegressor,
    RandomForestClassifier,
)
from ensemble_gpu.diagnostics import after, margins, staged_errors, training_error_bound
from tests.boosters import plain

VARIANTS = ("real", "discrete", "gentle")


@pytest.fixture(scope="module")
def two_classes():
    return load_breast_cancer(return_X_y=True)


@pytest.fixture(scope="module")
def three_classes():
    return load_wine(return_X_y=True)


@pytest.fixture(params=["two_classes", "three_classes"])
def rows(request):
    return request.getfixturevalue(request.param)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("rate", [1.0, 0.3])
def test_training_error_never_exceeds_the_bound(variant, rate, rows):
    X, y = rows
    model = AdaBoostClassifier(variant=variant, n_estimators=40, learning_rate=rate).fit(X, y)
    bound = training_error_bound(model)
    assert bound.shape == (model.n_estimators_,)
    assert (staged_errors(model, X, y) <= bound * (1.0 + 1e-12)).all()


def test_bound_holds_with_missing_values_and_confidence(two_classes):
    X, y = two_classes
    X = np.where(np.random.default_rng(0).random(X.shape) < 0.5, np.nan, X)
    model = AdaBoostClassifier(n_estimators=30).fit(X, y)
    assert (staged_errors(model, X, y) <= training_error_bound(model)).all()


def test_discrete_bound_is_the_textbook_product(two_classes):
    model = AdaBoostClassifier(variant="discrete", n_estimators=20).fit(*two_classes)
    e = model.errors_
    expected = np.cumprod(2.0 * np.sqrt(e * (1.0 - e)))
    np.testing.assert_allclose(training_error_bound(model), expected, rtol=1e-12)


@pytest.mark.parametrize("variant", ["real", "gentle"])
def test_bound_is_the_mean_exponential_loss(variant, two_classes):
    X, y = two_classes
    model = AdaBoostClassifier(variant=variant, n_estimators=15).fit(X, y)
    loss = np.mean(np.exp(-(2 * y - 1) * model.decision_function(X)))
    assert training_error_bound(model)[-1] == pytest.approx(loss, rel=1e-6)


@pytest.mark.parametrize("variant", VARIANTS)
def test_margin_is_positive_exactly_where_the_prediction_is_right(variant, rows):
    X, y = rows
    model = AdaBoostClassifier(variant=variant, n_estimators=7).fit(X, y)
    margin = margins(model, X, y)
    decided = margin != 0.0
    assert (np.abs(margin) <= 1.0 + 1e-12).all()
    np.testing.assert_array_equal(margin[decided] > 0.0, (model.predict(X) == y)[decided])


def test_discrete_margin_is_y_f_over_the_sum_of_alphas(two_classes):
    X, y = two_classes
    model = AdaBoostClassifier(variant="discrete", n_estimators=12).fit(X, y)
    expected = (2 * y - 1) * model.decision_function(X) / model.alphas_.sum()
    np.testing.assert_allclose(margins(model, X, y), expected, rtol=1e-12, atol=1e-15)


def test_samme_margin_is_a_difference_of_vote_shares(three_classes):
    X, y = three_classes
    model = AdaBoostClassifier(variant="discrete", n_estimators=12).fit(X, y)
    votes = model.decision_function(X) / model.alphas_.sum()
    own = votes[np.arange(len(y)), y]
    votes[np.arange(len(y)), y] = -1.0
    np.testing.assert_allclose(margins(model, X, y), own - votes.max(axis=1), atol=1e-12)


def test_margins_at_a_round_are_those_of_a_shorter_fit(rows):
    X, y = rows
    model = AdaBoostClassifier(n_estimators=20).fit(X, y)
    short = AdaBoostClassifier(n_estimators=5).fit(X, y)
    at = margins(model, X, y, rounds=[5, 20])
    np.testing.assert_array_equal(at[0], margins(short, X, y))
    np.testing.assert_array_equal(at[1], margins(model, X, y))


@pytest.mark.slow
def test_margins_take_labels_of_any_kind_and_any_namespace(two_classes):
    xp = pytest.importorskip("array_api_strict")
    X, y = two_classes
    names = np.array(["benign", "malignant"])[y]
    by_name = margins(AdaBoostClassifier(n_estimators=5).fit(X, names), X, names)
    X_strict, y_strict = xp.asarray(X), xp.asarray(y)
    model = AdaBoostClassifier(n_estimators=5).fit(X_strict, y_strict)
    strict = margins(model, X_strict, y_strict)
    assert isinstance(strict, type(X_strict))
    np.testing.assert_array_equal(np.asarray(strict), by_name)


def test_a_model_without_rounds_has_the_margin_of_its_prior():
    X, y = np.zeros((4, 1)), np.array([0, 1, 1, 1])
    model = AdaBoostClassifier().fit(X, y)
    assert model.n_estimators_ == 0
    np.testing.assert_array_equal(margins(model, X, y), [-1.0, 1.0, 1.0, 1.0])
    assert training_error_bound(model).shape == (0,)


def test_unknown_labels_are_named(two_classes):
    X, y = two_classes
    model = AdaBoostClassifier(n_estimators=2).fit(X, y)
    with pytest.raises(ValueError, match=r"not seen: \[7\]; it knows \[0, 1\]"):
        margins(model, X, np.full(len(y), 7))


def test_after_is_the_estimator_of_fewer_rounds(rows):
    X, y = rows
    model = AdaBoostClassifier(n_estimators=12, calibrate=False).fit(X, y)
    early = after(model, 4)
    short = AdaBoostClassifier(n_estimators=4, calibrate=False).fit(X, y)
    assert early.model_.fingerprint() == short.model_.fingerprint()
    assert (early.n_estimators_, model.n_estimators_) == (4, 12)
    np.testing.assert_array_equal(early.predict_proba(X), short.predict_proba(X))


@pytest.mark.parametrize("n_rounds", [-1, 13])
def test_after_refuses_rounds_that_the_model_does_not_have(n_rounds, two_classes):
    model = AdaBoostClassifier(n_estimators=12).fit(*two_classes)
    with pytest.raises(ValueError, match=f"from 0 to 12.*got {n_rounds}"):
        after(model, n_rounds)


ASKED = {
    "margins": margins,
    "staged_errors": staged_errors,
    "training_error_bound": lambda estimator, X, y: training_error_bound(estimator),
}
each_question = pytest.mark.parametrize("ask", ASKED.values(), ids=ASKED)


@each_question
@pytest.mark.parametrize("kind", [BoostingRegressor, RandomForestClassifier])
def test_what_is_no_boosted_classifier_is_refused_in_words(ask, kind, two_classes):
    X, y = two_classes
    says = f"estimator must be a fitted boosted classifier .*; got {kind.__name__}"
    for estimator in (kind(n_estimators=2).fit(X, y), kind()):
        with pytest.raises(TypeError, match=says):
            ask(estimator, X, y)


@each_question
@pytest.mark.parametrize("kind", [AdaBoostClassifier, BoostingClassifier])
def test_an_estimator_that_is_not_fitted_is_refused_in_words(ask, kind, two_classes):
    with pytest.raises(NotFittedError, match=f"{kind.__name__} instance is not fitted"):
        ask(kind(), *two_classes)


def test_after_needs_a_fitted_estimator():
    with pytest.raises(NotFittedError, match="AdaBoostClassifier instance is not fitted"):
        after(AdaBoostClassifier(), 3)


def test_boosted_trees_have_errors_and_no_margins(two_classes):
    X, y = two_classes
    model = BoostingClassifier(**plain(n_estimators=4, max_depth=2)).fit(X, y)
    errors = staged_errors(model, X, y)
    assert errors.shape == (4,)
    assert errors[-1] == np.mean(model.predict(X) != y)
    with pytest.raises(TypeError, match=r"margins need .*; got BoostingClassifier .* Forest"):
        margins(model, X, y)


def test_a_bound_is_refused_for_other_losses(two_classes):
    model = BoostingClassifier(n_estimators=2, max_depth=1).fit(*two_classes)
    with pytest.raises(ValueError, match="got BoostingClassifier with variant None"):
        training_error_bound(model)
