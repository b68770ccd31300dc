"""Bad input to the estimators of any loss: errors name what was given and what is allowed."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import DataConversionWarning, NotFittedError

from ensemble_gpu import BoostingClassifier, BoostingRegressor
from ensemble_gpu.losses import (
    CustomLoss,
    Huber,
    Logistic,
    LogitBoost,
    Multinomial,
    Quantile,
    Squared,
)
from tests.boosting.bad import Bad, changed, on
from tests.datasets import fitted_state, random_data

DATA = random_data(n=40, p=3)
X, LABELS = DATA.X, DATA.y
Y = X[:, 0] + 0.5 * X[:, 1]
THREE = np.arange(40) % 3
ESTIMATORS = {
    "classifier": partial(BoostingClassifier, max_depth=1),
    "regressor": partial(BoostingRegressor, max_depth=1),
}
NAN = float("nan")


def target_of(kind: str) -> np.ndarray:
    return LABELS if kind == "classifier" else Y


# What both refuse alike: (parameter, value, error, what the message contains).
SHARED = [
    ("step", "brent", ValueError,
     "one of 'leaf', 'line_search', 'newton', 'constant', None; got 'brent'"),
    ("step", 1, ValueError, "one of 'leaf', 'line_search', 'newton', 'constant', None; got 1"),
    ("n_estimators", 0, ValueError, "must be an integer >= 1 or None; got 0"),
    ("n_estimators", 2.5, TypeError, "must be an integer >= 1 or None; got 2.5"),
    ("learning_rate", 0, ValueError, "must be a finite number in (0, 1] or None; got 0"),
    ("learning_rate", -0.1, ValueError, "must be a finite number in (0, 1] or None; got -0.1"),
    ("learning_rate", 1.5, ValueError, "must be a finite number in (0, 1] or None; got 1.5"),
    ("learning_rate", NAN, ValueError, "must be a finite number in (0, 1] or None; got nan"),
    ("learning_rate", "slow", TypeError, "must be a number in (0, 1] or None; got 'slow'"),
    ("subsample", 0.0, ValueError, "must be a finite number in (0, 1] or None; got 0.0"),
    ("subsample", 1.5, ValueError, "must be a finite number in (0, 1] or None; got 1.5"),
    ("subsample", NAN, ValueError, "must be a finite number in (0, 1] or None; got nan"),
    ("subsample", True, TypeError, "must be a number in (0, 1] or None; got True"),
    ("max_features", 0, ValueError, "'sqrt', 'log2', 'auto' or None; got 0"),
    ("max_features", 4, ValueError, "must be at most the number of features, 3; got 4"),
    ("max_features", "all", ValueError, "'sqrt', 'log2', 'auto' or None; got 'all'"),
    ("max_features", 1.5, ValueError, "'sqrt', 'log2', 'auto' or None; got 1.5"),
    ("max_features", 0.0, ValueError, "'sqrt', 'log2', 'auto' or None; got 0.0"),
    ("max_features", True, TypeError, "got True"),
    ("max_features", [2], TypeError, "got [2]"),
    ("monotonic_cst", [1, 0], ValueError, "one value for each of the 3 features; got shape (2,)"),
    ("monotonic_cst", 1, ValueError, "one value for each of the 3 features; got shape ()"),
    ("monotonic_cst", [1, 0, 2], ValueError, "must hold -1, 0 or +1; got [1, 0, 2]"),
    ("monotonic_cst", [1, 0, NAN], ValueError, "must hold -1, 0 or +1; got [1, 0, nan]"),
    ("monotonic_cst", ["up", 0, 0], ValueError, "must hold -1, 0 or +1; got ['up', 0, 0]"),
    ("monotonic_cst", {"age": 1}, ValueError, "dict of names, but X had no feature names"),
    ("max_bins", 1, ValueError, "must be an integer from 2 to 65534 or None; got 1"),
    ("max_bins", 31.0, TypeError, "must be an integer from 2 to 65534 or None; got 31.0"),
    ("missing", "drop", ValueError, "must be one of 'abstain', 'learn', 'error'; got 'drop'"),
    ("early_stopping", "yes", ValueError, "must be one of True, False, 'auto'; got 'yes'"),
    ("validation_fraction", 1.0, ValueError, "must be a finite number in (0, 0.9]; got 1.0"),
    ("n_iter_no_change", 0, ValueError, "must be an integer >= 1; got 0"),
    ("metric", "f7", ValueError, "metric must be one of 'loss', "),
    ("metric", {"auc"}, TypeError, "must be None (the loss), a name, a callable"),
    ("metric", 3, TypeError, "metric(y, prediction) -> float, or a list of these; got 3"),
    ("device", "tpu", ValueError, "must be one of None, 'cpu', 'cuda', 'auto'; got 'tpu'"),
    ("n_jobs", 0, ValueError, "an integer >= 1, or negative (-1: all threads); got 0"),
    ("callbacks", [3], TypeError, "must be None or a list of callables; got 3"),
    ("callbacks", print, TypeError, "must be None or a list of callables; got <built-in"),
    ("loss", None, TypeError, "got None"),
    ("loss", 3, TypeError, "got 3"),
]  # fmt: skip

LOSSES = "'exponential', 'logistic', 'squared', 'truncated_squared', 'hinge' or a Loss"
OF_CLASSIFIER = [
    ("loss", "log", ValueError, f"must be one of {LOSSES} for classification; got 'log'"),
    ("loss", "huber", ValueError, f"must be one of {LOSSES} for classification; got 'huber'"),
    ("loss", Huber(), ValueError, "got Huber(delta=1.0), which is for regression"),
    ("loss", Logistic, TypeError, "a Loss for classification; got <class"),
    ("loss", Multinomial(4), ValueError, "Multinomial(n_classes=4), but y holds 2 classes"),
    ("stump", "gentle", ValueError, "must be one of 'real', 'discrete'; got 'gentle'"),
]
LOSSES_OF_NUMBERS = "'squared', 'absolute', 'huber', 'quantile', 'poisson' or a Loss"
OF_REGRESSOR = [
    ("loss", "ols", ValueError, f"must be one of {LOSSES_OF_NUMBERS} for regression; got 'ols'"),
    ("loss", "hinge", ValueError, "for regression; got 'hinge'"),
    ("loss", LogitBoost(), ValueError, "got LogitBoost(), which is for classification"),
    ("loss", Squared, TypeError, "a Loss for regression; got <class"),
    ("quantile", 0.5, ValueError, "is for loss='quantile'; loss is 'squared'"),
]
PARAMETERS = [
    *(("classifier", *case) for case in [*SHARED, *OF_CLASSIFIER]),
    *(("regressor", *case) for case in [*SHARED, *OF_REGRESSOR]),
]


@pytest.mark.parametrize(
    ("kind", "name", "value", "error", "says"),
    PARAMETERS,
    ids=[f"{kind}-{name}={value!r}" for kind, name, value, *_ in PARAMETERS],
)
def test_bad_parameter_is_named_with_its_value_and_range(kind, name, value, error, says):
    estimator = ESTIMATORS[kind](n_estimators=3).fit(X, target_of(kind))
    before = fitted_state(estimator)
    with pytest.raises(error) as caught:
        estimator.set_params(**{name: value}).fit(X, target_of(kind))
    message = str(caught.value)
    assert name in message
    assert says in message
    assert "\n" not in message
    assert fitted_state(estimator) == before


@pytest.mark.parametrize("value", [0, 1, 1.5, -0.1, NAN])
def test_a_quantile_outside_of_zero_and_one_is_refused_with_both_ends_open(value):
    with pytest.raises(ValueError, match=rf"quantile must be .*in \(0, 1\); got {value}"):
        BoostingRegressor("quantile", quantile=value, max_depth=1).fit(X, Y)


@pytest.mark.parametrize("value", ["median", True])
def test_a_quantile_that_is_no_number_is_refused(value):
    with pytest.raises(TypeError, match=rf"quantile must be .*in \(0, 1\); got {value!r}"):
        BoostingRegressor("quantile", quantile=value, max_depth=1).fit(X, Y)


def test_a_quantile_beside_a_loss_object_is_refused():
    with pytest.raises(ValueError, match=r"quantile is for .*loss is Quantile\(quantile=0.3\)"):
        BoostingRegressor(Quantile(0.3), quantile=0.5, max_depth=1).fit(X, Y)


def squared(y, F):
    return (F - y) * (F - y)


def slope(y, F):
    return 2.0 * (F - y)


@pytest.mark.parametrize(
    "loss", ["absolute", "quantile", CustomLoss(squared, slope, name="mine")], ids=str
)
def test_newton_without_a_second_derivative_says_which_steps_are_allowed(loss):
    with pytest.raises(ValueError, match="step='newton' needs a second derivative") as caught:
        BoostingRegressor(loss, step="newton", max_depth=1).fit(X, Y)
    assert repr(getattr(loss, "name", loss)) in str(caught.value)
    assert "'line_search' or 'constant'" in str(caught.value)


def test_newton_with_hinge_says_which_steps_are_allowed():
    with pytest.raises(ValueError, match=r"step='newton'.*'hinge'.*'line_search' or 'constant'"):
        BoostingClassifier("hinge", step="newton", max_depth=1).fit(X, LABELS)


@pytest.mark.parametrize("loss", ["squared", "poisson"])
def test_steps_of_leaves_are_refused_where_a_leaf_has_no_order_statistic(loss):
    with pytest.raises(ValueError, match=rf"step='leaf' is for .*; for loss '{loss}' step must be"):
        BoostingRegressor(loss, step="leaf").fit(X, abs(Y) + 1.0)


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_steps_of_leaves_are_refused_for_classes(loss):
    with pytest.raises(ValueError, match=rf"step='leaf' is for .*; for loss '{loss}' step must be"):
        BoostingClassifier(loss, step="leaf", max_depth=1).fit(X, LABELS)


@pytest.mark.parametrize(
    ("quantile", "error"),
    [([], ValueError), ([0.5, 0.1], ValueError), ([0.2, 0.2], ValueError), ([0.0, 0.5], ValueError),
     ([0.5, 1.0], ValueError), ((0.1, "a"), TypeError), ([0.1, True], TypeError),
     ([[0.1, 0.9]], TypeError), (1.0, ValueError), ("0.5", TypeError)],
)  # fmt: skip
def test_quantiles_that_are_not_increasing_levels_are_named(quantile, error):
    with pytest.raises(error, match=r"quantile must be a number in \(0, 1\)") as caught:
        BoostingRegressor("quantile", quantile=quantile).fit(X, Y)
    assert repr(quantile).strip("()") in str(caught.value) or repr(list(quantile)) in str(
        caught.value
    )


@pytest.mark.parametrize("loss", ["absolute", "squared"])
def test_several_quantiles_with_another_loss_are_refused(loss):
    with pytest.raises(ValueError, match=rf"quantile is for loss='quantile'; loss is '{loss}'"):
        BoostingRegressor(loss, quantile=[0.1, 0.9]).fit(X, Y)


@pytest.mark.parametrize(
    ("params", "says"),
    [({"metric": "rmse"}, "metric 'rmse' is for one prediction a row"),
     ({"metric": ["loss", "mae"]}, "metric 'mae' is for one prediction a row"),
     ({"monotonic_cst": [1, 0, 0]}, "monotonic_cst is for one output")],
)  # fmt: skip
def test_what_is_for_one_prediction_is_refused_for_several_quantiles(params, says):
    with pytest.raises(ValueError, match=says):
        BoostingRegressor("quantile", quantile=[0.1, 0.9], **params).fit(X, Y)


def test_unknown_names_in_monotonic_cst_are_listed_with_the_known_ones():
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    with pytest.raises(ValueError, match="monotonic_cst names features") as caught:
        BoostingRegressor(monotonic_cst={"a": 1, "age": -1}, max_depth=1).fit(frame, Y)
    assert "['age']" in str(caught.value)
    assert "['a', 'b', 'c']" in str(caught.value)


def test_monotonic_cst_is_for_two_classes():
    estimator = BoostingClassifier(monotonic_cst=[1, 0, 0], max_depth=1)
    with pytest.raises(ValueError, match="monotonic_cst is for two classes; y holds 3 classes"):
        estimator.fit(X, THREE)
    unbound = BoostingClassifier(n_estimators=3, monotonic_cst=[0, 0, 0], max_depth=1)
    assert unbound.fit(X, THREE).n_estimators_ == 3


# --- data ------------------------------------------------------------------------------------


REGRESSIONS: dict[str, Callable[[], Bad]] = {
    "NaN in y": lambda: Bad(("y", "NaN"), y=changed(Y, NAN)),
    "infinity in y": lambda: Bad(("y", "infinity"), y=changed(Y, np.inf)),
    "NaN in y on a device": lambda: Bad(
        ("y", "NaN", "finite values are allowed"), on(1, X), on(1, changed(Y, NAN))
    ),
    "strings in y": lambda: Bad(("y must hold numbers", "'a'"), y=["a"] * 40),
    "complex y": lambda: Bad(("Complex data not supported",), y=Y + 1j),
    "complex y on a device": lambda: Bad(
        ("y must hold real numbers", "complex128"), on(1, X), on(1, Y + 1j)
    ),
    "y in two dimensions": lambda: Bad(("y", "1d", "(40, 2)"), y=np.stack([Y, Y], axis=1)),
    "y in two dimensions on a device": lambda: Bad(
        ("y must be 1-dimensional", "(40, 2)"), on(1, X), on(1, np.stack([Y, Y], axis=1))
    ),
    "a column of y": lambda: Bad(
        ("column-vector y", "ravel"), y=Y[:, None], error=DataConversionWarning
    ),
    "y too short": lambda: Bad(("X has 40 rows", "y has 5"), y=Y[:5]),
    "y too short on a device": lambda: Bad(("X has 40 rows", "y has 5"), on(1, X), on(1, Y[:5])),
    "y on another device": lambda: Bad(("device1", "device2", "Move y"), on(1, X), on(2, Y)),
    "y of another namespace": lambda: Bad(("numpy", "Move y"), on(1, X), Y),
    "negative weight": lambda: Bad(("sample_weight", ">= 0", "-2"), weights=changed(Y * 0, -2.0)),
    "infinity": lambda: Bad(("X", "infinity", "finite"), X=changed(X, np.inf)),
    "NaN where it is refused": lambda: Bad(
        ("X", "NaN", "missing='error'"), X=changed(X, NAN), params={"missing": "error"}
    ),
    "negative counts": lambda: Bad(
        ("y must be >= 0", "'poisson'", "the lowest value given is -2"),
        y=changed(np.abs(Y), -2.0), params={"loss": "poisson"},
    ),
    "negative counts on a device": lambda: Bad(
        ("y must be >= 0", "'poisson'", "the lowest value given is -2"),
        on(1, X), on(1, changed(np.abs(Y), -2.0)), params={"loss": "poisson"},
    ),
    "counts of zero alone": lambda: Bad(
        ("positive sum", "'poisson'", "all values given are 0"),
        y=0.0 * Y, params={"loss": "poisson"},
    ),
    "negative counts in y_val": lambda: Bad(
        ("y_val must be >= 0", "'poisson'", "the lowest value given is -2"),
        y=np.abs(Y), params={"loss": "poisson"},
        more={"X_val": X, "y_val": changed(np.abs(Y), -2.0)},
    ),
    "NaN in y_val": lambda: Bad(("y_val", "NaN"), more={"X_val": X, "y_val": changed(Y, NAN)}),
    "y_val too short": lambda: Bad(
        ("X_val has 40 rows", "y_val has 4"), more={"X_val": X, "y_val": Y[:4]}
    ),
    "y_val without X_val": lambda: Bad(("y_val", "X_val is None"), more={"y_val": Y}),
    "one row to hold out from": lambda: Bad(
        ("validation_fraction=0.1", "X_val"), X=X[:1], y=Y[:1], params={"early_stopping": True}
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REGRESSIONS)
def test_bad_fit_says_what_is_wrong_and_leaves_nothing_half_fitted(case):
    bad = REGRESSIONS[case]()
    estimator = BoostingRegressor(n_estimators=3, max_depth=1)
    with pytest.raises(bad.error) as caught:
        bad.fit(estimator, X, Y)
    for text in bad.says:
        assert text in str(caught.value)
    assert "\n" not in str(caught.value)
    assert set(vars(estimator)) == set(BoostingRegressor(max_depth=1).get_params())
    with pytest.raises(NotFittedError):
        estimator.predict(X)


@pytest.mark.parametrize("case", REGRESSIONS)
def test_bad_fit_leaves_a_fitted_estimator_as_it_was(case):
    bad = REGRESSIONS[case]()
    estimator = BoostingRegressor(n_estimators=3, max_depth=1).fit(X, Y)
    before = fitted_state(estimator)
    with pytest.raises((bad.error, Warning)):  # which one: the test above
        bad.fit(estimator, X, Y)
    assert fitted_state(estimator) == before


@pytest.mark.parametrize(
    ("y", "says"),
    [
        (np.full(40, 7), "at least 2 classes; got 1 class: [7]"),
        (Y, "continuous"),
        (changed(LABELS, NAN), "NaN"),
        (LABELS[:5], "X has 40 rows, y has 5"),
        (np.stack([LABELS, LABELS], axis=1), "(40, 2)"),
        (None, "y is None"),
    ],
    ids=["one class", "continuous", "NaN", "short", "2-D", "None"],
)
def test_bad_labels_are_named_and_leave_nothing_half_fitted(y, says):
    estimator = BoostingClassifier(n_estimators=3, max_depth=1)
    with pytest.raises(ValueError, match="y") as caught:
        estimator.fit(X, y)
    assert says in str(caught.value)
    assert set(vars(estimator)) == set(BoostingClassifier(max_depth=1).get_params())


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_ctrl_c_leaves_a_fitted_estimator_as_it_was(kind):
    def interrupt(info: Any) -> None:
        if info.round == 4:
            raise KeyboardInterrupt

    estimator = ESTIMATORS[kind](n_estimators=9).fit(X, target_of(kind))
    before = fitted_state(estimator)
    with pytest.raises(KeyboardInterrupt):
        estimator.set_params(callbacks=[interrupt]).fit(X[:, :2], target_of(kind))
    assert fitted_state(estimator) == before


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_prediction_before_fit_and_with_wrong_features_is_refused(kind):
    name = ESTIMATORS[kind].func.__name__
    with pytest.raises(NotFittedError, match=f"{name} instance is not fitted"):
        ESTIMATORS[kind]().predict(X)
    with pytest.raises(NotFittedError, match=f"{name} instance is not fitted"):
        next(ESTIMATORS[kind]().staged_predict(X, rounds=[1]))
    estimator = ESTIMATORS[kind](n_estimators=3).fit(X, target_of(kind))
    for wrong in (X[:, :2], on(1, X[:, :2])):
        with pytest.raises(ValueError, match=r"X has 2 features, but .* expecting 3 features"):
            estimator.predict(wrong)


def test_score_of_a_regressor_names_what_is_wrong():
    estimator = BoostingRegressor(n_estimators=3, max_depth=1).fit(X, Y)
    with pytest.raises(ValueError, match="Move y"):
        estimator.score(on(1, X), Y)
    with pytest.raises(ValueError, match="X has 40 rows, y has 4"):
        estimator.score(X, Y[:4])


# --- functions of the user -------------------------------------------------------------------


def nothing(y, F):
    return F * NAN


def nothing_later(y, F):
    """Finite before the first round, where F is constant."""
    moved = np.abs(F - F[0]) > 0.0
    return np.where(moved, NAN, F - y)


@pytest.mark.parametrize("step", ["line_search", "constant"])
@pytest.mark.parametrize("gradient", [nothing, nothing_later])
def test_a_gradient_that_is_not_finite_is_an_error_that_names_the_loss(gradient, step):
    estimator = BoostingRegressor(
        CustomLoss(squared, gradient, name="mine"), step=step, max_depth=1
    )
    with pytest.raises(ValueError, match=r"loss 'mine' gave a derivative that is not finite"):
        estimator.fit(X, Y)
    assert not fitted_state(estimator)


def test_a_second_derivative_that_is_not_finite_is_an_error_that_names_the_loss():
    loss = CustomLoss(squared, slope, nothing, name="mine")
    with pytest.raises(ValueError, match=r"loss 'mine' gave a derivative that is not finite"):
        BoostingRegressor(loss, step="newton", max_depth=1).fit(X, Y)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_one_gradient_that_is_not_finite_is_found_in_the_last_block_of_rows(n_jobs):
    many = np.random.default_rng(0).normal(size=(70_000, 1))
    y = many[:, 0].copy()
    y[-1] = 99.0
    loss = CustomLoss(squared, lambda y, F: np.where(y == 99.0, NAN, F - y), name="mine")
    estimator = BoostingRegressor(
        loss, n_estimators=2, step="constant", n_jobs=n_jobs, max_depth=1, early_stopping=False
    )
    with pytest.raises(ValueError, match=r"loss 'mine' gave a derivative that is not finite"):
        estimator.fit(many, y)


def test_a_validation_loss_that_is_not_a_number_is_an_error_that_names_the_loss():
    estimator = BoostingRegressor(
        CustomLoss(nothing, slope, name="mine"), early_stopping=True, max_depth=1
    )
    with pytest.raises(ValueError, match=r"'mine'.*(NaN|nan|not a number)"):
        estimator.fit(X, Y)


@pytest.mark.parametrize(
    "wrong", [lambda y, F: 1.0, lambda y, F: (F - y)[:5], lambda y, F: list(F - y)],
    ids=["a number", "five values", "a list"],
)  # fmt: skip
def test_a_gradient_of_the_wrong_shape_is_an_error_that_names_the_loss(wrong):
    estimator = BoostingRegressor(CustomLoss(squared, wrong, name="mine"), max_depth=1)
    with pytest.raises((TypeError, ValueError), match="'mine'"):
        estimator.fit(X, Y)


@pytest.mark.parametrize(
    ("answer", "error"),
    [(NAN, ValueError), (None, TypeError), ("low", TypeError), (np.ones(3), TypeError)],
    ids=["NaN", "None", "a string", "an array"],
)
@pytest.mark.parametrize("kind", ESTIMATORS)
def test_a_metric_that_gives_no_number_is_an_error_that_names_it(kind, answer, error):
    estimator = ESTIMATORS[kind](metric=lambda y, prediction: answer, early_stopping=True)
    with pytest.raises(error, match="metric"):
        estimator.fit(X, target_of(kind))
    assert not fitted_state(estimator)
