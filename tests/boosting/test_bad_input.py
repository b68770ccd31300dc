"""Bad input: errors name what was given and what is allowed; the estimator stays as it was."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from ensemble_gpu import AdaBoostClassifier
from tests.boosting.bad import Bad, changed, on
from tests.datasets import fitted_state, random_data
from tests.places import WITH_CUPY

DATA = random_data(n=40, p=3)
X, Y = DATA.X, DATA.y
ONES = np.ones(40)


CASES: dict[str, Callable[[], Bad]] = {
    "no rows": lambda: Bad(("0 sample(s)", "minimum of 1"), X=X[:0], y=Y[:0]),
    "no rows on a device": lambda: Bad(("0 sample(s)", "minimum of 1"), on(1, X[:0]), on(1, Y[:0])),
    "no features": lambda: Bad(("0 feature(s)", "minimum of 1"), X=X[:, :0]),
    "no features on a device": lambda: Bad(
        ("0 feature(s)", "minimum of 1"), on(1, X[:, :0]), on(1, Y)
    ),
    "one dimension": lambda: Bad(("2D array", "1D array"), X=X[:, 0]),
    "one dimension on a device": lambda: Bad(("2D array", "1D array"), on(1, X[:, 0]), on(1, Y)),
    "three dimensions": lambda: Bad(("dim 3", "<= 2"), X=X[:, :, None]),
    "one class": lambda: Bad(("at least 2 classes", "1 class: [7]"), y=np.full(40, 7)),
    "one class on a device": lambda: Bad(
        ("at least 2 classes", "1 class: [7]"), on(1, X), on(1, np.full(40, 7))
    ),
    "one class with weight": lambda: Bad(
        ("at least 2 classes", "sample_weight > 0", "[1]"), weights=(Y == 1).astype(float)
    ),
    "y too short": lambda: Bad(("X has 40 rows", "y has 5"), y=Y[:5]),
    "y too short on a device": lambda: Bad(("X has 40 rows", "y has 5"), on(1, X), on(1, Y[:5])),
    "y in two dimensions": lambda: Bad(("1d", "(40, 2)"), y=np.stack([Y, Y], axis=1)),
    "y in two dimensions on a device": lambda: Bad(
        ("1-dimensional", "(40, 2)"), on(1, X), on(1, np.stack([Y, Y], axis=1))
    ),
    "continuous y": lambda: Bad(("continuous", "discrete"), y=X[:, 0]),
    "float y on a device": lambda: Bad(("float64", "integers or bool"), on(1, X), on(1, Y * 1.0)),
    "NaN in y": lambda: Bad(("y", "NaN"), y=changed(Y, np.nan)),
    "weights too short": lambda: Bad(
        ("X has 40 rows", "sample_weight has 5"), weights=ONES[:5]
    ),
    "weights in two dimensions": lambda: Bad(
        ("sample_weight", "1D", "(40, 1)"), weights=ONES[:, None]
    ),
    "negative weight": lambda: Bad(
        ("sample_weight", ">= 0", "-2"), weights=changed(ONES, -2.0)
    ),
    "NaN weight": lambda: Bad(("sample_weight", "NaN", "finite"), weights=changed(ONES, np.nan)),
    "infinite weight": lambda: Bad(
        ("sample_weight", "infinity", "finite"), weights=changed(ONES, np.inf)
    ),
    "all weights zero": lambda: Bad(("sample_weight", "zero", "> 0"), weights=0 * ONES),
    "all weights zero on a device": lambda: Bad(
        ("sample_weight", "zero", "> 0"), on(1, X), on(1, Y), on(1, 0 * ONES)
    ),
    "infinity": lambda: Bad(("X", "infinity", "finite"), X=changed(X, np.inf)),
    "infinity on a device": lambda: Bad(
        ("X", "infinity", "finite"), on(1, changed(X, -np.inf)), on(1, Y)
    ),
    "NaN where it is refused": lambda: Bad(
        ("X", "NaN", "missing", "'abstain'"), X=changed(X, np.nan), params={"missing": "error"}
    ),
    "NaN where it is refused, on a device": lambda: Bad(
        ("X", "NaN", "missing", "'abstain'"), on(1, changed(X, np.nan)), on(1, Y),
        params={"missing": "error"},
    ),
    "complex features": lambda: Bad(("Complex data not supported",), X=X * 1j),
    "complex features on a device": lambda: Bad(
        ("Complex data not supported", "complex128", "floats, integers and bool"),
        on(1, X * 1j), on(1, Y),
    ),
    "strings in an object array": lambda: Bad(
        ("X", "'a'", "number"), X=np.array([["a", "b"]] * 40, dtype=object)
    ),
    "strings": lambda: Bad(("strings", "numeric"), X=np.array([["a", "b"]] * 40)),
    "infinity in a sparse matrix": lambda: Bad(
        ("X", "infinity", "finite"), X=sparse.csr_matrix(changed(X, np.inf))
    ),
    "NaN where it is refused, in a sparse array": lambda: Bad(
        ("X", "NaN", "missing", "'abstain'"), X=sparse.csr_array(changed(X, np.nan)),
        params={"missing": "error"},
    ),
    "a sparse matrix of complex numbers": lambda: Bad(
        ("Complex data not supported", "X"), X=sparse.csr_matrix(X * 1j)
    ),
    "a sparse vector": lambda: Bad(("X", "2D", "1D"), X=sparse.coo_array(X[:, 0])),
    "masked labels": lambda: Bad(
        ("y", "masked array", "1 masked"), y=np.ma.array(Y, mask=np.arange(40) == 3)
    ),
    "masked weights": lambda: Bad(
        ("sample_weight", "masked array"), weights=np.ma.array(ONES, mask=np.arange(40) == 3)
    ),
    "y on another device": lambda: Bad(
        ("X", "y", "device1", "device2", "Move y"), on(1, X), on(2, Y)
    ),
    "y of another namespace": lambda: Bad(
        ("array_api_strict", "numpy", "Move y"), on(1, X), Y
    ),
    "X of another namespace": lambda: Bad(("array_api_strict", "numpy", "Move y"), X, on(1, Y)),
    "weights of another namespace": lambda: Bad(
        ("array_api_strict", "numpy", "Move sample_weight"), on(1, X), on(1, Y), ONES
    ),
    "weights on another device": lambda: Bad(
        ("device1", "device2", "Move sample_weight"), on(1, X), on(1, Y), on(2, ONES)
    ),
    "validation rows of another namespace": lambda: Bad(
        ("numpy", "array_api_strict", "Move X_val"), more={"X_val": on(1, X), "y_val": on(1, Y)}
    ),
    "y_val without X_val": lambda: Bad(("y_val", "X_val is None"), more={"y_val": Y}),
    "X_val without y_val": lambda: Bad(("y_val", "None"), more={"X_val": X}),
    "unknown label in y_val": lambda: Bad(("y_val", "[9]"), more={"X_val": X, "y_val": Y * 9}),
    "y_val too short": lambda: Bad(
        ("X_val has 40 rows", "y_val has 4"), more={"X_val": X, "y_val": Y[:4]}
    ),
    "X_val too narrow": lambda: Bad(
        ("X_val", "2 features", "3 features"), more={"X_val": X[:, :2], "y_val": Y}
    ),
    "negative validation weight": lambda: Bad(
        ("sample_weight_val", ">= 0", "-1"),
        more={"X_val": X, "y_val": Y, "sample_weight_val": -ONES},
    ),
    "too few rows to hold out": lambda: Bad(
        ("validation_fraction=0.1", "2 rows", "X_val"),
        X=X[:2], y=[0, 1], params={"early_stopping": True},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_bad_fit_says_what_is_wrong_and_leaves_an_unfitted_estimator_unfitted(case):
    bad = CASES[case]()
    estimator = AdaBoostClassifier(n_estimators=3)
    with pytest.raises(bad.error) as caught:
        bad.fit(estimator, X, Y)
    with pytest.raises(NotFittedError):
        check_is_fitted(estimator)
    assert not fitted_state(estimator)
    for text in bad.says:
        assert text in str(caught.value)


@pytest.mark.parametrize("case", CASES)
def test_bad_fit_leaves_a_fitted_estimator_as_it_was(case):
    bad = CASES[case]()
    estimator = AdaBoostClassifier(n_estimators=3).fit(X, Y)
    before = fitted_state(estimator)
    with pytest.raises((bad.error, Warning)):  # which one: the test above
        bad.fit(estimator, X, Y)
    assert fitted_state(estimator) == before


PARAMETERS = [
    ("variant", "SAMME", ValueError, ("'real', 'discrete', 'gentle'", "'SAMME'")),
    ("variant", None, ValueError, ("'real', 'discrete', 'gentle'", "None")),
    ("missing", "drop", ValueError, ("'abstain', 'learn', 'error'", "'drop'")),
    ("device", "tpu", ValueError, ("None, 'cpu', 'cuda', 'auto'", "'tpu'")),
    ("n_estimators", 0, ValueError, (">= 1", "got 0")),
    ("n_estimators", -3, ValueError, (">= 1", "got -3")),
    ("n_estimators", 2.5, TypeError, ("integer >= 1", "2.5")),
    ("n_estimators", True, TypeError, ("integer >= 1", "True")),
    ("learning_rate", 0, ValueError, ("> 0", "got 0")),
    ("learning_rate", -0.5, ValueError, ("> 0", "-0.5")),
    ("learning_rate", float("nan"), ValueError, ("> 0", "nan")),
    ("learning_rate", float("inf"), ValueError, ("finite", "inf")),
    ("learning_rate", "fast", TypeError, ("number > 0", "'fast'")),
    ("max_bins", 1, ValueError, ("from 2 to 65534", "got 1")),
    ("max_bins", 65_535, ValueError, ("from 2 to 65534", "65535")),
    ("max_bins", 31.0, TypeError, ("integer from 2 to 65534", "31.0")),
    ("early_stopping", "yes", ValueError, ("True or False", "'yes'")),
    ("validation_fraction", 0.0, ValueError, ("(0, 0.9]", "0.0")),
    ("validation_fraction", 1.0, ValueError, ("(0, 0.9]", "1.0")),
    ("n_iter_no_change", 0, ValueError, (">= 1", "got 0")),
    ("n_jobs", 0, ValueError, ("None", ">= 1", "got 0")),
    ("n_jobs", 1.5, TypeError, ("None", "integer", "1.5")),
    ("callbacks", [3], TypeError, ("callables", "got 3")),
    ("callbacks", print, TypeError, ("callbacks", "list", "print")),
    ("estimator", "tree", TypeError, ("None", "'tree'")),
]


@pytest.mark.parametrize(
    ("name", "value", "error", "says"),
    PARAMETERS,
    ids=[f"{name}={value!r}" for name, value, *_ in PARAMETERS],
)
def test_bad_parameter_is_named_with_its_value_and_range(name, value, error, says):
    estimator = AdaBoostClassifier(n_estimators=3).fit(X, Y)
    before = fitted_state(estimator)
    with pytest.raises(error) as caught:
        estimator.set_params(**{name: value}).fit(X, Y)
    assert name in str(caught.value)
    for text in says:
        assert text in str(caught.value)
    assert fitted_state(estimator) == before


def test_parameters_are_not_checked_or_changed_before_fit():
    assert AdaBoostClassifier(n_estimators=-1).n_estimators == -1


def test_a_numpy_bool_is_a_bool():
    estimator = AdaBoostClassifier(n_estimators=3, early_stopping=np.False_)
    assert estimator.fit(X, Y).n_estimators_ > 0


@pytest.mark.parametrize("value", [np.int32(5), np.int64(5)])
def test_a_numpy_integer_is_an_integer(value):
    assert AdaBoostClassifier(n_estimators=value, max_bins=value).fit(X, Y).n_estimators_ <= 5


@pytest.mark.skipif(WITH_CUPY, reason="this machine has a GPU")
def test_device_cuda_without_a_gpu_says_what_to_install():
    with pytest.raises(RuntimeError, match="device='cuda'") as caught:
        AdaBoostClassifier(device="cuda").fit(X, Y)
    assert "pip install 'ensemble_gpu[cuda12]'" in str(caught.value)
    assert "device='cpu'" in str(caught.value)


@pytest.mark.skipif(WITH_CUPY, reason="this machine has a GPU")
def test_device_auto_without_a_gpu_trains_on_the_cpu():
    assert AdaBoostClassifier(n_estimators=3, device="auto").fit(X, Y).engine_ == "cpu"


def test_device_cpu_moves_the_input_to_the_host():
    estimator = AdaBoostClassifier(n_estimators=3, device="cpu").fit(on(1, X), on(2, Y))
    assert estimator.engine_ == "cpu"


METHODS = [
    "predict", "predict_proba", "predict_log_proba", "decision_function",
]  # fmt: skip


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("move", [lambda a: a, lambda a: on(1, a)], ids=["numpy", "device"])
def test_wrong_number_of_features_at_predict_is_named(method, move):
    estimator = AdaBoostClassifier(n_estimators=3).fit(X, Y)
    with pytest.raises(ValueError, match=r"X has 2 features, but .* expecting 3 features"):
        getattr(estimator, method)(move(X[:, :2]))


@pytest.mark.parametrize(
    "method", ["staged_predict", "staged_predict_proba", "staged_decision_function"]
)
def test_wrong_number_of_features_at_a_staged_method_is_named(method):
    estimator = AdaBoostClassifier(n_estimators=3).fit(X, Y)
    with pytest.raises(ValueError, match=r"X has 2 features, but .* expecting 3 features"):
        next(getattr(estimator, method)(X[:, :2]))


@pytest.mark.parametrize("method", METHODS)
def test_prediction_before_fit_is_refused(method):
    with pytest.raises(NotFittedError, match="AdaBoostClassifier instance is not fitted"):
        getattr(AdaBoostClassifier(), method)(X)


@pytest.mark.parametrize("method", METHODS)
def test_infinity_at_predict_is_refused(method):
    estimator = AdaBoostClassifier(n_estimators=3).fit(X, Y)
    with pytest.raises(ValueError, match="infinity"):
        getattr(estimator, method)(changed(X, np.inf))


def test_score_of_another_namespace_is_refused():
    estimator = AdaBoostClassifier(n_estimators=3).fit(X, Y)
    with pytest.raises(ValueError, match="Move y"):
        estimator.score(on(1, X), Y)


def test_score_with_labels_of_another_length_names_both_lengths():
    estimator = AdaBoostClassifier(n_estimators=3).fit(X, Y)
    with pytest.raises(ValueError, match=re.escape("X has 40 rows, y has 4")):
        estimator.score(X, Y[:4])


def test_a_validation_set_of_one_class_is_accepted():
    estimator = AdaBoostClassifier(n_estimators=3)
    estimator.fit(X, Y, X_val=X[Y == 1], y_val=Y[Y == 1])
    assert len(estimator.validation_loss_) == 3


class Interrupt:
    """A callback that presses Ctrl-C in a given round."""

    def __init__(self, round_: int) -> None:
        self.round = round_

    def __call__(self, info: Any) -> None:
        if info.round == self.round:
            raise KeyboardInterrupt


def test_ctrl_c_leaves_an_unfitted_estimator_unfitted():
    estimator = AdaBoostClassifier(n_estimators=9, callbacks=[Interrupt(4)])
    with pytest.raises(KeyboardInterrupt):
        estimator.fit(X, Y)
    assert not fitted_state(estimator)
    assert set(vars(estimator)) == set(AdaBoostClassifier().get_params())


def test_ctrl_c_leaves_a_fitted_estimator_as_it_was():
    estimator = AdaBoostClassifier(n_estimators=9).fit(X, Y)
    before, margins = fitted_state(estimator), estimator.decision_function(X)
    estimator.set_params(callbacks=[Interrupt(4)], variant="gentle")
    with pytest.raises(KeyboardInterrupt):
        estimator.fit(X[:, :2], np.where(Y == 1, "b", "a"))
    assert fitted_state(estimator) == before
    np.testing.assert_array_equal(estimator.decision_function(X), margins)


@pytest.mark.parametrize(
    ("features", "says"),
    [
        ([["a", "b", "c"]] * len(Y), "X must hold numbers .* not strings"),
        (np.array([["a", 1.0, 2.0]] * len(Y), dtype=object), "X must hold numbers .*'a'"),
        (X + 1j, r"^Complex data not supported: X must hold floats, integers or bool\.$"),
    ],
    ids=["strings", "objects", "complex"],
)
def test_features_that_are_no_real_numbers_are_refused_in_one_line(features, says):
    with pytest.raises(ValueError, match=says) as caught:
        AdaBoostClassifier(n_estimators=3).fit(features, Y)
    assert "\n" not in str(caught.value)
