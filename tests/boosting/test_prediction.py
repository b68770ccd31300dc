"""predict, predict_proba and decision_function agree; staged methods are truncated models."""

from __future__ import annotations

from functools import cache
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.exceptions import NotFittedError

from ensemble_gpu import AdaBoostClassifier, AdditiveModel
from ensemble_gpu.boosting.rules import rule_for
from ensemble_gpu.model.additive import Rounds
from tests.datasets import fit, random_data
from tests.places import DEVICE

VARIANTS = ["real", "discrete", "gentle"]
CASES = list(product(VARIANTS, [2, 4]))


@cache
def fitted(variant: str, n_classes: int) -> AdaBoostClassifier:
    return fit(random_data(n_classes, n=120), variant=variant, n_estimators=6)


inputs = hnp.arrays(
    st.sampled_from([np.float32, np.float64]),
    st.tuples(st.integers(1, 12), st.just(6)),
    elements=st.one_of(
        st.just(np.nan), st.sampled_from([0.0, -0.5, 1.0]), st.floats(-8, 8, width=32)
    ),
)
# Ties, neighbours that round to one probability, and saturation.
margins = st.one_of(
    st.sampled_from([0.0, -0.0, 1.0, np.nextafter(1.0, 2.0), 40.0, 40.000001, -400.0, 800.0, 1e4]),
    st.floats(-30.0, 30.0),
    st.floats(-1e-300, 1e-300),
)


def with_margins(variant: str, F: np.ndarray) -> AdaBoostClassifier:
    """An estimator whose margin at x = i is F[i]: one stump per row."""
    n, outputs = F.shape
    estimator = AdaBoostClassifier(variant=variant)
    estimator.classes_ = np.arange(2 if outputs == 1 else outputs)
    estimator.n_features_in_ = 1
    zeros = np.zeros(n - 1)
    values = np.zeros((n - 1, outputs, 3))
    values[:, :, 1] = np.diff(F, axis=0)
    rounds = Rounds(
        zeros.astype(np.int64), np.arange(n - 1) + 0.5, zeros.astype(np.int64) + 2, values,
        zeros + 1, zeros + 0.5,
    )  # fmt: skip
    estimator.model_ = AdditiveModel(rounds, 1, F[0])
    estimator.link_ = rule_for(variant, len(estimator.classes_)).link
    return estimator


def assert_agreement(estimator: AdaBoostClassifier, X: np.ndarray) -> None:
    proba, F = estimator.predict_proba(X), estimator.decision_function(X)
    predicted = estimator.predict(X)
    np.testing.assert_array_equal(predicted, estimator.classes_[proba.argmax(axis=1)])
    expected = (F > 0).astype(int) if F.ndim == 1 else F.argmax(axis=1)
    np.testing.assert_array_equal(predicted, estimator.classes_[expected])
    assert ((proba >= 0) & (proba <= 1)).all()
    np.testing.assert_allclose(proba.sum(axis=1), 1.0, rtol=8 * np.finfo(proba.dtype).eps)
    log_proba = estimator.predict_log_proba(X)
    assert np.isfinite(log_proba).all()
    seen = proba > np.finfo(proba.dtype).smallest_normal
    np.testing.assert_allclose(np.exp(log_proba[seen]), proba[seen], rtol=1e-4)
    assert proba.dtype == F.dtype == log_proba.dtype == X.dtype


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=str)
@given(X=inputs)
def test_predict_is_the_argmax_of_proba_and_margin_on_every_input(case, X):
    assert_agreement(fitted(*case), X)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("case", CASES, ids=str)
@given(data=st.data())
def test_predict_is_the_argmax_of_proba_for_saturated_and_tied_margins(case, dtype, data):
    variant, n_classes = case
    outputs = 1 if n_classes == 2 else n_classes
    F = data.draw(hnp.arrays(np.float64, (5, outputs), elements=margins))
    assert_agreement(with_margins(variant, F), np.arange(5, dtype=dtype)[:, None])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("variant", VARIANTS)
def test_a_tie_goes_to_the_first_class(variant, dtype):
    X = np.arange(3, dtype=dtype)[:, None]
    for F in (np.zeros((3, 1)), np.full((3, 4), 7.0)):
        np.testing.assert_array_equal(with_margins(variant, F).predict(X), 0)


def test_thousands_of_rounds_on_separable_data_still_agree():
    X = np.random.default_rng(0).uniform(-1, 1, size=(80, 2))
    X = X[np.abs(X.sum(axis=1)) > 0.1]
    y = (X.sum(axis=1) > 0).astype(int)
    estimator = AdaBoostClassifier(n_estimators=3000).fit(X, y)
    assert np.abs(estimator.decision_function(X)).max() > 100
    for dtype in (np.float32, np.float64):
        assert_agreement(estimator, X.astype(dtype))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_binary_and_multiclass_probabilities_follow_their_links(case):
    variant, n_classes = case
    X = random_data(n_classes, seed=5).X
    F = fitted(*case).scale_ * fitted(*case).decision_function(X)
    proba = fitted(*case).predict_proba(X)
    if n_classes == 2:
        expected = np.stack([1 / (1 + np.exp(2 * F)), 1 / (1 + np.exp(-2 * F))], axis=1)
    else:
        expected = np.exp(F) if variant == "discrete" else 1 / (1 + np.exp(-2 * F))
        expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(proba, expected, rtol=1e-10)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_staged_methods_are_those_of_the_truncated_models(case):
    variant, n_classes = case
    data = random_data(n_classes, n=120).with_missing()
    full = fit(data, variant=variant, n_estimators=12, calibrate=False)
    stages = zip(
        full.staged_predict(data.X), full.staged_predict_proba(data.X),
        full.staged_decision_function(data.X), strict=True,
    )  # fmt: skip
    count = 0
    for t, (predicted, proba, F) in enumerate(stages, start=1):
        short = fit(data, variant=variant, n_estimators=t, calibrate=False)
        assert short.model_ == full.model_.first(t)
        np.testing.assert_allclose(F, short.decision_function(data.X), rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(proba, short.predict_proba(data.X), rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(predicted, full.classes_[proba.argmax(axis=1)])
        count = t
    assert count == full.n_estimators_ == 12
    np.testing.assert_allclose(F, full.decision_function(data.X), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_predictions_on_a_device_are_those_of_numpy(case):
    place = DEVICE
    X = random_data(case[1], seed=6).with_missing().X
    there = place.put(X)
    for method in ("predict", "decision_function"):
        found = getattr(fitted(*case), method)(there)
        np.testing.assert_array_equal(place.host(found), getattr(fitted(*case), method)(X))
    np.testing.assert_allclose(
        place.host(fitted(*case).predict_proba(there)), fitted(*case).predict_proba(X), rtol=1e-14
    )


def test_a_model_without_rounds_predicts_any_number_of_rows():
    X, y = np.full((4_000, 1), np.nan), np.arange(4_000) % 3
    model = AdaBoostClassifier(n_estimators=2).fit(X, y)
    assert model.n_estimators_ == 0
    for n in (5, 4_000):
        np.testing.assert_allclose(model.predict_proba(X[:n]), 1.0 / 3.0, atol=1e-3)


def test_staged_predictions_of_a_model_without_rounds_are_empty():
    estimator = fit(random_data())
    flat = AdaBoostClassifier().fit(np.zeros((4, 6)), [0, 1, 1, 1])
    assert list(flat.staged_predict(np.zeros((2, 6)))) == []
    assert len(list(estimator.staged_predict(np.zeros((2, 6))))) == 20


@pytest.mark.slow
@pytest.mark.parametrize("n_jobs", [1, 2, None])
def test_predictions_do_not_depend_on_the_number_of_threads(n_jobs):
    data = random_data(3, n=30_000)
    estimator = fit(random_data(3), n_estimators=30)
    expected = estimator.decision_function(data.X)
    found = estimator.set_params(n_jobs=n_jobs).decision_function(data.X)
    np.testing.assert_array_equal(found, expected)


def test_the_number_of_rows_at_once_does_not_change_a_prediction():
    estimator, X = fitted("real", 4), random_data(4, n=3000, seed=7).X
    together = estimator.decision_function(X)
    alone = np.concatenate([estimator.decision_function(X[i : i + 1]) for i in range(0, 3000, 101)])
    np.testing.assert_array_equal(together[::101], alone)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("variant", VARIANTS)
def test_a_parameter_changed_after_fit_does_not_change_predictions(variant, n_classes):
    data = random_data(n_classes)
    estimator = fit(data, variant=variant)
    before = estimator.predict_proba(data.X)
    for other in VARIANTS:
        estimator.set_params(variant=other, learning_rate=0.1)
        np.testing.assert_array_equal(estimator.predict_proba(data.X), before)


def test_an_unfitted_staged_method_is_refused():
    for method in ("staged_predict", "staged_predict_proba", "staged_decision_function"):
        with pytest.raises(NotFittedError, match="not fitted"):
            next(getattr(AdaBoostClassifier(), method)(np.zeros((2, 6))))
