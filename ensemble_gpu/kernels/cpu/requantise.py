"""All weights anew from their exact logarithms (kernels/fixedpoint.py has the formulas)."""

from __future__ import annotations

import numpy as np

from ensemble_gpu.kernels.cpu.sharing import share
from ensemble_gpu.kernels.cpu.tabled import add_used
from ensemble_gpu.kernels.fixedpoint import DIGIT_BITS, DIGIT_MASK, FRACTION_BITS, N_POWERS
from ensemble_gpu.kernels.jit import inner, kernel


@inner(forceinline=True)
def _quantised(log, exponent, powers):
    """rint(e^log) in units of the exponent; 0 where it is too small for them."""
    down = exponent - (log >> FRACTION_BITS)
    if down >= N_POWERS:
        return np.int32(0)
    mantissa = (
        powers[0, (log >> (2 * DIGIT_BITS)) & DIGIT_MASK]
        * powers[1, (log >> DIGIT_BITS) & DIGIT_MASK]
        * powers[2, log & DIGIT_MASK]
    )
    return np.int32(np.rint(mantissa * powers[3, down]))


@inner
def _log_weights(worker, first, last, plane, codes, where, tables, used, start_log, logs, top):
    """L = L0 + sum over used features of the group's tables; top[part] = maximum of the part."""
    parts, group_of = where
    nothing = np.zeros(tables.shape[2], dtype=np.int64)
    weighted = start_log.shape[0] > 0
    for part in range(first, last):
        c, start, stop = parts[part, 0], parts[part, 1], parts[part, 2]
        group = group_of[plane, c]
        for i in range(start, stop):
            logs[i] = start_log[i] if weighted else 0
        add_used(codes, used, tables, group, nothing, start, stop, logs)
        highest = logs[start]
        for i in range(start, stop):
            highest = max(highest, logs[i])
        top[part] = highest


@inner
def _quantise(worker, first, last, plane, where, top, logs, powers, exponent, q, largest):
    """q = rint(2^(L - E + QUANTUM_BITS)): three digit tables and one exact power of two.

    E = floor(max L) + 1 over all parts of the group, or what `exponent` holds where that is more.
    """
    parts, group_of = where
    for part in range(first, last):
        c, start, stop = parts[part, 0], parts[part, 1], parts[part, 2]
        group = group_of[plane, c]
        highest = top[part]
        for other in range(parts.shape[0]):
            if group_of[plane, parts[other, 0]] == group:
                highest = max(highest, top[other])
        E = max((highest >> FRACTION_BITS) + 1, exponent[group])
        exponent[group] = E
        most = np.int32(0)
        for i in range(start, stop):
            new = _quantised(logs[i], E, powers)
            q[plane, i] = new
            most = max(most, new)
        largest[part, group] = max(largest[part, group], most)


@kernel
def quantise_logs(logs, powers, q):
    """q of logarithms that share one exponent, which is returned."""
    highest = logs[0]
    for i in range(logs.shape[0]):
        highest = max(highest, logs[i])
    E = (highest >> FRACTION_BITS) + 1
    for i in range(logs.shape[0]):
        q[i] = _quantised(logs[i], E, powers)
    return E


@inner
def requantise_all(crew, codes, where, tables, used, start_log, powers, exponent, q, largest):
    """q[plane, row] anew, the exponent E of every group, and largest[part, group] of q.

    where = (parts, group_of[plane, class]). `exponent` holds the least that they may be.
    """
    n_parts = where[0].shape[0]
    logs, top = np.empty(q.shape[1], dtype=np.int64), np.empty(n_parts, dtype=np.int64)
    largest[:] = 0
    for plane in range(q.shape[0]):
        weighed = (plane, codes, where, tables, used, start_log, logs, top)
        share(crew, n_parts, _log_weights, weighed)
        share(crew, n_parts, _quantise, (plane, where, top, logs, powers, exponent, q, largest))


@kernel
def requantise(crew, codes, where, tables, used, start_log, powers, exponent, q, largest):
    """`requantise_all`, called from Python."""
    requantise_all(crew, codes, where, tables, used, start_log, powers, exponent, q, largest)
