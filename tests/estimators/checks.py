"""scikit-learn's own checks of an estimator, all in one call."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from unittest import SkipTest

import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator


def assert_checks_pass(estimator: Any) -> None:
    """Run all of scikit-learn's checks; every failure is told, not only the first."""
    errors: list[Exception] = []
    ran = 0
    for instance, check in estimator_checks_generator(estimator):
        try:
            check(instance)
            ran += 1
        except SkipTest:
            continue
        except Exception as error:
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
