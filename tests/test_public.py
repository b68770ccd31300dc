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
    "use_engine",
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


def test_the_code_of_the_readme_runs(monkeypatch, capsys):
    """From top to bottom in one namespace, with the rows that it speaks of."""
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    X = np.random.default_rng(0).normal(size=(400, 6))
    rows = {"X": X[:300], "X_test": X[300:], "target": X[:300, 0] + np.abs(X[:300, 1])}
    rows["y"] = (rows["target"] > 1.0).astype(int)
    code = blocks("README.md")
    assert len(code) >= 3
    exec(compile("\n".join(code), "README.md", "exec"), rows)
    assert "AdditiveModel(500 rounds on " in capsys.readouterr().out
    assert rows["p"].shape == (100, 2)
    assert rows["upper"].shape == (100,)
    assert rows["leaf"].shape == (100,)
    assert rows["forest"].oob_score_ > 0.0
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


def test_the_example_of_a_loss_runs_and_withstands_outliers(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["custom_loss.py"])
    runpy.run_path(str(ROOT / "examples" / "custom_loss.py"), run_name="__main__")
    text = capsys.readouterr().out
    error = {name: float(value) for name, value in re.findall(r"^  (\S+) +(\d\.\d+)$", text, re.M)}
    assert set(error) == {"squared", "huber", "log-cosh"}
    assert error["log-cosh"] < 0.2 < 2.0 < error["squared"]
    assert re.search(r"^  array_api_strict: Array, off by 0$", text, re.M)
