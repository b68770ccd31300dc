"""One cluster of worker processes for the tests; some have their own."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

try:
    import dask
    from distributed import Client, LocalCluster
except ImportError:  # make test-dask has it
    collect_ignore_glob = ["test_*.py"]

# Dask's own code warns of what it uses itself; sockets of killed workers are closed by the system.
DASK_WARNINGS = [
    "ignore::ResourceWarning",
    "ignore::DeprecationWarning:distributed.*",
    "ignore::DeprecationWarning:dask.*",
    "ignore::FutureWarning:dask.*",
    "ignore:.*:UserWarning:distributed.*",
    "ignore::pytest.PytestUnraisableExceptionWarning",
    "ignore::pytest.PytestUnhandledThreadExceptionWarning",
]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "tests/dask/" in item.path.as_posix():
            item.add_marker(pytest.mark.dask)
            for text in DASK_WARNINGS:
                item.add_marker(pytest.mark.filterwarnings(text))


@contextmanager
def cluster_of(n_workers: int, **options: Any) -> Iterator[Client]:
    """A client of worker processes of one thread each; what they log is of no interest."""
    given = {"threads_per_worker": 1, "processes": True, "dashboard_address": None} | options
    with warnings.catch_warnings(), dask.config.set({"distributed.logging.distributed": "error"}):
        warnings.simplefilter("ignore")
        with LocalCluster(n_workers=n_workers, **given) as cluster, Client(cluster) as client:
            yield client


@pytest.fixture(scope="session")
def client() -> Iterator[Client]:
    with cluster_of(3) as own:
        yield own
