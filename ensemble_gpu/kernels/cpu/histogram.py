"""Weights and histograms on the CPU.

Codes lie in tiles of eight features; a row of a tile is one 64-bit word, words[tile][row] (two
words where codes are 16 bits). A tile's sums for one group (8 x width int64) stay in the
first-level cache while the rows stream by. Rows are cut into parts (class, start, stop); threads
share the parts, each with sums of its own that are added up, or, where the sums are large, the
tiles. Sums are integers, so no cut changes a result. sums[worker, group, tile, lane, code] are
those of worker 0 between two calls; the others' are zero.

Related arrays travel as plain tuples, because a call from Python takes them apart faster than named
ones:

    tiles   words, number of features, parts, group_of[plane, class]
    rows    q[plane, row], then of the rows listed in each part: index, difference of q, count
    change  of the last round: column of codes, leaf of each code, the leaf whose rows keep their
            q, ratio[group, leaf], largest[part, group] of q
"""

from __future__ import annotations

import numpy as np

from ensemble_gpu.kernels.cpu.instructions import MARKS, fetch, lowest_bit, marks
from ensemble_gpu.kernels.cpu.sharing import WORKERS, share
from ensemble_gpu.kernels.jit import inner, kernel

# Codes of a byte, if all occur: the width that most data has.
FULL = 256
# Rows listed are far apart if there is one in so many: then each is sent for so many rows ahead,
# which costs a tenth of the time where they are in the cache and halves it where they are not.
FAR, AHEAD = 6, 24


@inner(forceinline=True)
def _add_word(cells, width, first, lanes, bits, word, d):
    """cells[lane, code] += d for the codes of one word, `bits` wide each, from lane `first` on.

    `lanes` and `bits` are constants where this is called, so the loop is unrolled; a constant
    width as well spares the registers that would hold where each lane begins.
    """
    mask = np.uint64((1 << bits) - 1)
    for lane in range(lanes):
        code = (word >> np.uint64(bits * lane)) & mask
        cells[np.uint64((first + lane) * width) + code] += d


@inner
def add_rows(words, lanes, start, stop, q, sums):
    """sums[lane, code] += q for a range of rows of one tile."""
    words, q, cells, width = words[start:stop], q[start:stop], sums.reshape(-1), sums.shape[1]
    n = q.shape[0]
    if words.shape[1] == 2:
        for i in range(n):
            _add_word(cells, width, 0, 4, 16, words[i, 0], np.int64(q[i]))
            _add_word(cells, width, 4, 4, 16, words[i, 1], np.int64(q[i]))
    elif lanes <= 4:
        for i in range(n):
            _add_word(cells, width, 0, 4, 8, words[i, 0], np.int64(q[i]))
    elif width == FULL:
        for i in range(n):
            _add_word(cells, FULL, 0, 8, 8, words[i, 0], np.int64(q[i]))
    else:
        for i in range(n):
            _add_word(cells, width, 0, 8, 8, words[i, 0], np.int64(q[i]))


@inner(forceinline=True)
def _add_each(words, lanes, index, later, difference, width, cells, fetches):
    """`add_listed`; if it `fetches`, a constant, rows that come later are sent for meanwhile."""
    n = index.shape[0]
    if words.shape[1] == 2:
        for j in range(n):
            i, d = np.uint32(index[j]), np.int64(difference[j])
            _add_word(cells, width, 0, 4, 16, words[i, 0], d)
            _add_word(cells, width, 4, 4, 16, words[i, 1], d)
    elif lanes <= 4:
        for j in range(n):
            if fetches:
                fetch(words, np.uint32(later[j]))
            i, d = np.uint32(index[j]), np.int64(difference[j])
            _add_word(cells, width, 0, 4, 8, words[i, 0], d)
    elif width == FULL:
        for j in range(n):
            if fetches:
                fetch(words, np.uint32(later[j]))
            i, d = np.uint32(index[j]), np.int64(difference[j])
            _add_word(cells, FULL, 0, 8, 8, words[i, 0], d)
    else:
        for j in range(n):
            i, d = np.uint32(index[j]), np.int64(difference[j])
            _add_word(cells, width, 0, 8, 8, words[i, 0], d)


@inner
def add_listed(words, lanes, index, start, stop, difference, sums):
    """sums[lane, code] += difference for the listed rows of one tile, which are in order."""
    index, difference = index[start:stop], difference[start:stop]
    cells, width, n = sums.reshape(-1), sums.shape[1], index.shape[0]
    near = 0
    if n > AHEAD and index[n - 1] - index[0] >= FAR * n:
        near = n - AHEAD
        _add_each(words, lanes, index[:near], index[AHEAD:], difference[:near], width, cells, True)
    index, difference = index[near:], difference[near:]
    _add_each(words, lanes, index, index, difference, width, cells, False)


@inner
def _join(worker, start, stop, sums):
    """Add the other workers' sums of some tiles to those of worker 0, and clear them."""
    for other in range(1, sums.shape[0]):
        for g in range(sums.shape[1]):
            for tile in range(start, stop):
                into, added = sums[0, g, tile], sums[other, g, tile]
                for lane in range(into.shape[0]):
                    for code in range(into.shape[1]):
                        into[lane, code] += added[lane, code]
                        added[lane, code] = 0


@inner
def _add_parts(worker, part, last_part, tiles, q, sums):
    words, n_features, parts, group_of = tiles
    for plane in range(q.shape[0]):
        for tile in range(words.shape[0]):
            for p in range(part, last_part):
                c, start, stop = parts[p, 0], parts[p, 1], parts[p, 2]
                into = sums[worker, group_of[plane, c], tile]
                add_rows(words[tile], n_features - 8 * tile, start, stop, q[plane], into)


@inner
def _add_tiles(worker, tile, last_tile, tiles, q, sums):
    words, n_features, parts, group_of = tiles
    for plane in range(q.shape[0]):
        for t in range(tile, last_tile):
            for p in range(parts.shape[0]):
                c, start, stop = parts[p, 0], parts[p, 1], parts[p, 2]
                into = sums[0, group_of[plane, c], t]
                add_rows(words[t], n_features - 8 * t, start, stop, q[plane], into)


@inner
def add_all(crew, tiles, q, sums):
    """sums += q of all rows; threads share the tiles where they have one set of sums."""
    words, _, parts, _ = tiles
    if sums.shape[0] < crew[WORKERS]:
        share(crew, words.shape[0], _add_tiles, (tiles, q, sums))
    else:
        share(crew, parts.shape[0], _add_parts, (tiles, q, sums))
        if crew[WORKERS] > 1:
            share(crew, words.shape[0], _join, (sums,))


@kernel
def add(crew, tiles, q, sums):
    """`add_all`, called from Python."""
    add_all(crew, tiles, q, sums)


@inner
def _select(column, start, stop, first, span, index):
    """List the rows of a range whose code is in the cyclic range first ... first + span.

    The difference wraps around in the codes' own width, so "outside one leaf" is one comparison.
    """
    mask = np.uint32(256 ** np.int64(column.itemsize) - 1)
    column, index = column[start:stop], index[start:stop]
    n, k = column.shape[0], np.uint64(0)
    whole = n - n % MARKS
    for a in range(0, whole, MARKS):
        found = marks(column, a, first, span)
        while found != 0:
            index[k] = start + a + lowest_bit(found)
            found &= found - np.uint64(1)
            k += np.uint64(1)
    for i in range(whole, n):
        index[k] = start + i
        k += np.uint64(((np.uint32(column[i]) - first) & mask) <= span)
    return start + np.int64(k)


@inner
def _arc(leaf_of, kept, period):
    """(first, span): codes outside the kept leaf are those with (code - first) mod period <= span.

    The leaves LEFT, RIGHT, missing lie in a circle, so what is outside one leaf is one arc.
    Codes from the width up to the period do not occur and may belong to it.
    """
    width = leaf_of.shape[0]
    first = 0
    for code in range(width):
        if leaf_of[code] != kept and leaf_of[code - 1] == kept:
            first = code
    span = 0
    for code in range(width):
        if leaf_of[code] != kept:
            span = max(span, (code - first) % period)
    return np.uint32(first), np.uint32(span)


@inner
def _rescale_rows(worker, part, last_part, tiles, rows, change):
    """List the touched rows of some parts, rescale their q, note differences and maxima."""
    _, _, parts, group_of = tiles
    q, index, difference, count = rows
    column, leaf_of, kept, ratio, largest = change
    first, span = _arc(leaf_of, kept, 256 ** np.int64(column.itemsize))
    width = leaf_of.shape[0]
    by_code = np.empty(ratio.shape[0] * width)
    for g in range(ratio.shape[0]):
        for code in range(width):
            by_code[g * width + code] = ratio[g, leaf_of[code]]
    for p in range(part, last_part):
        c, start, stop = parts[p, 0], parts[p, 1], parts[p, 2]
        k = _select(column, start, stop, first, span, index)
        count[p] = k - start
        for plane in range(q.shape[0]):
            group = group_of[plane, c]
            factor = by_code[group * width : (group + 1) * width]
            weights, noted, listed = q[plane], difference[plane, start:k], index[start:k]
            top = np.int32(0)
            for j in range(listed.shape[0]):
                i = np.uint32(listed[j])
                old = weights[i]
                new = np.int32(np.rint(old * factor[column[i]]))
                weights[i] = new
                noted[j] = new - old
                top = max(top, new)
            largest[p, group] = max(largest[p, group], top)


@inner
def _add_differences(part, last_part, tile, last_tile, tiles, rows, sums):
    """Add the differences noted for the listed rows of some parts to the sums of some tiles."""
    words, n_features, parts, group_of = tiles
    _, index, difference, count = rows
    for plane in range(difference.shape[0]):
        for t in range(tile, last_tile):
            for p in range(part, last_part):
                start = parts[p, 1]
                stop = start + count[p]
                into = sums[group_of[plane, parts[p, 0]], t]
                lanes = n_features - 8 * t
                add_listed(words[t], lanes, index, start, stop, difference[plane], into)


@inner
def _rescale_parts(worker, part, last_part, tiles, rows, change, sums):
    _rescale_rows(worker, part, last_part, tiles, rows, change)
    _add_differences(part, last_part, 0, tiles[0].shape[0], tiles, rows, sums[worker])


@inner
def _add_tile_differences(worker, tile, last_tile, tiles, rows, sums):
    _add_differences(0, tiles[2].shape[0], tile, last_tile, tiles, rows, sums[0])


@inner
def rescale_all(crew, tiles, rows, change, sums):
    """Rescale q, and add what changed to the sums."""
    words, _, parts, _ = tiles
    if sums.shape[0] < crew[WORKERS]:
        share(crew, parts.shape[0], _rescale_rows, (tiles, rows, change))
        share(crew, words.shape[0], _add_tile_differences, (tiles, rows, sums))
    else:
        share(crew, parts.shape[0], _rescale_parts, (tiles, rows, change, sums))
        if crew[WORKERS] > 1:
            share(crew, words.shape[0], _join, (sums,))


@kernel
def rescale(crew, tiles, rows, change, sums):
    """`rescale_all`, called from Python."""
    rescale_all(crew, tiles, rows, change, sums)


@inner
def _add_noted(worker, tile, last_tile, words, n_features, n, index, noted, sums):
    for t in range(tile, last_tile):
        add_listed(words[t], n_features - 8 * t, index, 0, n, noted, sums[t])


@kernel
def code_sums(crew, words, n_features, asked, weights, index, noted, sums):
    """sums[tile, lane, code] += weights of the rows with a code first ... last in a column.

    asked = (column, first, last); index and noted are space for a list of rows and their weights.
    """
    column, first, last = asked
    n = _select(column, 0, column.shape[0], np.uint32(first), np.uint32(last - first), index)
    for j in range(n):
        noted[j] = 1
    if weights.shape[0] > 0:
        for j in range(n):
            noted[j] = weights[index[j]]
    share(crew, words.shape[0], _add_noted, (words, n_features, n, index, noted, sums))
