"""What the documents say of clusters runs as it stands there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import dask.array as da
import numpy as np

import ensemble_gpu
from ensemble_gpu import AdaBoostClassifier
from tests.distributed.test_same_model import rows

ROOT = Path(ensemble_gpu.__file__).parent.parent


def test_the_page_about_clusters_runs(tmp_path):
    (code,) = re.findall(
        r"^```python\n(.*?)^```", (ROOT / "docs/cluster.md").read_text(), re.M | re.S
    )
    program = tmp_path / "program.py"
    program.write_text(code)
    done = subprocess.run(
        [sys.executable, str(program)], capture_output=True, text=True, timeout=120, check=False,
        cwd=ROOT,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    X = da.random.default_rng(0).normal(size=(20_000, 8), chunks=(5_000, 8)).compute()
    y = (X[:, 0] + X[:, 1] * X[:, 2] > 0).astype(np.int64)
    assert (
        done.stdout.split()[-1]
        == AdaBoostClassifier(n_estimators=50).fit(X, y).model_.fingerprint()
    )


def test_the_readme_about_clusters_runs(client):
    (code,) = re.findall(r"^```py\n(.*?)^```", (ROOT / "README.md").read_text(), re.M | re.S)
    X, y, w = rows("2", "real")
    names = {
        "client": client,
        "dX": da.from_array(X, chunks=(200, 5)),
        "dy": da.from_array(y, chunks=200),
        "dw": da.from_array(w, chunks=200),
    }
    exec(compile(code, "README.md", "exec"), names)
    local = AdaBoostClassifier(n_estimators=1000).fit(X, y, w)
    assert names["clf"].model_.fingerprint() == local.model_.fingerprint()
