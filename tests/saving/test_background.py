"""A loaded model of stumps explains itself as before; a background that does not fit is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ensemble_gpu import AdaBoostClassifier, load


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    X[rng.random(X.shape) < 0.1] = np.nan
    return AdaBoostClassifier(n_estimators=8, calibrate=False).fit(X, np.nan_to_num(X[:, 0]) > 0), X


@pytest.mark.parametrize("suffix", ["safetensors", "json"])
def test_explanations_are_the_same_after_loading(fitted, suffix, tmp_path):
    model, X = fitted
    model.save(tmp_path / f"m.{suffix}")
    again = load(tmp_path / f"m.{suffix}").explain(X)
    np.testing.assert_array_equal(again.values, model.explain(X).values)
    np.testing.assert_array_equal(again.base_values, model.explain(X).base_values)


@pytest.mark.parametrize(
    ("field", "change", "message"),
    [
        ("starts", lambda a: a[:-1], "lengths"),
        ("starts", lambda a: a + 1, "lengths"),
        ("missing", lambda a: np.append(a, 1.0), "lengths"),
        ("features", lambda a: a * 0, "lengths|thresholds of feature"),
        ("features", lambda a: a + 7, "thresholds of feature"),
        ("thresholds", lambda a: a + 1.0, "thresholds of feature"),
        ("weight", lambda a: -a - 1.0, "finite and >= 0"),
        ("weight", lambda a: a * np.nan, "finite and >= 0"),
    ],
)
def test_a_background_that_does_not_fit_is_refused(fitted, field, change, message, tmp_path):
    model, _ = fitted
    known = model.background_
    try:
        model.background_ = replace(known, **{field: change(getattr(known, field))})
        model.save(tmp_path / "m.safetensors")
    finally:
        model.background_ = known
    with pytest.raises(ValueError, match=message):
        load(tmp_path / "m.safetensors")
