"""bench/quality.py: what its figures mean, and that peers run once. Nothing is fitted here."""

import json
from math import sqrt

import numpy as np
import pandas as pd
import pytest

from bench import quality
from bench.quality import Cache, figure, summarise
from bench.quality_peers import CONTESTANTS, OURS
from bench.sets import CLASSIFICATION, LISTS, REGRESSION, Table


def _scores(log_loss: float, error: float = 10.0) -> quality.Scores:
    return {"error": [error, error], "AUC": [0.8, 0.9], "log-loss": [log_loss, log_loss],
            "seconds": [1.0, 1.0], "rows": [30, 10]}  # fmt: skip


def test_folds_count_by_their_rows_and_auc_is_the_mean_of_the_folds():
    scores = {"error": [10.0, 50.0], "AUC": [0.8, 0.9], "RMSE": [1.0, 3.0], "rows": [30, 10]}
    assert figure(scores, "error") == pytest.approx(20.0)
    assert figure(scores, "AUC") == pytest.approx(0.85)
    assert figure(scores, "RMSE") == pytest.approx(sqrt((30 * 1.0 + 10 * 9.0) / 40))
    assert figure(scores, "error", folds=1) == 10.0


def test_summary_is_the_geometric_mean_of_ratios_and_names_the_worst_set():
    base = {"a": _scores(0.2), "b": _scores(0.5)}
    ours = {"a": _scores(0.1, error=4.0), "b": _scores(1.0, error=6.0)}
    found = summarise(CLASSIFICATION, ours, base)
    assert found.ratio == pytest.approx(1.0)
    assert (found.worst, found.worst_set) == (pytest.approx(2.0), "b")
    assert (found.error, found.seconds) == (pytest.approx(5.0), 2.0)


def test_a_peer_is_run_once_for_a_table_and_a_version(tmp_path, monkeypatch):
    runs = []
    monkeypatch.setattr(quality, "_told", lambda *a: runs.append(a) or _scores(0.3))
    cache, X = Cache(tmp_path / "cache.json"), pd.DataFrame({"a": [1.0, 2.0]})
    table = Table("one", CLASSIFICATION, X, np.array([0, 1]))
    name = "sklearn AdaBoost"
    assert cache.scores(table, name) == cache.scores(table, name)
    assert len(runs) == 1
    changed = Table("one", CLASSIFICATION, X + 1.0, table.y)
    cache.scores(changed, name)
    assert len(runs) == len(json.loads(cache.path.read_text())) == 2


def test_ours_get_categories_where_they_take_them_and_one_column_each_where_not():
    X = pd.DataFrame({"a": [1.0, np.nan, 2.0], "b": pd.Categorical(["u", "v", "u"])})
    for name in OURS:
        contestant = CONTESTANTS[name]
        model = contestant.estimator(CLASSIFICATION, X, {}, 1)
        if contestant.takes(CLASSIFICATION, "categorical_features"):
            assert contestant.view(X) is X
        else:
            assert model[0].fit_transform(X).shape == (3, 3)


def test_lists_have_ten_and_six_sets_and_none_in_common():
    names = [declared.name for sets in LISTS.values() for declared in sets]
    sources = [declared.source for sets in LISTS.values() for declared in sets]
    assert len({*names}) == len({*sources}) == len(names) == 32
    for sets in LISTS.values():
        tasks = [declared.task for declared in sets]
        assert (tasks.count(CLASSIFICATION), tasks.count(REGRESSION)) == (10, 6)
