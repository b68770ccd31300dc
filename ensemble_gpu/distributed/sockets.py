"""Workers that are processes, joined by TCP in a tree of ranks.

Rank r has the children k r + 1 ... k r + k. A sum goes up, every rank adding its children's to its
own, and the total comes down; sums are of integers, so that the shape of the tree changes nothing.
Up to k + 1 ranks it is a hub and its neighbours.

What is sent is a header of fixed size and an array, of which the receiver knows the number of bytes
before it arrives: it is told to every rank by a sum. Nothing is unpickled. A connection begins with
proofs of both sides that they know the token of the fit, inside TLS where the cluster has it; one
that does not is closed, and the fit does not notice. (Dask's own transport, distributed.comm, would
do for speed. But it allocates what a stranger announces, and unpickles what it sends, before any
message can be looked at.)
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import socket
import ssl
import struct
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Thread
from typing import Any

import numpy as np

from ensemble_gpu.distributed.errors import LostWorker

# Children of a rank: the link of a hub carries the bytes of all others; four cost least on paper.
ARITY = 4
# Seconds after which a worker that waits looks whether it is still wanted.
LOOK = 0.5
# Seconds for a stranger to prove that it is one of the team.
PROOF_SECONDS = 20.0
# Seconds between looks at the door, and how many may prove themselves at the same time.
KNOCK, MOST_KNOCKING = 0.01, 64
# Bytes of a gathered array at most.
MOST_BYTES = 1 << 36
NONCE = 32
HELLO = struct.Struct(f"<8sI{NONCE}s32s")  # magic, rank, nonce, proof
HEADER = struct.Struct("<4sIQQ")  # magic, what, number of the message, bytes of the array
MAGIC, HELLO_MAGIC = b"egr1", b"egr-hi 1"
SUM, UP, DOWN = range(3)
BUFFER = 1 << 22


@dataclass(frozen=True)
class Keys:
    """What a connection is made with: the token of the fit, and TLS where the cluster has it."""

    token: bytes
    server: ssl.SSLContext | None = None
    client: ssl.SSLContext | None = None

    def proof(self, side: bytes, *parts: bytes) -> bytes:
        return hmac.new(self.token, b"|".join((side, *parts)), hashlib.sha256).digest()


def _tuned(sock: socket.socket) -> socket.socket:
    """Small messages are sent at once; a machine that is gone is noticed in half a minute."""
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (("TCP_KEEPIDLE", 10), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, name):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER)
    return sock


class Door:
    """Where the children of a rank knock; open before their addresses are told."""

    def __init__(self, host: str) -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.sock = socket.socket(family, socket.SOCK_STREAM)
        self.sock.bind((host, 0))
        self.sock.listen(128)
        self.address: tuple[str, int] = self.sock.getsockname()[:2]

    def close(self) -> None:
        self.sock.close()


class Link:
    """One connection of the tree, of which both sides have proved that they belong to the fit."""

    def __init__(self, sock: socket.socket, name: str, wanted: Callable[[], bool]) -> None:
        self.sock, self.name, self.wanted = sock, name, wanted
        sock.settimeout(LOOK)

    def shake_hands(self) -> None:
        """Begin TLS, where the connection has it: the other side answers once it has its data."""
        while isinstance(self.sock, ssl.SSLSocket):
            try:
                self.sock.do_handshake()
                return
            except TimeoutError:
                self._look()

    def send(self, what: int, number: int, array: np.ndarray) -> None:
        data = _bytes_of(array)
        header = HEADER.pack(MAGIC, what, number, len(data))
        if len(data) <= 1 << 16:  # one packet
            self._send(memoryview(header + bytes(data)))
            return
        self._send(memoryview(header))
        self._send(data)

    def receive(self, what: int, number: int, out: np.ndarray) -> None:
        """Fill an array with what is due: anything else ends the connection."""
        header = bytearray(HEADER.size)
        self._receive(memoryview(header))
        magic, kind, its_number, n_bytes = HEADER.unpack(header)
        if (magic, kind, its_number, n_bytes) != (MAGIC, what, number, out.nbytes):
            raise LostWorker(f"{self.name} sent another message than is due")
        self._receive(_bytes_of(out))

    def _send(self, data: memoryview) -> None:
        while len(data):
            try:
                data = data[self.sock.send(data) :]
            except TimeoutError:
                self._look()
            except OSError as error:
                raise LostWorker(f"{self.name} is gone: {error}") from error

    def _receive(self, into: memoryview) -> None:
        while len(into):
            try:
                n = self.sock.recv_into(into)
            except TimeoutError:
                self._look()
                continue
            except OSError as error:
                raise LostWorker(f"{self.name} is gone: {error}") from error
            if n == 0:
                raise LostWorker(f"{self.name} has closed the connection")
            into = into[n:]

    def _look(self) -> None:
        if not self.wanted():
            raise LostWorker("the fit was cancelled")

    def close(self) -> None:
        self.sock.close()


class SocketReduce:
    """One of several processes. `addresses` are those of the doors of all ranks.

    `wanted()` is asked now and then while it waits for others; where it says no, the fit ends.
    """

    def __init__(
        self,
        rank: int,
        door: Door,
        addresses: Sequence[tuple[str, int]],
        keys: Keys,
        wanted: Callable[[], bool] = lambda: True,
        arity: int = ARITY,
    ) -> None:
        self.rank, self.size, self.wanted = rank, len(addresses), wanted
        self.number, self.looked = 0, time.monotonic()
        self.children = [c for c in range(arity * rank + 1, arity * rank + arity + 1)
                         if c < self.size]  # fmt: skip
        self.below = {c: _subtree(c, arity, self.size) for c in self.children}
        self.links: dict[int, Link] = {}
        self.parent: Link | None = None
        try:
            if rank:
                above = (rank - 1) // arity
                self.parent = _knock(rank, above, addresses[above], keys, wanted)
            self._answer_door(door, keys)
        except BaseException:
            self.close()
            raise
        finally:
            door.close()

    def _answer_door(self, door: Door, keys: Keys) -> None:
        """Wait for the children; each that knocks proves itself in a thread of its own."""
        knocking: list[Thread] = []
        try:
            door.sock.settimeout(KNOCK)
            while len(self.links) < len(self.children):
                if not self.wanted():
                    raise LostWorker("the fit was cancelled")
                knocking = [one for one in knocking if one.is_alive()]
                try:
                    sock, _ = door.sock.accept()
                except TimeoutError:
                    continue
                if len(knocking) >= MOST_KNOCKING:
                    sock.close()
                    continue
                knocking.append(Thread(target=self._admit, args=(sock, keys), daemon=True))
                knocking[-1].start()
        except OSError as error:
            if isinstance(error, LostWorker):
                raise
            raise LostWorker(f"the door of rank {self.rank} is shut: {error}") from error

    def _admit(self, sock: socket.socket, keys: Keys) -> None:
        deadline = time.monotonic() + PROOF_SECONDS
        try:
            sock.settimeout(PROOF_SECONDS)
            if keys.server is not None:
                sock = keys.server.wrap_socket(sock, server_side=True)
            mine = secrets.token_bytes(NONCE)
            sock.sendall(mine)
            magic, rank, theirs, proof = HELLO.unpack(_exactly(sock, HELLO.size, deadline))
            expected = keys.proof(b"child", mine, theirs, str(rank).encode())
            known = hmac.compare_digest(proof, expected)
            if magic != HELLO_MAGIC or not known or rank not in self.children or rank in self.links:
                raise ConnectionError("not one of the team")
            sock.sendall(keys.proof(b"parent", theirs, mine))
            self.links[rank] = Link(_tuned(sock), f"rank {rank}", self.wanted)
        except (OSError, struct.error):
            sock.close()

    def sum(self, array: np.ndarray) -> np.ndarray:
        self._look()
        total = np.array(array, dtype=np.int64, order="C")
        self.number += 1
        theirs = np.empty_like(total)
        for child in self.children:
            self.links[child].receive(SUM, self.number, theirs)
            total += theirs
        if self.parent is not None:
            self.parent.send(SUM, self.number, total)
            self.parent.receive(SUM, self.number, total)
        for child in self.children:
            self.links[child].send(SUM, self.number, total)
        return total

    def _look(self) -> None:
        """Whether the fit is still wanted: also where nobody has to wait."""
        if time.monotonic() - self.looked > LOOK:
            self.looked = time.monotonic()
            if not self.wanted():
                raise LostWorker("the fit was cancelled")

    def gather(self, array: np.ndarray, to_all: bool = True) -> list[np.ndarray]:
        array = np.ascontiguousarray(array)
        lengths = np.zeros(self.size, dtype=np.int64)
        lengths[self.rank] = len(array)
        lengths = self.sum(lengths)
        row = array.dtype.itemsize * int(np.prod(array.shape[1:]))
        if lengths.min() < 0 or int(lengths.sum()) * row > MOST_BYTES:
            raise ValueError(
                f"Arrays of {lengths.tolist()} rows of {row} bytes were announced, more than the "
                f"{MOST_BYTES:,} bytes that are gathered at most."
            )
        self.number += 1
        found: dict[int, np.ndarray] = {self.rank: array}
        for child in self.children:
            for rank in self.below[child]:
                found[rank] = np.empty((int(lengths[rank]), *array.shape[1:]), array.dtype)
                self.links[child].receive(UP, self.number, found[rank])
        if self.parent is not None:
            for rank in [self.rank, *(r for c in self.children for r in self.below[c])]:
                self.parent.send(UP, self.number, found[rank])
        if not to_all:
            return [found[r] for r in range(self.size)] if self.rank == 0 else []
        if self.parent is not None:
            for rank in [r for r in range(self.size) if r not in found]:
                found[rank] = np.empty((int(lengths[rank]), *array.shape[1:]), array.dtype)
                self.parent.receive(DOWN, self.number, found[rank])
        for child in self.children:
            for rank in [r for r in range(self.size) if r not in self.below[child]]:
                self.links[child].send(DOWN, self.number, found[rank])
        return [found[r] for r in range(self.size)]

    def leave(self) -> None:
        """Say that this worker has failed: the others find the connections closed."""
        self.close()

    def close(self) -> None:
        for link in [*self.links.values(), *([self.parent] if self.parent else [])]:
            link.close()


def _bytes_of(array: Any) -> memoryview:
    """The memory of a contiguous array."""
    return memoryview(array).cast("B") if array.nbytes else memoryview(b"")


def _subtree(rank: int, arity: int, size: int) -> list[int]:
    """A rank and all below it, in the order in which they are sent up."""
    found = [rank]
    for child in range(arity * rank + 1, min(arity * rank + arity + 1, size)):
        found += _subtree(child, arity, size)
    return found


def _knock(
    rank: int, above: int, address: tuple[str, int], keys: Keys, wanted: Callable[[], bool]
) -> Link:
    """A connection to the rank above, which may not be there yet to answer its door."""
    name = f"rank {above}"
    try:
        sock = socket.create_connection((address[0], address[1]), timeout=PROOF_SECONDS)
        try:
            return _introduced(_tuned(sock), rank, name, keys, wanted)
        except BaseException:
            sock.close()
            raise
    except OSError as error:
        raise LostWorker(f"{name} at {address} does not answer: {error}") from error


def _introduced(
    sock: socket.socket, rank: int, name: str, keys: Keys, wanted: Callable[[], bool]
) -> Link:
    if keys.client is not None:
        sock = keys.client.wrap_socket(sock, do_handshake_on_connect=False)
    link = Link(sock, name, wanted)
    try:
        link.shake_hands()
        _prove(link, rank, keys)
    except BaseException:
        link.close()
        raise
    return link


def _prove(link: Link, rank: int, keys: Keys) -> None:
    """Show the rank above that this one knows the token, and see that it does."""
    nonce = bytearray(NONCE)
    link._receive(memoryview(nonce))
    mine, theirs = secrets.token_bytes(NONCE), bytes(nonce)
    proof = keys.proof(b"child", theirs, mine, str(rank).encode())
    link._send(memoryview(HELLO.pack(HELLO_MAGIC, rank, mine, proof)))
    answer = bytearray(32)
    link._receive(memoryview(answer))
    if not hmac.compare_digest(bytes(answer), keys.proof(b"parent", mine, theirs)):
        raise LostWorker(f"{link.name} is none of this fit")


def _exactly(sock: socket.socket, n: int, deadline: float) -> bytes:
    data = b""
    while len(data) < n:
        sock.settimeout(max(deadline - time.monotonic(), 0.001))
        more = sock.recv(n - len(data))
        if not more:
            raise ConnectionError("closed before it has said who it is")
        data += more
    return data
