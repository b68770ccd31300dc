"""Trees on the CPU: sums of nodes, and their best splits.

The rows of a node are a range of one array (moving.py). Codes lie row by row, so that a row of a
deep node costs one cache line whatever features are tried. Rows come in blocks that stay in the
cache while eight features at a time add them up; only codes that occurred are looked at
afterwards, because most nodes have few rows.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from ensemble_gpu.kernels.cpu.trees.class_splits import present_classes, try_small
from ensemble_gpu.kernels.cpu.trees.pair_splits import search_pairs
from ensemble_gpu.kernels.cpu.trees.sorting import SMALL, WIDE, key_array, sort_rows
from ensemble_gpu.kernels.host.records import BIN, FEATURE, Best
from ensemble_gpu.kernels.host.search import Node, runs_of, try_feature
from ensemble_gpu.kernels.protocol import PACK_BITS

FEATURES, ROWS = 8, 1024
LOW_HALF = np.uint64(0xFFFFFFFF)
# Neither half of the sums of so many packed values can overflow.
PACK_ROWS = (1 << (31 - PACK_BITS)) - 1


@njit(cache=True, nogil=True)
def _add_classes(codes, order, label, values, a, b, f, counted, sums, seen):
    """sums[code, class] += weight for the rows order[a] ... order[b - 1]."""
    last = np.uint64(sums.shape[1] - 1)
    for t in range(a, b):
        code = codes[order[t], f]
        seen[code] = 1
        sums[code, label[t]] += values[t, 0]
        if counted:
            sums[code, last] += 1


@njit(cache=True, nogil=True)
def _add_pairs(codes, order, values, a, b, f, sums, seen):
    for t in range(a, b):
        code = codes[order[t], f]
        seen[code] = 1
        sums[code, 0] += values[t, 0]
        sums[code, 1] += values[t, 1]


@njit(cache=True, nogil=True)
def _add_moments(codes, order, values, a, b, f, counted, sums, seen):
    """sums[code, s] += values[row, s]."""
    n_stats = values.shape[1]
    if n_stats == 2 and not counted:
        _add_pairs(codes, order, values, a, b, f, sums, seen)
        return
    for t in range(a, b):
        code = codes[order[t], f]
        seen[code] = 1
        for s in range(n_stats):
            sums[code, s] += values[t, s]
        if counted:
            sums[code, n_stats] += 1


@njit(cache=True, nogil=True)
def _add(codes, order, label, values, a, b, f, counted, sums, seen):
    if label.shape[0] > 0:
        _add_classes(codes, order, label, values, a, b, f, counted, sums, seen)
    else:
        _add_moments(codes, order, values, a, b, f, counted, sums, seen)


@njit(cache=True, nogil=True)
def _collect(seen, sums, missing_code, code, cell, missing_sums):
    """The runs of the codes seen, which are cleared; how many. `missing_sums` gets the missing."""
    words = seen.view(np.uint64)
    m = 0
    missing_sums[:] = 0
    for word in range(words.shape[0]):
        if words[word] == 0:
            continue
        for b in range(8 * word, 8 * word + 8):
            if seen[b] == 0:
                continue
            occurs = False
            for c in range(sums.shape[1]):
                value = sums[b, c]
                occurs = occurs or value != 0
                sums[b, c] = 0
                cell[m, c] = value
            if occurs and b == missing_code:
                missing_sums[:] = cell[m]
            elif occurs:
                code[m] = b
                m += 1
        words[word] = 0
    return m


@njit(cache=True, nogil=True)
def _sorted_cells(codes, order, label, values, a, n, f, counted, missing_code, keys, other, code,
                  cell, missing_sums):  # fmt: skip
    """`_collect` of rows that are sorted by their codes instead."""
    low = sort_rows(codes, order, a, n, f, keys, other)
    columns, labelled = cell.shape[1], label.shape[0] > 0
    n_stats, m, last = columns - counted, -1, np.int64(-1)
    for k in range(n):
        own, t = np.int64(keys[k] >> np.uint64(32)), np.uint64(a) + (keys[k] & LOW_HALF)
        if own != last:
            m += 1
            code[m], last = own + low, own
            for c in range(columns):
                cell[m, c] = 0
        if labelled:
            cell[m, np.uint64(label[t])] += values[t, 0]
        else:
            for s in range(n_stats):
                cell[m, s] += values[t, s]
        if counted:
            cell[m, n_stats] += 1
    missing_sums[:] = 0
    if code[m] == missing_code:
        missing_sums[:] = cell[m]
        m -= 1
    return m + 1 if labelled or counted else _without_zeros(code, cell, m + 1)


@njit(cache=True, nogil=True)
def _without_zeros(code, cell, n):
    """Runs that add up to nothing count as absent, as in `_collect`."""
    m = 0
    for k in range(n):
        occurs = False
        for c in range(cell.shape[1]):
            occurs = occurs or cell[k, c] != 0
            cell[m, c] = cell[k, c]
        code[m] = code[k]
        m += occurs
    return m


@njit(cache=True, nogil=True)
def split_nodes(
    rule, codes, order, label, values, width, starts, stops, features, wholes, bounds, keys, score,
    record, left, subset, free
):  # fmt: skip
    """The best split of each node; features [node, tried], or [1, tried] for all of them.

    `free`: classes without conditions, so that small nodes have a search of their own.
    """
    columns, tried = rule.n_stats + rule.counted, features.shape[1]
    wide, largest = width > WIDE, max(1, np.max(stops - starts))
    added, room = (0, largest) if wide else (width, width)
    sums = np.zeros((FEATURES, added, columns), dtype=np.int64)
    seen = np.zeros((FEATURES, -(-added // 8) * 8), dtype=np.uint8)
    sorted_, other = np.empty(room - added, np.uint64), np.empty(room - added, np.uint64)
    code, cell = np.empty(room, dtype=np.int64), np.empty((room + 1, columns), dtype=np.int64)
    ranks, work = np.empty(room, dtype=np.int64), np.zeros((3, columns), dtype=np.int64)
    missing_sums = np.empty(columns, dtype=np.int64)
    own, classes = np.empty(SMALL, dtype=np.int64), np.empty(SMALL, dtype=np.int64)
    total, number = np.empty(SMALL, dtype=np.int64), np.zeros(columns, dtype=np.int64)
    unsorted, places = key_array(codes, SMALL), key_array(codes, SMALL)
    rank = np.empty(SMALL, dtype=np.int16)
    below = np.empty((2, SMALL), dtype=np.int64)
    below0, below1 = below[0], below[1]
    for i in range(starts.shape[0]):
        tries = features[i if features.shape[0] > 1 else 0]
        a, n = starts[i], stops[i] - starts[i]
        small = free and n <= SMALL
        if small:
            q = present_classes(label, a, n, own, classes, number)
            weight, at_feature = np.int64(0), -1
            for j in range(q):
                total[j] = wholes[i, classes[j]]
                weight += total[j]
        node = Node(wholes[i], bounds[i], keys[i])
        best = Best(score[i : i + 1], record[i], left[i], subset[i])
        for g in range(0, tried, FEATURES):
            last = min(g + FEATURES, tried)
            for j in range(g, last):
                f = np.uint64(tries[j])
                if small:
                    score[i], rows_left, done = try_small(
                        rule.kind, codes, order, values, a, n, f, own, q, total, weight, width - 1,
                        rule.logs, unsorted, rank, places, below0, below1, i, score[i], record,
                    )  # fmt: skip
                    if rows_left >= 0:
                        at_feature = tries[j]
                    if done:
                        continue
                    slot = 0
                else:
                    slot = j - g
                if wide:
                    m = _sorted_cells(
                        codes, order, label, values, a, n, f, rule.counted, width - 1, sorted_,
                        other, code, cell, missing_sums,
                    )  # fmt: skip
                else:
                    for start in range(a, stops[i], ROWS):
                        stop = min(start + ROWS, stops[i])
                        _add(
                            codes, order, label, values, start, stop, f, rule.counted, sums[slot],
                            seen[slot],
                        )  # fmt: skip
                    m = _collect(seen[slot], sums[slot], width - 1, code, cell, missing_sums)
                try_feature(
                    rule, tries[j], code, cell, m, missing_sums, node, width - 1, ranks, work, best
                )
        if small and at_feature >= 0 and record[i, FEATURE] == at_feature:
            _left_sums(codes, order, label, values, a, n, record[i], left[i])


@njit(cache=True, nogil=True)
def _left_sums(codes, order, label, values, a, n, record, left):
    """Sums of the left child of a split without missing values."""
    left[:] = 0
    for t in range(a, a + n):
        if np.int64(codes[order[t], np.uint64(record[FEATURE])]) <= record[BIN]:
            left[label[t]] += values[t, 0]


@njit(cache=True, nogil=True)
def build(codes, order, label, values, start, stop, lo, hi, counted, sums):
    """sums[feature, code, column] of features lo ... hi - 1 for a range of rows."""
    seen = np.zeros(-(-sums.shape[1] // 8) * 8, dtype=np.uint8)
    for g in range(lo, hi, FEATURES):
        last = min(g + FEATURES, hi)
        for a in range(start, stop, ROWS):
            b = min(a + ROWS, stop)
            for f in range(g, last):
                _add(codes, order, label, values, a, b, np.uint64(f), counted, sums[f], seen)


@njit(cache=True, nogil=True)
def turn(packed, out):
    """g 2^32 + h to -g 2^32 + h."""
    for i in range(packed.shape[0]):
        out[i] = 2 * (packed[i] & np.int64(0xFFFFFFFF)) - packed[i]


@njit(cache=True, nogil=True)
def _build_packed(words, tile, values, start, n, sums, scratch):
    """Both halves of a packed value with one addition; taken apart before they can overflow."""
    scratch[:] = 0
    for t in range(n):
        word, value = words[t], values[start + t, 0]
        for lane in range(FEATURES):
            code = (word >> np.uint64(8 * lane)) & np.uint64(255)
            scratch[np.uint64(256 * lane) + code] += value
    for lane in range(min(FEATURES, sums.shape[0] - FEATURES * tile)):
        own = sums[FEATURES * tile + lane]
        for code in range(own.shape[0]):
            value = scratch[256 * lane + code]
            low = value & np.int64(0xFFFFFFFF)
            own[code, 0] += low
            own[code, 1] += (value - low) >> np.int64(32)


@njit(cache=True, nogil=True)
def _build_pairs(words, tile, label, values, start, n, sums, scratch):
    """Two statistics: a label and a weight, or two values."""
    classes = label.shape[0] > 0
    scratch[:] = 0
    for i in range(n):
        word, t = words[i], start + i
        if classes:
            at, value = np.uint64(label[t]), values[t, 0]
            for lane in range(FEATURES):
                code = (word >> np.uint64(8 * lane)) & np.uint64(255)
                scratch[np.uint64(512 * lane) + code + code + at] += value
        else:
            first, second = values[t, 0], values[t, 1]
            for lane in range(FEATURES):
                code = (word >> np.uint64(8 * lane)) & np.uint64(255)
                place = np.uint64(512 * lane) + code + code
                scratch[place] += first
                scratch[place + np.uint64(1)] += second
    for lane in range(min(FEATURES, sums.shape[0] - FEATURES * tile)):
        own = sums[FEATURES * tile + lane]
        for code in range(own.shape[0]):
            own[code, 0] += scratch[512 * lane + 2 * code]
            own[code, 1] += scratch[512 * lane + 2 * code + 1]


@njit(cache=True, nogil=True)
def build_pairs(words, order, label, values, start, stop, lo, hi, sums):
    """`build` of tiles lo ... hi - 1, eight codes a word, for two statistics of a row.

    A block of rows is fetched first, one read after the other, which miss the cache side by side;
    it stays in the second-level cache while the tiles take their turns.
    """
    packed = label.shape[0] == 0 and values.shape[1] == 1
    scratch = np.empty(FEATURES * 512, dtype=np.int64)
    block = np.empty((hi - lo, min(PACK_ROWS, stop - start)), dtype=np.uint64)
    for a in range(start, stop, PACK_ROWS):
        n = min(PACK_ROWS, stop - a)
        for t in range(n):
            row = order[a + t]
            for tile in range(lo, hi):
                block[tile - lo, t] = words[row, tile]
        for tile in range(lo, hi):
            if packed:
                _build_packed(block[tile - lo], tile, values, a, n, sums, scratch)
            else:
                _build_pairs(block[tile - lo], tile, label, values, a, n, sums, scratch)


@njit(cache=True, nogil=True)
def search_sums(rule, sums, lo, hi, whole, bounds, key, score, record, left, subset):
    """The best split on features lo ... hi - 1 of one node with sums [feature, code, column]."""
    width, columns = sums.shape[1], sums.shape[2]
    code, cell = np.empty(width, dtype=np.int64), np.empty((width, columns), dtype=np.int64)
    ranks, work = np.empty(width, dtype=np.int64), np.zeros((3, columns), dtype=np.int64)
    node = Node(whole, bounds, key)
    best = Best(score, record, left, subset)
    for f in range(lo, hi):
        m = runs_of(sums[f], code, cell)
        try_feature(rule, f, code, cell, m, sums[f, width - 1], node, width - 1, ranks, work, best)


@njit(cache=True, nogil=True)
def _clear(sums, lo, hi):
    for f in range(lo, hi):
        for b in range(sums.shape[1]):
            for c in range(sums.shape[2]):
                sums[f, b, c] = 0


@njit(cache=True, nogil=True)
def _subtract(whole, part, lo, hi):
    for f in range(lo, hi):
        for b in range(whole.shape[1]):
            for c in range(whole.shape[2]):
                whole[f, b, c] -= part[f, b, c]


@njit(cache=True, nogil=True)
def split_sums(
    rule, codes, order, label, values, starts, stops, slots, minus, pool, lo, hi, node_slots,
    wholes, bounds, keys, score, record, left, subset
):  # fmt: skip
    """Features lo ... hi - 1 of the best splits of nodes, from sums pool[slot].

    First rows starts[i] ... stops[i] - 1 are added up in slot slots[i], and taken from the sums in
    slot minus[i].
    """
    for i in range(starts.shape[0]):
        own = pool[slots[i]]
        _clear(own, lo, hi)
        build(codes, order, label, values, starts[i], stops[i], lo, hi, rule.counted, own)
        if minus[i] >= 0:
            _subtract(pool[minus[i]], own, lo, hi)
    for j in range(node_slots.shape[0]):
        search_sums(
            rule, pool[node_slots[j]], lo, hi, wholes[j], bounds[j], keys[j], score[j : j + 1],
            record[j], left[j], subset[j],
        )  # fmt: skip


@njit(cache=True, nogil=True)
def split_pair_sums(
    kind, words, order, label, values, starts, stops, slots, minus, pool, lo, hi, node_slots,
    wholes, score, record, left
):  # fmt: skip
    """`split_sums` of tiles lo ... hi - 1, eight codes a word, for two statistics of a row."""
    first, last = FEATURES * lo, min(FEATURES * hi, pool.shape[1])
    for i in range(starts.shape[0]):
        own = pool[slots[i]]
        _clear(own, first, last)
        build_pairs(words, order, label, values, starts[i], stops[i], lo, hi, own)
        if minus[i] >= 0:
            _subtract(pool[minus[i]], own, first, last)
    for j in range(node_slots.shape[0]):
        search_pairs(kind, pool[node_slots[j]], first, last, wholes[j], score, record, left, j)


@njit(cache=True, nogil=True)
def sums_by(index, values, sums):
    for i in range(index.shape[0]):
        for s in range(values.shape[1]):
            sums[index[i], s] += values[i, s]
