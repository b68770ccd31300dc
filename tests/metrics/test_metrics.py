"""Named metrics are scikit-learn's, with weights, on every namespace and device."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn import metrics as peer

from ensemble_gpu.metrics import ALIASES, CLASSIFICATION, METRICS, REGRESSION, metric_named
from tests.places import Place

RNG = np.random.default_rng(3)
N = 200


def classes(n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Classes and probabilities with many ties."""
    y = RNG.integers(n_classes, size=N)
    p = np.round(RNG.dirichlet(np.ones(n_classes), size=N) + 0.4 * np.eye(n_classes)[y], 1) + 1e-3
    return y, p / p.sum(axis=1, keepdims=True)


BINARY, TERNARY = classes(2), classes(3)
NUMBERS = RNG.gamma(2.0, size=N), RNG.gamma(2.0, size=N)
WEIGHTS = {"unweighted": None, "weights": RNG.gamma(1.0, size=N) * (RNG.random(N) < 0.9)}


def theirs(name: str, y: np.ndarray, p: np.ndarray, w: np.ndarray | None) -> float:
    labels, predicted = list(range(p.shape[1])), p.argmax(axis=1)
    if name == "roc_auc":
        scores = p[:, 1] if len(labels) == 2 else p
        return peer.roc_auc_score(y, scores, sample_weight=w, multi_class="ovr")
    if name == "log_loss":
        return peer.log_loss(y, p, sample_weight=w, labels=labels)
    if name == "brier":
        scores = p[:, 1] if len(labels) == 2 else p
        return peer.brier_score_loss(y, scores, sample_weight=w)
    if name == "balanced_accuracy":
        return peer.balanced_accuracy_score(y, predicted, sample_weight=w)
    if name == "average_precision":
        scores = p[:, 1] if len(labels) == 2 else p
        return peer.average_precision_score(y, scores, sample_weight=w)
    if name == "matthews":
        return peer.matthews_corrcoef(y, predicted, sample_weight=w)
    if name in ("precision", "recall", "f1"):
        given = {"sample_weight": w, "average": "binary" if len(labels) == 2 else "macro"}
        return getattr(peer, f"{name}_score")(y, predicted, **given)
    right = peer.accuracy_score(y, predicted, sample_weight=w)
    return {"accuracy": right, "error": 1.0 - right}[name]


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("data", [BINARY, TERNARY], ids=["two classes", "three classes"])
@pytest.mark.parametrize("name", METRICS[CLASSIFICATION])
def test_metrics_of_classes_are_those_of_scikit_learn(place: Place, name, data, weights):
    (y, p), w = data, WEIGHTS[weights]
    found = METRICS[CLASSIFICATION][name].function(place.put(y), place.put(p), place.put(w))
    assert type(found) is float
    assert found == pytest.approx(theirs(name, y, p, w), abs=1e-12, rel=1e-12)


THEIR_NUMBERS = {
    "quantile_loss": peer.mean_pinball_loss,
    "rmse": peer.root_mean_squared_error, "mse": peer.mean_squared_error,
    "mae": peer.mean_absolute_error, "mape": peer.mean_absolute_percentage_error,
    "r2": peer.r2_score, "poisson_deviance": peer.mean_poisson_deviance,
}  # fmt: skip


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("name", METRICS[REGRESSION])
def test_metrics_of_numbers_are_those_of_scikit_learn(place: Place, name, weights):
    (y, p), w = NUMBERS, WEIGHTS[weights]
    found = METRICS[REGRESSION][name].function(place.put(y), place.put(p), place.put(w))
    assert type(found) is float
    assert found == pytest.approx(THEIR_NUMBERS[name](y, p, sample_weight=w), rel=1e-12)


@pytest.mark.parametrize("weights", WEIGHTS)
def test_the_area_is_the_share_of_pairs_in_order(weights):
    """Brute force over all pairs; scores of ties count a half."""
    y, scores = BINARY[0], BINARY[1][:, 1]
    w = np.ones(N) if WEIGHTS[weights] is None else WEIGHTS[weights]
    pairs = np.outer(w * (y == 1), w * (y == 0))
    above = (scores[:, None] > scores[None, :]) + 0.5 * (scores[:, None] == scores[None, :])
    found = METRICS[CLASSIFICATION]["roc_auc"].function(y, scores, WEIGHTS[weights])
    assert found == pytest.approx((pairs * above).sum() / pairs.sum(), rel=1e-13)


def test_classes_that_rows_do_not_hold_are_left_out():
    y, p = TERNARY
    held = y != 2
    found = METRICS[CLASSIFICATION]["roc_auc"].function(y[held], p[held], None)
    own = [peer.roc_auc_score(y[held] == k, p[held, k]) for k in (0, 1)]
    assert found == pytest.approx(np.mean(own), rel=1e-12)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # theirs: "y_pred contains classes not in y_true"
        expected = peer.balanced_accuracy_score(y[held], p[held].argmax(axis=1))
    balanced = METRICS[CLASSIFICATION]["balanced_accuracy"].function(y[held], p[held], None)
    assert balanced == pytest.approx(expected, rel=1e-12)


def test_one_class_alone_has_no_area():
    with pytest.raises(ValueError, match="'roc_auc' needs validation rows of at least two classes"):
        METRICS[CLASSIFICATION]["roc_auc"].function(np.ones(5, dtype=int), np.eye(5)[:, :2], None)


def test_probabilities_of_zero_are_no_infinite_loss():
    loss = METRICS[CLASSIFICATION]["log_loss"].function(np.array([0]), np.array([[0.0, 1.0]]), None)
    assert 700.0 < loss < 750.0


@pytest.mark.parametrize(("y", "prediction", "value"), [(1.0, 1.0, 1.0), (1.0, 2.0, 0.0)])
def test_r2_of_a_constant_is_one_or_zero(y, prediction, value):
    r2 = METRICS[REGRESSION]["r2"].function
    assert r2(np.full(4, y), np.full(4, prediction), None) == value


def test_poisson_deviance_needs_positive_predictions():
    with pytest.raises(ValueError, match="'poisson_deviance' needs y >= 0 and predictions > 0"):
        METRICS[REGRESSION]["poisson_deviance"].function(np.ones(3), np.zeros(3), None)


def test_losses_and_errors_are_better_when_smaller_and_the_rest_when_greater():
    greater = {m.name for of in METRICS.values() for m in of.values() if m.greater_is_better}
    assert greater == {
        "roc_auc", "accuracy", "balanced_accuracy", "r2", "average_precision", "precision",
        "recall", "f1", "matthews", "ndcg", "map", "mrr",
    }  # fmt: skip


@pytest.mark.parametrize("task", [CLASSIFICATION, REGRESSION])
def test_aliases_are_of_metrics_and_an_unknown_name_lists_all(task):
    for alias, name in ALIASES[task].items():
        assert metric_named(alias, task) is METRICS[task][name]
        assert alias not in METRICS[task]
    with pytest.raises(ValueError, match="got 'nonsense'") as caught:
        metric_named("nonsense", task, ("loss",))
    for name in ["loss", *METRICS[task], *ALIASES[task]]:
        assert repr(name) in str(caught.value)
