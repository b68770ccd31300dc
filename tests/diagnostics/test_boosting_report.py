"""The report of a fit: its columns by their formulas, prefixes, weights, conditions (SPEC B17)."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

from ensemble_gpu import AdaBoostClassifier, BoostingClassifier, BoostingRegressor
from ensemble_gpu.diagnostics import after, report, staged_errors, training_error_bound
from ensemble_gpu.diagnostics.weights import first_weights, next_weights
from tests.places import DEVICE

VARIANTS = ("real", "discrete", "gentle")


@pytest.fixture(scope="module")
def fits():
    """(variant, classes) -> estimator, X, y; with missing values."""
    found = {}
    for n_classes, (X, y) in ((2, load_breast_cancer(return_X_y=True)),
                              (3, load_wine(return_X_y=True))):  # fmt: skip
        X = X[:, :6].copy()
        X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
        for variant in VARIANTS:
            missing = "learn" if (variant, n_classes) == ("discrete", 3) else "abstain"
            model = AdaBoostClassifier(variant=variant, n_estimators=12, missing=missing)
            found[variant, n_classes] = model.fit(X, y), X, y
    return found


each = pytest.mark.parametrize(
    "which", [(variant, k) for variant in VARIANTS for k in (2, 3)], ids=str
)


@each
def test_columns_have_their_formulas(fits, which):
    model, X, y = fits[which]
    table = report(model, X, y).rounds
    W0, right, wrong, Z = model.history_.weights.T
    chance = 1.0 - 1.0 / 3.0 if which == ("discrete", 3) else 0.5
    np.testing.assert_allclose(table.edge, chance - wrong - chance * W0, atol=1e-15)
    np.testing.assert_allclose(table.error + table.edge, chance, atol=1e-15)
    if which[1] == 2:
        np.testing.assert_allclose(table.edge, (right - wrong) / 2.0, atol=1e-12)
    np.testing.assert_array_equal(table.Z, Z)
    np.testing.assert_array_equal(table.abstaining, W0)
    np.testing.assert_array_equal(table.bound, training_error_bound(model))
    np.testing.assert_allclose(table.training_error, staged_errors(model, X, y), atol=1e-12)
    assert (table.training_error <= table.bound * (1.0 + 1e-12)).all()
    if which == ("discrete", 2):
        np.testing.assert_allclose(table.edge_bound, np.exp(-2.0 * np.cumsum(table.edge**2)))
        assert (table.bound <= table.edge_bound * (1.0 + 1e-7)).all()
    else:
        assert np.isnan(table.edge_bound).all()


@each
def test_the_report_of_fewer_rounds_is_a_prefix(fits, which):
    model, X, y = fits[which]
    whole, early = report(model, X, y).rounds, report(after(model, 5), X, y).rounds
    for name, column in early.columns.items():
        np.testing.assert_array_equal(column, whole.columns[name][:5], err_msg=name)


def test_weights_from_outputs_are_those_of_the_exponential_loss(fits):
    for variant in VARIANTS:
        model, X, y = fits[variant, 2]
        F, own = model.decision_function(X), y
        D = next_weights(np.stack([-F, F], axis=1), own, model.link_, np.full(len(y), 1 / len(y)))
        expected = np.exp(-(2.0 * y - 1.0) * F)
        np.testing.assert_allclose(D, expected / expected.sum(), rtol=1e-12)
        table = report(model, X, y).rounds
        assert table.effective_rows[-1] == pytest.approx(1.0 / (D * D).sum())
        assert D[table.heaviest[-1]] == D.max()
        assert table.largest_weight[-1] == pytest.approx(D.max())


@each
def test_weights_from_outputs_are_those_of_the_rounds(fits, which):
    """The wrong share of a round's weight, from its own votes and our weights, is on record."""
    model, X, y = fits[which]
    if which[0] == "gentle" or which == ("real", 3):
        return  # leaves of other values than votes: covered by the effective rows of two classes
    t = 7
    before = after(model, t)
    own = np.searchsorted(model.classes_, y)
    outputs = [np.atleast_2d(m.decision_function(X).T).T for m in (before, after(model, t + 1))]
    F = outputs[0] if which[1] == 3 else np.hstack([-outputs[0], outputs[0]])
    D = next_weights(F, own, model.link_, first_weights(model, own, None))
    added = outputs[1] - outputs[0]
    if which[1] == 2:
        wrong = np.sign(np.round(added[:, 0], 12)) * (2 * own - 1) < 0
    else:
        wrong = added.argmax(axis=1) != own
    assert D[wrong].sum() == pytest.approx(model.history_.weights[t, 2], rel=1e-5)


def test_numbers_of_the_whole_fit(fits):
    model, X, y = fits["discrete", 2]
    found = report(model, X, y, n_suspects=3)
    table = found.rounds
    assert found.gamma == table.edge.min()
    needed = found.rounds_to_zero
    assert needed > math.log(len(y)) / (2.0 * found.gamma**2) >= needed - 1
    alpha = model.alphas_
    assert found.effective_learners == pytest.approx(alpha.sum() ** 2 / (alpha**2).sum())
    assert len(found.suspects) == 3
    assert found.suspects[0].row == table.heaviest[-1]
    assert found.suspects[0].times == pytest.approx(len(y) * table.largest_weight[-1])
    assert found.suspects[0].label == y[found.suspects[0].row]
    m, d = len(y), found.vc_dimension
    assert found.vc_term == pytest.approx(math.sqrt(12 * d * math.log(m) / m))
    assert found.margin_term is not None
    assert report(*fits["real", 3]).margin_term is None


def test_flipped_labels_are_among_the_suspects():
    rng = np.random.default_rng(3)
    X = rng.uniform(-1.0, 1.0, size=(200, 2))
    y = (X[:, 0] + 0.1 * X[:, 1] > 0.0).astype(int)
    flipped = np.array([5, 77, 140])
    y[flipped] = 1 - y[flipped]
    model = AdaBoostClassifier(variant="discrete", n_estimators=5).fit(X, y)
    found = {one.row for one in report(model, X, y, n_suspects=8).suspects}
    assert set(flipped.tolist()) <= found


def test_weights_of_rows_and_classes_are_those_of_the_fit(fits):
    _, X, y = fits["discrete", 2]
    w = np.random.default_rng(1).integers(0, 4, size=len(y)).astype(float)
    model = AdaBoostClassifier(variant="discrete", n_estimators=6, class_weight={0: 3.0, 1: 1.0})
    model.fit(X, y, sample_weight=w)
    table = report(model, X, y, sample_weight=w).rounds
    D = np.where(y == 0, 3.0, 1.0) * w
    F = model.decision_function(X)
    assert table.training_error[-1] == pytest.approx((D / D.sum())[(F > 0) != y].sum(), abs=0.02)
    assert (table.training_error <= table.bound + 1e-9).all()
    loss = (D * np.exp(-(2 * y - 1) * F)).sum() / D.sum()
    assert table.bound[-1] == pytest.approx(loss, rel=1e-6)


def test_text_and_frame_and_conditions(fits):
    pytest.importorskip("pandas")
    model, X, y = fits["discrete", 2]
    found = report(model, X, y, low_error=0.5)
    text = str(found)
    for words in ("round", "edge", "noise suspects", "guarantee a training error of zero",
                  "enough rows", "low training error", "simple"):  # fmt: skip
        assert words in text
    frame = found.to_frame()
    assert list(frame.index) == list(range(1, 13))
    assert list(frame.columns) == list(found.rounds.columns)
    names = [condition.name for condition in found.conditions]
    assert names == ["enough rows", "low training error", "simple"]
    assert found.conditions[1].met is True
    assert report(model, X, y, low_error=1e-3).conditions[1].met is False


def test_an_unknown_dimension_leaves_conditions_open(fits):
    _, X, y = fits["discrete", 2]
    X = np.nan_to_num(X)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    model = AdaBoostClassifier(LogisticRegression(), variant="discrete", n_estimators=3).fit(X, y)
    found = report(model, X, y)
    assert [condition.met for condition in found.conditions][::2] == [None, None]
    assert "unknown" in str(found)
    assert report(model, X, y, vc_dimension=7).conditions[0].met is not None


def test_arrays_of_any_library_give_the_same_report(fits):
    model, X, y = fits["discrete", 2]
    here = report(model, X, y).rounds
    there = report(model, DEVICE.put(X), DEVICE.put(y)).rounds
    for name, column in there.columns.items():
        assert isinstance(column, np.ndarray)
        np.testing.assert_allclose(column, here.columns[name], rtol=1e-12, err_msg=name)


def test_bad_input_is_refused_in_words(fits):
    model, X, y = fits["discrete", 2]
    with pytest.raises(
        TypeError, match=r"must be a fitted boosted classifier .* BoostingRegressor"
    ):
        report(BoostingRegressor(n_estimators=2, max_depth=1).fit(np.nan_to_num(X), y), X, y)
    with pytest.raises(NotFittedError, match="not fitted"):
        report(AdaBoostClassifier(), X, y)
    with pytest.raises(ValueError, match="got BoostingClassifier with variant None"):
        report(BoostingClassifier(n_estimators=2, max_depth=1).fit(X, y), X, y)
    with pytest.raises(ValueError, match=r"not seen: \[7\]"):
        report(model, X, np.full(len(y), 7))
    with pytest.raises(ValueError, match="vc_dimension must be an integer >= 1; got 0"):
        report(model, X, y, vc_dimension=0)
    with pytest.raises(ValueError, match=r"low_error must be .*in \(0, 1\]; got 2"):
        report(model, X, y, low_error=2.0)
    with pytest.raises(ValueError, match="needs a round at least"):
        report(AdaBoostClassifier().fit(np.zeros((4, 1)), [0, 1, 1, 1]), np.zeros((4, 1)),
               [0, 1, 1, 1])  # fmt: skip
