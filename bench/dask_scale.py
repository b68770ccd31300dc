"""Fits on a Dask cluster: what joining workers costs, and the peers' Dask interfaces beside ours.

    python -m bench.dask_scale [--rows 2000000] [--rounds 100] [--part overhead ... ranks]

All on one machine: a LocalCluster of two processes of one thread each. Data is made by the workers.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import secrets
import statistics
import time
from collections.abc import Callable
from typing import Any

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster, wait
from distributed.comm import connect, listen
from distributed.protocol import to_serialize

from bench.markdown import table
from ensemble_gpu import AdaBoostClassifier, BoostingClassifier
from ensemble_gpu.dask import DaskAdaBoostClassifier, DaskBoostingClassifier
from ensemble_gpu.distributed import Door, Keys, SocketReduce

FEATURES = 28
# The sums of a round of AdaBoost: two groups, 28 features, 256 codes.
ROUND = (2, FEATURES, 256)


def made(n: int, chunks: int, seed: int = 0) -> tuple[da.Array, da.Array]:
    """Rows of 28 normal features, half of which matter, and two classes with noise."""
    state = da.random.default_rng(seed)
    X = state.normal(size=(n, FEATURES), chunks=(n // chunks, FEATURES)).astype(np.float32)
    score = X[:, 0] + X[:, 1] * X[:, 2] + da.sin(2.0 * X[:, 3]) + 0.3 * X[:, 4:14].sum(axis=1)
    noise = state.normal(size=n, chunks=n // chunks)
    return X, (score + noise > 0.0).astype(np.int64)


def seconds(run: Callable[[], Any]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def slope(make: Callable[[int], Any], few: int, many: int, repeats: int) -> float:
    """Seconds a round: fits of two lengths, the lowest of each."""
    times = {n: min(seconds(make(n)) for _ in range(repeats)) for n in (few, many)}
    return (times[many] - times[few]) / (many - few)


def overhead(client: Client, repeats: int) -> str:
    """Milliseconds a round of a small fit on two workers, and of the local one."""
    lines = []
    X, y = (a.persist() for a in made(20_000, 4))
    wait([X, y])
    rows = X.compute(), y.compute()
    makers: list[tuple[str, Any, Any, dict[str, Any]]] = [
        ("AdaBoost stumps", DaskAdaBoostClassifier, AdaBoostClassifier, {"calibrate": False}),
        ("logistic stumps", DaskBoostingClassifier, BoostingClassifier,
         {"max_depth": 1, "early_stopping": False}),
        ("logistic trees of depth 6", DaskBoostingClassifier, BoostingClassifier,
         {"max_depth": 6, "early_stopping": False}),
    ]  # fmt: skip
    for name, shared, local, more in makers:
        many = 300 if "trees" in name else 1_200

        def fit_shared(n: int, kind: Any = shared, more: Any = more) -> Callable[[], Any]:
            return lambda: kind(client=client, n_estimators=n, learning_rate=0.1, **more).fit(X, y)

        def fit_local(n: int, kind: Any = local, more: Any = more) -> Callable[[], Any]:
            return lambda: kind(n_estimators=n, learning_rate=0.1, n_jobs=1, **more).fit(*rows)

        fit_shared(20)()
        fit_local(20)()
        both = [slope(fit, 100, many, repeats) * 1e3 for fit in (fit_shared, fit_local)]
        lines.append([name, *(f"{ms:.2f}" for ms in both), f"{both[0] - both[1] / 2:.2f}"])
    head = ["20,000 x 28", "two workers, ms a round", "local, ms", "more than half of local, ms"]
    return table(head, lines)


def _by_sockets(rank: int, token: bytes, doors: Any, told: Any, n: int, out: Any) -> None:
    door = Door("127.0.0.1")
    doors.put((rank, door.address))
    reduce = SocketReduce(rank, door, told.get(), Keys(token))
    sums, times = np.ones(ROUND, dtype=np.int64), []
    for _ in range(n):
        times.append(seconds(lambda: reduce.sum(sums)))
    if rank == 0:
        out.put(statistics.median(times))
    reduce.close()


def _socket_seconds(size: int, n: int = 400) -> float:
    """Median seconds of a sum over `size` processes."""
    doors, out, token = multiprocessing.Queue(), multiprocessing.Queue(), secrets.token_bytes(32)
    told = [multiprocessing.Queue() for _ in range(size)]
    ranks = [
        multiprocessing.Process(
            target=_by_sockets, args=(r, token, doors, told[r], n, out)
        )
        for r in range(size)
    ]  # fmt: skip
    for process in ranks:
        process.start()
    found = dict(doors.get() for _ in range(size))
    for queue in told:
        queue.put([found[r] for r in range(size)])
    median = out.get()
    for process in ranks:
        process.join()
    return median


def _echo(out: Any, n: int) -> None:
    async def serve() -> None:
        done = asyncio.Event()

        async def answer(comm: Any) -> None:
            for _ in range(n):
                theirs = (await comm.read())["x"]
                await comm.write({"x": to_serialize(theirs + theirs)})
            done.set()

        async with listen("tcp://127.0.0.1", answer) as listener:
            out.put(listener.contact_address)
            await done.wait()

    asyncio.run(serve())


def _comm_seconds(n: int = 400) -> float:
    """Median seconds of the same sum of two processes by Dask's own transport."""
    out = multiprocessing.Queue()
    process = multiprocessing.Process(target=_echo, args=(out, n))
    process.start()
    sums, times = np.ones(ROUND, dtype=np.int64), []

    async def ask() -> None:
        comm = await connect(out.get())
        for _ in range(n):
            start = time.perf_counter()
            await comm.write({"x": to_serialize(sums)})
            await comm.read()
            times.append(time.perf_counter() - start)
        await comm.close()

    asyncio.run(ask())
    process.join()
    return statistics.median(times)


def transport(client: Client, rows: int) -> str:
    """What the sum of a round costs, as a share of a round at 1,000,000 rows a worker."""
    X, y = (a.persist() for a in made(rows, 4))
    wait([X, y])

    def fit(n: int) -> Callable[[], Any]:
        return lambda: DaskAdaBoostClassifier(client=client, n_estimators=n, calibrate=False).fit(
            X, y
        )

    fit(10)()
    ms = slope(fit, 20, 120, 2) * 1e3
    ours, comm = _socket_seconds(2) * 1e3, _comm_seconds() * 1e3
    rest = ms - ours
    lines = [
        ["sockets of our own", f"{ours:.3f}", f"{ours / (rest + ours):.0%}"],
        ["distributed.comm", f"{comm:.3f}", f"{comm / (rest + comm):.0%}"],
    ]
    said = f"A round of AdaBoost, {rows:,} x 28 on two workers: {ms:.2f} ms.\n\n"
    return said + table(["114 KB, two processes", "ms a sum", "share of a round"], lines)


def ranks() -> str:
    """The sum of a round over more processes than there are cores."""
    return table(
        ["processes on one machine", "ms a sum of 114 KB"],
        [[str(n), f"{_socket_seconds(n, 100) * 1e3:.2f}"] for n in (2, 4, 8, 16)],
    )


def peers(client: Client, rows: int, rounds: int, repeats: int) -> str:
    """Whole fits with stumps of the same number of rounds, in turns."""
    import lightgbm
    import xgboost.dask

    X, y = (a.persist() for a in made(rows, 8))
    wait([X, y])
    bins = 255

    def xgb() -> Any:
        data = xgboost.dask.DaskQuantileDMatrix(client, X, y, max_bin=bins)
        parameters = {"max_depth": 1, "tree_method": "hist", "objective": "binary:logistic",
                      "eta": 0.1, "max_bin": bins, "nthread": 1}  # fmt: skip
        return xgboost.dask.train(client, parameters, data, num_boost_round=rounds)

    def lgb() -> Any:
        return lightgbm.DaskLGBMClassifier(
            client=client, num_leaves=2, n_estimators=rounds, max_bin=bins, learning_rate=0.1,
            min_child_samples=1, min_child_weight=0.0, n_jobs=1, verbose=-1,
        ).fit(X, y)  # fmt: skip

    def ada() -> Any:
        return DaskAdaBoostClassifier(client=client, n_estimators=rounds, calibrate=False).fit(X, y)

    def logistic() -> Any:
        return DaskBoostingClassifier(
            client=client, n_estimators=rounds, max_depth=1, learning_rate=0.1, early_stopping=False
        ).fit(X, y)

    works = {"AdaBoost": ada, "logistic stumps": logistic, "xgboost.dask": xgb,
             "lightgbm.dask": lgb}  # fmt: skip
    times: dict[str, list[float]] = {name: [] for name in works}
    for turn in range(repeats + 1):
        for name, work in works.items():
            took = seconds(work)
            if turn:  # the first compiles and connects
                times[name].append(took)
    best = {name: min(own) for name, own in times.items()}
    fastest = min(best["xgboost.dask"], best["lightgbm.dask"])
    return table(
        [f"{rows:,} x 28, {rounds} rounds of stumps", "seconds", "fastest peer / ours"],
        [[name, f"{s:.2f}", f"{fastest / s:.1f}"] for name, s in best.items()],
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=2)
    parts = ["overhead", "transport", "peers", "ranks"]
    parser.add_argument("--part", nargs="*", default=parts, choices=parts)
    given = parser.parse_args()
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None)
        as cluster, Client(cluster) as client,
    ):  # fmt: skip
        for part in given.part:
            text = {
                "overhead": lambda: overhead(client, given.repeats),
                "transport": lambda: transport(client, given.rows),
                "peers": lambda: peers(client, given.rows, given.rounds, given.repeats),
                "ranks": ranks,
            }[part]()
            print(f"## {part}\n\n{text}\n", flush=True)


if __name__ == "__main__":
    main()
