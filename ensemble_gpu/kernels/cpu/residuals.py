"""Residuals by leaf: order statistics, and sums along a ruler (`Engine.ranked`, `ruled_sums`).

An order statistic takes two passes over the rows. The first adds up weights by slot and bucket; a
bucket is the sign, exponent and first bits of a float64, so that its width is a share of |r|,
whatever the scale, and buckets are in the order of r. The second notes the rows of the bucket in
which a slot's weight reaches its rank, mostly some in a hundred, and among these it is selected.
Both are without branches: what a row holds cannot be foretold.
"""

from __future__ import annotations

import numpy as np

from ensemble_gpu.kernels.cpu.sharing import share
from ensemble_gpu.kernels.cpu.threads import Run
from ensemble_gpu.kernels.jit import inner, kernel
from ensemble_gpu.kernels.residuals import Ruler, Slots

# Buckets of a sign span 2^EXPONENTS below the largest |r|; what is smaller shares the last one.
EXPONENTS = 32
MOST_BITS, MANTISSA_BITS = 6, 52
WITHOUT_SIGN = 0x7FFFFFFFFFFFFFFF
BLOCK_ROWS = 4096
ROWS_PER_THREAD = 20_000


@inner
def _add_places(worker, first, last, bits, weights, index, centre, shift, lowest, places, sums):
    """The place of a row: its slot's centre and a bucket of r about it; sums of weights there.

    Two loops over a block that stays in the cache: one that has no sums is faster.
    """
    own = sums[worker]
    for block in range(first, last):
        start = block * BLOCK_ROWS
        stop = min(start + BLOCK_ROWS, bits.shape[0])
        for i in range(start, stop):
            size = max(((bits[i] & WITHOUT_SIGN) >> shift) - lowest, 0)
            places[i] = np.uint32(centre[index[i]] + (size ^ (bits[i] >> 63)))
        if weights.shape[0]:
            for i in range(start, stop):
                own[places[i]] += weights[i]
        else:
            for i in range(start, stop):
                own[places[i]] += 1


@inner
def _choose_places(sums, ranks, chosen, left):
    """Mark where a slot's weight reaches its rank; left[slot] is its rank in there."""
    width = sums.shape[1] // (ranks.shape[0] + 1)
    for slot in range(ranks.shape[0]):
        below, place = np.int64(0), slot * width
        while True:
            own = np.int64(0)
            for worker in range(sums.shape[0]):
                own += sums[worker, place]
            if below + own >= ranks[slot]:
                break
            below += own
            place += 1
        chosen[place], left[slot] = 1, ranks[slot] - below


@inner
def _note_rows(worker, first, last, places, chosen, rows, counts):
    """The rows in chosen places, those of a block at its beginning."""
    for block in range(first, last):
        start = block * BLOCK_ROWS
        at = start
        for i in range(start, min(start + BLOCK_ROWS, places.shape[0])):
            rows[at] = i
            at += chosen[places[i]]
        counts[block] = at - start


@inner
def _select(r, w, start, stop, rank):
    """The lowest of r[start:stop] such that those up to it weigh `rank`; equal ones at once."""
    while True:
        a, b, c = r[start], r[(start + stop) // 2], r[stop - 1]
        pivot = max(min(a, b), min(max(a, b), c))
        low, i, high = start, start, stop
        below, equal = np.int64(0), np.int64(0)
        while i < high:
            if r[i] < pivot:
                below += w[i]
                r[i], r[low], w[i], w[low] = r[low], r[i], w[low], w[i]
                low += 1
                i += 1
            elif r[i] > pivot:
                high -= 1
                r[i], r[high], w[i], w[high] = r[high], r[i], w[high], w[i]
            else:
                equal += w[i]
                i += 1
        if rank <= below:
            stop = low
        elif rank <= below + equal:
            return pivot
        else:
            rank -= below + equal
            start = high


@inner
def _select_in_slots(r, weights, places, width, rows, counts, left, out):
    """The noted rows, slot by slot, and the order statistic of each."""
    n_slots = left.shape[0]
    ends = np.zeros(n_slots + 1, dtype=np.int64)
    for block in range(counts.shape[0]):
        for j in range(block * BLOCK_ROWS, block * BLOCK_ROWS + counts[block]):
            ends[places[rows[j]] // width + 1] += 1
    for slot in range(n_slots):
        ends[slot + 1] += ends[slot]
    values = np.empty(ends[n_slots], dtype=np.float64)
    w = np.empty(ends[n_slots], dtype=np.int64)
    at = ends[:n_slots].copy()
    for block in range(counts.shape[0]):
        for j in range(block * BLOCK_ROWS, block * BLOCK_ROWS + counts[block]):
            i = rows[j]
            slot = places[i] // width
            values[at[slot]] = r[i]
            w[at[slot]] = weights[i] if weights.shape[0] else 1
            at[slot] += 1
    for slot in range(n_slots):
        out[slot] = _select(values, w, ends[slot], ends[slot + 1], left[slot])


@kernel
def _ranked(crew, r, bits, weights, index, centre, ranks, shift, lowest, space, out):
    places, sums, chosen, rows, counts = space
    left = np.empty_like(ranks)
    added = bits, weights, index, centre, shift, lowest, places, sums
    share(crew, counts.shape[0], _add_places, added)
    _choose_places(sums, ranks, chosen, left)
    share(crew, counts.shape[0], _note_rows, (places, chosen, rows, counts))
    width = np.uint32(sums.shape[1] // (ranks.shape[0] + 1))
    _select_in_slots(r, weights, places, width, rows, counts, left, out)


def _bits_of(n_slots: int, n_rows: int) -> int:
    """Bits of the mantissa in a bucket: at most as many buckets as rows."""
    bits = MOST_BITS
    while bits > 0 and 2 * n_slots * EXPONENTS << bits > n_rows:
        bits -= 1
    return bits


def ranked(
    slots: Slots, r: np.ndarray, weights: np.ndarray | None, ranks: np.ndarray, run: Run
) -> np.ndarray:
    """`Engine.ranked`. Rows of no slot are in one more."""
    n, m = r.shape[0], _bits_of(len(ranks), r.shape[0])
    run = run.limited_to(n, ROWS_PER_THREAD)
    half, n_slots = EXPONENTS << m, len(ranks) + 1
    top = np.array([max(abs(float(r.max())), abs(float(r.min())))]).view(np.int64)[0]
    shift = MANTISSA_BITS - m
    lowest = (int(top) >> shift) - half + 1
    centre = np.where(slots.table < 0, len(ranks), slots.table) * (2 * half) + half
    space = (
        np.empty(n, dtype=np.uint32),
        np.zeros((run.threads, 2 * half * n_slots), dtype=np.int64),
        np.zeros(2 * half * n_slots, dtype=np.uint8),
        np.empty(n + 1, dtype=np.int32),
        np.zeros(-(-n // BLOCK_ROWS), dtype=np.int64),
    )
    out = np.zeros(len(ranks))
    run.call(
        _ranked, r, r.view(np.int64), _given(weights), slots.index, centre, ranks, shift, lowest,
        space, out,
    )  # fmt: skip
    return out


@inner
def _add_ruled(worker, start, stop, r, weights, index, table, base, per_unit, last, shift, sums):
    own = sums[worker]
    for i in range(start, stop):
        slot = table[index[i]]
        if slot >= 0:
            k = np.rint((r[i] - base[slot]) * per_unit)
            place = np.int64(min(max(k, 0.0), last))
            w = weights[i] if weights.shape[0] else 1
            own[slot, place >> shift, 0] += w
            own[slot, place >> shift, 1] += w * place


@kernel
def _ruled_sums(crew, r, weights, index, table, base, per_unit, last, shift, sums):
    share(
        crew, r.shape[0], _add_ruled,
        (r, weights, index, table, base, per_unit, last, shift, sums),
    )  # fmt: skip


def ruled_sums(
    slots: Slots, r: np.ndarray, weights: np.ndarray | None, ruler: Ruler, run: Run
) -> np.ndarray:
    """`Engine.ruled_sums`."""
    run = run.limited_to(r.shape[0], ROWS_PER_THREAD)
    sums = np.zeros((run.threads, len(ruler.base), ruler.n_marks, 2), dtype=np.int64)
    run.call(
        _ruled_sums, r, _given(weights), slots.index, slots.table, ruler.base, ruler.per_unit,
        float(ruler.last), ruler.shift, sums,
    )  # fmt: skip
    total: np.ndarray = sums.sum(axis=0)
    return total


def _given(weights: np.ndarray | None) -> np.ndarray:
    return np.zeros(0, dtype=np.int64) if weights is None else weights
