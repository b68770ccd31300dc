"""train, evaluate, predict, show and export, as a shell gives them their arguments."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes

import ensemble_gpu
from ensemble_gpu import AdaBoostClassifier, BoostingRegressor, RandomForestClassifier
from ensemble_gpu.__main__ import main
from ensemble_gpu.cli import readers, tables

ROUNDS = 15


@pytest.fixture(scope="module")
def frame():
    """Numbers, a category with a missing value, a number, and labels that are texts."""
    data = load_breast_cancer(as_frame=True)
    found = pl.from_pandas(data.data.iloc[:240, :5])
    names = np.array(["small", "middle", "large"])[np.digitize(found["mean area"], [400.0, 700.0])]
    size = pl.Series([None if k % 17 == 0 else v for k, v in enumerate(names.tolist())])
    return found.with_columns(
        size=size, y=pl.Series(data.target_names[data.target[:240]].tolist()),
        id=pl.Series([f"p{k}" for k in range(240)]),
    )  # fmt: skip


@pytest.fixture(scope="module")
def folder(frame, tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    frame[:160].write_csv(folder / "train.csv")
    frame[:80].write_parquet(folder / "part-1.parquet")
    frame[80:160].select(reversed(frame.columns)).write_parquet(folder / "part-2.parquet")
    frame[160:].write_csv(folder / "test.csv")
    return folder


@pytest.fixture(scope="module")
def trained(folder):
    """A model of the command line."""
    model = folder / "m.safetensors"
    arguments = ["--label", "y", "--model", "adaboost", "--rounds", str(ROUNDS), "--ignore", "id"]
    assert main(["train", str(folder / "train.csv"), *arguments, "--out", str(model)]) == 0
    return model


def of_python(frame):
    X = frame[:160].drop("y", "id").with_columns(pl.col("size").cast(pl.Categorical))
    y = np.array(frame["y"][:160].to_list())
    return AdaBoostClassifier(n_estimators=ROUNDS, random_state=0).fit(X, y)


def test_the_model_is_that_of_python(trained, frame):
    expected = of_python(frame)
    found = ensemble_gpu.load(trained)
    assert found.model_.fingerprint() == expected.model_.fingerprint()
    assert found.scale_ == expected.scale_
    assert found.feature_names_in_.tolist() == frame.columns[:6]
    assert found.classes_.tolist() == ["benign", "malignant"]


@pytest.mark.slow
def test_several_files_cross_validation_and_results(folder, trained, capsys):
    out, page = folder / "parts.safetensors", folder / "report.html"
    arguments = ["--label", "y", "--model", "adaboost", "--rounds", str(ROUNDS), "--ignore", "id"]
    more = ["--cv", "3", "--report", str(page), "--test", str(folder / "test.csv"), "--json"]
    code = main(["train", str(folder / "part-*.parquet"), *arguments, *more, "--out", str(out)])
    said = capsys.readouterr()
    assert code == 0
    results = json.loads(said.out)
    assert results["fingerprint"] == ensemble_gpu.load(trained).model_.fingerprint()
    assert results["rounds"] == ROUNDS
    assert results["rows"] == 160
    assert results["task"] == "classification"
    assert 0.8 < results["cross-validation"]["roc_auc"]["mean"] <= 1.0
    assert "160 rows, 6 features (1 of categories), label 'y'" in said.err
    assert "task: classification (the label holds 2 distinct texts)" in said.err
    assert f"round {ROUNDS}/{ROUNDS}" in said.err
    assert results["fingerprint"] in page.read_text()
    assert "80 test rows" in page.read_text()


def test_a_report_without_test_rows_is_of_a_model_of_other_rows(folder, capsys):
    page = folder / "own.html"
    arguments = ["--label", "y", "--model", "tree", "--depth", "2", "--ignore", "id", "--quiet"]
    assert main(["train", str(folder / "train.csv"), *arguments, "--report", str(page)]) == 0
    said = capsys.readouterr()
    assert said.err == ""
    assert f"report       {page}" in said.out
    assert "A model of 128 of 160 rows, judged by the others." in page.read_text()


def test_evaluate_says_what_the_model_is_worth(folder, trained, frame, capsys):
    assert main(["evaluate", str(trained), str(folder / "test.csv"), "--label", "y"]) == 0
    text = capsys.readouterr().out
    arguments = [str(trained), str(folder / "test.csv"), "--label", "y", "--json", "--quiet"]
    assert main(["evaluate", *arguments]) == 0
    said = capsys.readouterr()
    found = json.loads(said.out)
    model = ensemble_gpu.load(trained)
    X, y = frame[160:].select(frame.columns[:6]), np.array(frame["y"][160:].to_list())
    assert found["accuracy"] == model.score(X, y)
    assert found["rows"] == 80
    assert {"log_loss", "roc_auc", "brier", "balanced_accuracy"} <= set(found)
    assert said.err == ""
    assert f"accuracy           {found['accuracy']:.6g}" in text


def test_predictions_go_to_files_and_to_standard_output(folder, trained, frame, capsys):
    model, test = ensemble_gpu.load(trained), str(folder / "test.csv")
    p = model.predict_proba(frame[160:].select(frame.columns[:6]))
    assert main(["predict", str(trained), test, "--proba", "--id", "id"]) == 0
    found = pl.read_csv(io.StringIO(capsys.readouterr().out))
    assert found.columns == ["id", "prediction", "probability_benign", "probability_malignant"]
    assert found["id"].to_list() == frame["id"][160:].to_list()
    np.testing.assert_array_equal(found.select(found.columns[2:]).to_numpy(), p)
    out = folder / "p.parquet"
    assert main(["predict", str(trained), test, "--out", str(out), "--proba", "--quiet"]) == 0
    assert pl.read_parquet(out).equals(found.drop("id"))
    assert capsys.readouterr() == ("", "")


def test_show_prints_the_model(folder, trained, capsys):
    assert main(["show", str(trained)]) == 0
    text = capsys.readouterr().out
    assert ensemble_gpu.load(trained).model_.fingerprint() in text
    assert "n_estimators=15" in text
    assert "mean area" in text
    numbers = folder / "numbers.safetensors"
    arguments = ["--label", "y", "--rounds", "20", "--depth", "1", "--ignore", "id", "size"]
    main(["train", str(folder / "train.csv"), *arguments, "--out", str(numbers), "--quiet"])
    capsys.readouterr()
    assert main(["show", str(numbers), "--feature", "mean area", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    table = ensemble_gpu.load(numbers).model_.shape_function(3)
    assert found["thresholds"] == table.thresholds.tolist()
    assert found["values"] == table.values.tolist()
    assert main(["show", str(numbers), "--feature", "mean area"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(table.values) + 3
    assert lines[-1].split()[0] == "missing"


def test_export_goes_by_the_ending(folder, trained, capsys):
    out = folder / "m.json"
    assert main(["export", str(trained), str(out)]) == 0
    assert "m.json" in capsys.readouterr().err
    assert ensemble_gpu.load(out).model_.fingerprint() == (
        ensemble_gpu.load(trained).model_.fingerprint()
    )
    code = folder / "m.c"
    assert main(["export", str(trained), str(code), "--quiet"]) == 0
    assert code.read_text() == ensemble_gpu.to_code(ensemble_gpu.load(trained), "c")
    pytest.importorskip("onnx")
    graph = folder / "m.onnx"
    assert main(["export", str(trained), str(graph), "--quiet"]) == 0
    assert graph.read_bytes() == (
        ensemble_gpu.to_onnx(ensemble_gpu.load(trained)).SerializeToString()
    )


@pytest.mark.slow
@pytest.mark.parametrize("library", ["pyarrow", "csv"])
def test_the_model_is_the_same_without_polars(library, folder, trained, monkeypatch, capsys):
    missing = {"polars"} if library == "pyarrow" else {"polars", "pyarrow"}

    def find(name):
        return None if name in missing else SimpleNamespace()

    monkeypatch.setattr(readers, "find_spec", find)
    monkeypatch.setattr(tables, "find_spec", find)
    assert readers.reader() == library
    out = folder / f"{library}.safetensors"
    arguments = ["--label", "y", "--model", "adaboost", "--rounds", str(ROUNDS), "--ignore", "id"]
    main(["train", str(folder / "train.csv"), *arguments, "--out", str(out), "--quiet"])
    found, expected = ensemble_gpu.load(out), ensemble_gpu.load(trained)
    assert found.model_.fingerprint() == expected.model_.fingerprint()
    assert found.feature_names_in_.tolist() == expected.feature_names_in_.tolist()
    capsys.readouterr()
    test = str(folder / "test.csv")
    answers = []
    for model in (out, trained):
        assert main(["predict", str(model), test, "--proba"]) == 0
        answers.append(capsys.readouterr().out)
    assert answers[0] == answers[1]
    page = folder / "other.html"
    assert main(["evaluate", str(out), test, "--label", "y", "--report", str(page)]) == 0
    assert "Worst rows" in page.read_text()
    parquet = main(["evaluate", str(out), str(folder / "part-1.parquet"), "--label", "y"])
    assert parquet == (2 if library == "csv" else 0)


def test_numbers_are_regression_and_seeds_and_settings_are_passed(tmp_path, capsys):
    data = load_diabetes(as_frame=True, scaled=False).frame[:150]
    pl.from_pandas(data).write_csv(tmp_path / "d.csv")
    out = tmp_path / "r.json"
    arguments = [
        "--label",
        "target",
        "--rounds",
        "8",
        "--depth",
        "2",
        "--seed",
        "3",
        "--rate",
        "0.2",
    ]
    more = ["--set", "min_samples_leaf=5", "--set", "loss=absolute", "--device", "cpu"]
    assert main(["train", str(tmp_path / "d.csv"), *arguments, *more, "--out", str(out)]) == 0
    assert "task: regression (the label holds" in capsys.readouterr().err
    expected = BoostingRegressor(
        "absolute", n_estimators=8, max_depth=2, random_state=3, learning_rate=0.2,
        min_samples_leaf=5, device="cpu",
    ).fit(data.drop(columns="target").astype(float), data["target"])  # fmt: skip
    assert ensemble_gpu.load(out).model_.fingerprint() == expected.model_.fingerprint()
    assert main(["evaluate", str(out), str(tmp_path / "d.csv"), "--label", "target"]) == 0
    assert "rmse" in capsys.readouterr().out


def test_whole_numbers_are_classes_unless_the_task_is_set(tmp_path, capsys):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    whole = (X[:, 0] > 0).astype(int) + 3
    pl.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": whole}).write_csv(tmp_path / "d.csv")
    data, out = str(tmp_path / "d.csv"), str(tmp_path / "m.safetensors")
    arguments = ["train", data, "--label", "y", "--model", "forest", "--rounds", "2", "--out", out]
    assert main(arguments) == 0
    assert ensemble_gpu.load(out).classes_.tolist() == [3, 4]
    expected = RandomForestClassifier(n_estimators=2, random_state=0).fit(X, whole)
    assert ensemble_gpu.load(out).model_.fingerprint() == expected.model_.fingerprint()
    assert main([*arguments, "--task", "regression"]) == 0
    assert type(ensemble_gpu.load(out)).__name__ == "RandomForestRegressor"
    assert "task: regression (as asked)" in capsys.readouterr().err


def test_rankings_are_of_queries(tmp_path, capsys):
    rng = np.random.default_rng(0)
    a = rng.normal(size=90)
    level = np.digitize(a + 0.3 * rng.normal(size=90), [-0.5, 0.5])
    q = [f"q{k // 9}" for k in range(90)]
    pl.DataFrame({"a": a, "q": q, "y": level}).write_csv(tmp_path / "d.csv")
    data, out = str(tmp_path / "d.csv"), str(tmp_path / "m.safetensors")
    arguments = ["--label", "y", "--query", "q"]
    model = ["--rounds", "5", "--depth", "1", "--out", out]
    assert main(["train", data, *arguments, *model]) == 0
    assert "task: ranking" in capsys.readouterr().err
    assert main(["evaluate", out, data, *arguments, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["ndcg@10"] > 0.8
    assert main(["evaluate", out, data, "--label", "y"]) == 2


def test_a_fit_goes_on_from_its_checkpoints(folder, trained, tmp_path, capsys):
    run, out = tmp_path / "run.safetensors", tmp_path / "m.safetensors"
    arguments = [
        "train", str(folder / "train.csv"), "--label", "y", "--model", "adaboost", "--ignore", "id",
        "--resume", str(run), "--out", str(out),
    ]  # fmt: skip
    assert main([*arguments, "--rounds", "6"]) == 0
    assert "begins, with checkpoints in" in capsys.readouterr().err
    assert len(ensemble_gpu.load(run).errors_) == 6
    assert main([*arguments, "--rounds", str(ROUNDS)]) == 0
    assert "goes on from" in capsys.readouterr().err
    expected = ensemble_gpu.load(trained).model_.fingerprint()
    assert ensemble_gpu.load(out).model_.fingerprint() == expected
    assert main([*arguments, "--rounds", "20", "--rate", "0.5"]) == 2
    assert "learning_rate" in capsys.readouterr().err


BAD = [
    (["train", "none.csv", "--label", "y", "--out", "m.safetensors"], "no file 'none.csv'"),
    (["train", "none-*.csv", "--label", "y", "--out", "m.safetensors"], "no file matches"),
    (["train", "train.csv", "--label", "z", "--out", "m.safetensors"], "no column 'z'"),
    (["train", "train.csv", "--label", "y"], "give --out, --report or --cv"),
    (["train", "train.csv", "--label", "y", "--out", "m.pickle"], ".safetensors or .json"),
    (["train", "train.csv", "--label", "y", "--out", "no/m.json"], "there is no folder"),
    (["train", "train.csv", "--label", "y", "--cv", "1"], "--cv must be at least 2"),
    (["train", "train.csv", "--label", "id", "--task", "regression", "--cv", "2"], "holds texts"),
    (["train", "train.csv", "--label", "y", "--cv", "2", "--set", "x"], "--set takes name=value"),
    (["train", "train.csv", "--label", "y", "--cv", "2", "--set", "x=1"], "no parameter x"),
    (["train", "train.csv", "--label", "mean area", "--model", "adaboost", "--cv", "2"],
     "--model adaboost is not for regression"),
    (["train", "train.csv", "--label", "size", "--cv", "2"], "'size' is missing in 10 of 160 rows"),
    (["train", "train.csv", "--label", "y", "--rounds", "-3", "--cv", "2"], "n_estimators"),
    (["train", "train.csv", "--label", "y", "--rounds", "many"], "invalid int value"),
    (["train", "m.safetensors", "--label", "y", "--cv", "2"], "files must end with"),
    (["train", "dates.csv.gz", "--label", "y", "--cv", "2"], "neither number nor text"),
    (["evaluate", "none.safetensors", "test.csv", "--label", "y"], "there is no model"),
    (["evaluate", "test.csv", "test.csv", "--label", "y"], "is no model"),
    (["evaluate", "m.safetensors", "narrow.csv", "--label", "y"],
     "2 columns of the model missing: 'mean texture', 'mean smoothness'"),
    (["evaluate", "m.safetensors", "test.csv", "--label", "id"], "which the model does not know"),
    (["predict", "m.safetensors", "test.csv", "--out", "p.xls"], ".csv, .tsv or .parquet"),
    (["predict", "m.safetensors", "test.csv", "--id", "nobody"], "no column 'nobody'"),
    (["show", "m.safetensors", "--feature", "nothing"], "no feature 'nothing'"),
    (["show", "m.safetensors", "--feature", "size"], "models of stumps"),
    (["export", "m.safetensors", "m.exe"], "FILE must end with one of .onnx"),
]  # fmt: skip


@pytest.mark.usefixtures("trained")
@pytest.mark.parametrize(("arguments", "message"), BAD)
def test_bad_input_is_one_line_and_exit_code_2(
    arguments, message, folder, frame, monkeypatch, capsys
):
    monkeypatch.chdir(folder)
    frame[160:].drop("mean texture", "mean smoothness").write_csv("narrow.csv")
    days = pl.DataFrame({"y": [0, 1] * 5, "day": ["2026-01-02"] * 10})
    days.with_columns(pl.col("day").str.to_date()).write_parquet("dates.csv.gz")
    try:
        code = main(arguments)
    except SystemExit as end:
        code = end.code
    said = capsys.readouterr()
    assert code == 2
    assert said.out == ""
    last = said.err.splitlines()[-1]
    assert message in last
    assert "error: " in last
    assert "Traceback" not in said.err
    assert not (folder / "m.pickle").exists()


@pytest.mark.slow
def test_standard_input_and_output_are_pipes(folder, trained, frame):
    """Two real processes: a model to a pipe, and predictions of rows from a pipe."""

    def run(*arguments, **options):
        command = [sys.executable, "-m", "ensemble_gpu", *arguments]
        return subprocess.run(command, capture_output=True, check=True, timeout=120, **options)

    settings = ["--label", "y", "--model", "adaboost", "--rounds", str(ROUNDS), "--ignore", "id"]
    rows = (folder / "train.csv").read_bytes()
    made = run("train", "-", *settings, "--out", "-", input=rows)
    assert made.stdout == trained.read_bytes()
    assert b"fingerprint" in made.stderr
    test = (folder / "test.csv").read_bytes()
    done = run("predict", str(trained), "-", input=test, text=False)
    model = ensemble_gpu.load(trained)
    expected = model.predict(frame[160:].select(frame.columns[:6])).tolist()
    assert done.stdout.decode().split() == ["prediction", *expected]
    assert done.stderr == b""
