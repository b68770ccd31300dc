"""The formulas of splits: plain Python, compiled for the host, and mathematics agree."""

from __future__ import annotations

import ast
import inspect
import math
import operator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numba import njit

from ensemble_gpu.kernels.formulas import Formulas, formulas
from ensemble_gpu.kernels.host import scalar

PYTHON: Formulas = formulas(lambda function: function, operator.mul)
COMPILED: Formulas = formulas(njit(nogil=True), operator.mul)
RNG = np.random.default_rng(0)
BINARY = ast.BinOp | ast.AugAssign
PAIRS = [(float(a), float(b)) for a, b in np.exp(RNG.normal(size=(200, 2)) * 20)]


@pytest.mark.parametrize("name", [n for n in Formulas._fields if n not in ("log", "pair_gini")])
def test_compiled_formulas_have_the_bits_of_plain_python(name: str) -> None:
    python, compiled = getattr(PYTHON, name), getattr(COMPILED, name)
    assert [compiled(a, b) for a, b in PAIRS] == [python(a, b) for a, b in PAIRS]


def test_logarithms_have_the_bits_of_the_host_s() -> None:
    values = [x for pair in PAIRS for x in pair] + [1.0, 2.0, 3.0, 5e-324, 1.7e308, 0.999, 1.001]
    values += [float(i) for i in range(1, 2000)]
    for x in values:
        assert PYTHON.log(x) == COMPILED.log(x) == scalar.log(x)
        assert math.isclose(PYTHON.log(x), math.log(x), rel_tol=1e-15, abs_tol=1e-16)


def test_formulas_are_what_their_names_say() -> None:
    assert PYTHON.weight(3.0, 5.0) == 15.0
    assert PYTHON.confidence(4.0, 9.0) == 6.0
    assert (PYTHON.gentle(3.0, 6.0), PYTHON.gentle(0.0, 0.0)) == (2.0, 0.0)
    assert PYTHON.square_share(6.0, 4.0) == 9.0
    assert (PYTHON.mean(3.0, 4.0), PYTHON.mean(0.0, 0.0)) == (0.75, 0.0)
    assert PYTHON.weighted_log(2.0, 1.0) == 0.0


@pytest.mark.parametrize(("a", "b"), [(1, 2), (7, 7), (5, 1000), (2**20, 3)])
def test_minus_twice_the_pair_is_gini_up_to_a_constant(a: int, b: int) -> None:
    """sum_k L_k^2 / W = W - 2 a b / W."""
    whole = Fraction(a + b)
    exact = Fraction(a * a + b * b) / whole - whole
    found: Any = -2.0 * PYTHON.pair_gini(float(a), float(b), float(a + b))
    assert math.isclose(found, float(exact), rel_tol=1e-15)


def test_no_product_is_written_as_an_operator() -> None:
    """Else a compiler could fuse it with a sum."""
    tree = ast.parse(inspect.getsource(formulas))
    operators = {type(node.op) for node in ast.walk(tree) if isinstance(node, BINARY)}
    assert operators == {ast.Add, ast.Sub, ast.Div}
