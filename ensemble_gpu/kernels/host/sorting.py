"""A stable sort in a few lines: NumPy's, compiled into a kernel, takes seconds to compile."""

from __future__ import annotations

from ensemble_gpu.kernels.jit import inner


@inner
def sort_places(keys, order, start, stop, other):
    """Sort order[start:stop] by the keys of its places, equal ones in their own order.

    Merges runs of 1, 2, 4, ... places by way of `other`; what is in order already costs one look.
    """
    ascending = True
    for i in range(start + 1, stop):
        ascending = ascending and keys[order[i - 1]] <= keys[order[i]]
    length = stop - start if ascending else 1
    while length < stop - start:
        for low in range(start, stop, 2 * length):
            middle, high = min(low + length, stop), min(low + 2 * length, stop)
            a, b = low, middle
            for i in range(low, high):
                if b >= high or (a < middle and keys[order[a]] <= keys[order[b]]):
                    other[i] = order[a]
                    a += 1
                else:
                    other[i] = order[b]
                    b += 1
        for i in range(start, stop):
            order[i] = other[i]
        length *= 2
