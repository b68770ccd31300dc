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


@inner
def _pack_words(worker, first, last, block, plus, minus):
    for w in range(first, last):
        above, below = plus[w], minus[w]
        for i in range(min(WORD, block.shape[0] - WORD * w)):
            row, place = block[WORD * w + i], np.uint64(i)
            for member in range(row.shape[0]):
                above[member] |= np.uint64(row[member] > 0) << place
                below[member] |= np.uint64(row[member] < 0) << place


@kernel
def _pack(crew, block, plus, minus):
    """Bits of answers int8 [row, member], into words [word, member] of zeros."""
    share(crew, plus.shape[0], _pack_words, (block, plus, minus))


def pack_answers(blocks: Iterable[np.ndarray], n_rows: int, run: Run) -> Answers:
    """Words [word, member] of the rows answered with +1, and with -1 where any abstains."""
    n_words = -(-n_rows // WORD)
    every = np.full((n_words, 1), ~np.uint64(0))
    if n_rows % WORD:
        every[-1] = np.uint64((1 << n_rows % WORD) - 1)
    pairs = []
    abstains = False
    for block in blocks:
        plus, minus = np.zeros((2, n_words, block.shape[1]), dtype=np.uint64)
        own = run.limited_to(block.size, CELLS_PER_THREAD)
        own.call(_pack, np.ascontiguousarray(block), plus, minus)
        abstains |= bool(((plus | minus) != every).any())
        pairs.append((plus, minus))
    plus = np.concatenate([pair[0] for pair in pairs], axis=1)
    if abstains:
        minus = np.concatenate([pair[1] for pair in pairs], axis=1)
    else:
        minus = np.zeros((0, plus.shape[1]), dtype=np.uint64)
    return Answers((plus, minus), n_rows, plus.shape[1], abstains)


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
