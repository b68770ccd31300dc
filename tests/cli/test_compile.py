"""`python -m ensemble_gpu compile`."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

import ensemble_gpu
from ensemble_gpu.__main__ import main
from ensemble_gpu.cli import compile as compiling
from ensemble_gpu.cli.compile import ESTIMATORS, LAYOUTS, cases
from ensemble_gpu.losses import CLASSIFICATION, RANKING, REGRESSION

# All fits of AdaBoost that are compiled for, then others: do they need kernels for other types?
FITS = """
import sys
import numpy as np
from ensemble_gpu import AdaBoostClassifier
from ensemble_gpu.cli.compile import cases
from ensemble_gpu.kernels.jit import KernelCache

def compiled():
    rooms = [m for name, m in sys.modules.items() if name.startswith("ensemble_gpu.kernels.")]
    found = {id(one): one for room in rooms for one in vars(room).values()}.values()
    kernels = [one for one in found if isinstance(getattr(one, "_cache", None), KernelCache)]
    return {(one.py_func, types) for one in kernels for types in one.overloads}

for case in cases(["AdaBoostClassifier"]):
    case.run()
before = compiled()
X = np.random.default_rng(1).normal(size=(5_000, 20))
y = (X[:, 0] > 0) + (X[:, 1] > 1)
for dtype in (np.float32, np.float64):
    for labels in (y, y > 0):
        AdaBoostClassifier(n_estimators=4).fit(X.astype(dtype), labels).predict_proba(X)
print(len(before), compiled() - before)
"""
# One of the fits alone, of stumps: that is compiled fast.
ONE = """
from ensemble_gpu.cli import compile as compiling
if __name__ == "__main__":
    fit = compiling.Case("BoostingRegressor", 0, {"n_estimators": 2, "max_depth": 1})
    compiling.cases = lambda estimators: [fit]
    compiling.run(2, ["BoostingRegressor"])
"""
AGAIN = """
from numba.core import event
from ensemble_gpu.cli.compile import Case
compiled = []
class Listener(event.Listener):
    def on_start(self, event):
        compiled.append(event.data["dispatcher"])
    def on_end(self, event):
        pass
event.register("numba:compile", Listener())
Case("BoostingRegressor", 0, {"n_estimators": 2, "max_depth": 1}).run()
print(len(compiled), compiled)
"""


def test_every_estimator_loss_and_layout_is_compiled():
    every = cases(ESTIMATORS)
    kinds = ("Classifier", "Regressor", "Ranker")
    public = [name for name in ensemble_gpu.__all__ if name.endswith(kinds)]
    # those without threads of an engine have no kernels
    assert {case.estimator for case in every} == {
        name for name in public if "n_jobs" in getattr(ensemble_gpu, name)().get_params()
    }
    for name in ESTIMATORS:
        own = [case for case in every if case.estimator == name]
        assert {(case.dtype, case.order) for case in own} == set(LAYOUTS)
    for name, losses in (
        ("BoostingClassifier", CLASSIFICATION),
        ("BoostingRegressor", REGRESSION),
        ("BoostingRanker", RANKING),
    ):
        own = [case for case in every if case.estimator == name]
        assert {case.parameters.get("loss") for case in own} >= set(losses)


def run(*arguments: str, **environment: str) -> tuple[str, str]:
    """What a new process says and warns of."""
    done = subprocess.run(
        [sys.executable, *arguments],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


@pytest.mark.long
def test_after_compiling_a_fit_in_a_new_process_compiles_nothing(tmp_path):
    (tmp_path / "one.py").write_text(ONE)
    own = {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    said, warned = run(str(tmp_path / "one.py"), **own)
    assert warned == ""
    assert "1 of 1 fits, round 2 of 2" in said
    assert "compiled functions are in the cache" in said
    assert str(tmp_path / "cache") in said
    assert run("-c", AGAIN, **own) == ("0 []\n", "")


@pytest.mark.long
def test_fits_of_other_data_need_no_kernels_but_those_that_are_compiled():
    before, others = run("-c", FITS)[0].split(maxsplit=1)
    assert int(before) > 10
    assert others.strip() == "set()"


def test_the_command_hands_its_arguments_on(monkeypatch):
    given = []
    monkeypatch.setattr(compiling, "run", lambda *arguments: given.append(arguments) or 0)
    assert main(["compile", "--jobs", "2", "--only", "AdaBoostClassifier"]) == 0
    assert main(["compile"]) == 0
    assert given == [(2, ["AdaBoostClassifier"]), (None, ESTIMATORS)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--jobs", "0"], "--jobs must be at least 1; got 0"),
        (["--only", "Stump"], "--only must name some of AdaBoostClassifier, .*; got \\['Stump'\\]"),
    ],
)
def test_bad_arguments_are_named(arguments, message, capsys):
    with pytest.raises(SystemExit):
        main(["compile", *arguments])
    said = " ".join(capsys.readouterr().err.split())
    assert re.search(message, said)
