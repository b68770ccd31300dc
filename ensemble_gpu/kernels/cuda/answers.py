"""Answers of members on the GPU: a bit a row, counted against the binary digits of the weights.

With P the rows that a member answers with +1 and Q_b those whose q has the binary digit b,

    sum of q over P = sum over b of 2^b |P and Q_b|,

a population count for 64 rows and a digit. Neighbouring threads have neighbouring members: they
read neighbouring words of answers, and the same word of digits. Sums are modulo 2^64, so digit 63
is the sign's.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ensemble_gpu.kernels.cuda._numba import cuda, kernel
from ensemble_gpu.kernels.cuda.device import Device, few_blocks
from ensemble_gpu.kernels.cuda.launch import Shape, launch
from ensemble_gpu.kernels.protocol import ABSTAIN, LEFT, RIGHT, Answers

WORD = 64

# --- kernels ---------------------------------------------------------------------------------


@kernel()
def digits_of(q, digits):
    """digits[b, w]: bit i is the binary digit b of q[64 w + i]; the words of 64 rows a thread."""
    w = np.int32(cuda.grid(1))
    while w < digits.shape[1]:
        b = np.int32(0)
        while b < digits.shape[0]:
            word = np.uint64(0)
            i = np.int32(0)
            while i < WORD and WORD * w + i < q.shape[0]:
                digit = np.uint64(q[WORD * w + i] >> np.int64(b)) & np.uint64(1)
                word |= digit << np.uint64(i)
                i = np.int32(i + 1)
            digits[b, w] = word
            b = np.int32(b + 1)
        w = np.int32(w + cuda.gridsize(1))


@kernel()
def count_answers(words, digits, sums):
    """sums[member] += 2^b times the rows of words[w, member] in digits[b, w].

    A thread has the members that are threads of a block apart, a block the words that are blocks
    of the grid apart.
    """
    member = np.int32(cuda.threadIdx.x)
    while member < words.shape[1]:
        total = np.int64(0)
        w = np.int32(cuda.blockIdx.x)
        while w < words.shape[0]:
            word = words[w, member]
            b = np.int32(0)
            while b < digits.shape[0]:
                total += np.int64(cuda.popc(word & digits[b, w])) << np.int64(b)
                b = np.int32(b + 1)
            w = np.int32(w + cuda.gridDim.x)
        cuda.atomic.add(sums, member, total)
        member = np.int32(member + cuda.blockDim.x)


# --- launchers -------------------------------------------------------------------------------


def launch_digits_of(shape: Shape, q: Any, digits: Any) -> None:
    launch(digits_of, *shape, q, digits)


def launch_count_answers(shape: Shape, words: Any, digits: Any, sums: Any) -> None:
    launch(count_answers, *shape, words, digits, sums)


def pack_answers(blocks: Iterable[Any], n_rows: int, device: Device) -> Answers:
    """Words [word, member] of the rows answered with -1, and of those answered with +1."""
    xp = device.where.xp
    sides: tuple[list[Any], list[Any]] = [], []
    abstains = False
    with device.active(f"answers of members for {n_rows} rows", n_rows):
        for block in blocks:
            own = device.adopt(block)
            sides[LEFT].append(_words(own < 0, device))
            sides[RIGHT].append(_words(own > 0, device))
            abstains |= bool(xp.any(own == 0))
        data = tuple(xp.ascontiguousarray(xp.concat(side, axis=1)) for side in sides)
    return Answers(data, n_rows, data[0].shape[1], abstains)


def _words(chosen: Any, device: Device) -> Any:
    """bool [row, member] as bits: uint64 [word, member]."""
    where, xp = device.where, device.where.xp
    n, members = chosen.shape
    n_words = -(-n // WORD)
    bits = where.zeros((n_words * WORD, members), xp.uint64)
    bits[:n, :] = xp.astype(chosen, xp.uint64)
    place = where.put(np.arange(WORD, dtype=np.uint64))
    bits = xp.reshape(bits, (n_words, WORD, members)) << place[None, :, None]
    return xp.sum(bits, axis=1, dtype=xp.uint64)


def answer_sums(answers: Answers, q: Any, device: Device) -> np.ndarray:
    where, xp = device.where, device.where.xp
    planes, members = q.shape[0], answers.n_members
    n_words = answers.data[0].shape[0]
    out = np.zeros((planes, 2, members), dtype=np.int64)
    with device.active(f"sums of {members} members", 512 * n_words):
        for plane in range(planes):
            own = xp.ascontiguousarray(xp.astype(q[plane, :], xp.int64))
            low, high = int(xp.min(own)), int(xp.max(own))
            n_digits = 64 if low < 0 else max(1, high.bit_length())
            digits = where.zeros((n_digits, n_words), xp.uint64)
            handle = device.handle(digits)
            launch_digits_of(few_blocks(device), device.handle(own), handle)
            for side in (LEFT, RIGHT):
                sums = where.zeros((members,), xp.int64)
                words = device.handle(answers.data[side])
                launch_count_answers(few_blocks(device), words, handle, device.handle(sums))
                out[plane, side] = where.host(sums)
    return out


def answer(answers: Answers, member: int, device: Device) -> Any:
    where, xp = device.where, device.where.xp
    place = where.put(np.arange(WORD, dtype=np.uint64))
    with device.active("answers of a member", 9 * answers.n_rows):
        found = []
        for words in answers.data:
            bits = (words[:, member][:, None] >> place[None, :]) & where.full(1, xp.uint64)
            found.append(xp.astype(xp.reshape(bits, (-1,))[: answers.n_rows], xp.int32))
        return ABSTAIN - 2 * found[LEFT] - found[RIGHT]
