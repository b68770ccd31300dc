"""Tables of codes, added to the outputs of all rows."""

from __future__ import annotations

import numpy as np

from ensemble_gpu.kernels.cpu.sharing import share
from ensemble_gpu.kernels.jit import inner, kernel

LANES = 8  # features per tile of codes
BLOCK = 2048  # rows whose outputs stay in the first-level cache from tile to tile


@inner
def _table(tables, k, feature, nothing):
    """A feature's table; nothing for the lanes of the last tile that hold no feature."""
    return tables[k, feature] if feature < tables.shape[1] else nothing


@inner
def _add_tile(tile, tables, k, first, nothing, start, stop, out):
    """out += the tables of eight features from `first` on, at the codes of each row."""
    t0, t1 = _table(tables, k, first, nothing), _table(tables, k, first + 1, nothing)
    t2, t3 = _table(tables, k, first + 2, nothing), _table(tables, k, first + 3, nothing)
    t4, t5 = _table(tables, k, first + 4, nothing), _table(tables, k, first + 5, nothing)
    t6, t7 = _table(tables, k, first + 6, nothing), _table(tables, k, first + 7, nothing)
    for i in range(start, stop):
        c0, c1, c2, c3 = tile[i, 0], tile[i, 1], tile[i, 2], tile[i, 3]
        c4, c5, c6, c7 = tile[i, 4], tile[i, 5], tile[i, 6], tile[i, 7]
        out[i] += (t0[c0] + t1[c1] + t2[c2] + t3[c3]) + (t4[c4] + t5[c5] + t6[c6] + t7[c7])


@inner
def add_used(codes, used, tables, k, nothing, start, stop, out):
    """out[i] += sum over the used features f of tables[k, f, code of row i in f].

    The tables of the others hold zeros, and so does `nothing`: a tile is read whole or not at all.
    """
    for u in range(used.shape[0]):
        tile = used[u] // LANES
        if u == 0 or tile != used[u - 1] // LANES:
            _add_tile(codes[tile], tables, k, LANES * tile, nothing, start, stop, out)


@inner
def _add_blocks(worker, first, last, codes, F, used, tables, out):
    nothing = np.zeros(tables.shape[2])
    for block in range(first, last):
        start, stop = block * BLOCK, min((block + 1) * BLOCK, F.shape[1])
        for k in range(F.shape[0]):
            own, before = out[k], F[k]
            for i in range(start, stop):
                own[i] = before[i]
            add_used(codes, used, tables, k, nothing, start, stop, own)


@kernel
def add_tables(crew, codes, F, used, tables, out):
    """out[k, i] = F[k, i] + sum over the used features f of tables[k, f, code of row i in f]."""
    n_blocks = (F.shape[1] + BLOCK - 1) // BLOCK
    share(crew, n_blocks, _add_blocks, (codes, F, used, tables, out))
