import importlib.util
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from ensemble_gpu.__main__ import main
from ensemble_gpu.cli import demo, demo_contest, demo_places
from ensemble_gpu.cli.demo_contest import (
    Contest,
    Contestant,
    Entry,
    compared,
    contests,
    race,
    report,
)
from ensemble_gpu.cli.demo_data import generated, shipped
from ensemble_gpu.cli.text import seconds, table

SMALL = demo.Scale(
    rows=1500, test_rows=400, rounds=12, peer_rounds=3, trees=4, turns=2, identity_rows=200,
    identity_rounds=3,
)  # fmt: skip
PICTURES = {"learning_curve.png", "margins.png", "shape_functions.png", "history.png", "tree.png"}
KEPT = {"model.safetensors", "report.html"}
pytest.importorskip("matplotlib").use("Agg")


@pytest.fixture
def one_set(monkeypatch):
    """The shipped set of two classes only: quick, and all that the pictures need."""
    sets = shipped()[:1]
    monkeypatch.setattr(demo, "shipped", lambda: sets)
    monkeypatch.setattr(demo, "busy", lambda: None)


@pytest.mark.slow
@pytest.mark.usefixtures("one_set")
def test_demo_reports_and_draws(tmp_path, capsys):
    out = tmp_path / "pictures"
    assert demo.run(out, SMALL) == 0
    assert {path.name for path in out.iterdir()} == PICTURES | KEPT
    text = capsys.readouterr().out
    assert "1,500 rows to train on, 400 to test on, 28 features" in text
    assert "engine: cpu" in text
    for title in ("AdaBoost with stumps", "Boosted trees", "Random forest", "Breast cancer"):
        assert title in text
    assert text.count("scikit-learn") >= 6
    assert ("LightGBM" in text) == (importlib.util.find_spec("lightgbm") is not None)
    assert "Equal fingerprints mean equal models" in text
    assert all(str(out / name) in text for name in PICTURES | KEPT)
    assert "Loaded from the file it has the same fingerprint" in text
    paths = [line for line in text.splitlines() if str(tmp_path) not in line]
    assert max(map(len, paths)) <= 100
    if importlib.util.find_spec("array_api_strict"):
        assert "array-api-strict, device1  reference" in text


@pytest.mark.slow
def test_demo_fails_where_models_differ(capsys, monkeypatch):
    class Wrong:
        """Threads that change the data: what a race would look like."""

        def __init__(self, n, n_jobs):
            self.model = demo_places.AdaBoostClassifier(n_estimators=n, n_jobs=n_jobs)

        def fit(self, X, y):
            X = X * 1.0 if self.model.n_jobs == 1 else X * X
            self.model.fit(X, y)
            self.model_, self.engine_ = self.model.model_, self.model.engine_
            return self

    data = generated(SMALL.rows, SMALL.test_rows)
    assert demo._check_identity(data, SMALL) is True
    monkeypatch.setitem(demo_places.ESTIMATORS, "forest", Wrong)
    assert demo._check_identity(data, SMALL) is False
    assert "THE FINGERPRINTS DIFFER" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("ratio", "says"),
    [
        (40.2, "Ours is 40 times as fast as LightGBM."),
        (3.14, "Ours is 3.1 times as fast as LightGBM."),
        (1.05, "Ours and LightGBM take about the same time."),
        (0.45, "LightGBM is 2.2 times as fast as ours."),
        (1e-4, "LightGBM is 10,000 times as fast as ours."),
    ],
)
def test_a_ratio_is_said_of_the_faster_one(ratio, says):
    assert compared("ours", "LightGBM", ratio) == says


def entry(name, times):
    p = np.tile([0.3, 0.7], (400, 1))
    model = SimpleNamespace(predict_proba=lambda X: p, classes_=np.array([0, 1]))
    return Entry(Contestant(name, "1 tree", lambda: None), times, model)


def test_ratios_are_medians_within_turns():
    """A turn in which the machine was busy slows all, and says nothing about who is faster."""
    contest = Contest("", [Contestant(name, "", lambda: None) for name in ("ours", "theirs")])
    both = [entry("ours", [1.0, 10.0, 1.1]), entry("theirs", [2.0, 20.0, 2.2])]
    text = "\n".join(report(contest, both, generated(100, 400)))
    assert "Ours is 2.0 times as fast as theirs." in text
    assert "up to 10.0 times as long in another turn: the machine is busy" in text
    both = [entry("ours", [1.0, 1.1, 1.0]), entry("theirs", [0.5, 0.5, 0.5])]
    text = "\n".join(report(contest, both, generated(100, 400)))
    assert "theirs is 2.0 times as fast as ours." in text
    assert "busy" not in text


def test_everybody_fits_in_turns_while_there_is_time(monkeypatch):
    seen = []

    class Fake:
        def __init__(self, name):
            self.name = name

        def fit(self, X, y):
            seen.append(self.name)

    contest = Contest("", [Contestant(n, "", lambda n=n: Fake(n)) for n in "ab"])
    assert [len(e.times) for e in race(contest, generated(10, 10), 3)] == [3, 3]
    assert seen == list("ababab")
    monkeypatch.setattr(demo_contest, "MOST_SECONDS", -1.0)
    assert [len(e.times) for e in race(contest, generated(10, 10), 3)] == [1, 1]


def test_where_others_are_at_work_no_ratio_is_told(monkeypatch, capsys):
    monkeypatch.setattr("os.getloadavg", lambda: (9.75, 0.0, 0.0), raising=False)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    others = demo_contest.busy()
    assert others == "the load average is 9.8 on 2 processor(s)"
    demo._compare(contests(3, 2, 2)[:1], generated(300, 200), 3, others)
    text = capsys.readouterr().out
    assert "Other programs are at work: the load average is 9.8" in text
    assert "as fast as" not in text
    monkeypatch.setattr("os.getloadavg", lambda: (2.2, 9.0, 9.0), raising=False)
    assert demo_contest.busy() is None


@pytest.mark.interop
def test_torch_and_jax_are_places_of_the_demo():
    data = generated(200, 10)
    found = list(demo_places.fingerprints(data.X, data.y, 3))
    assert {"torch, CPU", "JAX, CPU"} <= {row[0] for row in found}
    assert len({tuple(row[2:]) for row in found}) == 1


def test_lightgbm_takes_part_where_it_is_installed(monkeypatch):
    monkeypatch.setattr(demo_contest, "_lightgbm", lambda: lambda **settings: settings)
    names = [[c.name for c in contest.contestants] for contest in contests(5, 2, 3)]
    assert names[1][-1] == "LightGBM"
    monkeypatch.setattr(demo_contest, "_lightgbm", lambda: None)
    names = [[c.name for c in contest.contestants] for contest in contests(5, 2, 3)]
    assert not any("LightGBM" in own for own in names)


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
    text = table(("a", "print"), [["x", "2af38478"], ["y", "500c8647"]], indent="")
    assert text.splitlines() == ["a  print", "-  --------", "x  2af38478", "y  500c8647"]
    text = table(("a", "t"), [["x", "0.41 s"], ["y", "11.6 s"]], indent="")
    assert text.splitlines() == ["a       t", "-  ------", "x  0.41 s", "y  11.6 s"]
    assert [seconds(t) for t in (0.0123, 0.5, 2.345, 78.9)] == [
        "12.3 ms",
        "0.50 s",
        "2.35 s",
        "78.9 s",
    ]
