"""Areas: exact, equal to scikit-learn's, free of order and of increasing maps; DeLong by hand."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as peer

from ensemble_gpu.metrics import average_precision, compare_roc_auc, roc_auc, roc_auc_interval
from tests.metrics.places import WHERE

RNG = np.random.default_rng(5)
N = 300
Y = RNG.integers(2, size=N)
SCORES = np.round(RNG.normal(size=(4, N)) + 0.7 * Y, 1)
SCORES[1] = np.round(SCORES[1])
WEIGHTS = {"unweighted": None, "weights": RNG.gamma(1.0, size=N) * (RNG.random(N) < 0.9)}
KINDS = RNG.integers(3, size=N)
P = np.round(RNG.dirichlet(np.ones(3), size=N) + 0.4 * np.eye(3)[KINDS], 1) + 1e-3
P /= P.sum(axis=1, keepdims=True)
THEIRS = {"roc_auc": peer.roc_auc_score, "average_precision": peer.average_precision_score}
OURS = {"roc_auc": roc_auc, "average_precision": average_precision}


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("name", OURS)
@pytest.mark.parametrize("place", WHERE)
def test_areas_of_a_stack_are_scikit_learns_one_by_one(place, name, weights):
    w = WEIGHTS[weights]
    expected = [THEIRS[name](Y, s, sample_weight=w) for s in SCORES]
    y, found = place.put(Y), []
    for s in SCORES:
        found.append(OURS[name](y, place.put(s), sample_weight=place.put(w)))
        assert type(found[-1]) is float
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    stack = OURS[name](y, place.put(SCORES), sample_weight=place.put(w))
    place.check(stack, "float64")
    np.testing.assert_allclose(place.host(stack), found, rtol=1e-14)


def exact_area(y: np.ndarray, s: np.ndarray) -> Fraction:
    plus, minus = s[y == 1][:, None], s[y == 0][None, :]
    twice = 2 * int((plus > minus).sum()) + int((plus == minus).sum())
    return Fraction(twice, 2 * plus.size * minus.size)


@pytest.mark.parametrize("place", WHERE)
def test_an_area_is_the_exact_quotient_of_two_counts(place):
    for s in SCORES:
        assert roc_auc(place.put(Y), place.put(s)) == float(exact_area(Y, s))


@given(
    st.lists(
        st.tuples(
            st.booleans(), st.sampled_from([-0.0, 0.0, 1e-300, -1e300, 1e300, 0.5, -2.0, 3.0])
        ),
        min_size=2, max_size=30,
    )
)  # fmt: skip
def test_the_compiled_count_equals_pairs(rows):
    y, s = (np.array(column) for column in zip(*rows, strict=True))
    if y.all() or not y.any():
        return
    assert roc_auc(y, s) == float(exact_area(y.astype(int), s))


def test_areas_are_the_same_under_increasing_maps_and_turn_over_with_the_sign():
    for s in SCORES:
        area = roc_auc(Y, s)
        assert roc_auc(Y, np.exp(3.0 * s) - 7.0) == area
        assert roc_auc(Y, s.astype(np.float32)) == area
        assert roc_auc(Y, -s) == pytest.approx(1.0 - area, abs=1e-15)


def test_the_order_of_rows_does_not_matter_and_whole_weights_are_repeated_rows():
    order, times = RNG.permutation(N), RNG.integers(4, size=N)
    for f in OURS.values():
        assert f(Y[order], SCORES[1][order]) == f(Y, SCORES[1])
        repeated = f(np.repeat(Y, times), np.repeat(SCORES[1], times))
        assert f(Y, SCORES[1], sample_weight=times) == pytest.approx(repeated, rel=1e-13)


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("average", ["macro", "weighted", "micro", "each"])
@pytest.mark.parametrize("place", WHERE)
def test_several_classes_are_averaged_as_in_scikit_learn(place, average, weights):
    w = WEIGHTS[weights]
    how = {"average": None if average == "each" else average, "sample_weight": w}
    given = {"average": average, "sample_weight": place.put(w)}
    own = np.eye(3, dtype=int)[KINDS]
    for name, f in OURS.items():
        found = f(place.put(KINDS), place.put(P), **given)
        expected = THEIRS[name](own, P, **how)
        if average == "each":
            place.check(found, "float64")
            found = place.host(found)
        np.testing.assert_allclose(found, expected, rtol=1e-12)
        both = place.host(f(place.put(KINDS), place.put(np.stack([P, P[::-1]])), **given))
        np.testing.assert_allclose(both[0], expected, rtol=1e-12)


def test_one_label_against_the_rest_by_its_name():
    y = np.array(["a", "b", "c"])[KINDS]
    expected = peer.roc_auc_score(KINDS == 1, P[:, 1])
    assert roc_auc(y, P, pos_label="b") == roc_auc(y, P[:, 1], pos_label="b")
    assert roc_auc(y, P[:, 1], pos_label="b") == pytest.approx(expected, rel=1e-13)
    turned = roc_auc(y, P[:, ::-1], labels=["c", "b", "a"], average="each")
    np.testing.assert_array_equal(turned, roc_auc(y, P, average="each")[::-1])


def delong(y: np.ndarray, stack: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Areas and covariance from all pairs."""
    plus, minus = stack[:, y == 1, None], stack[:, None, y == 0]
    above = (plus > minus) + 0.5 * (plus == minus)
    ten, one = np.cov(above.mean(axis=2)), np.cov(above.mean(axis=1))
    return above.mean(axis=(1, 2)), ten / plus.shape[1] + one / minus.shape[2]


@pytest.mark.parametrize("place", WHERE)
def test_intervals_and_comparisons_are_delongs_from_all_pairs(place):
    area, covariance = delong(Y, SCORES)
    y = place.put(Y)
    found = roc_auc_interval(y, place.put(SCORES), level=0.9)
    error, z = np.sqrt(np.diagonal(covariance)), 1.6448536269514722
    for values, expected in zip(found, (area, error, area - z * error, area + z * error),
                                strict=True):  # fmt: skip
        place.check(values, "float64")
        np.testing.assert_allclose(place.host(values), expected, rtol=1e-12)
    one = compare_roc_auc(y, place.put(SCORES[0]), place.put(SCORES[2]))
    variance = covariance[0, 0] + covariance[2, 2] - 2 * covariance[0, 2]
    assert one.difference == pytest.approx(area[0] - area[2], rel=1e-12)
    assert one.z == pytest.approx((area[0] - area[2]) / math.sqrt(variance), rel=1e-11)
    assert one.p_value == pytest.approx(math.erfc(abs(one.z) / math.sqrt(2)), rel=1e-12)
    assert compare_roc_auc(y, place.put(SCORES[0]), place.put(SCORES[0]))[2:] == (0.0, 1.0)


def test_intervals_cover_the_true_area_about_as_often_as_they_say():
    rng = np.random.default_rng(0)
    true, hits = 0.5 * math.erfc(-0.5 / 1.0), 0  # P(Z < 1 / sqrt 2) for shifts of one deviation
    for _ in range(200):
        y = np.arange(120) % 3 == 0
        found = roc_auc_interval(y, rng.normal(size=120) + y)
        hits += found.low <= true <= found.high
    assert 0.9 <= hits / 200 <= 0.99


BAD = {
    "scores contains NaN": lambda: roc_auc(Y, np.where(Y == 1, np.nan, 0.0)),
    "needs rows of two classes; y holds only": lambda: roc_auc(np.ones(N), SCORES[0]),
    "sample_weight > 0; y holds only one": lambda: roc_auc(Y, SCORES[0], sample_weight=Y),
    r"scores must have shape \(300,\)": lambda: roc_auc(Y, SCORES[0, 1:]),
    r"scores must have shape \(300, 3\) or": lambda: roc_auc(KINDS, P[:, :2]),
    "pos_label must say which": lambda: roc_auc(KINDS, P[:, 0]),
    "pos_label must be one of the labels of y": lambda: roc_auc(Y, SCORES[0], pos_label=7),
    "average must be one of 'macro'": lambda: roc_auc(Y, SCORES[0], average="mean"),
    "labels must be a list of different": lambda: roc_auc(KINDS, P, labels=[0, 1, 5]),
    "level must be between 0 and 1": lambda: roc_auc_interval(Y, SCORES[0], level=95),
    "at least two rows of each class; one holds 1": lambda: roc_auc_interval(
        np.arange(N) == 3, SCORES[0]
    ),
    "takes two vectors of scores": lambda: compare_roc_auc(Y, SCORES, SCORES[0]),
    "scores must hold numbers": lambda: roc_auc(Y, ["a"] * N),
    "y must hold a label a row; got None": lambda: roc_auc(None, SCORES[0]),
    "sample_weight has 3": lambda: roc_auc(Y, SCORES[0], sample_weight=[1, 2, 3]),
}


@pytest.mark.parametrize("message", BAD)
def test_bad_input_is_named(message):
    with pytest.raises(ValueError, match=message):
        BAD[message]()


def test_nothing_is_moved_silently():
    (device,) = (place.values[0] for place in WHERE if place.id == "strict-device1")
    with pytest.raises(ValueError, match="scores and y must be of one array library"):
        roc_auc(Y, device.put(SCORES[0]))
