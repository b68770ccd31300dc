"""A fit on batches is the fit on all rows in one array: the same model, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest

from ensemble_gpu import (
    AdaBoostClassifier,
    Batches,
    BoostingClassifier,
    BoostingRegressor,
    Checkpoint,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from tests.batches.cases import (
    FRACTIONS,
    MISSING,
    WHOLE,
    K,
    N,
    P,
    T,
    X,
    Y,
    check_cut,
    check_same,
    cut,
)

FEW = {"n_estimators": 6}
TREES = {"max_depth": 3, "learning_rate": 0.3, **FEW}
STUMPS = {"max_depth": 1, "learning_rate": 0.3, **FEW}
ADABOOST = {
    name: AdaBoostClassifier(random_state=0, **FEW, **given)
    for name, given in {
        "real": {},
        "discrete": {"variant": "discrete"},
        "gentle": {"variant": "gentle", "missing": "learn"},
        "logit": {"variant": "logit"},
        "uncalibrated": {"calibrate": False},
        "few bins": {"max_bins": 5},
        "all values": {"max_bins": None},
        "balanced": {"class_weight": "balanced"},
        "stopping": {"early_stopping": True, "validation_fraction": 0.2},
        "stopping on all values": {"early_stopping": True, "max_bins": None},
    }.items()
}
CLASSIFIERS = {
    "trees": BoostingClassifier(**TREES),
    "stumps": BoostingClassifier(**STUMPS),
    "each class": BoostingClassifier(multiclass="each", **STUMPS),
    "all values": BoostingClassifier(max_bins=None, **TREES),
    "subsample": BoostingClassifier(subsample=0.5, **STUMPS),
    "bags": BoostingClassifier(n_bags=2, **TREES),
    "stopping": BoostingClassifier(early_stopping=True, **TREES),
    "stopping stumps": BoostingClassifier(early_stopping=True, missing="learn", **STUMPS),
    "balanced": BoostingClassifier(class_weight="balanced", **TREES),
    "tree": DecisionTreeClassifier(random_state=0),
    "exact tree": DecisionTreeClassifier(max_bins=None, random_state=0),
    "forest": RandomForestClassifier(n_estimators=4, random_state=0),
    "exact forest": RandomForestClassifier(n_estimators=2, max_bins=None, random_state=0),
    "forest without bags": RandomForestClassifier(n_estimators=2, bootstrap=False, random_state=0),
    "balanced forest": RandomForestClassifier(
        n_estimators=3, class_weight="balanced_subsample", random_state=0
    ),
}
REGRESSORS = {
    "squared": BoostingRegressor(**TREES),
    "squared stumps": BoostingRegressor(**STUMPS),
    "absolute": BoostingRegressor("absolute", **STUMPS),
    "huber": BoostingRegressor("huber", **TREES),
    "quantiles": BoostingRegressor("quantile", quantile=[0.1, 0.9], **TREES),
    "stopping": BoostingRegressor(early_stopping=True, **STUMPS),
    "tree": DecisionTreeRegressor(random_state=0),
    "forest": RandomForestRegressor(n_estimators=4, random_state=0),
}
WEIGHTS = {"plain": None, "whole weights": WHOLE, "weights": FRACTIONS}


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("name", ADABOOST)
def test_adaboost(name, classes, weights):
    check_cut(ADABOOST[name], MISSING, Y if classes == 2 else K, WEIGHTS[weights])


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classifiers(name, classes, weights):
    check_cut(CLASSIFIERS[name], MISSING, Y if classes == 2 else K, WEIGHTS[weights])


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("name", REGRESSORS)
def test_regressors(name, weights):
    check_cut(REGRESSORS[name], MISSING, T, WEIGHTS[weights])


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int8", "bool"])
def test_any_type_of_numbers(dtype):
    values = X[:, [0, 3, 5]]
    values = values > 0 if dtype == "bool" else values.astype(dtype)
    check_cut(AdaBoostClassifier(**FEW), values, Y)


@pytest.mark.parametrize("cuts", [(0, N), (0, 450, N), tuple(range(0, N + 1, 1)), (0, 0, N, N)])
def test_however_the_rows_are_cut(cuts):
    data = Batches(cut(X, Y, cuts=cuts))
    check_same(BoostingClassifier(subsample=0.5, **TREES), data, X, Y)


def test_batches_of_one_class_each():
    order = np.argsort(K, kind="stable")
    cuts = (0, *np.cumsum(np.bincount(K)).tolist())
    data = Batches(cut(X[order], K[order], cuts=cuts))
    check_same(AdaBoostClassifier(**FEW), data, X[order], K[order])


def test_columns_in_a_piece():
    rows = np.asfortranarray(X)
    check_cut(AdaBoostClassifier(**FEW), rows, Y)


@pytest.mark.parametrize("labels", [["no", "yes"], [-1, 1], [2.0, 7.0], [False, True]])
def test_labels_of_any_kind(labels):
    y = np.array(labels)[Y]
    model = check_cut(AdaBoostClassifier(**FEW), X, y)
    assert model.classes_.tolist() == labels


def test_texts_of_several_lengths_are_labels():
    y = np.where(Y == 1, "a", "long label")
    parts = [(X[k == Y], y[k == Y].astype(str)) for k in (0, 1)]
    parts = [(A, np.array(b.tolist())) for A, b in parts]
    assert parts[0][1].dtype != parts[1][1].dtype
    order = np.argsort(Y, kind="stable")
    check_same(AdaBoostClassifier(**FEW), Batches(parts), X[order], y[order])


def test_more_rows_than_edges_are_computed_from():
    rng = np.random.default_rng(3)
    n = 160_000
    rows = rng.normal(size=(n, 3)).astype(np.float32)
    y = (rows[:, 0] + rng.normal(size=n) > 0.5).astype(np.int8)
    w = rng.integers(0, 10, size=n)  # nine in ten take part
    cuts = (0, 50_000, 50_001, 130_000, n)
    for estimator in (AdaBoostClassifier(**FEW), BoostingClassifier(early_stopping=True, **TREES)):
        for weights in (None, w):
            data = Batches(cut(rows, y, weights, cuts=cuts))
            check_same(estimator, data, rows, y, weights)


def test_more_bins_than_a_byte_holds():
    check_cut(AdaBoostClassifier(max_bins=600, **FEW), X, Y)
    check_cut(RandomForestClassifier(n_estimators=2, max_bins=600, random_state=0), X, K)


def test_many_features():
    rows = np.random.default_rng(5).normal(size=(200, 33))
    y = (rows[:, 30] > 0).astype(int)
    data = Batches(cut(rows, y, cuts=(0, 90, 200)))
    check_same(AdaBoostClassifier(early_stopping=True, random_state=1, **FEW), data, rows, y)


def test_offsets_of_outputs_are_given_beside_the_batches():
    given = {"init_score": T * 0.1}
    check_cut(BoostingClassifier(**TREES), X, Y, **given)


def test_validation_rows_are_given_as_arrays():
    given = {"eval_set": [(X[:100], Y[:100])]}
    check_cut(AdaBoostClassifier(early_stopping=True, **FEW), X, Y, **given)


def test_a_warm_start_goes_on_with_the_same_batches():
    data = Batches(cut(X, Y))
    once = BoostingClassifier(**STUMPS | {"n_estimators": 9}).fit(X, Y)
    twice = BoostingClassifier(warm_start=True, **STUMPS).fit(data)
    twice.set_params(n_estimators=9).fit(data)
    assert twice.model_.fingerprint() == once.model_.fingerprint()
    other = Batches(cut(X + 1, Y))
    with pytest.raises(ValueError, match="what has changed: X"):
        twice.set_params(n_estimators=12).fit(other)


def test_a_checkpoint_is_gone_on_from(tmp_path):
    path, data = tmp_path / "run.safetensors", Batches(cut(X, Y))
    BoostingClassifier(callbacks=[Checkpoint(path, every=2)], **STUMPS).fit(data)
    more = BoostingClassifier(**STUMPS | {"n_estimators": 9})
    assert (
        more.fit(data, resume=path).model_.fingerprint()
        == BoostingClassifier(**STUMPS | {"n_estimators": 9}).fit(X, Y).model_.fingerprint()
    )


def test_one_row_and_one_column():
    tree = DecisionTreeRegressor().fit(Batches([(np.array([[1.0]]), np.array([2.0]))]))
    assert tree.predict([[5.0]]).tolist() == [2.0]


def test_the_data_are_left_as_they_were():
    parts = cut(X.copy(), Y.copy())
    BoostingClassifier(early_stopping=True, **TREES).fit(Batches(parts))
    assert all(part[0].flags.writeable for part in parts)
    assert np.array_equal(np.concatenate([part[0] for part in parts]), X)
    assert X.shape[1] == P
