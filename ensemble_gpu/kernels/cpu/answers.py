"""Answers of members on the CPU: a bit a row, and sums of eight rows looked up at once.

The sum of q over the rows that a member answers with +1 is, for each byte of its bits, one of the
256 sums that eight values of q can have. These sums are made once a round for all members, so that
a member costs a look-up and an addition for eight rows, whatever q is.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ensemble_gpu.kernels.cpu.sharing import share
from ensemble_gpu.kernels.cpu.threads import Run
from ensemble_gpu.kernels.jit import inner, kernel
from ensemble_gpu.kernels.protocol import ABSTAIN, LEFT, RIGHT, Answers

WORD = 64  # rows
BYTES = 8  # of a word
CELLS_PER_THREAD = 400_000
# Members that are packed at a time: words of them are written side by side.
BLOCK = 64


@inner
def _sums_of_bytes(q, first, tables):
    """tables[b, byte]: the sum of q over the rows first + 8 b ... + 7 whose bits are set."""
    for b in range(BYTES):
        table = tables[b]
        table[0] = 0
        for k in range(8):
            row, half = first + 8 * b + k, 1 << k
            value = np.int64(q[row]) if row < q.shape[0] else np.int64(0)
            for j in range(half):
                table[half + j] = table[j] + value


@inner
def _add_words(words, t, sums):
    """sums[member] += what the tables have for the bits of its word."""
    byte = np.uint64(255)
    for member in range(words.shape[0]):
        x = words[member]
        low = (t[0, x & byte] + t[1, (x >> np.uint64(8)) & byte]) + (
            t[2, (x >> np.uint64(16)) & byte] + t[3, (x >> np.uint64(24)) & byte]
        )
        high = (t[4, (x >> np.uint64(32)) & byte] + t[5, (x >> np.uint64(40)) & byte]) + (
            t[6, (x >> np.uint64(48)) & byte] + t[7, x >> np.uint64(56)]
        )
        sums[member] += low + high


@inner
def _add_units(worker, first, last, plus, minus, q, sums):
    tables = np.empty((BYTES, 256), dtype=np.int64)
    for w in range(first, last):
        for plane in range(q.shape[0]):
            _sums_of_bytes(q[plane], WORD * w, tables)
            _add_words(plus[w], tables, sums[worker, plane, RIGHT])
            if minus.shape[0]:
                _add_words(minus[w], tables, sums[worker, plane, LEFT])


@kernel
def _answer_sums(crew, plus, minus, q, sums):
    """sums[worker, plane, side, member] += q; words are [word, member], minus may have none."""
    share(crew, plus.shape[0], _add_units, (plus, minus, q, sums))


def pack_answers(columns: Iterable[np.ndarray], n_rows: int) -> Answers:
    """Words [word, member] of the rows answered with +1, and with -1 where any abstains."""
    n_words = -(-n_rows // WORD)
    plus: list[np.ndarray] = []
    minus: list[np.ndarray] = []
    abstains, total = False, 0
    held: list[np.ndarray] = []

    def flush() -> None:
        block = np.stack(held)
        held.clear()
        plus.append(_words(block > 0, n_words))
        minus.append(_words(block < 0, n_words))

    for column in columns:
        abstains |= bool((column == 0).any())
        held.append(column)
        total += 1
        if len(held) == BLOCK:
            flush()
    if held:
        flush()
    none = np.zeros((0, total), dtype=np.uint64)
    data = np.concatenate(plus, axis=1), np.concatenate(minus, axis=1) if abstains else none
    return Answers(data, n_rows, total, abstains)


def _words(set_: np.ndarray, n_words: int) -> np.ndarray:
    """bool [member, row] as bits: uint64 [word, member]."""
    bits = np.packbits(set_, axis=1, bitorder="little")
    padded = np.zeros((len(bits), BYTES * n_words), dtype=np.uint8)
    padded[:, : bits.shape[1]] = bits
    return np.ascontiguousarray(padded.view("<u8").astype(np.uint64).T)


def answer_sums(answers: Answers, q: np.ndarray, run: Run) -> np.ndarray:
    plus, minus = answers.data
    run = run.limited_to(q.size * answers.n_members, CELLS_PER_THREAD)
    sums = np.zeros((run.threads, len(q), 2, answers.n_members), dtype=np.int64)
    run.call(_answer_sums, plus, minus, q, sums)
    total = sums[0] if run.threads == 1 else sums.sum(axis=0)
    if not answers.abstains:
        total[:, LEFT] = q.sum(axis=1, dtype=np.int64)[:, None] - total[:, RIGHT]
    return total


def answer(answers: Answers, member: int) -> np.ndarray:
    plus, minus = answers.data
    codes = _bits(plus[:, member], answers.n_rows)
    if answers.abstains:
        codes[(codes | _bits(minus[:, member], answers.n_rows)) == 0] = ABSTAIN
    return codes


def _bits(words: np.ndarray, n: int) -> np.ndarray:
    raw = np.ascontiguousarray(words).astype("<u8").view(np.uint8)
    return np.unpackbits(raw, count=n, bitorder="little")
