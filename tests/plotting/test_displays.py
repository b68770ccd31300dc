"""Displays hold the metrics' numbers and draw what they hold."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from ensemble_gpu import AdaBoostClassifier, metrics
from ensemble_gpu.plotting import (
    CalibrationDisplay,
    ConfusionDisplay,
    PrecisionRecallDisplay,
    RocDisplay,
)
from tests.datasets import random_data
from tests.places import DEVICE

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

DATA = random_data()


@pytest.fixture(scope="module")
def models():
    return {
        "boosting": AdaBoostClassifier(n_estimators=10, calibrate=False).fit(DATA.X, DATA.y),
        "linear": LogisticRegression().fit(np.nan_to_num(DATA.X), DATA.y),
    }


@pytest.fixture(autouse=True)
def _closed():
    yield
    matplotlib.pyplot.close("all")


def lines(ax) -> dict:
    return {line.get_label().split(" (")[0]: line for line in ax.get_lines()}


def test_several_roc_curves_are_in_one_picture_with_their_areas(models):
    found = RocDisplay.from_estimator(models, DATA.X, DATA.y)
    drawn = lines(found.ax_)
    assert set(drawn) == {"chance", *models}
    for name, model in models.items():
        scores = model.decision_function(DATA.X)
        assert found.areas[name] == metrics.roc_auc(DATA.y, scores)
        curve = metrics.roc_curve(DATA.y, scores)
        np.testing.assert_array_equal(drawn[name].get_xdata(), curve.fpr)
        np.testing.assert_array_equal(drawn[name].get_ydata(), curve.tpr)
        assert f"{found.areas[name]:.4f}" in drawn[name].get_label()


def test_precision_and_recall_have_the_share_of_positives_as_chance(models):
    scores = models["boosting"].decision_function(DATA.X)
    found = PrecisionRecallDisplay.from_predictions(DATA.y, scores, name="mine")
    assert found.share == pytest.approx(np.mean(DATA.y == np.unique(DATA.y)[1]))
    assert found.averages == {"mine": metrics.average_precision(DATA.y, scores)}
    drawn = lines(found.ax_)
    curve = metrics.precision_recall_curve(DATA.y, scores)
    np.testing.assert_array_equal(drawn["mine"].get_ydata(), curve.precision)
    assert set(drawn["chance"].get_ydata()) == {found.share}


def test_calibration_draws_the_bins(models):
    found = CalibrationDisplay.from_estimator(models, DATA.X, DATA.y, n_bins=5)
    for name, model in models.items():
        p = model.predict_proba(DATA.X)
        curve = metrics.calibration_curve(DATA.y, p, n_bins=5)
        np.testing.assert_array_equal(lines(found.ax_)[name].get_ydata(), curve.observed)


def test_confusion_has_a_panel_a_classifier_and_shows_counts(models):
    found = ConfusionDisplay.from_estimator(models, DATA.X, DATA.y)
    assert len(found.ax_) == 2
    for ax, (name, model) in zip(found.ax_, models.items(), strict=True):
        table = metrics.confusion_matrix(DATA.y, model.predict(DATA.X))
        np.testing.assert_array_equal(found.tables[name], table)
        shown = [text.get_text().split("\n")[0] for text in ax.texts]
        assert shown == [f"{value:,}" for value in table.ravel()]


def test_arrays_of_a_device_are_drawn_on_given_axes(models):
    model = models["boosting"]
    ax = matplotlib.pyplot.subplots()[1]
    found = RocDisplay.from_estimator(model, DEVICE.put(DATA.X), DEVICE.put(DATA.y), ax=ax)
    assert found.ax_ is ax
    (area,) = found.areas.values()
    assert area == metrics.roc_auc(DATA.y, model.decision_function(DATA.X))
    ConfusionDisplay.from_estimator(model, DEVICE.put(DATA.X), DEVICE.put(DATA.y))


def test_bad_input_is_named(models):
    scores = models["boosting"].decision_function(DATA.X)
    with pytest.raises(ValueError, match="dict of classifiers or predictions must not be empty"):
        RocDisplay.from_predictions(DATA.y, {})
    with pytest.raises(ValueError, match="name is for a single classifier"):
        RocDisplay.from_predictions(DATA.y, {"a": scores}, name="b")
    with pytest.raises(TypeError, match="must have decision_function or predict_proba"):
        RocDisplay.from_estimator(object(), DATA.X, DATA.y)
    with pytest.raises(ValueError, match="ax must hold 2 axes"):
        ConfusionDisplay.from_estimator(models, DATA.X, DATA.y, ax=matplotlib.pyplot.subplots()[1])
