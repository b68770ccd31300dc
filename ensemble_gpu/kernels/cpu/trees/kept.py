"""Sums that nodes leave to their children."""

from __future__ import annotations

import math

import numpy as np

# Cells of sums that there is room for at first; what is not used takes no memory.
FIRST_CELLS = 1 << 20


class KeptSums:
    """Sums [feature, code, column] of nodes, in the slots of one array."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.pool = np.empty((0, *shape), dtype=np.int64)
        self.slot: dict[int, int] = {}  # of a node
        self.inherited: dict[int, int] = {}  # of a left child: its parent's
        self.free: list[int] = []

    def _new(self) -> int:
        if not self.free:
            n = len(self.pool)
            few = max(1, FIRST_CELLS // math.prod(self.pool.shape[1:]))
            more = np.empty((max(few, 2 * n), *self.pool.shape[1:]), dtype=np.int64)
            more[:n] = self.pool
            self.pool, self.free = more, list(range(len(more) - 1, n - 1, -1))
        return self.free.pop()

    def plan(self, nodes: np.ndarray, size: np.ndarray) -> list[tuple[int, int, int]]:
        """(node to add up, its slot, the slot to take that from or -1) for the sums of nodes.

        Of two children the smaller one is added up; what it leaves of their parent's sums are the
        other's.
        """
        wanted, tasks = set(nodes.tolist()), []
        for left in sorted({node - (node + 1) % 2 for node in wanted}):
            parent = self.inherited.pop(left, None)
            if parent is None:
                own = [node for node in (left, left + 1) if node in wanted]
                self.slot |= {node: self._new() for node in own}
                tasks += [(node, self.slot[node], -1) for node in own]
                continue
            small, large = (left, left + 1) if size[left] <= size[left + 1] else (left + 1, left)
            if large not in wanted:
                self.slot[small] = parent
                tasks.append((small, parent, -1))
                continue
            self.slot[large], slot = parent, self._new()
            tasks.append((small, slot, parent))
            if small in wanted:
                self.slot[small] = slot
            else:  # the tasks after this one may have it
                self.free.append(slot)
        return tasks

    def inherit(self, nodes: np.ndarray, first: int) -> None:
        """The nodes are divided: their sums are for the children first, first + 1, ..."""
        for i, node in enumerate(nodes.tolist()):
            if node in self.slot:
                self.inherited[first + 2 * i] = self.slot.pop(node)

    def drop_inherited(self) -> None:
        """No child asked for them."""
        self.free += self.inherited.values()
        self.inherited.clear()
