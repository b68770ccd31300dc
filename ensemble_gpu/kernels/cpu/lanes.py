"""Numbers of several rows as one value of compiled code: what is done to one is done to all.

A `Lanes` holds LANES float64; LLVM makes of it what the processor has, two registers or eight. A
set of lanes is an integer, a bit for each.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic, models, register_model

# bench/explain.py: 16 lanes explain a forest in 2.0 s, 8 in 2.4 s (100 trees of 256 leaves).
LANES = 16
ALL = (1 << LANES) - 1

_INT32, _INT64 = ir.IntType(32), ir.IntType(64)
_BITS, _MASK = ir.IntType(LANES), ir.VectorType(ir.IntType(1), LANES)
_VECTOR = ir.VectorType(ir.DoubleType(), LANES)


class Lanes(types.Type):
    """The type of the value."""

    def __init__(self) -> None:
        super().__init__(name="Lanes")


_LANES = Lanes()


@register_model(Lanes)
class _Model(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _VECTOR)


def _place(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    """Where the lanes begin at position args[1] of the array args[0], which is in one piece."""
    data = context.make_array(signature.args[0])(context, builder, args[0]).data
    return builder.bitcast(builder.gep(data, [args[1]]), _VECTOR.as_pointer())


def _repeat(builder: Any, value: Any) -> Any:
    nothing = ir.Constant(_VECTOR, ir.Undefined)
    alone = builder.insert_element(nothing, value, ir.Constant(_INT32, 0))
    everywhere = ir.Constant(ir.VectorType(_INT32, LANES), [0] * LANES)
    return builder.shuffle_vector(alone, nothing, everywhere)


def _mask(builder: Any, bits: Any) -> Any:
    return builder.bitcast(builder.trunc(bits, _BITS), _MASK)


@intrinsic
def load(typingctx, array, at):
    """array[at], array[at + 1], ..."""

    def codegen(context, builder, signature, args):
        return builder.load(_place(context, builder, signature, args), align=8)

    return _LANES(array, types.int64), codegen


@intrinsic
def store(typingctx, array, at, value):
    """array[at], array[at + 1], ... = value"""

    def codegen(context, builder, signature, args):
        builder.store(args[2], _place(context, builder, signature, args), align=8)
        return context.get_dummy_value()

    return types.void(array, types.int64, _LANES), codegen


@intrinsic
def repeat(typingctx, number):
    """The number in all lanes."""

    def codegen(context, builder, signature, args):
        return _repeat(builder, args[0])

    return _LANES(types.float64), codegen


@intrinsic
def where(typingctx, bits, number, others):
    """The number in the lanes of the set, `others` in the rest."""

    def codegen(context, builder, signature, args):
        return builder.select(_mask(builder, args[0]), _repeat(builder, args[1]), args[2])

    return _LANES(types.int64, types.float64, _LANES), codegen


@intrinsic
def add(typingctx, a, b):
    """The sum, lane by lane."""

    def codegen(context, builder, signature, args):
        return builder.fadd(*args)

    return _LANES(_LANES, _LANES), codegen


@intrinsic
def multiply(typingctx, a, b):
    """The product, lane by lane."""

    def codegen(context, builder, signature, args):
        return builder.fmul(*args)

    return _LANES(_LANES, _LANES), codegen


def _compared(builder: Any, x: Any, threshold: Any, missing: bool) -> Any:
    compare = builder.fcmp_unordered if missing else builder.fcmp_ordered
    bits = builder.bitcast(compare("<=", x, _repeat(builder, threshold)), _BITS)
    return builder.zext(bits, _INT64)


@intrinsic
def at_most(typingctx, x, threshold):
    """The set of lanes with x <= threshold; NaN is not among them."""

    def codegen(context, builder, signature, args):
        return _compared(builder, *args, False)

    return types.int64(_LANES, types.float64), codegen


@intrinsic
def at_most_or_missing(typingctx, x, threshold):
    """The set of lanes with x <= threshold or NaN."""

    def codegen(context, builder, signature, args):
        return _compared(builder, *args, True)

    return types.int64(_LANES, types.float64), codegen
