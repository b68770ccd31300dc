"""The cost of a round on paper, measured here, and what it says about a billion rows.

A round on n rows, p features, B bins, K planes of weights, G groups, touched share phi of the rows:

    select    n         compare a code, write a position
    rescale   phi n K   one multiplication and one rounding
    add       phi n K p one integer addition into a histogram
    score     G p B     cumulative sums and one score a threshold

Time of select, rescale and add: a n + b phi n K p, where a is whatever a row costs untouched.
`python -m bench.cost_model` measures a and b by least squares over the rounds of a fit, as every
round touches another share of the rows.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import numpy as np

from bench.data import Shape, generated
from bench.fit_cost import FEATURES
from bench.markdown import seconds, table
from bench.peers import CONTESTANTS, OURS, warm_up
from bench.profile import clock_for
from bench.works import job_for
from ensemble_gpu.kernels.cpu.weights import CpuHistograms

BILLION = 1_000_000_000


@dataclass(frozen=True)
class Constants:
    """Seconds a row and a touched cell; share of the rows touched."""

    a: float
    b: float
    touched: float


@dataclass(frozen=True)
class Machine:
    """An assumption, not a measurement: so many of our measured threads, or so many adds a second
    (select then counts by its bytes alone).
    """

    name: str
    threads: int
    adds_a_second: float
    bytes_a_second: float
    link_seconds: float = 0.0

    def arithmetic(self, rows: int, constants: Constants) -> float:
        """Seconds of select, rescale and add in a round."""
        cells = rows * constants.touched * FEATURES
        if self.threads:
            return (rows * constants.a + cells * constants.b) / self.threads
        return cells / self.adds_a_second


# Bandwidths are data-sheet figures. GPU: 108 multiprocessors of 1.4 GHz with 32 lanes of
# shared-memory adds each; an eighth of that is counted, for 64-bit sums and conflicts.
MACHINES = (
    Machine("one server, 64 cores, 200 GB/s", 64, 0.0, 2.0e11),
    Machine("one GPU, 2 TB/s, 6e11 adds/s", 0, 6.0e11, 2.0e12),
    Machine("16 such servers, 1 ms to sum histograms", 16 * 64, 0.0, 16 * 2.0e11, 1e-3),
)


def bytes_a_row(features: int, touched: float) -> float:
    """Memory traffic of a round with one plane.

    Select: a code read; a touched row: position written and read, q read and written, difference
    written; a tile of eight features: position and difference read, and every cache line of codes
    (eight rows) that holds a touched row: at a share of 0.2 nearly all.
    """
    lines = 1.0 - (1.0 - touched) ** 8
    return 1.0 + touched * (4 + 4 + 8 + 4) + -(-features // 8) * (touched * (4 + 4) + 8 * lines)


def resident_bytes_a_row(features: int) -> int:
    """Codes in tiles, columns of used features, q, positions, differences."""
    return 8 * -(-features // 8) + features + 4 + 4 + 4


def rescales(rows: int, rounds: int, threads: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows touched and seconds spent in each rescale of one fit."""
    split = generated(Shape(rows, FEATURES))
    warm_up(OURS, split.X, split.y, threads)
    clock = clock_for(threads)
    touched: list[float] = []
    spent: list[float] = []
    rescale = CpuHistograms.rescale

    def timed(histograms: CpuHistograms, *args: Any) -> None:
        start = clock()
        rescale(histograms, *args)
        spent.append(clock() - start)
        touched.append(float(histograms.count.sum()))

    with patch.object(CpuHistograms, "rescale", timed):
        CONTESTANTS[OURS].fit(job_for(OURS, split, rounds, threads))
    return np.array(touched), np.array(spent)


def constants_table(rows: int, rounds: int, threads: int) -> tuple[Constants, str]:
    """Constants from a fit on `rows` rows, and how well they predict one on a tenth of them."""
    m, t = rescales(rows, rounds, threads)
    typical = t < 3.0 * np.median(t)  # without rounds that a new column or a neighbour slowed
    design = np.stack([np.full(m.shape, float(rows)), m * FEATURES], axis=1)[typical]
    (a, b), *_ = np.linalg.lstsq(design, t[typical], rcond=None)
    constants = Constants(float(a), float(b), float(m.mean() / rows))
    error = t[typical] - design @ (a, b)
    fewer = rows // 10
    m_fewer, t_fewer = rescales(fewer, rounds, threads)
    predicted = a * fewer * len(m_fewer) + b * FEATURES * m_fewer.sum()
    lines = [
        ["share of the rows touched, mean", f"{constants.touched:.3f}"],
        ["a: a row, touched or not", f"{a * 1e9:.2f} ns"],
        ["b: rescale and add, a touched cell", f"{b * 1e9:.2f} ns"],
        ["variance between rounds explained", f"{1.0 - error.var() / t[typical].var():.3f}"],
        [f"all rescales on {fewer:,} rows, predicted", seconds(float(predicted))],
        [f"all rescales on {fewer:,} rows, measured", seconds(float(t_fewer.sum()))],
    ]
    return constants, table(["", ""], lines)


def prediction_table(constants: Constants) -> str:
    """A billion rows, two classes: the slower of arithmetic and memory, and the link."""
    moved = BILLION * bytes_a_row(FEATURES, constants.touched)
    lines = []
    for machine in MACHINES:
        arithmetic = machine.arithmetic(BILLION, constants)
        memory = moved / machine.bytes_a_second
        round_time = max(arithmetic, memory) + machine.link_seconds
        lines.append([
            machine.name, seconds(arithmetic), seconds(memory), seconds(machine.link_seconds),
            seconds(round_time), seconds(1_000 * round_time),
        ])  # fmt: skip
    head = ["1e9 x 28 (predicted)", "arithmetic", "memory", "link", "a round", "1,000 rounds"]
    note = (
        f"Resident: {resident_bytes_a_row(FEATURES)} bytes a row; moved a round: "
        f"{bytes_a_row(FEATURES, constants.touched):.1f} bytes a row; a cluster exchanges "
        f"{2 * FEATURES * 256 * 8:,} bytes of histograms a round, whatever n.\n"
    )
    return table(head, lines) + "\n" + note


def main() -> None:
    """Measure, compare, predict."""
    parser = argparse.ArgumentParser(prog="python -m bench.cost_model", description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    constants, text = constants_table(arguments.rows, arguments.rounds, arguments.threads)
    shape = Shape(arguments.rows, FEATURES)
    print(f"### Cost model, {shape}, {arguments.rounds} rounds, {arguments.threads} thread(s)\n")
    print(text)
    print(prediction_table(constants))


if __name__ == "__main__":
    main()
