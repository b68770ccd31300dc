"""The public names."""

from __future__ import annotations

import re

import pytest

import ensemble_gpu


def test_every_public_name_can_be_had_and_is_listed():
    for name in ensemble_gpu.__all__:
        assert getattr(ensemble_gpu, name) is not None
        assert name in dir(ensemble_gpu)


def test_the_names_of_the_first_release_are_there():
    expected = {"AdaBoostClassifier", "AdditiveModel", "ProgressBar", "RoundInfo", "use_engine"}
    assert expected <= set(ensemble_gpu.__all__)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="'ensemble_gpu' has no attribute 'RandomForest'"):
        _ = ensemble_gpu.RandomForest


def test_the_version_is_a_version():
    assert re.fullmatch(r"\d+\.\d+\.\d+\S*", ensemble_gpu.__version__)


@pytest.mark.parametrize(
    "name", ["AdaBoostClassifier", "AdditiveModel", "ProgressBar", "use_engine"]
)
def test_every_public_name_is_documented(name):
    assert len(getattr(ensemble_gpu, name).__doc__.split()) > 5


def test_every_parameter_and_fitted_attribute_is_documented():
    from tests.datasets import fit, random_data

    text = ensemble_gpu.AdaBoostClassifier.__doc__
    estimator = fit(random_data(), early_stopping=True, random_state=0)
    for name in vars(estimator):
        assert re.search(rf"^    {name}\b|, {name}\b", text, re.MULTILINE), name
