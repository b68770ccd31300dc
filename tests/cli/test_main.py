"""What `python -m ensemble_gpu` says of itself, and what a wheel must hold."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

import ensemble_gpu
from ensemble_gpu.__main__ import main

ROOT = Path(ensemble_gpu.__file__).parents[1]


def test_the_version_is_printed():
    done = subprocess.run(
        [sys.executable, "-m", "ensemble_gpu", "--version"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == f"ensemble_gpu {ensemble_gpu.__version__}\n"
    assert done.stderr == ""


@pytest.mark.parametrize("arguments", [["--help"], []])
def test_the_help_speaks_of_everything(arguments, capsys):
    try:
        code = main(arguments)
    except SystemExit as end:
        code = end.code
    assert code == 0
    said = " ".join(capsys.readouterr().out.split())
    for word in ("AdaBoost", "gradient boosting", "decision trees", "random forests", "bagging"):
        assert word in said
    for word in (
        "train",
        "evaluate",
        "predict",
        "show",
        "export",
        "demo",
        "doctor",
        "compile",
        "--version",
    ):
        assert word in said


def test_the_script_runs_what_the_module_runs():
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    assert EntryPoint("ensemble-gpu", scripts["ensemble-gpu"], "console_scripts").load() is main


def test_the_types_are_part_of_the_package():
    data = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    assert data["package-data"] == {"ensemble_gpu": ["py.typed"]}
    assert (ROOT / "ensemble_gpu" / "py.typed").read_text() == ""
