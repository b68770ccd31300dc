"""Workers that are joined by TCP: a tree of any shape, strangers at the door, and lost ones."""

from __future__ import annotations

import secrets
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ensemble_gpu.distributed import Door, Keys, LostWorker, SocketReduce
from ensemble_gpu.distributed.sockets import HEADER, HELLO, HELLO_MAGIC, MAGIC, NONCE, SUM

HOST = "127.0.0.1"

pytestmark = pytest.mark.dask


def connected(
    size: int,
    work: Callable[[SocketReduce], Any],
    arity: int = 16,
    tokens: Callable[[int], bytes] | None = None,
    before: Callable[[list[Door]], None] | None = None,
    wanted: Callable[[], bool] = lambda: True,
) -> list[Any]:
    """work(reduce) of every rank, or the error that it has ended with."""
    token = secrets.token_bytes(32)
    doors, found = [Door(HOST) for _ in range(size)], [None] * size
    addresses = [door.address for door in doors]
    if before is not None:
        before(doors)

    def run(rank: int) -> None:
        keys = Keys(token if tokens is None else tokens(rank))
        try:
            reduce = SocketReduce(rank, doors[rank], addresses, keys, wanted, arity)
            try:
                found[rank] = work(reduce)
            finally:
                reduce.close()
        except (LostWorker, ValueError) as error:
            found[rank] = error

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    return found


@pytest.mark.parametrize(("size", "arity"), [(1, 16), (2, 16), (5, 16), (6, 2), (7, 1), (9, 3)])
def test_sums_and_gathered_arrays_are_the_same_for_every_shape_of_the_tree(size, arity):
    def work(reduce: SocketReduce) -> None:
        rank = reduce.rank
        total = reduce.sum(np.arange(5000).reshape(10, -1) + rank)
        np.testing.assert_array_equal(
            total, size * np.arange(5000).reshape(10, -1) + sum(range(size))
        )
        every = reduce.gather(np.full((rank, 3), rank, dtype=np.float32))
        assert [one.tolist() for one in every] == [[[float(r)] * 3] * r for r in range(size)]
        text = reduce.gather(np.frombuffer(b"abc"[: rank % 3], dtype=np.uint8), to_all=False)
        assert len(text) == (size if rank == 0 else 0)
        large = np.full(1 << 20, 1 << 40, dtype=np.int64)  # more than the buffers of a socket
        assert (reduce.sum(large) == size << 40).all()

    assert connected(size, work, arity) == [None] * size


def test_strangers_at_the_door_are_sent_away_and_the_fit_goes_on():
    """Garbage, silence, noise, and one that claims to be a rank, with a size beyond the memory."""
    claim = HELLO.pack(HELLO_MAGIC, 1, bytes(NONCE), bytes(32))
    says = [
        b"GET / HTTP/1.1\r\n\r\n" * 50,
        b"",
        secrets.token_bytes(HELLO.size),
        claim + HEADER.pack(MAGIC, SUM, 1, 1 << 60),
    ]
    there: list[socket.socket] = []

    def knock(doors: list[Door]) -> None:
        for data in says:
            there.append(socket.create_connection(doors[0].address))
            there[-1].sendall(data)

    found = connected(3, lambda reduce: int(reduce.sum(np.ones(1))[0]), before=knock)
    for sock in there:
        sock.close()
    assert found == [3, 3, 3]


def test_a_worker_with_another_token_is_none_of_the_team():
    start = time.monotonic()
    found = connected(
        2,
        lambda reduce: reduce.sum(np.ones(1)),
        tokens=lambda rank: bytes([rank]) * 32,
        wanted=lambda: time.monotonic() - start < 3.0,
    )
    assert [type(one) for one in found] == [LostWorker, LostWorker]


@pytest.mark.parametrize("header", [
    HEADER.pack(MAGIC, SUM, 1, 1 << 60),  # larger than what is due
    HEADER.pack(MAGIC, SUM, 7, 8),  # another message
    HEADER.pack(b"evil", SUM, 1, 8),
    struct.pack("<Q", 1) * 3,
])  # fmt: skip
def test_a_message_that_is_not_due_ends_the_connection_before_anything_is_allocated(header):
    def work(reduce: SocketReduce) -> Any:
        if reduce.rank == 1:
            assert reduce.parent is not None
            reduce.parent.sock.sendall(header)
            time.sleep(0.2)
            return None
        with pytest.raises(LostWorker, match="another message than is due"):
            reduce.sum(np.ones(1, dtype=np.int64))
        return "refused"

    assert connected(2, work)[0] == "refused"


def test_a_gathered_size_beyond_the_limit_is_refused(monkeypatch):
    monkeypatch.setattr("ensemble_gpu.distributed.sockets.MOST_BYTES", 1000)
    found = connected(2, lambda reduce: reduce.gather(np.zeros(200)))
    assert all(isinstance(one, ValueError) for one in found)
    assert all("more than the 1,000 bytes" in str(one) for one in found)


def test_all_notice_that_one_is_gone():
    def work(reduce: SocketReduce) -> Any:
        reduce.sum(np.ones(4))
        if reduce.rank == 2:
            return "left"
        try:
            reduce.sum(np.ones(4))
        except LostWorker as error:
            return str(error)
        return "went on"

    first, second, third = connected(3, work, arity=1)
    assert third == "left"
    assert "rank 2" in second
    assert "rank 1" in first


def test_a_worker_that_waits_looks_whether_it_is_still_wanted():
    wanted = [True]

    def work(reduce: SocketReduce) -> Any:
        if reduce.rank == 0:
            time.sleep(0.3)
            wanted[0] = False
            time.sleep(1.0)
            return "busy"
        return reduce.sum(np.ones(1))

    found = connected(2, work, wanted=lambda: wanted[0])
    assert "cancelled" in str(found[1])


def test_connections_are_encrypted_where_there_is_a_certificate():
    distributed = pytest.importorskip("distributed")
    pytest.importorskip("cryptography")
    security = distributed.Security.temporary()
    contexts = [
        security.get_listen_args("worker")["ssl_context"],
        security.get_connection_args("worker")["ssl_context"],
    ]
    assert all(isinstance(context, ssl.SSLContext) for context in contexts)
    token, doors = secrets.token_bytes(32), [Door(HOST), Door(HOST)]
    addresses, found = [door.address for door in doors], [None, None]

    def run(rank: int) -> None:
        reduce = SocketReduce(rank, doors[rank], addresses, Keys(token, *contexts))
        link = reduce.parent or reduce.links[1]
        found[rank] = link.sock.version(), int(reduce.sum(np.full(200_000, 2))[0])
        reduce.close()

    threads = [threading.Thread(target=run, args=(rank,)) for rank in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert found == [("TLSv1.3", 4)] * 2
