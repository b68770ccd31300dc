"""`explain` of every estimator that has it: values and base values add up to the outputs."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from ensemble_gpu import (
    AdaBoostClassifier,
    BaggingClassifier,
    BaggingRegressor,
    BoostingClassifier,
    BoostingRanker,
    BoostingRegressor,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    L1BoostingClassifier,
    L1BoostingRegressor,
    LinearClassifier,
    NeighboursClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
    use_engine,
)
from ensemble_gpu.explaining.explain import NotExplainableError
from ensemble_gpu.learners import HalfSpaces
from tests.explaining.oracle import shapley
from tests.places import DEVICE

RNG = np.random.default_rng(0)
X = RNG.normal(size=(150, 5))
X[:, 4] = RNG.integers(0, 6, 150)
FULL = X.copy()
X[RNG.random(X.shape) < 0.1] = np.nan
Y = (FULL[:, 0] + FULL[:, 1] * FULL[:, 2] > 0).astype(int)
Y3 = Y + (FULL[:, 4] > 3)
NUMBERS = FULL[:, 0] ** 2 + Y
WEIGHTS = RNG.random(150)
CATEGORIES = {"categorical_features": [4]}
TREE, REAL_TREE = DecisionTreeClassifier(max_depth=2), DecisionTreeRegressor(max_depth=3)

CASES = {
    "stumps": (AdaBoostClassifier(n_estimators=10), Y),
    "stumps of categories": (AdaBoostClassifier(n_estimators=10, **CATEGORIES), Y3),
    "confident trees": (AdaBoostClassifier(TREE, n_estimators=4), Y),
    "voting trees": (AdaBoostClassifier(TREE, n_estimators=4, variant="discrete"), Y3),
    "trees of categories": (AdaBoostClassifier(TREE, n_estimators=4, **CATEGORIES), Y3),
    "coded trees": (
        AdaBoostClassifier(TREE, n_estimators=4, multiclass="codes", random_state=0), Y3
    ),
    "boosted trees": (BoostingClassifier(n_estimators=5), Y),
    "a tree a class": (BoostingClassifier(n_estimators=4, multiclass="each", **CATEGORIES), Y3),
    "quantiles": (BoostingRegressor("quantile", quantile=[0.1, 0.9], n_estimators=5), NUMBERS),
    "bags of boosted trees": (BoostingRegressor(n_estimators=4, n_bags=2), NUMBERS),
    "boosted regressors": (
        BoostingRegressor("huber", estimator=REAL_TREE, n_estimators=3), NUMBERS
    ),
    "a tree": (DecisionTreeClassifier(max_depth=4, **CATEGORIES), Y3),
    "a forest": (RandomForestClassifier(4, random_state=0), Y3),
    "votes of a forest": (RandomForestClassifier(4, random_state=0, voting="hard"), Y),
    "L1": (L1BoostingClassifier(radius=2.0, n_estimators=10), Y),
    "L1 trees": (L1BoostingRegressor(radius=2.0, n_estimators=4, max_depth=2), NUMBERS),
    "bags": (BaggingClassifier(n_estimators=3, max_features=0.6, random_state=0), Y3),
    "voting bags": (
        BaggingClassifier(TREE, n_estimators=3, bootstrap_features=True, voting="hard",
                          random_state=0), Y3
    ),
    "bags of categories": (
        BaggingRegressor(DecisionTreeRegressor(max_depth=3, **CATEGORIES), 3, random_state=0),
        NUMBERS,
    ),
    "bags of stumps": (
        BaggingRegressor(BoostingRegressor(n_estimators=5, max_depth=1), 2, random_state=0), NUMBERS
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_values_and_base_values_add_up_to_the_outputs(name):
    estimator, y = CASES[name]
    estimator.fit(X, y, sample_weight=WEIGHTS)
    found = estimator.explain(X)
    outputs = estimator._outputs_at(estimator._inputs(X)[0])
    assert found.values.shape == (*X.shape, outputs.shape[1])
    assert found.base_values.shape == outputs.shape[1:]
    np.testing.assert_allclose(found.scores, outputs, rtol=0.0, atol=1e-12)
    with use_engine("reference"):
        again = estimator.explain(X[:10])
    np.testing.assert_allclose(again.values, found.values[:10], rtol=0.0, atol=1e-12)


def test_a_committee_is_explained_as_its_trees_are():
    model = AdaBoostClassifier(TREE, n_estimators=1, variant="discrete").fit(X, Y)
    (tree,) = model.estimators_
    found = model.explain(X[:5])
    for x, values in zip(X[:5], found.values, strict=True):
        phi, base = shapley(tree.model_.voting(), x)
        np.testing.assert_allclose(values[:, 0], 2.0 * model.alphas_[0] * phi[:, 1], atol=1e-13)
        assert abs(found.base_values[0] - model.alphas_[0] * (2.0 * base[1] - 1.0)) < 1e-13


def test_a_ranker_is_explained():
    model = BoostingRanker(n_estimators=4).fit(X, Y3, qid=np.repeat(np.arange(15), 10))
    np.testing.assert_allclose(model.explain(X).scores[:, 0], model.predict(X), atol=1e-12)


def test_answers_are_where_x_is():
    model = RandomForestRegressor(3, max_depth=3, random_state=0).fit(X, NUMBERS)
    stumps = AdaBoostClassifier(n_estimators=5).fit(X, Y)
    for estimator in (model, stumps):
        found = estimator.explain(DEVICE.put(X))
        for array in (found.values, found.base_values, found.data, found.scores):
            DEVICE.check(array, "float64")
        expected = estimator.explain(X)
        np.testing.assert_allclose(DEVICE.host(found.values), expected.values, atol=1e-13)


def test_a_sparse_matrix_is_explained_as_the_dense_one():
    sparse = pytest.importorskip("scipy.sparse")
    A = np.where(np.abs(FULL) < 0.7, 0.0, FULL)
    for estimator in (AdaBoostClassifier(n_estimators=5), DecisionTreeClassifier(max_depth=3)):
        estimator.fit(A, Y)
        found = estimator.explain(sparse.csr_matrix(A))
        np.testing.assert_array_equal(found.values, estimator.explain(A).values)


def test_names_are_those_of_the_frame_and_the_classes():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(FULL, columns=list("abcde"))
    frame["e"] = frame["e"].map("k{:.0f}".format).astype("category")
    model = RandomForestClassifier(2, max_depth=2, random_state=0).fit(
        frame, np.array(list("xyz"))[Y3]
    )
    found = model.explain(frame)
    assert found.feature_names == list("abcde")
    assert found.output_names == list("xyz")
    assert found.data.shape == FULL.shape
    assert AdaBoostClassifier(n_estimators=2).fit(FULL, Y).explain(FULL).output_names is None


def test_float32_rows_have_the_values_of_their_float64_copies():
    narrow = X.astype(np.float32)
    model = BoostingClassifier(n_estimators=4).fit(narrow, Y)
    found = model.explain(narrow)
    assert found.values.dtype == np.float64
    np.testing.assert_array_equal(found.values, model.explain(narrow.astype(np.float64)).values)


def test_a_pickled_estimator_explains_as_before():
    for estimator in (AdaBoostClassifier(n_estimators=5), DecisionTreeClassifier(max_depth=3)):
        estimator.fit(X, Y)
        again = pickle.loads(pickle.dumps(estimator))
        np.testing.assert_array_equal(again.explain(X).values, estimator.explain(X).values)


def test_no_rows_and_one_row():
    model = DecisionTreeClassifier(max_depth=3).fit(X, Y)
    assert model.explain(X[:1]).values.shape == (1, 5, 2)
    with pytest.raises(ValueError, match="0 sample"):
        model.explain(X[:0])


@pytest.mark.parametrize("method", ["explain", "explain_global"])
def test_an_estimator_that_is_not_fitted_is_refused(method):
    with pytest.raises(NotFittedError):
        getattr(AdaBoostClassifier(), method)(X)


def test_other_columns_are_refused():
    model = AdaBoostClassifier(n_estimators=2).fit(X, Y)
    with pytest.raises(ValueError, match=r"X has 4 features, but .* expecting 5"):
        model.explain(X[:, :4])
    with pytest.raises(ValueError, match="X must hold numbers"):
        model.explain([["a", "b", "c", "d", "e"]])


REFUSED = {
    "neighbours": NeighboursClassifier(3),
    "linear": LinearClassifier(),
    "half-spaces": AdaBoostClassifier(HalfSpaces(5), n_estimators=2),
    "others in a committee": AdaBoostClassifier(
        NeighboursClassifier(3), n_estimators=2, variant="discrete"
    ),
    "votes of forests": AdaBoostClassifier(RandomForestClassifier(2, max_depth=1), n_estimators=2),
    "probabilities in bags": BaggingClassifier(AdaBoostClassifier(n_estimators=2), 2),
    "a link in bags": BaggingRegressor(BoostingRegressor("poisson", n_estimators=2), 2),
}


@pytest.mark.parametrize("name", REFUSED)
def test_models_that_are_no_sums_of_trees_are_refused(name):
    estimator = REFUSED[name].fit(FULL, Y)
    for method in (lambda: estimator.explain(FULL), estimator.explain_global):
        with pytest.raises(NotExplainableError, match="explain is for sums of stumps and of trees"):
            method()


def test_outputs_are_chosen_by_number_or_class():
    found = DecisionTreeClassifier(max_depth=2).fit(X, Y3 + 5).explain(X)
    assert [found.output(k) for k in (5, 6, 2)] == [0, 1, 2]
    with pytest.raises(ValueError, match=r"output must be chosen: the model has 3 outputs"):
        found.output()
    with pytest.raises(ValueError, match=r"output must be from 0 to 2, or one of \[5, 6, 7\]"):
        found.output("a")
    with pytest.raises(ValueError, match="row must be from 0 to 149; got 150"):
        found.plot(150, 1)
