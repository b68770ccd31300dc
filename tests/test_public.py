"""The public names."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import numpy as np
import pytest

import ensemble_gpu

ROOT = Path(__file__).parent.parent
BOOSTING = ["AdaBoostClassifier", "BoostingClassifier", "BoostingRegressor"]
FORESTS = ["RandomForestClassifier", "RandomForestRegressor"]
TREES = ["DecisionTreeClassifier", "DecisionTreeRegressor"]
BAGGING = ["BaggingClassifier", "BaggingRegressor"]
ESTIMATORS = [*BOOSTING, *FORESTS, *TREES, *BAGGING]
OTHERS = [
    "AdditiveModel", "Forest", "ProgressBar", "RoundInfo", "TqdmBar", "export_text", "plot_tree",
    "use_engine", "cross_validate", "tune", "BoostingRanker",
]  # fmt: skip


def test_every_public_name_can_be_had_and_is_listed():
    for name in ensemble_gpu.__all__:
        assert getattr(ensemble_gpu, name) is not None
        assert name in dir(ensemble_gpu)


def test_the_names_of_the_first_release_are_there():
    assert {*OTHERS, *ESTIMATORS} <= set(ensemble_gpu.__all__)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="'ensemble_gpu' has no attribute 'RandomForest'"):
        _ = ensemble_gpu.RandomForest


def test_the_version_is_a_version():
    assert re.fullmatch(r"\d+\.\d+\.\d+\S*", ensemble_gpu.__version__)


@pytest.mark.parametrize("name", [*ESTIMATORS, *OTHERS])
def test_every_public_name_is_documented(name):
    assert len(getattr(ensemble_gpu, name).__doc__.split()) > 5


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_parameter_and_fitted_attribute_is_documented(name):
    from tests.datasets import random_data

    data, kind = random_data(), getattr(ensemble_gpu, name)
    given = {"early_stopping": True} if name in BOOSTING else {}
    given |= {} if name in BOOSTING + TREES else {"oob_score": True}
    given |= {} if name in TREES else {"n_estimators": 30 if "oob_score" in given else 3}
    estimator = kind(random_state=0, **given).fit(data.X, data.y)
    for attribute in [name for name in vars(estimator) if not name.startswith("_")]:
        assert re.search(rf"^    {attribute}\b|, {attribute}\b", kind.__doc__, re.MULTILINE), (
            attribute
        )


def blocks(file: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", (ROOT / file).read_text(), re.MULTILINE | re.DOTALL)


@pytest.mark.slow
def test_the_code_of_the_readme_runs(monkeypatch, capsys, tmp_path):
    """From top to bottom in one namespace, and nothing but what stands there."""
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    monkeypatch.chdir(tmp_path)  # it writes a file
    code = blocks("README.md")
    assert len(code) >= 8
    names: dict = {}
    for number, block in enumerate(code):
        exec(compile(block, f"README.md, block {number}", "exec"), names)
    printed = capsys.readouterr().out
    assert re.search(r"^AdditiveModel\(500 rounds on \d+ of 30 features", printed, re.MULTILINE)
    score = float(printed.splitlines()[0])
    said = float(re.search(r"print\(clf.score.*# (0\.\d+)$", "\n".join(code), re.M)[1])
    assert score == pytest.approx(said, abs=5e-4)
    assert names["p"].shape == (143, 2)
    assert "has not improved" in names["trees"].stop_reason_
    low, median, high = names["low"], names["median"], names["high"]
    assert (low <= median).all()
    assert (median <= high).all()
    inside = (low <= names["target_test"]) & (names["target_test"] <= high)
    assert 0.5 < np.mean(inside) < 1.0
    assert names["leaf"].shape == (143,)
    assert names["forest"].oob_score_ > 0.3
    matplotlib.pyplot.close("all")


def test_the_readme_names_every_loss_and_parameter_that_exists():
    """What stands in the first column of its tables of losses and parameters, and no more."""
    from ensemble_gpu.losses import CLASSIFICATION, REGRESSION

    text = (ROOT / "README.md").read_text()
    losses = text.split("## Losses")[1].split("\n## ")[0]
    named = re.findall(r'^\| `"(\w+)"`', losses, re.MULTILINE)
    assert sorted(named) == sorted([*CLASSIFICATION, *REGRESSION])
    table = text.split("## Parameters that matter")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (`.*?`) \|", table, re.MULTILINE)
    known = {p for name in ESTIMATORS for p in getattr(ensemble_gpu, name)().get_params()}
    assert set(re.findall(r"`(\w+)`", " ".join(rows))) <= known


@pytest.mark.slow
def test_the_example_of_a_loss_runs_and_withstands_outliers(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["custom_loss.py"])
    runpy.run_path(str(ROOT / "examples" / "custom_loss.py"), run_name="__main__")
    text = capsys.readouterr().out
    error = {name: float(value) for name, value in re.findall(r"^  (\S+) +(\d\.\d+)$", text, re.M)}
    assert set(error) == {"squared", "huber", "log-cosh"}
    assert error["log-cosh"] < 0.2 < 2.0 < error["squared"]
    assert re.search(r"^  array_api_strict: Array, off by 0$", text, re.M)
