import importlib.util
import subprocess
import sys

import numpy as np
import pytest

from ensemble_gpu import AdaBoostClassifier
from ensemble_gpu.__main__ import main
from ensemble_gpu.cli import demo
from ensemble_gpu.cli.demo_data import generated
from ensemble_gpu.cli.text import seconds, table

SMALL = demo.Scale(rows=1500, test_rows=400, rounds=12, identity_rows=200, identity_rounds=5)
pytest.importorskip("matplotlib").use("Agg")


@pytest.fixture
def two_places(monkeypatch):
    """The shipped set of two classes only: quick, and all that the pictures need."""
    sets = demo.shipped()[:1]
    monkeypatch.setattr(demo, "shipped", lambda: sets)


@pytest.mark.slow
@pytest.mark.usefixtures("two_places")
def test_demo_reports_and_draws(tmp_path, capsys):
    out = tmp_path / "pictures"
    assert demo.run(out, SMALL) == 0
    pictures = {"learning_curve.png", "margins.png", "shape_functions.png"}
    assert {path.name for path in out.iterdir()} == pictures
    captured = capsys.readouterr()
    text = captured.out
    assert "1,500 rows to train on, 400 to test on, 28 features" in text
    assert "Breast cancer" in text
    assert "scikit-learn" in text
    assert "engine: cpu" in text
    assert "warm" in text
    assert "Equal fingerprints mean equal models" in text
    assert all(str(out / name) in text for name in pictures)
    assert "round 12/12" in captured.err
    paths = [line for line in text.splitlines() if str(tmp_path) not in line]
    assert max(map(len, paths)) <= 100
    if importlib.util.find_spec("array_api_strict"):
        assert "array-api-strict, device1  reference" in text


@pytest.mark.usefixtures("two_places")
def test_demo_fails_where_models_differ(tmp_path, capsys, monkeypatch):
    class Wrong:
        """Threads that change the data: what a race would look like."""

        def __init__(self, **parameters):
            self.model = AdaBoostClassifier(**parameters)

        def fit(self, X, y):
            self.model.fit(X * (1.0 if self.model.n_jobs == 1 else 2.0), y)
            self.model_, self.engine_ = self.model.model_, self.model.engine_
            return self

    monkeypatch.setattr(demo, "AdaBoostClassifier", Wrong)
    data = generated(SMALL.rows, SMALL.test_rows)
    assert demo._check_identity(data, SMALL) is False
    assert "THE FINGERPRINTS DIFFER" in capsys.readouterr().out


def test_scikit_learn_gets_fewer_rounds_where_it_would_take_long(capsys, monkeypatch):
    monkeypatch.setattr(demo, "PEER_SECONDS", 1e-9)
    demo._compare(demo._fit(generated(300, 200), 8))
    text = capsys.readouterr().out
    assert "scikit-learn was given 2 rounds: 8 would take it about" in text
    assert "its first rounds" in text


def test_generated_labels_follow_their_truth():
    data = generated(4000, 1000)
    assert data.X.shape == (4000, 28)
    assert len(data.feature_names) == 28
    assert 0.2 < data.y.mean() < 0.5
    assert np.mean((data.truth > 0.0) == data.y_test) > 0.7
    again = generated(4000, 1000)
    np.testing.assert_array_equal(data.X, again.X)


def test_help_is_printed_without_a_command(capsys):
    assert main([]) == 0
    text = capsys.readouterr().out
    assert "demo" in text
    assert "doctor" in text


def test_help_needs_no_heavy_import():
    code = (
        "import sys; from ensemble_gpu.__main__ import main; main([]); "
        "sys.exit(any(m in sys.modules for m in ('sklearn', 'numba', 'matplotlib')))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0


def test_out_names_the_folder(monkeypatch, tmp_path):
    seen = []
    monkeypatch.setattr(demo, "run", lambda out: seen.append(out) or 0)
    assert main(["demo", "--out", str(tmp_path)]) == 0
    assert seen == [tmp_path]


def test_tables_are_aligned_and_times_readable():
    text = table(("a", "n"), [["x", "1"], ["long", "234"]], indent="")
    assert text.splitlines() == ["a       n", "----  ---", "x       1", "long  234"]
    assert [seconds(t) for t in (0.0123, 0.5, 2.345, 78.9)] == [
        "12.3 ms",
        "0.50 s",
        "2.35 s",
        "78.9 s",
    ]
