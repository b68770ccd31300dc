"""Bad input: errors name what was given and what is allowed; the estimator stays as it was."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from ensemble_gpu.bagging.random_forest import RandomForestClassifier, RandomForestRegressor
from ensemble_gpu.trees.tree import DecisionTreeClassifier, DecisionTreeRegressor
from tests.boosting.bad import Bad, changed, on
from tests.datasets import fitted_state, random_data

DATA = random_data(n=40, p=3)
X, Y = DATA.X, DATA.y
ONES = np.ones(40)
CODES = np.column_stack([X[:, :2], np.arange(40) % 4])

KINDS: dict[str, Callable[[], Any]] = {
    "tree": DecisionTreeClassifier,
    "regression tree": DecisionTreeRegressor,
    "forest": lambda: RandomForestClassifier(3, random_state=0),
    "regression forest": lambda: RandomForestRegressor(3, random_state=0),
}
every_kind = pytest.mark.parametrize("kind", KINDS)

CASES: dict[str, Callable[[], Bad]] = {
    "no rows": lambda: Bad(("0 sample(s)", "minimum of 1"), X=X[:0], y=Y[:0]),
    "no features on a device": lambda: Bad(
        ("0 feature(s)", "minimum of 1"), on(1, X[:, :0]), on(1, Y)
    ),
    "one dimension": lambda: Bad(("2D array", "1D array"), X=X[:, 0]),
    "y too short": lambda: Bad(("X has 40 rows", "y has 5"), y=Y[:5]),
    "y in two dimensions on a device": lambda: Bad(
        ("1-dimensional", "(40, 2)"), on(1, X), on(1, np.stack([Y, Y], axis=1))
    ),
    "NaN in y": lambda: Bad(("y", "NaN"), y=changed(Y, np.nan)),
    "weights too short": lambda: Bad(("X has 40 rows", "sample_weight has 5"), weights=ONES[:5]),
    "negative weight": lambda: Bad(("sample_weight", ">= 0", "-2"), weights=changed(ONES, -2.0)),
    "NaN weight": lambda: Bad(("sample_weight", "NaN", "finite"), weights=changed(ONES, np.nan)),
    "all weights zero": lambda: Bad(("sample_weight", "zero", "> 0"), weights=0 * ONES),
    "infinity": lambda: Bad(("X", "infinity", "finite"), X=changed(X, np.inf)),
    "NaN where it is refused": lambda: Bad(
        ("X", "NaN", "missing='error' refuses; missing='learn' takes it"),
        X=changed(X, np.nan), params={"missing": "error"},
    ),
    "complex features": lambda: Bad(("Complex data not supported",), X=X * 1j),
    "strings": lambda: Bad(("strings", "X"), X=np.array([["a", "b"]] * 40)),
    "infinity in a sparse matrix": lambda: Bad(
        ("X", "infinity", "finite"), X=sparse.csr_matrix(changed(X, np.inf))
    ),
    "categories in a sparse matrix": lambda: Bad(
        ("categorical_features", "[0]", "dense", "csr_matrix", "toarray"),
        X=sparse.csr_matrix(X), params={"categorical_features": [0]}, error=TypeError,
    ),
    "a masked target": lambda: Bad(
        ("y", "masked array", "1 masked"), y=np.ma.array(Y, mask=np.arange(40) == 3)
    ),
    "y on another device": lambda: Bad(("device1", "device2", "Move y"), on(1, X), on(2, Y)),
    "weights of another namespace": lambda: Bad(
        ("array_api_strict", "numpy", "Move sample_weight"), on(1, X), on(1, Y), ONES
    ),
    "a code that is no integer": lambda: Bad(
        ("feature 0", "out of range", "integers from 0 to 254"),
        params={"categorical_features": [0]},
    ),
    "a negative code": lambda: Bad(
        ("feature 2", "-1", "out of range", "0 to 254"),
        X=CODES - [0, 0, 1], params={"categorical_features": [2]},
    ),
    "a code beyond the bins": lambda: Bad(
        ("feature 2", "3", "out of range", "max_bins=3"),
        X=CODES, params={"categorical_features": [2], "max_bins": 3},
    ),
    "a code beyond the bins on a device": lambda: Bad(
        ("feature 2", "3", "out of range", "max_bins=3"),
        on(1, CODES), on(1, Y), params={"categorical_features": [2], "max_bins": 3},
    ),
    "a feature that X does not have": lambda: Bad(
        ("categorical_features", "[7]", "0 to 2"), params={"categorical_features": [1, 7]}
    ),
    "a name where X has none": lambda: Bad(
        ("categorical_features", "'colour'", "no column names"),
        params={"categorical_features": ["colour"]},
    ),
    "a mask of another length": lambda: Bad(
        ("categorical_features", "mask of 2", "3 features"),
        params={"categorical_features": [True, False]},
    ),
    "a constraint for a category": lambda: Bad(
        ("monotonic_cst", "categorical", "[2]"),
        X=CODES, params={"categorical_features": [2], "monotonic_cst": [0, 0, 1]},
    ),
    "too few constraints": lambda: Bad(
        ("monotonic_cst", "3 features", "(2,)"), params={"monotonic_cst": [1, 0]}
    ),
    "a constraint of 2": lambda: Bad(
        ("monotonic_cst", "-1, 0 or +1", "[2, 0, 0]"), params={"monotonic_cst": [2, 0, 0]}
    ),
    "a constraint by name where X has none": lambda: Bad(
        ("monotonic_cst", "feature names"), params={"monotonic_cst": {"size": 1}}
    ),
    "more features than there are": lambda: Bad(
        ("max_features", "at most", "3", "got 4"), params={"max_features": 4}
    ),
}  # fmt: skip


def assert_refused(bad: Bad, estimator: Any) -> None:
    """With its message, and without a trace; an earlier fit stays."""
    with pytest.raises(bad.error) as caught:
        bad.fit(estimator, X, Y)
    for text in bad.says:
        assert text in str(caught.value)


@every_kind
@pytest.mark.parametrize("case", CASES)
def test_bad_fit_says_what_is_wrong_and_leaves_an_unfitted_estimator_unfitted(kind, case):
    estimator = KINDS[kind]()
    assert_refused(CASES[case](), estimator)
    with pytest.raises(NotFittedError):
        check_is_fitted(estimator)
    assert not fitted_state(estimator)
    assert set(vars(estimator)) == set(estimator.get_params())


@pytest.mark.parametrize("kind", ["tree", "forest"])
@pytest.mark.parametrize("case", ["infinity", "all weights zero", "a code beyond the bins"])
def test_bad_fit_leaves_a_fitted_estimator_as_it_was(kind, case):
    estimator = KINDS[kind]().fit(X, Y)
    before, p = fitted_state(estimator), estimator.predict_proba(X)
    assert_refused(CASES[case](), estimator)
    assert fitted_state(estimator) == before
    np.testing.assert_array_equal(estimator.predict_proba(X), p)


CLASSES: dict[str, Bad] = {
    "unknown class": Bad(
        ("class_weight", "'x'", "[0, 1]"), params={"class_weight": {"x": 2.0}}
    ),
    "unknown word": Bad(
        ("class_weight", "'balanced'", "dict", "'even'"), params={"class_weight": "even"}
    ),
    "a list": Bad(("class_weight", "dict", "[1, 2]"), params={"class_weight": [1, 2]}),
    "negative": Bad(("class_weight[0]", ">= 0", "-1"), params={"class_weight": {0: -1}}),
    "NaN": Bad(("class_weight[1]", ">= 0", "nan"), params={"class_weight": {1: np.nan}}),
    "text": Bad(
        ("class_weight[1]", ">= 0", "'a'"), params={"class_weight": {1: "a"}}, error=TypeError
    ),
    "nothing left": Bad(
        ("class_weight", "zero", "{0: 0, 1: 0}"), params={"class_weight": {0: 0, 1: 0}}
    ),
    "constraints of three classes": Bad(
        ("monotonic_cst", "two classes", "3 classes"), y=np.arange(40) % 3,
        params={"monotonic_cst": [1, 0, 0]},
    ),
    "continuous labels": Bad(("continuous",), y=X[:, 0]),
    "float labels on a device": Bad(("float64", "integers or bool"), on(1, X), on(1, Y * 1.0)),
}  # fmt: skip


@pytest.mark.parametrize("kind", ["tree", "forest"])
@pytest.mark.parametrize("case", CLASSES)
def test_bad_classes_are_named(kind, case):
    estimator = KINDS[kind]()
    assert_refused(CLASSES[case], estimator)
    assert not fitted_state(estimator)


@pytest.mark.parametrize("kind", ["regression tree", "regression forest"])
@pytest.mark.parametrize("y", [X[:, 0], 0 * ONES], ids=["negative", "zero"])
def test_a_target_that_no_poisson_count_could_be_is_refused(kind, y):
    bad = Bad(("y", ">= 0", "not all 0", "'poisson'"), y=y, params={"criterion": "poisson"})
    assert_refused(bad, KINDS[kind]())


FEATURES = "an integer >= 1, a float in (0, 1], 'sqrt', 'log2' or None"
PARAMETERS: list[tuple[str, Any, type[Exception], tuple[str, ...]]] = [
    ("criterion", "twoing", ValueError, ("'twoing'",)),
    ("criterion", None, ValueError, ("None",)),
    ("splitter", "worst", ValueError, ("'best', 'random'", "'worst'")),
    ("missing", "abstain", ValueError, ("'learn', 'error'", "'abstain'")),
    ("categorical_split", "all", ValueError, ("'subset', 'single'", "'all'")),
    ("categorical_features", "auto", ValueError, ("'from_dtype'", "'auto'")),
    ("categorical_features", [0.5], ValueError, ("indices", "[0.5]")),
    ("device", "tpu", ValueError, ("None, 'cpu', 'cuda', 'auto'", "'tpu'")),
    ("max_depth", 0, ValueError, ("an integer >= 1 or None", "got 0")),
    ("max_depth", 2.0, TypeError, ("an integer >= 1 or None", "2.0")),
    ("max_depth", True, TypeError, ("an integer >= 1 or None", "True")),
    ("max_leaf_nodes", 1, ValueError, ("an integer >= 2 or None", "got 1")),
    ("min_samples_split", 1, ValueError, ("an integer >= 2 or a float in (0, 1]", "got 1")),
    ("min_samples_split", 1.5, ValueError, ("an integer >= 2 or a float in (0, 1]", "1.5")),
    ("min_samples_split", "two", TypeError, ("an integer >= 2 or a float in (0, 1]", "'two'")),
    ("min_samples_leaf", 0, ValueError, ("an integer >= 1 or a float in (0, 1]", "got 0")),
    ("min_samples_leaf", 0.0, ValueError, ("an integer >= 1 or a float in (0, 1]", "0.0")),
    ("min_samples_leaf", True, TypeError, ("an integer >= 1 or a float in (0, 1]", "True")),
    ("min_samples_leaf", None, TypeError, ("an integer >= 1 or a float in (0, 1]", "None")),
    ("min_weight_fraction_leaf", 0.6, ValueError, ("from 0 to 0.5", "0.6")),
    ("min_weight_fraction_leaf", "some", TypeError, ("from 0 to 0.5", "'some'")),
    ("max_features", 0, ValueError, (FEATURES, "got 0")),
    ("max_features", 1.5, ValueError, (FEATURES, "1.5")),
    ("max_features", "auto", ValueError, (FEATURES, "'auto'")),
    ("max_features", [1], TypeError, (FEATURES, "[1]")),
    ("min_impurity_decrease", -0.1, ValueError, (">= 0", "-0.1")),
    ("min_impurity_decrease", "little", TypeError, (">= 0", "'little'")),
    ("ccp_alpha", -1.0, ValueError, (">= 0", "-1.0")),
    ("ccp_alpha", float("nan"), ValueError, (">= 0", "nan")),
    ("max_bins", 1, ValueError, ("an integer from 2 to 65534 or None", "got 1")),
    ("max_bins", 31.0, TypeError, ("an integer from 2 to 65534 or None", "31.0")),
    ("n_jobs", 0, ValueError, ("None", ">= 1", "got 0")),
    ("random_state", "lucky", ValueError, ("None", "integer", "'lucky'")),
    ("random_state", -1, ValueError, ("None", "integer", "-1")),
]
FOREST: list[tuple[str, Any, type[Exception], tuple[str, ...]]] = [
    ("n_estimators", 0, ValueError, (">= 1", "got 0")),
    ("n_estimators", 2.5, TypeError, ("integer >= 1", "2.5")),
    ("bootstrap", "yes", ValueError, ("True or False", "'yes'")),
    ("warm_start", 1, ValueError, ("True or False", "got 1")),
    ("oob_score", "r2", ValueError, ("True, False or a callable", "'r2'")),
    ("max_samples", 0, ValueError, ("an integer >= 1, a float in (0, 1] or None", "got 0")),
    ("max_samples", "half", TypeError, ("an integer >= 1, a float in (0, 1] or None", "'half'")),
    ("max_samples", 41, ValueError, ("at most", "40", "41")),
    ("max_samples", 1.2, ValueError, ("(0, 1]", "1.2")),
]
ALL = [(kind, *p) for kind in KINDS for p in PARAMETERS]
ALL += [(kind, *p) for kind in KINDS if "forest" in kind for p in FOREST]


@pytest.mark.parametrize(
    ("kind", "name", "value", "error", "says"), ALL, ids=[f"{a[0]}-{a[1]}={a[2]!r}" for a in ALL]
)
def test_bad_parameter_is_named_with_its_value_and_range(kind, name, value, error, says):
    estimator = KINDS[kind]()
    with pytest.raises(error) as caught:
        estimator.set_params(**{name: value}).fit(X, Y)
    assert name in str(caught.value)
    for text in says:
        assert text in str(caught.value)
    assert not fitted_state(estimator)


@pytest.mark.parametrize("params", [{"oob_score": True}, {"max_samples": 0.5}], ids=str)
def test_what_needs_a_bootstrap_says_so(params):
    with pytest.raises(ValueError, match=f"{next(iter(params))}.*bootstrap"):
        RandomForestClassifier(3, bootstrap=False, **params).fit(X, Y)


@every_kind
@pytest.mark.parametrize("method", ["predict", "apply", "decision_path"])
def test_wrong_rows_at_predict_are_refused(kind, method):
    estimator = KINDS[kind]().fit(X, Y)
    with pytest.raises(ValueError, match=r"X has 2 features, but .* expecting 3 features"):
        getattr(estimator, method)(X[:, :2])
    with pytest.raises(ValueError, match=r"X has 2 features, but .* expecting 3 features"):
        getattr(estimator, method)(on(1, X[:, :2]))
    with pytest.raises(ValueError, match="infinity"):
        getattr(estimator, method)(changed(X, np.inf))


@pytest.mark.parametrize("kind", ["tree", "regression tree"])
def test_a_pruning_path_of_bad_input_is_refused_and_leaves_no_trace(kind):
    estimator = KINDS[kind]()
    with pytest.raises(ValueError, match="infinity"):
        estimator.cost_complexity_pruning_path(changed(X, np.inf), Y)
    with pytest.raises(ValueError, match="max_depth"):
        estimator.set_params(max_depth=0).cost_complexity_pruning_path(X, Y)
    assert set(vars(estimator)) == set(estimator.get_params())
