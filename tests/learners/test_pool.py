"""Pools of given classifiers: the invariants of their rounds, one model everywhere, bad members."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier as TheirTree

from ensemble_gpu import AdaBoostClassifier, BoostingClassifier, BoostingRegressor, use_engine
from ensemble_gpu.arrays.sparse import column
from ensemble_gpu.diagnostics import margins
from ensemble_gpu.learners import HalfSpaces, Pool
from tests.boosting.replaying import plans, whole_and_resumed
from tests.estimators.checks import assert_checks_pass
from tests.libraries import Torch
from tests.places import DEVICE


def first_sign(X):
    return 2.0 * (column(X, 0) > 0) - 1.0


def last_sign(X):
    return 2.0 * (column(X, X.shape[1] - 1) > 0) - 1.0


def yes(X):
    return 1.0 + 0.0 * (column(X, 0) > 0)


def nobody(X):
    return 0.0 * (column(X, 0) > 0)


def answers(n: int = 200, members: int = 30, zeros: float = 0.0, seed: int = 0):
    """A matrix of answers, each right with a probability of its own, and y = 0, 1."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    skill = rng.uniform(0.35, 0.65, members)
    G = np.where(rng.random((n, members)) < skill, 1.0, -1.0) * (2 * y - 1)[:, None]
    G[rng.random(G.shape) < zeros] = 0.0
    return G, y


def boosted(pool=None, **params):
    params = {"variant": "discrete", "n_estimators": 25, **params}
    return AdaBoostClassifier(Pool(signed=True) if pool is None else pool, **params)


def textbook(G, y, rounds, *, signed, choose):
    """SPEC's rounds in floating point: members, alphas and distributions before each round."""
    s = 2.0 * y - 1.0
    D = np.full(len(y), 1.0 / len(y))
    out = []
    for _ in range(rounds):
        right, wrong = ((D @ (G * s[:, None] == v)) for v in (1.0, -1.0))
        r = right - wrong
        if choose == "edge":
            member = int(np.argmax(np.round(np.abs(r) if signed else r, 12)))
        else:
            Z = 1.0 - right - wrong + 2.0 * np.sqrt(right * wrong)
            Z = np.where((np.abs(r) if signed else r) > 0, Z, np.inf)
            member = int(np.argmin(np.round(Z, 12)))
        alpha = 0.5 * np.log(right[member] / wrong[member])
        out.append((member, alpha, D, right, wrong))
        D = D * np.exp(-alpha * s * G[:, member])
        D = D / D.sum()
    return out


@pytest.mark.parametrize("zeros", [0.0, 0.3])
@pytest.mark.parametrize("choose", ["edge", "Z"])
@pytest.mark.parametrize("signed", [True, False])
def test_rounds_are_the_textbooks(signed, choose, zeros):
    G, y = answers(zeros=zeros)
    model = boosted(Pool(signed=signed, choose=choose), n_estimators=12).fit(G, y)
    expected = textbook(G, y, model.n_estimators_, signed=signed, choose=choose)
    voters = [model.model_.voters[k].number for k in model.model_.chosen]
    assert voters == [member for member, *_ in expected]
    np.testing.assert_allclose(model.alphas_, [alpha for _, alpha, *_ in expected], atol=1e-6)


@pytest.mark.parametrize("zeros", [0.0, 0.3])
def test_invariants_of_the_rounds(zeros):
    G, y = answers(zeros=zeros)
    s = 2.0 * y - 1.0
    model = boosted().fit(G, y)
    c = np.zeros(G.shape[1])
    c[[voter.number for voter in model.model_.voters]] = model.model_.coefficients
    np.testing.assert_allclose(model.decision_function(G), G @ c, atol=1e-12)
    # prod Z = mean exp(-y F), and bounds the training error
    loss = np.mean(np.exp(-s * (G @ c)))
    np.testing.assert_allclose(np.prod(model.history_.weights[:, 3]), loss, rtol=1e-6)
    np.testing.assert_allclose(model.history_.training[-1], loss, rtol=1e-6)
    error = np.mean(model.predict(G) != y)
    assert error <= loss
    if not zeros:
        gamma = 0.5 - model.errors_
        assert loss <= np.exp(-2.0 * np.sum(gamma**2)) * (1.0 + 1e-9)
    # after its update the chosen member is wrong as often as right
    for t in (1, 5, model.n_estimators_):
        F = model.model_.first(t)(G)[:, 0]
        D = np.exp(-s * F)
        h = G[:, model.model_.voters[model.model_.chosen[t - 1]].number]
        np.testing.assert_allclose(D @ (s * h) / D.sum(), 0.0, atol=1e-6)


def test_a_pool_of_all_stumps_is_the_stump_estimators_model():
    rng = np.random.default_rng(4)
    X = rng.integers(0, 9, (150, 3)).astype(float)
    y = (X[:, 0] + X[:, 1] > 8 + 3 * rng.normal(size=150)).astype(int)
    cuts = [(f, t) for f in range(3) for t in np.arange(0.5, 8.0)]
    G = np.stack([np.where(X[:, f] <= t, -1.0, 1.0) for f, t in cuts], axis=1)
    G = np.concatenate([G, np.ones((150, 1))], axis=1)
    stumps = AdaBoostClassifier(variant="discrete", n_estimators=20, calibrate=False).fit(X, y)
    pool = boosted(n_estimators=20).fit(G, y)
    np.testing.assert_allclose(pool.errors_, stumps.errors_, atol=1e-6)
    np.testing.assert_allclose(pool.decision_function(G), stumps.decision_function(X), atol=1e-5)


def test_doubled_rows_are_doubled_weights_and_zero_weights_are_absent():
    G, y = answers(zeros=0.1)
    w = np.where(np.arange(len(y)) < 60, 2.0, 1.0)
    w[150:] = 0.0
    rows = np.repeat(np.arange(len(y)), w.astype(int))
    one, other = boosted().fit(G, y, sample_weight=w), boosted().fit(G[rows], y[rows])
    np.testing.assert_array_equal(one.model_.chosen, other.model_.chosen)
    np.testing.assert_allclose(one.alphas_, other.alphas_, rtol=1e-6)
    twice = boosted().fit(np.concatenate([G, G]), np.concatenate([y, y]))
    assert twice.model_ == boosted().fit(G, y, sample_weight=np.full(len(y), 2.0)).model_
    shuffled = np.random.default_rng(5).permutation(len(y))
    assert boosted().fit(G[shuffled], y[shuffled]).model_ == boosted().fit(G, y).model_


def test_permuting_the_pool_permutes_the_coefficients():
    G, y = answers()
    order = np.random.default_rng(1).permutation(G.shape[1])
    one, other = boosted().fit(G, y), boosted().fit(G[:, order], y)
    np.testing.assert_array_equal(one.alphas_, other.alphas_)
    first = [one.model_.voters[k].number for k in one.model_.chosen]
    second = [order[other.model_.voters[k].number] for k in other.model_.chosen]
    assert first == second


@pytest.mark.parametrize("choose", ["edge", "Z"])
def test_the_model_is_the_same_on_every_engine_library_and_number_of_threads(choose):
    G, y = answers(zeros=0.2)
    pool = Pool(signed=True, choose=choose)
    model = boosted(pool).fit(G, y)
    assert boosted(pool, n_jobs=1).fit(G, y).model_ == model.model_
    with use_engine("reference"):
        assert boosted(pool).fit(G, y).model_ == model.model_
    there, labels = DEVICE.put(G), DEVICE.put(y)
    other = boosted(pool).fit(there, labels)
    assert other.model_ == model.model_
    DEVICE.check(other.decision_function(there), "float64")
    DEVICE.check(model.model_(there), "float64")
    np.testing.assert_array_equal(DEVICE.host(model.model_(there)), model.model_(G))
    stages = list(model.model_.staged(there, [3, 25]))
    np.testing.assert_allclose(DEVICE.host(stages[-1]), model.model_(G), atol=1e-12)
    np.testing.assert_array_equal(DEVICE.host(stages[0]), model.model_.first(3)(G))


@pytest.mark.interop
def test_the_model_is_the_same_on_torch():
    G, y = answers(zeros=0.2)
    place = Torch()
    other = boosted().fit(place.put(G), place.put(y))
    assert other.model_ == boosted().fit(G, y).model_
    place.check(other.decision_function(place.put(G)), "float64")


def test_classifiers_and_functions_are_asked_for_labels_and_signs():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 3))
    y = np.where(X[:, 0] + X[:, 1] > 0, "yes", "no")
    members = [TheirTree(max_depth=1).fit(X[:, :], y), GaussianNB().fit(X, y), first_sign, nobody]
    model = boosted(Pool(members), n_estimators=8).fit(X, y)
    assert model.score(X, y) > 0.9
    asked = []

    def counting(X):
        asked.append(1)
        return first_sign(X)

    useless = boosted(Pool([GaussianNB().fit(X, y), counting]), n_estimators=1).fit(X, y)
    assert len(asked) == 1
    useless.predict(X)
    assert len(asked) == 1  # a member that no round chose is not asked
    assert clone(model).estimator.members[1] is members[1]
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_a_matrix_of_answers_is_a_pool_without_members():
    G, y = answers(zeros=0.1)
    X = np.zeros((len(y), 1))
    for matrix in (G, G.astype(np.int8)):
        fit = boosted(Pool(matrix, signed=True)).fit(X, y)
        columns = boosted().fit(G, y)
        np.testing.assert_array_equal(fit.alphas_, columns.alphas_)
        np.testing.assert_array_equal(fit.model_.of_answers(G), columns.model_(G))
    with pytest.raises(ValueError, match="no members to ask about X"):
        fit.predict(X)
    there = boosted(Pool(DEVICE.put(G), signed=True)).fit(DEVICE.put(X), DEVICE.put(y))
    assert there.model_ == fit.model_


def test_several_classes_are_answered_with_labels():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(240, 3))
    y = np.array(["a", "b", "c"])[np.digitize(X[:, 0] + 0.5 * X[:, 1], [-0.6, 0.6])]
    rows = [rng.choice(240, 60, replace=False) for _ in range(12)]
    members = [TheirTree(max_depth=2, max_features=1, random_state=i).fit(X[at], y[at])
               for i, at in enumerate(rows)]  # fmt: skip
    model = boosted(Pool(members)).fit(X, y)
    # SAMME by hand
    D, K = np.full(240, 1.0 / 240), 3
    wrong = np.stack([m.predict(X) != y for m in members])
    for t in range(6):
        e = wrong @ D
        best = int(np.argmin(np.round(e, 12)))
        assert model.model_.voters[model.model_.chosen[t]].number == best
        alpha = np.log((1 - e[best]) / e[best]) + np.log(K - 1)
        assert model.alphas_[t] == pytest.approx(alpha, rel=1e-6)
        D = D * np.exp(alpha * wrong[best])
        D /= D.sum()
    F = model.decision_function(X)
    C = np.stack([y == label for label in model.classes_], axis=1)
    b_y = (F * C).sum(axis=1) - F.mean(axis=1)  # coded 1 and -1 / (K - 1)
    np.testing.assert_allclose(model.history_.training[-1], np.mean(np.exp(-b_y)), rtol=1e-6)
    with use_engine("reference"):
        other = boosted(Pool(members)).fit(X, y)
    np.testing.assert_array_equal(other.alphas_, model.alphas_)


def test_of_several_classes_a_member_may_be_wrong_more_often_than_right():
    rng = np.random.default_rng(5)
    y = rng.integers(0, 3, 300)
    right = rng.random((300, 8)) < 0.42
    G = np.where(right, y[:, None], (y[:, None] + rng.integers(1, 3, (300, 8))) % 3).astype(float)
    G[rng.random(G.shape) < 0.1] = np.nan
    fit = boosted(Pool(), n_estimators=10).fit(G, y)
    assert fit.n_estimators_ == 10
    assert 0.5 < fit.errors_.min() < fit.errors_.max() < 2.0 / 3.0
    assert (np.diff(fit.history_.training) < 0.0).all()


def test_squared_loss_goes_by_gram_columns_and_is_matching_pursuit():
    G, _ = answers(zeros=0.2)
    rng = np.random.default_rng(3)
    target = G[:, 0] - 2.0 * G[:, 3] + 0.3 * rng.normal(size=len(G))
    w = rng.integers(1, 4, len(G)).astype(float)
    pool = Pool(signed=True, choose="Z")
    model = BoostingRegressor(estimator=pool, n_estimators=10, learning_rate=0.5)
    model.fit(G, target, sample_weight=w)
    F = np.full(len(G), np.average(target, weights=w))
    for t in range(10):
        r = target - F
        S, A = (w * r) @ G, w @ G**2
        best = int(np.argmax(S**2 / A))
        assert model.model_.voters[model.model_.chosen[t]].number == best
        F = F + 0.5 * S[best] / A[best] * G[:, best]
    np.testing.assert_allclose(model.predict(G), F, atol=1e-8)
    assert model.history_.training[-1] == pytest.approx(np.average((target - F) ** 2, weights=w))
    with use_engine("reference"):
        other = BoostingRegressor(estimator=pool, n_estimators=10, learning_rate=0.5)
        assert other.fit(G, target, sample_weight=w).model_ == model.model_


@pytest.mark.parametrize("loss", ["logistic", "hinge", "exponential"])
def test_any_loss_falls_along_members_and_is_the_same_on_every_engine(loss):
    G, y = answers(zeros=0.1)
    params = {"estimator": Pool(signed=True), "n_estimators": 8, "learning_rate": 0.5}
    model = BoostingClassifier(loss, **params).fit(G, y)
    assert np.mean(model.predict(G) == y) > 0.6
    with use_engine("reference"):
        assert BoostingClassifier(loss, **params).fit(G, y).model_ == model.model_
    quantiles = BoostingRegressor("absolute", **params).fit(G, G[:, 2] + 0.1 * y)
    assert quantiles.n_estimators_ == 8


@pytest.mark.parametrize(
    "estimator",
    [
        boosted(),
        BoostingClassifier("logistic", estimator=Pool(signed=True)),
        BoostingClassifier("squared", estimator=Pool(signed=True)),
    ],
    ids=["votes", "rebuild", "gram"],
)
def test_rounds_are_replayed(estimator):
    G, y = answers(zeros=0.1)
    whole, resumed = whole_and_resumed(plans(estimator, G, y), 10)
    assert whole[1].fingerprint() == resumed[1].fingerprint()


def test_a_fit_is_continued():
    G, y = answers()
    whole = boosted(n_estimators=12).fit(G, y)
    part = boosted(n_estimators=5, warm_start=True).fit(G, y)
    assert part.set_params(n_estimators=12).fit(G, y).model_ == whole.model_


@pytest.mark.slow
def test_scikit_learns_checks_pass():
    pool = Pool([first_sign, last_sign, yes], signed=True)
    assert_checks_pass(boosted(pool, n_estimators=3))
    assert_checks_pass(BoostingClassifier(estimator=pool, n_estimators=3))


BAD = [
    (Pool([]), ValueError, "members must hold"),
    (Pool("all"), TypeError, "members must be a list"),
    (Pool(np.ones((4, 2))), ValueError, "members must be answers .* for the 40 rows"),
    (Pool(np.ones((40, 0))), ValueError, "members must have shape"),
    (Pool(np.full((40, 2), 0.5)), ValueError, "columns 0 ... of the answers must answer"),
    (Pool([first_sign, 3]), TypeError, r"members\[1\] must be"),
    (Pool([TheirTree]), TypeError, r"members\[0\] must be"),
    (Pool([first_sign], signed="yes"), ValueError, "signed must be"),
    (Pool([first_sign], choose="best"), ValueError, "choose must be"),
    (Pool([lambda X: first_sign(X)[1:]]), ValueError, r"members\[0\] .* must answer once"),
    (Pool([first_sign, lambda X: X[:, 0]]), ValueError, r"members\[1\].*must answer -1, 0 or \+1"),
    (Pool([lambda X: X]), ValueError, "Probabilities are no answers"),
    (Pool([lambda X: 1 / 0]), ValueError, r"members\[0\] \(function\) raised ZeroDivisionError"),
    (Pool([lambda X: X.fill(0.0)]), ValueError, r"members\[0\] \(function\) raised ValueError"),
    (Pool([TheirTree()]), ValueError, r"members\[0\] \(DecisionTreeClassifier\) raised NotFitted"),
    (Pool(None), ValueError, "column 0 of X must answer"),
]  # fmt: skip


@pytest.mark.parametrize(("pool", "kind", "text"), BAD)
def test_bad_members_are_named_and_nothing_is_left_half_fitted(pool, kind, text):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    y = (X[:, 0] > 0).astype(int)
    for estimator in (boosted(pool), BoostingClassifier(estimator=pool)):
        with pytest.raises(kind, match=text):
            estimator.fit(X, y)
        assert not hasattr(estimator, "model_")
        assert not hasattr(estimator, "classes_")
    np.testing.assert_array_equal(X, np.random.default_rng(0).normal(size=(40, 2)))


def test_members_that_answer_other_labels_are_refused():
    X, y = np.arange(20.0)[:, None], np.arange(20) > 9
    with pytest.raises(ValueError, match=r"must answer with labels of y, \['a', 'b'\]; got"):
        boosted(Pool([TheirTree().fit(X, y)])).fit(X, np.where(y, "a", "b"))
    with pytest.raises(ValueError, match=r"variant must be 'discrete' for estimator Pool"):
        boosted(Pool([first_sign]), variant="real").fit(X, y)
    with pytest.raises(ValueError, match="Only binary classification is supported by a Pool"):
        boosted().fit(X, np.arange(20) % 3)
    with pytest.raises(
        ValueError, match="Only binary classification is supported by estimator Pool"
    ):
        BoostingClassifier(estimator=Pool([first_sign])).fit(X, np.arange(20) % 3)
    with pytest.raises(ValueError, match=r"works on NumPy arrays"):
        boosted(Pool([TheirTree().fit(X, y)])).fit(DEVICE.put(X), DEVICE.put(y.astype(int)))


def test_a_function_that_changes_its_input_is_refused_on_other_libraries():
    def changing(X):
        X[0, 0] = 7.0
        return DEVICE.xp.sign(X[:, 0])

    X, y = DEVICE.put(np.arange(-10.0, 10.0)[:, None]), DEVICE.put(np.arange(20) % 2)
    with pytest.raises(ValueError, match=r"members\[0\] \(function\) has changed the X"):
        boosted(Pool([changing])).fit(X, y)


def test_margins_are_those_of_the_votes():
    G, y = answers()
    fit = boosted().fit(G, y)
    c, s = np.zeros(G.shape[1]), 2.0 * y - 1.0
    c[[voter.number for voter in fit.model_.voters]] = fit.model_.coefficients
    expected = s * (G @ c) / np.abs(fit.alphas_).sum()
    np.testing.assert_allclose(margins(fit, G, y), expected, atol=1e-12)
    drawn = boosted(HalfSpaces(9), random_state=0).fit(G, y)
    assert np.abs(margins(drawn, G, y)).max() <= 1.0
