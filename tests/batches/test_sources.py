"""Where batches come from: lists, callables, frames, files. The model is that of all rows."""

from __future__ import annotations

import gzip
from importlib import util
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from ensemble_gpu import (
    AdaBoostClassifier,
    Batches,
    BoostingClassifier,
    DecisionTreeClassifier,
    RandomForestClassifier,
)
from ensemble_gpu.batches import files
from tests.batches.cases import FRACTIONS, MISSING, N, X, Y, check_same, cut
from tests.libraries import Jax, Torch

NAMES = [f"x{f}" for f in range(X.shape[1])]
COLOURS = np.array(["red", "green", "blue", "black"], dtype=object)
ADABOOST = AdaBoostClassifier(n_estimators=6)
STOPPING = BoostingClassifier(n_estimators=6, early_stopping=True, learning_rate=0.3)


def frame(rows: np.ndarray = MISSING) -> pl.DataFrame:
    """Numbers of several types with nulls, and a label."""
    table = pl.DataFrame({name: rows[:, f] for f, name in enumerate(NAMES)}).fill_nan(None)
    return table.with_columns(
        pl.Series("whole", np.round(X[:, 0] * 3).astype(np.int64)),
        pl.Series("flag", X[:, 2] > 0),
        pl.Series("y", Y),
    )


def coloured(rows: int = N) -> pl.DataFrame:
    """Two columns of categories, of which some occur in some batches only."""
    rng = np.random.default_rng(9)
    most = np.where(np.arange(rows) < 300, 2, 4)
    colour = COLOURS[rng.integers(0, 4, rows) % most]
    shape = rng.choice(np.array(["round", "square", None], dtype=object), rows)
    y = np.where(rng.random(rows) < 0.2, 1 - Y, (colour == "red") | (colour == "black"))
    return pl.DataFrame(
        {"x": X[:, 0], "colour": colour.tolist(), "shape": shape.tolist(), "y": y.astype(np.int64)}
    )


def pieces(table, cuts=(0, 1, 300, 300, 700, N)):
    return [table[a:b] for a, b in pairwise(cuts)]


def check_frame(estimator, data, table, weight=None):
    names = [name for name in table.columns if name not in ("y", weight)]
    w = None if weight is None else table[weight].to_numpy()
    check_same(estimator, data, table.select(names), table["y"].to_numpy(), w)


def write_parquet(folder: Path, table: pl.DataFrame, **options) -> str:
    for k, part in enumerate(pieces(table, (0, 100, 600, N))):
        parquet.write_table(part.to_arrow(), folder / f"part-{k}.parquet", **options)
    return str(folder / "part-*.parquet")


# --- the user's program ------------------------------------------------------------------------


def test_a_callable_is_called_for_every_walk():
    calls = []

    def batches():
        calls.append(1)
        yield from cut(X, Y)

    check_same(AdaBoostClassifier(n_estimators=6, calibrate=False), Batches(batches), X, Y)
    assert len(calls) == 4  # the first batch for the columns; labels; edges; codes


def test_an_object_that_can_be_iterated_over_again():
    class Again:
        def __iter__(self):
            return iter(cut(X, Y))

    check_same(ADABOOST, Batches(Again()), X, Y)


def test_lists_of_rows():
    parts = [(rows.tolist(), y.tolist()) for rows, y in cut(X, Y, cuts=(0, 300, N))]
    check_same(ADABOOST, Batches(parts), X, Y)


@pytest.mark.parametrize("kind", ["polars", "pandas", "record batches", "tables"])
def test_frames_are_split_by_name(kind):
    make = {
        "polars": lambda part: part,
        "pandas": lambda part: part.to_pandas(),
        "tables": lambda part: part.to_arrow(),
        "record batches": lambda part: part.to_arrow().combine_chunks().to_batches()[0],
    }[kind]
    parts = [make(part) for part in pieces(frame()) if len(part)]
    if kind == "pandas":  # where nulls make objects of bool and floats of integers
        parts = [part.astype({"flag": bool}) for part in parts]
    check_frame(ADABOOST, Batches(parts, label="y"), frame())
    check_frame(STOPPING, Batches(parts, label="y"), frame())


def test_frames_in_tuples():
    table = frame()
    rows = table.drop("y")
    parts = [
        (a.to_pandas(), b.to_pandas()["y"])
        for a, b in zip(pieces(rows), pieces(table.select("y")), strict=True)
    ]
    check_same(STOPPING, Batches(parts), rows.to_pandas(), table["y"].to_pandas())


def test_features_and_weights_by_name():
    table = frame().with_columns(pl.Series("w", FRACTIONS), pl.lit(1.5).alias("beside"))
    names = ["x3", "x0", "whole"]
    data = Batches(pieces(table), label="y", weight="w", features=names)
    check_frame(STOPPING, data, table.select(*names, "y", "w"), "w")


# --- categories ----------------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", [
    ADABOOST, STOPPING, DecisionTreeClassifier(random_state=0),
    AdaBoostClassifier(n_estimators=6, early_stopping=True, random_state=0),
    RandomForestClassifier(n_estimators=3, random_state=0),
], ids=str)  # fmt: skip
@pytest.mark.parametrize("kind", ["declared", "named"])
def test_labels_of_categories_are_those_of_all_batches(estimator, kind):
    table = coloured()
    if kind == "declared":
        categories = [pl.col(name).cast(pl.Categorical) for name in ("colour", "shape")]
        parts = [part.with_columns(categories) for part in pieces(table)]
        table = table.with_columns(categories)
    else:
        parts = pieces(table)
        estimator = estimator.__class__(
            **estimator.get_params() | {"categorical_features": ["colour", "shape"]}
        )
    check_frame(estimator, Batches(parts, label="y"), table)


def test_categories_of_pandas_whose_categories_differ_between_batches():
    table = coloured().to_pandas()
    parts = [part.astype({"colour": "category", "shape": "category"}) for part in pieces(table)]
    assert set(parts[1]["colour"].cat.categories) != set(parts[3]["colour"].cat.categories)
    whole = table.astype({"colour": "category", "shape": "category"})
    model = check_same(STOPPING, Batches(parts, label="y"), whole.drop(columns="y"), whole["y"])
    assert isinstance(model.predict(whole.drop(columns="y")), np.ndarray)


def test_categories_that_are_numbers_and_weights_of_zero():
    rows = np.column_stack([np.round(np.abs(X[:, 0]) * 3), X[:, 1]])
    w = np.where(rows[:, 0] == 2, 0.0, 1.0)  # a category without weight
    estimator = AdaBoostClassifier(n_estimators=6, categorical_features=[0])
    check_same(estimator, Batches(cut(rows, Y, w)), rows, Y, w)


def test_arrays_of_objects():
    rows = np.column_stack([X[:, 0].astype(object), coloured()["colour"].to_numpy()])
    estimator = AdaBoostClassifier(n_estimators=6, categorical_features=[1])
    check_same(estimator, Batches(cut(rows, Y)), rows, Y)


# --- files ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("batch_rows", "group"),
    [
        (100, 30),
        (1000, None),
        *(pytest.param(*one, marks=pytest.mark.long) for one in [(29, None), (29, 30), (1000, 30)]),
    ],
)
def test_parquet(tmp_path, batch_rows, group):
    pattern = write_parquet(tmp_path, frame(), row_group_size=group)
    data = Batches(pattern, label="y", batch_rows=batch_rows)
    check_frame(ADABOOST, data, frame())
    check_frame(STOPPING, data, frame())


def test_parquet_with_categories_and_weights(tmp_path):
    table = coloured().with_columns(
        pl.col("colour", "shape").cast(pl.Categorical), pl.Series("w", FRACTIONS)
    )
    pattern = write_parquet(tmp_path, table)
    data = Batches(pattern, label="y", weight="w", batch_rows=150)
    check_frame(ADABOOST, data, table, "w")
    check_frame(STOPPING, data, table, "w")


def test_several_paths_in_the_order_given(tmp_path):
    write_parquet(tmp_path, frame())
    paths = [tmp_path / f"part-{k}.parquet" for k in (2, 0, 1)]
    check_frame(ADABOOST, Batches(paths, label="y"), pl.concat(map(pl.read_parquet, paths)))


def test_arrow_files(tmp_path):
    path = tmp_path / "rows.arrow"
    with pa.OSFile(str(path), "wb") as sink:
        table = frame().to_arrow()
        with pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table, max_chunksize=123)
    check_frame(STOPPING, Batches(path, label="y", batch_rows=50), frame())


@pytest.mark.parametrize("name", ["rows.csv", "rows.tsv", "rows.csv.gz"])
def test_texts(tmp_path, name, monkeypatch):
    monkeypatch.setattr(files, "BLOCK_BYTES", 10_000)  # several blocks
    table = frame().cast(dict.fromkeys(NAMES, pl.Float64))
    text = table.write_csv(separator="\t" if "tsv" in name else ",").encode()
    (tmp_path / name).write_bytes(gzip.compress(text) if name.endswith("gz") else text)
    data = Batches(tmp_path / name, label="y", batch_rows=100)
    check_frame(ADABOOST, data, table)
    check_frame(STOPPING, data, table)


def test_a_text_whose_numbers_are_whole_at_first(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "BLOCK_BYTES", 2_000)
    table = pl.DataFrame(
        {"a": np.where(np.arange(N) < 500, np.arange(N), X[:, 0].astype(float)), "y": Y}
    )
    lines = [f"{a:g},{y}" if i < 500 else f"{a!r},{y}" for i, (a, y) in enumerate(table.rows())]
    (tmp_path / "rows.csv").write_text("\n".join(["a,y", *lines]) + "\n")
    check_frame(ADABOOST, Batches(tmp_path / "rows.csv", label="y"), table)


@pytest.mark.parametrize("name", ["rows.csv", "rows.parquet", "rows.arrow"])
def test_files_without_pyarrow(tmp_path, monkeypatch, name):
    table = frame().cast(dict.fromkeys(NAMES, pl.Float64))
    write = {"csv": table.write_csv, "parquet": table.write_parquet, "arrow": table.write_ipc}
    write[name.split(".")[1]](tmp_path / name)
    monkeypatch.setattr(files, "find_spec", lambda n: None if n == "pyarrow" else util.find_spec(n))
    check_frame(STOPPING, Batches(tmp_path / name, label="y", batch_rows=200), table)


def test_parquet_without_polars(tmp_path, monkeypatch):
    pattern = write_parquet(tmp_path, frame())
    monkeypatch.setattr(files, "find_spec", lambda n: None if n == "polars" else util.find_spec(n))
    check_frame(STOPPING, Batches(pattern, label="y"), frame())


def test_files_without_both(tmp_path, monkeypatch):
    pattern = write_parquet(tmp_path, frame())
    monkeypatch.setattr(files, "find_spec", lambda n: None)
    with pytest.raises(ImportError, match="pip install pyarrow polars"):
        ADABOOST.fit(Batches(pattern, label="y"))


def test_a_frame_of_pandas_with_missing_cells():
    table = frame().drop("flag").to_pandas()
    parts = [part for part in pieces(table) if len(part)]
    assert isinstance(table, pd.DataFrame)
    check_same(ADABOOST, Batches(parts, label="y"), table.drop(columns="y"), table["y"])


@pytest.mark.parametrize("name", ["rows.parquet", "rows.csv", "rows.arrow"])
def test_a_file_that_cannot_be_read_is_named(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(b"a,y\n1,0\n2,1,7\n")
    with pytest.raises(ValueError, match=f"{name} cannot be read as {name.split('.')[1]}"):
        ADABOOST.fit(Batches(path, label="y"))


def test_files_of_other_kinds(tmp_path):
    for name in ("rows.xlsx", "rows.parquet.gz"):
        (tmp_path / name).write_bytes(b"")
        with pytest.raises(ValueError, match=r"files must end with one of \.parquet"):
            Batches(tmp_path / name)


@pytest.mark.interop
@pytest.mark.parametrize("library", [Torch(), Jax()], ids=["torch", "jax"])
def test_arrays_of_other_libraries_on_the_host(library):
    parts = [(library.put(rows), library.put(y)) for rows, y in cut(X, Y, cuts=(0, 400, N))]
    check_same(STOPPING, Batches(parts), X, Y)


def test_arrays_of_another_device_are_refused():
    import array_api_strict as strict

    device = strict.Device("device1")
    parts = [(strict.asarray(X, device=device), Y)]
    with pytest.raises(TypeError, match=r"batch 0 is array_api_strict .*must be on the host"):
        ADABOOST.fit(Batches(parts))


def test_masked_cells_are_missing():
    hole = np.random.default_rng(4).random(X.shape) < 0.1
    rows = np.ma.masked_array(X, hole)
    check_same(ADABOOST, Batches(cut(rows, Y)), rows, Y)
