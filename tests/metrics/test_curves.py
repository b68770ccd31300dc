"""ROC and precision-recall curves are scikit-learn's; the hull is that of all pairs of points."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import metrics as peer

from ensemble_gpu.metrics import precision_recall_curve, roc_convex_hull, roc_curve
from tests.metrics.places import WHERE
from tests.metrics.test_ranking import KINDS, SCORES, WEIGHTS, P, Y


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("place", WHERE)
def test_curves_of_a_stack_are_scikit_learns(place, weights):
    w = WEIGHTS[weights]
    given = (place.put(Y), place.put(SCORES))
    roc = roc_curve(*given, sample_weight=place.put(w))
    both = precision_recall_curve(*given, sample_weight=place.put(w))
    assert len(roc) == len(both) == len(SCORES)
    for s, one, other in zip(SCORES, roc, both, strict=True):
        expected = peer.roc_curve(Y, s, sample_weight=w, drop_intermediate=False)
        theirs = peer.precision_recall_curve(*_kept(Y, s, w)[:2], sample_weight=_kept(Y, s, w)[2])
        for found, values in zip((*one, *other), (*expected, *theirs), strict=True):
            place.check(found, "float64")
            np.testing.assert_allclose(place.host(found), values, rtol=1e-12)
        alone = roc_curve(place.put(Y), place.put(s), sample_weight=place.put(w))
        np.testing.assert_array_equal(place.host(alone.tpr), place.host(one.tpr))


def _kept(y: np.ndarray, s: np.ndarray, w: np.ndarray | None) -> tuple:
    """Rows of weight zero are as if absent; scikit-learn's curve has points for them."""
    return (y, s, w) if w is None else (y[w > 0], s[w > 0], w[w > 0])


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("place", WHERE)
def test_the_hull_has_the_corners_that_no_line_between_points_is_above(place, weights):
    w = WEIGHTS[weights]
    for s in SCORES:
        fpr, tpr, _ = peer.roc_curve(Y, s, sample_weight=w, drop_intermediate=False)
        hull = roc_convex_hull(place.put(Y), place.put(s), sample_weight=place.put(w))
        x, y = place.host(hull.fpr), place.host(hull.tpr)
        assert (x[0], y[0], x[-1], y[-1]) == (0.0, 0.0, 1.0, 1.0)
        slope = np.diff(y) / np.maximum(np.diff(x), 1e-300)
        assert (np.diff(slope) < 0.0).all()
        assert (np.interp(fpr, x, y) >= tpr - 1e-12).all()
        points = {(round(a, 12), round(b, 12)) for a, b in zip(fpr, tpr, strict=True)}
        assert {(round(a, 12), round(b, 12)) for a, b in zip(x, y, strict=True)} <= points


def test_repeated_negatives_leave_roc_alone_and_change_precision():
    times = np.where(Y == 1, 1, 10)
    many = np.repeat(Y, times), np.repeat(SCORES[0], times)
    for before, after in zip(roc_curve(Y, SCORES[0]), roc_curve(*many), strict=True):
        np.testing.assert_allclose(after, before, rtol=1e-14)
    before, after = precision_recall_curve(Y, SCORES[0]), precision_recall_curve(*many)
    np.testing.assert_allclose(after.recall, before.recall, rtol=1e-14)
    assert after.precision[0] < 0.2 * before.precision[0]


def test_a_column_of_probabilities_is_found_by_its_label():
    for found, expected in zip(
        roc_curve(KINDS, P, pos_label=2), roc_curve(KINDS == 2, P[:, 2]), strict=True
    ):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("curve", [roc_curve, precision_recall_curve, roc_convex_hull])
def test_one_class_alone_has_no_curve(curve):
    with pytest.raises(ValueError, match=f"{curve.__name__} needs rows of two classes"):
        curve(np.zeros(5), np.arange(5))
