"""`python -m ensemble_gpu compile`."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

import ensemble_gpu
from ensemble_gpu.__main__ import main
from ensemble_gpu.cli.compile import ESTIMATORS, LAYOUTS, cases
from ensemble_gpu.losses import CLASSIFICATION, REGRESSION

FITS = """
import numpy as np
from numba.core import event
from ensemble_gpu import AdaBoostClassifier
compiled = []
class Listener(event.Listener):
    def on_start(self, event):
        compiled.append(event.data["dispatcher"])
    def on_end(self, event):
        pass
event.register("numba:compile", Listener())
X = np.random.default_rng(1).normal(size=(5_000, 20))
y = (X[:, 0] > 0) + (X[:, 1] > 1)
for dtype in (np.float32, np.float64):
    for labels in (y, y > 0):
        AdaBoostClassifier(n_estimators=4).fit(X.astype(dtype), labels).predict_proba(X)
print(len(compiled), compiled)
"""


def test_every_estimator_loss_and_layout_is_compiled():
    every = cases(ESTIMATORS)
    public = [name for name in ensemble_gpu.__all__ if name.endswith(("Classifier", "Regressor"))]
    # those without threads of an engine have no kernels
    assert {case.estimator for case in every} == {
        name for name in public if "n_jobs" in getattr(ensemble_gpu, name)().get_params()
    }
    for name in ESTIMATORS:
        own = [case for case in every if case.estimator == name]
        assert {(case.dtype, case.order) for case in own} == set(LAYOUTS)
    for name, losses in (("BoostingClassifier", CLASSIFICATION), ("BoostingRegressor", REGRESSION)):
        own = [case for case in every if case.estimator == name]
        assert {case.parameters.get("loss") for case in own} >= set(losses)


@pytest.mark.slow
def test_after_compiling_a_fit_in_a_new_process_compiles_nothing(tmp_path):
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}

    def run(*arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, *arguments],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        return done.stdout

    said = run("-m", "ensemble_gpu", "compile", "--jobs", "2", "--only", "AdaBoostClassifier")
    assert "compiled functions are in the cache" in said
    assert str(tmp_path) in said
    assert run("-c", FITS).split()[0] == "0"


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
