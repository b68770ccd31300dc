"""What processors can do and NumPy has no word for: fetch ahead, compare many codes, find a bit."""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

# Codes that `marks` compares at once: a bit each.
MARKS = 64

_INT1, _INT32, _INT64 = ir.IntType(1), ir.IntType(32), ir.IntType(64)
# Of llvm.prefetch: to be read, and soon, from the cache of data.
_TO_READ_SOON = tuple(ir.Constant(_INT32, value) for value in (0, 3, 1))


@intrinsic
def fetch(typingctx, rows, i):
    """Send for rows[i] without waiting for it."""

    def codegen(context, builder, signature, args):
        array = context.make_array(signature.args[0])(context, builder, args[0])
        stride = cgutils.unpack_tuple(builder, array.strides)[0]
        offset = builder.mul(builder.zext(args[1], stride.type), stride)
        place = builder.gep(builder.bitcast(array.data, cgutils.voidptr_t), [offset])
        declared = ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, _INT32, _INT32, _INT32])
        call = cgutils.get_or_insert_function(builder.module, declared, "llvm.prefetch.p0i8")
        builder.call(call, [place, *_TO_READ_SOON])
        return context.get_dummy_value()

    return types.void(rows, types.uint32), codegen


@intrinsic
def marks(typingctx, codes, start, first, span):
    """Bit k: whether codes[start + k] - first <= span, wrapped around in the codes' own width."""

    def codegen(context, builder, signature, args):
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        code = data.type.pointee
        vector = ir.VectorType(code, MARKS)
        place = builder.bitcast(builder.gep(data, [args[1]]), vector.as_pointer())
        nothing = ir.Constant(vector, ir.Undefined)
        everywhere = ir.Constant(ir.VectorType(_INT32, MARKS), [0] * MARKS)

        def repeat(value):
            value = builder.trunc(value, code) if code.width < 32 else value
            alone = builder.insert_element(nothing, value, ir.Constant(_INT32, 0))
            return builder.shuffle_vector(alone, nothing, everywhere)

        above = builder.sub(builder.load(place, align=code.width // 8), repeat(args[2]))
        inside = builder.icmp_unsigned("<=", above, repeat(args[3]))
        return builder.bitcast(inside, _INT64)

    return types.uint64(codes, types.int64, types.uint32, types.uint32), codegen


@intrinsic
def lowest_bit(typingctx, word):
    """The place of the lowest bit that is set; the word is not 0."""

    def codegen(context, builder, signature, args):
        return builder.cttz(args[0], ir.Constant(_INT1, 1))

    return types.int64(types.uint64), codegen
