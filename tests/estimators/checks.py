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


def assert_checks_pass(estimator: Any, known: frozenset[str] = frozenset()) -> None:
    """Run all of scikit-learn's checks; every failure is told, not only the first.

    Checks that are `known` not to suit the estimator may fail.
    """
    errors: list[Exception] = []
    ran = 0
    for instance, check in estimator_checks_generator(estimator):
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
    assert ran > 40, f"only {ran} checks ran"


def each_setting(estimators: Iterable[Any]) -> pytest.MarkDecorator:
    """A test with `estimator`; in the inner loop the first of every class."""
    seen: set[type] = set()
    settings = []
    for estimator in estimators:
        marks = [pytest.mark.slow] if type(estimator) in seen else []
        settings.append(pytest.param(estimator, marks=marks, id=" ".join(repr(estimator).split())))
        seen.add(type(estimator))
    return pytest.mark.parametrize("estimator", settings)
