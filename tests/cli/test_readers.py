"""Files to tables: the same columns from polars, pyarrow and the csv module."""

from __future__ import annotations

import gzip
from types import SimpleNamespace

import numpy as np
import pytest

from ensemble_gpu.cli import readers
from ensemble_gpu.cli.errors import BadInput
from ensemble_gpu.cli.readers import read_table

LIBRARIES = ("polars", "pyarrow", "csv")
TEXT = """whole,real,gap,truth,text,zip,empty
1,0.5,,true,a,01234,
-2,1e3,7,false,NA,98765,
3,nan,8,true,"b,c",00001,
"""


@pytest.fixture(params=LIBRARIES)
def library(request, monkeypatch):
    present = LIBRARIES[LIBRARIES.index(request.param) :]
    monkeypatch.setattr(
        readers, "find_spec", lambda name: SimpleNamespace() if name in present else None
    )
    return request.param


def test_columns_are_by_what_they_look_like(library, tmp_path):
    path = tmp_path / "d.csv"
    path.write_text(TEXT)
    table = read_table([str(path)], texts={"zip"})
    assert readers.reader() == library
    assert table.column("whole").tolist() == [1, -2, 3]
    assert table.column("whole").dtype.kind == "i"
    np.testing.assert_array_equal(table.column("real"), [0.5, 1000.0, np.nan])
    np.testing.assert_array_equal(table.column("gap"), [np.nan, 7.0, 8.0])
    assert table.column("truth").tolist() == [True, False, True]
    assert table.column("text").tolist() == ["a", None, "b,c"]
    assert table.column("zip").tolist() == ["01234", "98765", "00001"]


def test_tabs_semicolons_and_gzip_are_read(library, tmp_path):
    (tmp_path / "a.tsv").write_text("x\ty\n1\t2\n")
    (tmp_path / "b.csv").write_text("y;x\n4;3\n")
    (tmp_path / "c.csv.gz").write_bytes(gzip.compress(b"x,y\n5,6\n"))
    table = read_table([str(tmp_path / name) for name in ("a.tsv", "b.csv", "c.csv.gz")])
    assert table.column("x").tolist() == [1, 3, 5]
    assert table.column("y").tolist() == [2, 4, 6]


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["x,x\n1,2\n"], "columns 'x' are there more than once"),
        (["x,y\n"], "there are no rows"),
        ([""], "is empty"),
        (["x,y\n1,2\n", "x,z\n1,2\n"], "has no columns 'y'"),
        (["x\n1\n", "x\na\n"], "numbers in one file and texts in another"),
        (["x,y\n1,2\n3\n4,5,6\n"], "cannot be read|values, the header has"),
    ],
)
@pytest.mark.usefixtures("library")
def test_bad_files_are_named(texts, message, tmp_path):
    paths = [tmp_path / f"{k}.csv" for k in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text)
    with pytest.raises(BadInput, match=message):
        read_table([str(path) for path in paths])


def test_types_may_change_far_below(tmp_path):
    path = tmp_path / "d.csv"
    path.write_text("x\n" + "1\n" * 11_000 + "0.5\n" + "word\n")
    assert read_table([str(path)]).column("x").tolist()[-2:] == ["0.5", "word"]
