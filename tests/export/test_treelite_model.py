"""Treelite models: the same bits through Treelite's own evaluation."""

from __future__ import annotations

import numpy as np
import pytest

from ensemble_gpu import DecisionTreeClassifier, to_treelite
from ensemble_gpu.export.source import source_of
from tests.export.fits import ESTIMATORS, fitted, rows
from tests.export.rows import edge_rows

pytestmark = pytest.mark.interop


def whole_categories(model, X: np.ndarray) -> np.ndarray:
    """Rows whose categories are whole numbers or missing, as Treelite takes them."""
    columns = X[:, list(getattr(model, "categories", {}))]
    return X[(np.isnan(columns) | (columns == np.floor(columns))).all(axis=1)]


@pytest.mark.parametrize("name", list(ESTIMATORS))
def test_gtil_has_the_bits_of_the_model(name):
    import treelite

    estimator = fitted(name)
    model = source_of(estimator).model
    X = whole_categories(model, edge_rows(model, rows()))
    found = treelite.gtil.predict(to_treelite(estimator), X, nthread=1)
    np.testing.assert_array_equal(found.reshape(len(X), -1), model(X))


def test_a_model_that_is_saved_and_loaded_by_treelite_has_the_same_bits(tmp_path):
    import treelite

    estimator = fitted("logistic trees, 3 classes, categories")
    to_treelite(estimator).serialize(tmp_path / "model.tl")
    loaded = treelite.Model.deserialize(tmp_path / "model.tl")
    found = treelite.gtil.predict(loaded, rows()).reshape(len(rows()), -1)
    np.testing.assert_array_equal(found, estimator.model_(rows()))


def test_categories_that_are_no_whole_numbers_are_refused():
    import pandas as pd

    frame = pd.DataFrame({"size": pd.Categorical([0.5, 1.5] * 10), "x": np.arange(20.0)})
    tree = DecisionTreeClassifier(categorical_features=["size"]).fit(frame, [0, 1] * 10)
    with pytest.raises(ValueError, match=r"whole numbers from 0 .* feature 0 has .*0\.5"):
        to_treelite(tree)
