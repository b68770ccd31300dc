"""numba's front end with fewer steps: what is left out changes no result."""

from __future__ import annotations

import operator
from types import SimpleNamespace

import numpy as np
import pytest
from numba import types
from numba.core.compiler import DefaultPassBuilder, Flags
from numba.core.errors import NumbaError
from numba.core.registry import cpu_target

from ensemble_gpu.kernels.frontend import NEEDLESS, Context, Options, pipeline
from ensemble_gpu.kernels.jit import inner, kernel

NUMBERS = (types.int64, types.uint64, types.float64, types.boolean, types.IntegerLiteral(2))


def options(**given: bool) -> Options:
    flags = Flags()
    for name, value in given.items():
        setattr(flags, name, value)
    return Options(flags)


def test_options_are_equal_where_the_same_is_set():
    own = options(nrt=True, forceinline=True)
    assert own == own.copy() == options(forceinline=True, nrt=True)
    assert hash(own) == hash(own.copy())
    assert own != options(nrt=True)
    assert own != options(nrt=True, forceinline=False)
    assert own.copy().forceinline
    assert not options(nrt=True).forceinline


def test_options_differ_from_numbas_flags_so_that_they_find_no_code_of_others():
    assert Options(Flags()) != Flags()


@pytest.mark.parametrize("operation", [operator.add, operator.truediv, operator.lt, operator.and_])
def test_types_of_operations_are_numbas_the_first_time_and_later(operation):
    numbas = cpu_target.typing_context
    numbas.refresh()
    function = numbas.resolve_value_type(operation)
    own = Context(numbas)
    for a in NUMBERS:
        for b in NUMBERS:
            try:
                expected = numbas.resolve_function_type(function, (a, b), {})
            except NumbaError:
                with pytest.raises(NumbaError):
                    own.resolve_function_type(function, (a, b), {})
                continue
            for _ in range(2):
                assert own.resolve_function_type(function, (a, b), {}) == expected


def test_a_function_that_is_called_with_constants_is_compiled_once():
    @inner
    def added(x, y):
        return x + y

    @kernel
    def three(x):
        return added(x, 1) + added(x, 2) + added(x, x)

    assert three(5) == 23
    assert len(added.overloads) == 1


def test_the_passes_are_numbas_without_those_that_find_nothing():
    state = SimpleNamespace(func_ir=None, flags=Flags())
    all_passes = DefaultPassBuilder.define_nopython_pipeline(state).passes
    names = [one.__name__ for one, _ in all_passes]
    assert set(names) >= NEEDLESS, "numba has renamed a pass"
    own = [one.__name__ for one, _ in pipeline(state).passes]
    names[names.index("NativeLowering")] = "BorrowingPass"
    assert own == [name for name in names if name not in NEEDLESS]


def test_a_kernel_that_needs_a_pass_that_is_left_out_does_not_compile():
    @kernel
    def with_a_closure(x):
        def added(y):
            return x + y

        return added(1)

    with pytest.raises(NumbaError):
        with_a_closure(np.int64(1))
