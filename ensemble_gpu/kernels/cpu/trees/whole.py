"""A whole tree in compiled code: what trees/grow.py does with the methods of a grower.

It never comes back to the interpreter: trees of a forest grow on several threads, which would wait
for each other's turn at its lock, and the steps of a boosted tree are too short for it.
"""

from __future__ import annotations

import numpy as np

from ensemble_gpu.kernels.cpu.sharing import share
from ensemble_gpu.kernels.cpu.trees.meetings import list_allowed, note_test
from ensemble_gpu.kernels.cpu.trees.pair_categories import categories_of
from ensemble_gpu.kernels.cpu.trees.pair_runs import counting_of_kept, work_of
from ensemble_gpu.kernels.cpu.trees.pair_splits import search_rows
from ensemble_gpu.kernels.cpu.trees.partition import copy_rows, move_rows
from ensemble_gpu.kernels.cpu.trees.pool import (
    plan,
    release,
    release_borrowed,
    release_unclaimed,
)
from ensemble_gpu.kernels.cpu.trees.pool_search import copy_split, search_again, search_pool
from ensemble_gpu.kernels.cpu.trees.rows import Rows
from ensemble_gpu.kernels.cpu.trees.splits import search_class_nodes, search_nodes
from ensemble_gpu.kernels.cpu.trees.whole_arrays import BLOCK, PIECE_ROWS
from ensemble_gpu.kernels.host.criteria import write_gains
from ensemble_gpu.kernels.host.nodes import (
    leaves_from,
    list_next,
    list_open,
    split_known,
    write_children,
    write_features,
)
from ensemble_gpu.kernels.host.records import FEATURE, NodeBatch
from ensemble_gpu.kernels.jit import inner, kernel
from ensemble_gpu.kernels.tree_protocol import NEVER

# Rows times features, or rows to be moved, below which a second thread costs more than it brings.
SHARED_CELLS = 20_000
SHARED_ROWS = 10_000
# Of the leaves to come one in so many is split at once, the best first: with more of them, nodes
# are searched that are cut off again.
SPECULATION = 4


@inner(inline="always")
def _lay_out(rows, layout, others):
    """Lay out codes and targets in the order of the nodes."""
    order, place = rows.order, layout.place
    for t in range(order.shape[0]):
        others.order[t] = place[order[t]]
    for t in range(order.shape[0]):
        place[t] = others.order[t]
        order[t] = t
    copy_rows(layout.matrix_words, place[: order.shape[0]], layout.laid_words)
    if layout.targets.shape[0] > 0:
        for t in range(order.shape[0]):
            layout.laid_target[t] = layout.targets[place[t]]


@inner(forceinline=True)
def _depth_of_open(first, last, tree, growth):
    """The depth of the deepest new node that may be split; -1: there is none."""
    deepest = np.int64(-1)
    for node in range(first, last):
        depth = np.int64(tree.depth[node])
        shallow = growth.max_depth < 0 or depth < growth.max_depth
        if shallow and tree.n_rows[node] >= growth.least_rows:
            deepest = max(deepest, depth)
    return deepest


@inner(forceinline=True)
def _impure(nodes, m, order, target, start, stop):
    """Drop the nodes whose rows have one target; how many are left."""
    kept = 0
    for i in range(m):
        node, mixed = nodes[i], False
        for t in range(start[node] + 1, stop[node]):
            if target[order[t]] != target[order[start[node]]]:
                mixed = True
                break
        nodes[kept] = node
        kept += mixed
    return kept


@inner(forceinline=True)
def _search_part(worker, first, last, rule, count, rows, which, batch, found, works, categories):
    """Nodes which[first:last], on one worker."""
    work, categories = work_of(works, worker), categories_of(categories, worker)
    search_rows(rule, count, rows, which, first, last, batch, found, work, categories)


@inner(forceinline=True)
def _search_in_general(by_class, rule, rows, which, batch, found, node_work, class_work):
    """Nodes `which`, whatever their statistics are."""
    if by_class:
        search_class_nodes(rule, rows, which, batch, found, node_work, class_work)
    else:
        search_nodes(rule, rows, which, batch, found, node_work)


@inner(forceinline=True)
def _describe(rule, m, ranges, tree, block):
    """What a search needs to know of the m nodes of a block."""
    nodes, batch, found = block.nodes, block.batch, block.found
    for i in range(m):
        node = nodes[i]
        block.pending[i] = i
        batch.start[i], batch.stop[i] = ranges[0][node], ranges[1][node]
        batch.key[i] = tree.key[node]
        found.score[i] = NEVER
        for s in range(tree.sums.shape[1]):
            batch.whole[i, s] = tree.sums[node, s]
        if rule.counted:
            batch.whole[i, tree.sums.shape[1]] = tree.n_rows[node]
        batch.bounds[i, 0], batch.bounds[i, 1] = -np.inf, np.inf
        if rule.monotone:
            batch.bounds[i, 0], batch.bounds[i, 1] = tree.bounds[node, 0], tree.bounds[node, 1]


@inner(forceinline=True)
def _search(
    crews,
    rule,
    count,
    kept,
    rows,
    words,
    growth,
    m,
    ranges,
    tree,
    block,
    meetings,
    pool,
    works,
    categories,
    node_work,
    class_work,
):
    """Best splits of the m nodes of a block, on k features drawn for each; without success on more.

    crews = (all workers, the caller alone); `kept` is the Counting of kept sums.
    """
    nodes, pending, found, batch = block.nodes, block.pending, block.found, block.batch
    _describe(rule, m, ranges, tree, block)
    n, n_tiles, limited = m, words.shape[1], meetings.tested.shape[1] > 0
    for first in range(0, growth.p, growth.k):
        tried = min(growth.k, growth.p - first)
        rows_of_features = n if growth.k < growth.p or limited else 1
        features = block.features[: rows_of_features * tried].reshape(rows_of_features, tried)
        if limited:
            for i in range(n):
                node = nodes[pending[i]]
                list_allowed(
                    meetings, node, growth.p, tree.key[node : node + 1], first, growth.k,
                    features[i : i + 1],
                )  # fmt: skip
        elif growth.k < growth.p:
            for i in range(n):
                block.keys[i] = tree.key[nodes[pending[i]]]
            write_features(block.keys[:n], growth.p, first, features)
        else:
            for j in range(tried):
                features[0, j] = j
        own = NodeBatch(batch.start, batch.stop, features, batch.whole, batch.bounds, batch.key)
        if pool is not None:
            if first == 0:
                n_tasks = plan(pool, nodes, m, ranges, features, growth.p)
                if n_tasks > 0:
                    search_pool(
                        crews[0], n_tasks, n_tiles, growth.p, rule, kept, rows, words, m, own,
                        found, pool, works, categories,
                    )  # fmt: skip
                    release_borrowed(pool, n_tasks)
            else:
                search_again(
                    n_tiles, growth.p, rule, kept, rows, nodes, pending[:n], own, found,
                    pool, works, categories,
                )  # fmt: skip
        _search_by_rows(
            crews, growth.by_class, rule, count, rows, block, n, own, found, pool, works,
            categories, node_work, class_work,
        )  # fmt: skip
        left = 0
        for i in range(n):
            pending[left] = pending[i]
            left += found.score[pending[i]] == NEVER
        n = left
        if n == 0:
            break


@inner(forceinline=True)
def _search_by_rows(
    crews, by_class, rule, count, rows, block, n, batch, found, pool, works, categories, node_work,
    class_work,
):  # fmt: skip
    """The pending nodes that have no sums."""
    pending, features = block.pending, batch.features
    which, m = pending[:n], n
    if pool is not None:
        which, m = block.which, 0
        for i in range(n):
            if pool.route[pending[i]] < 0:
                which[m] = pending[i]
                if features.shape[0] > 1:
                    for j in range(features.shape[1]):
                        features[m, j] = features[i, j]
                m += 1
    if m == 0:
        return
    own_batch = NodeBatch(batch.start, batch.stop, features, batch.whole, batch.bounds, batch.key)
    if works is not None:
        size = np.int64(0)
        for i in range(m):
            size += batch.stop[which[i]] - batch.start[which[i]]
        crew = crews[0 if size * features.shape[1] > SHARED_CELLS else 1]
        share(
            crew, m, _search_part,
            (rule, count, rows, which, own_batch, found, works, categories),
        )  # fmt: skip
    if node_work is not None:
        _search_in_general(by_class, rule, rows, which[:m], own_batch, found, node_work, class_work)


@inner(forceinline=True)
def _keep_good(m, least_gain, block, pool):
    """Move the nodes that are worth a split to the front; how many."""
    batch, kept = block.batch, 0
    for i in range(m):
        if block.found.score[i] == NEVER or block.worth[i] < least_gain:
            if pool is not None:
                drop(pool, block.nodes[i])
            continue
        block.nodes[kept], block.worth[kept] = block.nodes[i], block.worth[i]
        batch.start[kept], batch.stop[kept] = batch.start[i], batch.stop[i]
        copy_split(block.found, i, block.found, kept)
        kept += 1
    return kept


@inner
def drop(pool, node):
    """The node is a leaf: it needs no sums."""
    if pool.slot[node] >= 0:
        release(pool, pool.slot[node])
        pool.slot[node] = -1


@inner(forceinline=True)
def _let_wait(m, least_gain, block, waiting, pool):
    """Note the splits of the m nodes of a block that are worth it."""
    for i in range(m):
        node = block.nodes[i]
        if block.found.score[i] == NEVER or block.worth[i] < least_gain:
            if pool is not None:
                drop(pool, node)
            continue
        waiting.worth[node] = block.worth[i]
        copy_split(block.found, i, waiting.found, node)


@inner
def _divide(crews, m, cells, steps, rule, rows, others, ranges, last, tree, block, meetings, pool):
    """Split the first m nodes of a block; their children are nodes `last` and on."""
    start, stop = ranges
    batch, record, n_left = block.batch, block.found.record, block.n_left
    size = np.int64(0)
    for i in range(m):
        size += batch.stop[i] - batch.start[i]
    shared = size > SHARED_ROWS
    crew = crews[0 if shared else 1]
    piece_rows = PIECE_ROWS if shared and crew[0] > 1 else size + 1
    move_rows(
        crew, piece_rows, block.pieces, cells, steps, rows, batch.start[:m], batch.stop[:m],
        record, block.found.subset, others, n_left,
    )  # fmt: skip
    write_children(
        block.nodes[:m], record, block.found.subset, block.found.left, n_left, block.worth,
        rule.kind, rule.l2, rule.signs, last, tree,
    )  # fmt: skip
    for i in range(m):
        child, middle = last + 2 * i, batch.start[i] + n_left[i]
        start[child], stop[child] = batch.start[i], middle
        start[child + 1], stop[child + 1] = middle, batch.stop[i]
        node = block.nodes[i]
        for both in range(child, child + 2):
            note_test(meetings, node, both, record[i, FEATURE])
        if pool is not None:
            pool.inherited[child], pool.inherited[child + 1] = pool.slot[node], -1
            pool.slot[node] = pool.slot[child] = pool.slot[child + 1] = -1


@inner(forceinline=True)
def _divide_chosen(
    crews, chosen, cells, steps, rule, rows, others, ranges, last, tree, block, meetings, pool,
    waiting,
):  # fmt: skip
    """Split these nodes, which wait; how many nodes there are then."""
    known = last
    for first in range(0, chosen.shape[0], BLOCK):
        m = min(BLOCK, chosen.shape[0] - first)
        for i in range(m):
            node = chosen[first + i]
            block.nodes[i], block.worth[i] = node, waiting.worth[node]
            block.batch.start[i], block.batch.stop[i] = ranges[0][node], ranges[1][node]
            copy_split(waiting.found, node, block.found, i)
        _divide(
            crews, m, cells, steps, rule, rows, others, ranges, last, tree, block, meetings, pool
        )
        last += 2 * m
    for child in range(known, last):
        waiting.worth[child], waiting.marked[child] = NEVER, False
    return last


@kernel
def grow_whole(
    crew, alone, rule, count, rows, layout, others, growth, ranges, tree, block, meetings, pool,
    works, categories, node_work, class_work, waiting,
):  # fmt: skip
    """Grow from the root at place 0 of the arrays of `tree`, which have room.

    The rows of node i are ranges[0][i] ... ranges[1][i] - 1. Two statistics have `pool`, `works`
    and, for categories, `categories`; others have `node_work` and `class_work`, and are not shared.
    What is None is not compiled. `waiting` has room where leaves are limited.

    Returns how many nodes there are, and whether rows were laid out anew.
    """
    crews, kept = (crew, alone), counting_of_kept(count, rule.min_rows, rule.categorical, rows)
    start, stop = ranges
    labelled = rows.label.shape[0] > 0
    target, cells, steps = layout.target, layout.cells, layout.steps
    words = layout.words
    first, last, untidy, moved = np.int64(0), np.int64(1), np.int64(growth.tidy), False
    if pool is not None:
        pool.slot[0], pool.inherited[0] = -1, -1
    limited = growth.max_leaves >= 0
    heap, n_leaves = leaves_from(NEVER, tree.key[0]), np.int64(1)
    if limited:
        waiting.worth[0], waiting.marked[0] = NEVER, False
    while first < last:
        if _depth_of_open(first, last, tree, growth) >= untidy:
            untidy += growth.tidy
            _lay_out(rows, layout, others)
            rows = Rows(layout.laid, rows.order, rows.label, rows.values, rows.width)
            target, cells, moved = layout.laid_target, layout.laid_cells, True
            words, steps = layout.laid_words, layout.laid_steps
        end = last
        for a in range(first, end, BLOCK):
            m = list_open(
                a, min(a + BLOCK, end), tree, growth.least_rows, growth.max_depth, labelled,
                block.nodes,
            )  # fmt: skip
            if not labelled and target.shape[0] > 0:
                m = _impure(block.nodes, m, rows.order, target, start, stop)
            if m == 0:
                continue
            _search(
                crews, rule, count, kept, rows, words, growth, m, ranges, tree, block, meetings,
                pool, works, categories, node_work, class_work,
            )  # fmt: skip
            write_gains(
                rule, tree.sums, block.nodes[:m], block.found.score, growth.rounding, block.worth
            )
            if limited:
                _let_wait(m, growth.least_gain, block, waiting, pool)
            else:
                m = _keep_good(m, growth.least_gain, block, pool)
                _divide(
                    crews, m, cells, steps, rule, rows, others, ranges, last, tree, block,
                    meetings, pool,
                )  # fmt: skip
                last += 2 * m
        if pool is not None:
            release_unclaimed(pool, first, end)
        if limited:
            if first == 0:
                heap = leaves_from(waiting.worth[0], tree.key[0])
            most, left, key, worth = growth.max_leaves, tree.left, tree.key, waiting.worth
            n_leaves = split_known(heap, n_leaves, left, key, worth, most, waiting.marked)
            fresh = max(np.int64(1), (most - (last + 1) // 2) // SPECULATION)
            chosen, ahead = waiting.chosen[:fresh], heap.copy() if fresh > 1 else heap[:1]
            chosen = chosen[: list_next(ahead, n_leaves, left, key, worth, most, chosen)]
            last = _divide_chosen(
                crews, chosen, cells, steps, rule, rows, others, ranges, last, tree, block,
                meetings, pool, waiting,
            )  # fmt: skip
        first = end
    return last, moved
