"""Fits of Dask collections: the fingerprint of the local fit, for any partitioning."""

from __future__ import annotations

import pickle
import threading
from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from ensemble_gpu import (
    AdaBoostClassifier,
    BoostingClassifier,
    BoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from ensemble_gpu.dask import (
    DaskAdaBoostClassifier,
    DaskBoostingClassifier,
    DaskBoostingRegressor,
    DaskRandomForestClassifier,
    DaskRandomForestRegressor,
)
from tests.dask.conftest import cluster_of
from tests.distributed.test_same_model import rows

PAIRS = {
    "adaboost": (DaskAdaBoostClassifier, AdaBoostClassifier, {"n_estimators": 10}),
    "trees": (DaskBoostingClassifier, BoostingClassifier, {"n_estimators": 5}),
    "numbers": (DaskBoostingRegressor, BoostingRegressor, {"n_estimators": 5}),
    "forest": (DaskRandomForestClassifier, RandomForestClassifier,
               {"n_estimators": 4, "random_state": 0}),
    "regression forest": (DaskRandomForestRegressor, RandomForestRegressor,
                          {"n_estimators": 4, "random_state": 0}),
}  # fmt: skip
CHUNKS = [(520,), (260, 260), (100, 20, 400), (130, 0, 7, 300, 83)]


def collections(X: Any, y: Any, w: Any, chunks: Any) -> list[Any]:
    made = [da.from_array(X, chunks=(chunks, X.shape[1])), da.from_array(y, chunks=(chunks,))]
    return [*made, None if w is None else da.from_array(w, chunks=(chunks,))]


@pytest.mark.parametrize("chunks", CHUNKS, ids=str)
@pytest.mark.parametrize("name", PAIRS)
def test_any_chunks_give_the_model_of_the_local_fit(client, name, chunks):
    shared, local, parameters = PAIRS[name]
    X, y, w = rows("number" if "numbers" in name or "reg" in name else "2", "whole")
    fitted = shared(client=client, **parameters).fit(*collections(X, y, w, chunks))
    expected = local(**parameters).fit(X, y, w)
    assert fitted.model_.fingerprint() == expected.model_.fingerprint()
    assert fitted.events_ == ()
    plain = fitted.to_local()
    assert type(plain) is local
    np.testing.assert_array_equal(plain.predict(X), expected.predict(X))


def test_early_stopping_and_a_validation_set_of_its_own(client):
    X, y, _ = rows()
    X_val, y_val, _ = rows(seed=1)
    parameters = {"n_estimators": 30, "early_stopping": True, "n_iter_no_change": 4}
    dX, dy, _ = collections(X, y, None, (130, 0, 7, 300, 83))
    drawn = DaskBoostingClassifier(client=client, **parameters).fit(dX, dy)
    local = BoostingClassifier(**parameters).fit(X, y)
    assert drawn.model_.fingerprint() == local.model_.fingerprint()
    sets = [(da.from_array(X_val, chunks=(100, 5)), da.from_array(y_val, chunks=100))]
    given = DaskBoostingClassifier(client=client, **parameters).fit(dX, dy, eval_set=sets)
    again = BoostingClassifier(**parameters).fit(X, y, eval_set=[(X_val, y_val)])
    assert given.model_.fingerprint() == again.model_.fingerprint()
    np.testing.assert_array_equal(given.validation_loss_, again.validation_loss_)
    assert list(given.history_.evals) == ["validation_0"]
    short = DaskBoostingClassifier(client=client, **parameters).fit(
        dX, dy, X_val=X_val, y_val=y_val
    )
    assert short.model_.fingerprint() == again.model_.fingerprint()


def test_validation_rows_may_begin_with_weight_zero(client):
    X, y, _ = rows()
    X_val, y_val, w_val = rows(seed=1, weights="whole")
    w_val[0] = 0.0
    parameters = {"n_estimators": 8, "early_stopping": True}
    dX, dy, _ = collections(X, y, None, (260, 260))
    shared = DaskBoostingClassifier(client=client, **parameters)
    shared.fit(dX, dy, X_val=X_val, y_val=y_val, sample_weight_val=w_val)
    local = BoostingClassifier(**parameters)
    local.fit(X, y, X_val=X_val, y_val=y_val, sample_weight_val=w_val)
    np.testing.assert_array_equal(shared.validation_loss_, local.validation_loss_)
    with pytest.raises(ValueError, match="y_val was given, and needs X_val"):
        shared.fit(dX, dy, y_val=y_val)


def test_workers_that_are_threads_of_one_process():
    X, y, _ = rows()
    dX, dy, _ = collections(X, y, None, (260, 260))
    with cluster_of(2, processes=False) as own:
        shared = DaskBoostingClassifier(client=own, n_estimators=4).fit(dX, dy)
    local = BoostingClassifier(n_estimators=4).fit(X, y)
    assert shared.model_.fingerprint() == local.model_.fingerprint()


def test_frames_with_categories_and_string_labels(client):
    X, y, _ = rows("3")
    frame = pd.DataFrame(X, columns=list("abcde"))
    frame["f"] = pd.Categorical(np.array(["p", "q", "r"])[np.arange(len(X)) % 3])
    labels = pd.Series(np.array(["low", "middle", "top"])[y])
    dX, dy = dd.from_pandas(frame, npartitions=4), dd.from_pandas(labels, npartitions=4)
    shared = DaskBoostingClassifier(client=client, n_estimators=4).fit(dX, dy)
    local = BoostingClassifier(n_estimators=4).fit(frame, labels)
    assert shared.model_.fingerprint() == local.model_.fingerprint()
    assert shared.classes_.tolist() == ["low", "middle", "top"]
    assert shared.feature_names_in_.tolist() == list("abcdef")
    assert shared.predict(dX).compute().tolist() == local.predict(frame).tolist()


def test_predictions_are_lazy_and_those_of_the_local_model(client):
    X, y, _ = rows("3")
    dX, dy, _ = collections(X, y, None, (130, 0, 7, 300, 83))
    clf = DaskAdaBoostClassifier(client=client, n_estimators=8).fit(dX, dy)
    local = clf.to_local()
    for method in ("predict", "predict_proba", "predict_log_proba", "decision_function"):
        found = getattr(clf, method)(dX)
        assert isinstance(found, da.Array)
        expected = getattr(local, method)(X)
        assert found.shape == expected.shape
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found.compute(), expected)
        np.testing.assert_array_equal(getattr(clf, method)(X), expected)
    assert clf.score(dX, dy) == local.score(X, y)
    assert clf.score(X, y) == local.score(X, y)
    model = DaskBoostingRegressor(client=client, n_estimators=3).fit(dX, dy.astype(float))
    assert model.score(dX, dy) == model.to_local().score(X, y)


def test_two_fits_at_once_on_workers_of_one_thread(client):
    X, y, _ = rows()
    given = collections(X, y, None, (130, 0, 7, 300, 83))
    found: dict[str, Any] = {}

    def run(name: str) -> None:
        shared, _, parameters = PAIRS[name]
        found[name] = shared(client=client, **parameters).fit(*given[:2])

    threads = [threading.Thread(target=run, args=(name,)) for name in ("adaboost", "trees")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(90)
    for name, fitted in found.items():
        _, local, parameters = PAIRS[name]
        assert fitted.model_.fingerprint() == local(**parameters).fit(X, y).model_.fingerprint()
    assert len(found) == 2


def test_callbacks_end_the_fit(client):
    X, y, _ = rows()
    given = collections(X, y, None, (260, 260))
    clf = DaskAdaBoostClassifier(
        client=client, n_estimators=20, callbacks=[lambda info: info.round == 6]
    ).fit(*given)
    assert clf.n_estimators_ == 6
    assert clf.stop_reason_ == "a callback asked to stop"


def test_parameters_are_those_of_the_local_estimator_and_two_more():
    clf = DaskBoostingClassifier("exponential", n_estimators=7, retries=1)
    local = BoostingClassifier("exponential", n_estimators=7).get_params()
    assert clf.get_params() == local | {"client": None, "retries": 1}
    assert clone(clf).get_params() == clf.get_params()
    assert clf.set_params(max_depth=2).max_depth == 2


def test_a_fit_needs_no_client_where_there_is_a_current_one(client):
    X, y, _ = rows()
    with client.as_current():
        clf = DaskAdaBoostClassifier(n_estimators=3).fit(*collections(X, y, None, (260, 260)))
    assert clf.n_estimators_ == 3
    assert clone(DaskAdaBoostClassifier(client=client)).client is client
    again = pickle.loads(pickle.dumps(DaskAdaBoostClassifier(client=client, n_estimators=4)))
    assert (again.client, again.n_estimators) == (None, 4)


def test_bad_input_is_refused_by_name(client):
    X, y, w = rows("2", "real")
    dX, dy, dw = collections(X, y, w, (260, 260))
    clf = DaskAdaBoostClassifier(client=client, n_estimators=3)
    with pytest.raises(TypeError, match="X must be a Dask Array or DataFrame"):
        clf.fit(X, y)
    with pytest.raises(ValueError, match="the target y is None"):
        clf.fit(dX, None)
    with pytest.raises(ValueError, match="X has 520 rows, y has 100"):
        clf.fit(dX, dy[:100])
    frame = dd.from_pandas(pd.DataFrame(X, columns=list("abcde")), npartitions=3)
    with pytest.raises(ValueError, match="X has 3 partitions, y has 2"):
        clf.fit(frame, dy)
    with pytest.raises(ValueError, match="partition 0 of X has 174 rows, that of y has 200"):
        clf.fit(frame, da.from_array(y, chunks=((200, 200, 120),)))
    with pytest.raises(ValueError, match="X has 520 rows, y has 3"):
        clf.fit(dX, [0, 1, 1])
    with pytest.raises(ValueError, match="zero for every row"):
        clf.fit(dX, dy, da.zeros_like(dw))
    with pytest.raises(ValueError, match="X contains infinity"):
        clf.fit(da.where(dX > 3.0, np.inf, dX), dy)
    with pytest.raises(ValueError, match="learning_rate must be"):
        clf.set_params(learning_rate=-1.0).fit(dX, dy)
    with pytest.raises(ValueError, match="retries must be"):
        DaskAdaBoostClassifier(client=client, retries=-1).fit(dX, dy)
    with pytest.raises(TypeError, match="client must be None or a distributed"):
        DaskAdaBoostClassifier(client="tcp://1.2.3.4").fit(dX, dy)
    with pytest.raises(ValueError, match="oob_score must be False"):
        DaskRandomForestClassifier(client=client, oob_score=True).fit(dX, dy)
    assert not hasattr(clf, "model_")


def test_an_error_in_a_partition_is_the_error_of_the_fit(client):
    X, y, _ = rows()
    dX, dy, _ = collections(X, y, None, (260, 260))

    def fails(block: Any) -> Any:
        raise RuntimeError("the file is gone")

    with pytest.raises(RuntimeError, match="the file is gone"):
        DaskAdaBoostClassifier(client=client, n_estimators=3).fit(
            dX.map_blocks(fails, dtype=X.dtype, meta=X[:0]), dy
        )


def test_labels_of_a_partition_with_one_class(client):
    X, y, _ = rows("3")
    order = np.argsort(y, kind="stable")
    given = collections(X[order], y[order], None, (170, 100, 250))
    shared = DaskAdaBoostClassifier(client=client, n_estimators=6).fit(*given)
    local = AdaBoostClassifier(n_estimators=6).fit(X[order], y[order])
    assert shared.model_.fingerprint() == local.model_.fingerprint()
