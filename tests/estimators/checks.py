"""scikit-learn's own checks of an estimator, all in one call."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from unittest import SkipTest

import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator

# It wants 87 % of the rows of pure noise to be given to the class that weighs 10^7 times as much as
# the others. Boosting without a least weight of a leaf finds leaves of light rows alone, as
# scikit-learn's own AdaBoost (82 %) and GradientBoosting (78 %) do with these weights
# (tests/estimators/test_class_weight.py), and so do fully grown trees.
LIGHT_ROWS = frozenset({"check_class_weight_classifiers"})


# What depends on how a model is fitted. The others look at parameters, names, tags, messages and
# forms of X, y and weights, which all settings of an estimator have from the same code.
OF_MODELS = frozenset({
    "check_classifiers_train", "check_classifiers_classes", "check_classifiers_one_label",
    "check_classifiers_one_label_sample_weights", "check_classifiers_regression_target",
    "check_class_weight_classifiers", "check_regressors_train", "check_regressors_int",
    "check_supervised_y_no_nan", "check_estimators_dtypes", "check_estimators_nan_inf",
    "check_estimators_pickle", "check_estimators_overwrite_params", "check_dict_unchanged",
    "check_dont_overwrite_attributes", "check_fit_idempotent", "check_fit2d_1sample",
    "check_fit2d_1feature", "check_fit_score_takes_y", "check_methods_subset_invariance",
    "check_methods_sample_order_invariance", "check_readonly_memmap_input",
    "check_sample_weight_equivalence_on_dense_data", "check_estimator_sparse_tag",
})  # fmt: skip


# The checks of models in `make test`, all of them among the long tests.
all_when_long = pytest.mark.parametrize(
    "others",
    [pytest.param(False, id="of models"), pytest.param(True, id="all", marks=pytest.mark.long)],
)


def assert_checks_pass(
    estimator: Any, known: frozenset[str] = frozenset(), *, others: bool = True
) -> None:
    """Run scikit-learn's checks; every failure is told, not only the first.

    Checks that are `known` not to suit the estimator may fail. Without `others`: of models alone.
    """
    errors: list[Exception] = []
    ran = 0
    for instance, check in estimator_checks_generator(estimator):
        if not others and check.func.__name__ not in OF_MODELS:
            continue
        try:
            check(instance)
            ran += 1
        except SkipTest:
            continue
        except Exception as error:
            if check.func.__name__ in known:
                continue
            error.add_note(f"in {check.func.__name__}{check.args[1:] or ''} {check.keywords or ''}")
            errors.append(error)
    if errors:
        raise ExceptionGroup(f"{estimator!r} fails {len(errors)} of scikit-learn's checks", errors)
    least = 40 if others else 16
    assert ran > least, f"only {ran} checks ran"


def each_setting(estimators: Iterable[Any]) -> pytest.MarkDecorator:
    """A test with `estimator`; the `first` of every class always, others among the long tests."""
    seen: set[type] = set()
    settings = []
    for estimator in estimators:
        first = type(estimator) not in seen
        marks = [] if first else [pytest.mark.slow, pytest.mark.long]
        name = " ".join(repr(estimator).split())
        settings.append(pytest.param(estimator, first, marks=marks, id=name))
        seen.add(type(estimator))
    return pytest.mark.parametrize(("estimator", "first"), settings)
