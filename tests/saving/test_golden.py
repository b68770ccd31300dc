"""Files of every schema are read for ever; a reader without this package predicts the same bits.

`python -m tests.saving.test_golden` writes those of the newest schema, which is done once.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ensemble_gpu as eg
from ensemble_gpu.saving.document import SCHEMA, fingerprint_of
from tests.saving.cases import CASES, fitted, rows_of

GOLDEN = Path(__file__).parent / "golden"
PAGE = Path(__file__).parents[2] / "docs" / "file_format.md"
# Of each kind of model one, and what else a file has a form for.
CHOSEN = {
    "stumps": "AdaBoost, labels", "forest": "forest", "trees": "Boosting, numbers",
    "committee": "AdaBoost, coded trees", "pool": "AdaBoost, pool", "bags": "bagging",
    "half_spaces": "AdaBoost, half-spaces", "threshold": "threshold", "splines": "L2, splines",
    "neighbours": "neighbours", "linear": "linear", "l1": "L1, classes", "ranker": "ranker",
    "generator": "Boosting, stumps",
}  # fmt: skip
# Their predictions solve equations, and may differ in the last digits from machine to machine.
BY_LAPACK = ("splines",)


def known(schema: int) -> dict[str, Any]:
    return json.loads((GOLDEN / str(schema) / "known.json").read_text())


@pytest.mark.parametrize("schema", range(1, SCHEMA + 1))
@pytest.mark.parametrize("name", CHOSEN)
def test_old_files_are_read(schema, name):
    facts = known(schema)[name]
    for suffix in ("safetensors", "json"):
        path = GOLDEN / str(schema) / f"{name}.{suffix}"
        if not path.exists():
            assert suffix == "json"
            continue
        loaded = eg.load(path)
        assert fingerprint_of(loaded) == facts["fingerprint"] == eg.read_header(path)["fingerprint"]
        rows = rows_of(loaded)[:6]
        found, expected = loaded.predict(rows).tolist(), facts["predictions"]
        assert found == (pytest.approx(expected, rel=1e-12) if name in BY_LAPACK else expected)


def reader() -> str:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    return code


def test_reader_on_the_page_has_30_lines():
    assert len(reader().splitlines()) <= 30


def test_reader_on_the_page_predicts_the_same_bits_without_this_package(tmp_path):
    names = ("AdaBoost, labels", "AdaBoost, three classes", "Boosting, numbers", "tree")
    names += ("regression forest",)
    for k, name in enumerate(names):
        fitted(name).save(tmp_path / f"{k}.safetensors")
    np.save(tmp_path / "X.npy", rows_of(fitted("tree")))
    script = (
        "import sys; sys.modules['ensemble_gpu'] = None\n" + reader() + "\n"
        f"X = np.load('X.npy')\nfor k in range({len(names)}):\n"
        "    np.save(f'{k}.npy', outputs(f'{k}.safetensors', X))\n"
    )
    subprocess.run([sys.executable, "-I", "-c", script], cwd=tmp_path, check=True)
    for k, name in enumerate(names):
        model = fitted(name).model_
        found = np.load(tmp_path / f"{k}.npy")
        assert found.tobytes() == model(np.load(tmp_path / "X.npy")).tobytes(), name


def write() -> None:
    folder = GOLDEN / str(SCHEMA)
    folder.mkdir(parents=True)
    facts = {}
    for name, case in CHOSEN.items():
        estimator = fitted(case)
        estimator.save(folder / f"{name}.safetensors")
        if name in ("stumps", "forest"):
            estimator.save(folder / f"{name}.json")
        facts[name] = {
            "fingerprint": fingerprint_of(estimator),
            "predictions": estimator.predict(rows_of(estimator)[:6]).tolist(),
        }
    (folder / "known.json").write_text(json.dumps(facts, indent=1) + "\n")


if __name__ == "__main__":
    assert set(CHOSEN.values()) <= set(CASES)
    write()
