"""Predictions in a file are those of predict."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from ensemble_gpu import AdaBoostClassifier, Batches, BoostingRegressor, predict_batches
from tests.batches.cases import CUTS, K, T, X, Y, cut

CLASSIFIER = AdaBoostClassifier(n_estimators=4).fit(X, np.array(["a", "b", "c"])[K])
REGRESSOR = BoostingRegressor(n_estimators=4).fit(X, T)
QUANTILES = BoostingRegressor("quantile", quantile=[0.1, 0.9], n_estimators=4).fit(X, T)
DATA = Batches([rows for (rows,) in cut(X)])
READ = {"parquet": pl.read_parquet, "csv": pl.read_csv}


@pytest.mark.parametrize("suffix", READ)
@pytest.mark.parametrize("method", ["predict", "predict_proba", "decision_function"])
def test_columns_of_files(tmp_path, method, suffix):
    path = tmp_path / f"out.{suffix}"
    assert predict_batches(CLASSIFIER, DATA, path, method=method) == len(X)
    found, expected = READ[suffix](path), getattr(CLASSIFIER, method)(X)
    if method == "predict":
        assert found.columns == ["prediction"]
        assert found["prediction"].to_list() == expected.tolist()
        return
    noun = {"predict_proba": "probability", "decision_function": "decision"}[method]
    assert found.columns == [f"{noun}_{label}" for label in "abc"]
    assert found.to_numpy().astype(expected.dtype).tobytes() == expected.tobytes()


@pytest.mark.parametrize(("model", "method"), [
    (REGRESSOR, "predict"), (QUANTILES, "predict"), (CLASSIFIER, "predict_proba"),
])  # fmt: skip
def test_arrays(tmp_path, model, method):
    path = tmp_path / "out.npy"
    predict_batches(model, DATA, path, method=method)
    found, expected = np.load(path), getattr(model, method)(X)
    assert found.dtype == expected.dtype
    assert np.array_equal(found, expected)


def test_quantiles_have_columns_of_their_own(tmp_path):
    predict_batches(QUANTILES, DATA, tmp_path / "out.csv")
    assert pl.read_csv(tmp_path / "out.csv").columns == ["prediction_0.1", "prediction_0.9"]


def test_targets_are_left_aside_and_features_taken_by_name(tmp_path):
    frame = pl.DataFrame({f"x{f}": X[:, f] for f in range(3)})
    model = AdaBoostClassifier(n_estimators=3).fit(frame, Y)
    beside = frame.select("x2", "x0", pl.lit(1).alias("other"), "x1", pl.Series("y", Y))
    beside.write_parquet(tmp_path / "in.parquet", row_group_size=200)
    for source in ([beside[:500], beside[500:]], tmp_path / "in.parquet"):
        data = Batches(source, label="y", batch_rows=300)
        predict_batches(model, data, tmp_path / "out.npy")
        assert np.array_equal(np.load(tmp_path / "out.npy"), model.predict(frame))
    predict_batches(model, Batches(cut(frame, Y)), tmp_path / "out.npy")
    assert np.array_equal(np.load(tmp_path / "out.npy"), model.predict(frame))


def test_an_error_leaves_the_file_that_was_there(tmp_path):
    path = tmp_path / "out.csv"
    path.write_text("before")
    wrong = Batches([X[:10], X[:10, :3]])
    with pytest.raises(ValueError, match="batch 1: X has 3 features"):
        predict_batches(REGRESSOR, wrong, path)
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_what_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"path must end with one of \.parquet, \.csv, \.npy"):
        predict_batches(REGRESSOR, DATA, tmp_path / "out.txt")
    with pytest.raises(ValueError, match="method must be one of"):
        predict_batches(REGRESSOR, DATA, tmp_path / "out.csv", method="score")
    with pytest.raises(TypeError, match="method='predict_proba' is none of a BoostingRegressor"):
        predict_batches(REGRESSOR, DATA, tmp_path / "out.csv", method="predict_proba")
    with pytest.raises(TypeError, match="batches must be Batches; got ndarray"):
        predict_batches(REGRESSOR, X, tmp_path / "out.csv")
    with pytest.raises(ValueError, match=r"a \.npy file holds numbers"):
        predict_batches(CLASSIFIER, DATA, tmp_path / "out.npy")
    with pytest.raises(ValueError, match="Batches hold no rows"):
        predict_batches(REGRESSOR, Batches([X[:0]]), tmp_path / "out.csv")
    assert list(tmp_path.iterdir()) == []


def test_progress(tmp_path, capsys):
    data = Batches([rows for (rows,) in cut(X)], progress=True)
    predict_batches(REGRESSOR, data, tmp_path / "out.npy")
    assert capsys.readouterr().err.split() == ["predict", f"[{'#' * 30}]", "row", "900/900"]
    assert CUTS[-1] == 900
