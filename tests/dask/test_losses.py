"""Workers that are lost, join, or are left alone: the fit goes on, or says why not."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
from distributed import Client

from ensemble_gpu import AdaBoostClassifier, BoostingClassifier, RandomForestClassifier
from ensemble_gpu.dask import (
    DaskAdaBoostClassifier,
    DaskBoostingClassifier,
    DaskRandomForestClassifier,
    WorkersLost,
)
from ensemble_gpu.dask import driver as driver_module
from tests.dask.conftest import cluster_of
from tests.distributed.test_same_model import rows


class Tell:
    """A callback that says which process has come to which round, and takes its time."""

    def __init__(self, path: Path, seconds: float = 0.02) -> None:
        self.path, self.seconds = path, seconds

    def __call__(self, info: Any) -> None:
        written = self.path.with_suffix(".new")
        written.write_text(f"{info.round} {os.getpid()}")
        written.replace(self.path)
        time.sleep(self.seconds)

    def wait_for(self, round_: int) -> tuple[int, int]:
        """(round, process) once it has come so far."""
        for _ in range(30_000):
            if self.path.exists():
                number, process = map(int, self.path.read_text().split())
                if number >= round_:
                    return number, process
            time.sleep(0.002)
        raise AssertionError("the fit does not get there")


def in_background(work: Callable[[], Any]) -> tuple[threading.Thread, list[Any]]:
    found: list[Any] = []

    def run() -> None:
        try:
            found.append(work())
        except BaseException as error:
            found.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, found


def given(n: int = 600) -> tuple[Any, Any, Any, Any]:
    X, y, _ = rows(n=n)
    return X, y, da.from_array(X, chunks=(150, 5)), da.from_array(y, chunks=150)


MADE = {
    "adaboost": (DaskAdaBoostClassifier, AdaBoostClassifier,
                 {"n_estimators": 40, "calibrate": False}),
    "trees, early stopping": (DaskBoostingClassifier, BoostingClassifier,
                              {"n_estimators": 24, "early_stopping": True}),
    "forest": (DaskRandomForestClassifier, RandomForestClassifier,
               {"n_estimators": 24, "random_state": 0}),
}  # fmt: skip


@pytest.mark.parametrize("victim", ["the first", "another"])
@pytest.mark.parametrize("name", MADE)
def test_a_killed_worker_is_replaced_and_the_model_is_the_same(client, tmp_path, name, victim):
    shared, local, parameters = MADE[name]
    X, y, dX, dy = given()
    tell = Tell(tmp_path / "round")
    fit = shared(client=client, callbacks=[tell], **parameters)
    thread, found = in_background(lambda: fit.fit(dX, dy))
    _, process = tell.wait_for(parameters["n_estimators"] // 2)
    others = [pid for pid in client.run(os.getpid).values() if pid != process]
    os.kill(process if victim == "the first" else others[0], signal.SIGKILL)
    thread.join(120)
    assert found == [fit]
    assert fit.model_.fingerprint() == local(**parameters).fit(X, y).model_.fingerprint()
    assert len(fit.events_) == 1


def test_after_retries_the_error_says_what_happened(client):
    _, _, dX, dy = given()

    def suicide(info: Any) -> None:
        if info.round == 3:
            os.kill(os.getpid(), signal.SIGKILL)

    clf = DaskAdaBoostClassifier(client=client, n_estimators=9, retries=0, callbacks=[suicide])
    with pytest.raises(WorkersLost, match=r"lost workers 1 times, and retries=0: .*round [23]"):
        clf.fit(dX, dy)
    assert not hasattr(clf, "model_")


def test_scattered_data_cannot_be_computed_again_and_the_error_says_so(tmp_path):
    X, y, _ = rows(n=400)
    with cluster_of(2) as client:
        pieces = client.scatter([X[:200], X[200:]], broadcast=False)
        dX = da.concatenate(
            [da.from_delayed(_as_delayed(one), (200, 5), dtype=X.dtype) for one in pieces]
        )
        tell = Tell(tmp_path / "round")
        clf = DaskAdaBoostClassifier(client=client, n_estimators=60, callbacks=[tell])
        thread, found = in_background(lambda: clf.fit(dX, da.from_array(y, chunks=200)))
        _, process = tell.wait_for(10)
        os.kill(process, signal.SIGKILL)
        thread.join(90)
    assert isinstance(found[0], WorkersLost)
    assert "client.scatter" in str(found[0])


def _as_delayed(future: Any) -> Any:
    import dask

    return dask.delayed(lambda block: block)(future)


def test_a_worker_that_joins_is_used_from_the_next_epoch(tmp_path):
    X, y, dX, dy = given()
    with cluster_of(1, threads_per_worker=1) as client:
        tell = Tell(tmp_path / "round", 0.05)
        clf = DaskAdaBoostClassifier(
            client=client, n_estimators=60, calibrate=False, callbacks=[tell]
        )
        thread, found = in_background(lambda: clf.fit(dX, dy))
        tell.wait_for(5)
        client.cluster.scale(2)
        for _ in range(600):
            if len(client.scheduler_info(n_workers=-1)["workers"]) == 2:
                break
            time.sleep(0.1)
        _, process = tell.wait_for(10)
        os.kill(process, signal.SIGKILL)  # the only one that has rows
        thread.join(120)
        assert found == [clf]
    local = AdaBoostClassifier(n_estimators=60, calibrate=False).fit(X, y)
    assert clf.model_.fingerprint() == local.model_.fingerprint()


def test_a_client_that_goes_leaves_no_task_behind(client, tmp_path):
    _, _, dX, dy = given()
    tell = Tell(tmp_path / "round")
    other = Client(client.scheduler.address, set_as_default=False)
    clf = DaskAdaBoostClassifier(client=other, n_estimators=100_000, callbacks=[tell])
    thread, found = in_background(lambda: clf.fit(dX, dy))
    tell.wait_for(5)
    other.close()
    thread.join(60)
    assert isinstance(found[0], BaseException)

    def busy(dask_worker: Any = None) -> int:
        return sum("ensemble_gpu" in str(k) for k in dask_worker.active_threads.values())

    for _ in range(200):
        if not any(client.run(busy).values()):
            break
        time.sleep(0.05)
    assert not any(client.run(busy).values())


def test_garbage_on_the_port_of_a_rank_is_no_error_of_the_fit(client, monkeypatch):
    """Strangers knock at every door as soon as it is open."""
    X, y, dX, dy = given()
    watch = driver_module.Driver._watch
    knocked = []

    def knock(self: Any, futures: Any, ranks: Any) -> str:
        lost = watch(self, futures, ranks)
        for future in futures:
            if "-door-" in future.key:
                sock = socket.create_connection(future.result())
                sock.sendall(b"\xff" * 4096)
                knocked.append(sock)
        return lost

    monkeypatch.setattr(driver_module.Driver, "_watch", knock)
    clf = DaskAdaBoostClassifier(client=client, n_estimators=8).fit(dX, dy)
    for sock in knocked:
        sock.close()
    assert len(knocked) > 1
    assert clf.events_ == ()
    local = AdaBoostClassifier(n_estimators=8).fit(X, y)
    assert clf.model_.fingerprint() == local.model_.fingerprint()


def test_a_cluster_with_tls():
    pytest.importorskip("cryptography")
    X, y, dX, dy = given()
    with cluster_of(2, security=True) as client:
        assert client.scheduler.address.startswith("tls://")
        clf = DaskBoostingClassifier(client=client, n_estimators=4).fit(dX, dy)
    local = BoostingClassifier(n_estimators=4).fit(X, y)
    assert clf.model_.fingerprint() == local.model_.fingerprint()
    np.testing.assert_array_equal(clf.predict(X), local.predict(X))


def test_a_seed_that_is_not_given_is_drawn_once_for_all_attempts(client, tmp_path, monkeypatch):
    """The rows held out before a loss are those held out after it."""
    drawn: list[int] = []

    def randbits(bits: int) -> int:
        drawn.append(bits)
        return 12345

    monkeypatch.setattr("ensemble_gpu.dask.estimators.secrets.randbits", randbits)
    X, y, dX, dy = given()
    tell = Tell(tmp_path / "round")
    parameters: dict[str, Any] = {"n_estimators": 40, "early_stopping": True, "calibrate": False}
    clf = DaskAdaBoostClassifier(client=client, callbacks=[tell], **parameters)
    thread, found = in_background(lambda: clf.fit(dX, dy))
    _, process = tell.wait_for(20)
    os.kill(process, signal.SIGKILL)
    thread.join(120)
    assert found == [clf]
    assert drawn == [31]
    assert clf.random_state is None
    local = AdaBoostClassifier(random_state=12345, **parameters).fit(X, y)
    assert clf.model_.fingerprint() == local.model_.fingerprint()
