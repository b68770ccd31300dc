"""A graph of ONNX operators, written as expressions; a search that several of them share.

The search counts, without a loop: with s = 2^m, ..., 4, 2, 1 from the largest that is needed,

    place = place + s    where numbers[place + s - 1] < x.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

OPSET, ML_OPSET, IR_VERSION = 21, 5, 10
ML_DOMAIN = "ai.onnx.ml"
FLAT, LAST = np.array([-1], dtype=np.int64), np.array([2], dtype=np.int64)


class Graph:
    """Operators in the order in which they run, and constants; results are known by name."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, array: Any) -> str:
        from onnx import numpy_helper

        name = f"constant_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def node(self, kind: str, *inputs: Any, output: str | None = None, **attributes: Any) -> str:
        """The result of an operator; inputs that are not names are constants."""
        from onnx import helper

        names = [item if isinstance(item, str) else self.constant(item) for item in inputs]
        output = output or f"{kind}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, names, [output], **attributes))
        return output

    def cast(self, x: str, dtype: Any) -> str:
        from onnx import helper

        return self.node("Cast", x, to=helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))

    def rows(self, x: str, width: int) -> str:
        """The shape [rows of x, width]."""
        n = self.node("Shape", x, start=0, end=1)
        return self.node("Concat", n, np.array([width], dtype=np.int64), axis=0)

    def columns(self, x: str, chosen: np.ndarray, n_columns: int) -> str:
        """Some columns of x [n, n_columns]; x itself where they are all, in order."""
        if np.array_equal(chosen, np.arange(n_columns)):
            return x
        places = self.node("Expand", chosen[None, :].astype(np.int32), self.rows(x, len(chosen)))
        return self.node("GatherElements", x, places, axis=1)

    def look_up(self, table: Any, place: str, width: int) -> str:
        """table[place] of a one-dimensional table and places [n, width].

        GatherElements, since runtimes copy what Gather finds entry by entry: ten times the time.
        """
        flat = self.node("Reshape", place, FLAT)
        found = self.node("GatherElements", table, flat, axis=0)
        return self.node("Reshape", found, np.array([-1, width], dtype=np.int64))

    def rows_at(self, table: np.ndarray, place: str, width: int) -> str:
        """Rows of a table [entries, outputs] at places [n, width]: [n, width, outputs]."""
        K = table.shape[1]
        first = self.node("Mul", place, np.int32(K))
        every = self.node("Add", self.node("Unsqueeze", first, LAST), np.arange(K, dtype=np.int32))
        found = self.node("GatherElements", table.reshape(-1), self.node("Reshape", every, FLAT))
        return self.node("Reshape", found, np.array([-1, width, K], dtype=np.int64))

    def sum_in_order(self, x: str, length: int) -> str:
        """Sum over axis 1 of x [n, length, outputs], from the first to the last: [n, outputs]."""
        sums = self.node("CumSum", x, np.int32(1))
        return self.node("Gather", sums, np.int64(length - 1), axis=1)


class Columns:
    """Ascending numbers of several columns, one after the other, in one array.

    Those of column u start at first[u]; `room` NaN follow, which are below and above nothing.
    """

    def __init__(self, columns: Sequence[np.ndarray], room: int) -> None:
        padding = np.full(room, np.nan)
        self.sizes = np.array([len(column) for column in columns], dtype=np.int32)
        self.first = np.cumsum(np.append(0, self.sizes + room))[:-1].astype(np.int32)
        self.numbers = np.concatenate([part for column in columns for part in (column, padding)])

    def search(self, graph: Graph, x: str) -> str:
        """first[u] + number of column u that are < x[:, u]: int32 [n, columns], at least [1, ...].

        first[u] where x is NaN.
        """
        last, width = (self.first + self.sizes)[None, :], len(self.first)
        if not self.sizes.any():
            return graph.constant(self.first[None, :])
        step = np.int32(1 << (int(self.sizes.max()).bit_length() - 1))
        probe = np.minimum(self.first[None, :] + (step - 1), last)
        further = graph.node("Less", self.numbers[probe], x)
        place = graph.node("Where", further, self.first[None, :] + step, self.first[None, :])
        if step == 1:
            return place
        numbers, ends = graph.constant(self.numbers), graph.constant(last)
        while step > 1:
            step = np.int32(step >> 1)
            probe = graph.node("Min", graph.node("Add", place, np.int32(step - 1)), ends)
            further = graph.node("Less", graph.look_up(numbers, probe, width), x)
            beyond = graph.node("Add", place, step)
            place = graph.node("Where", further, beyond, place)
        return place
