"""How threads share the work of a kernel, in compiled code.

    @kernel
    def double(crew, x, out):
        share(crew, x.shape[0], _double, (x, out))

    @inner
    def _double(worker, start, stop, x, out): ...

`share` calls the body for contiguous pieces of 0 ... n - 1, several a worker. Each has a stretch of
its own, the same one whenever n is the same: what it wrote last time is in its cache. Whoever is
done with it takes from the others'. The caller is worker 0 and takes part; a helper that sleeps, or
that the system has put aside, is not waited for unless it has begun a piece. Which worker does
which piece differs from run to run, so a body writes to places of its own or adds integers into
sums of its worker.

A crew is an array of int64 in which caller and helpers meet, a cache line each word:

    WORKERS  how many take part, the caller included; a crew of one needs nothing else
    OPEN     whether a kernel is running: helpers then wait for work without going to sleep
    TICKET   odd while there is work to take; the next even number closes it
    INSIDE   helpers that may be at work on what the ticket stands for
    NEXT     how many pieces of its stretch are taken, a word for each worker

To hand work over takes about a microsecond while helpers wait (`serve`): neither side asks the
system or the interpreter. Helpers sleep in Python (kernels/cpu/threads.py).
"""

from __future__ import annotations

import os
import platform
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.callconv import excinfo_ptr_t
from numba.extending import intrinsic

from ensemble_gpu.kernels.jit import inner, kernel

LINE = 8
WORKERS, OPEN, TICKET, INSIDE, TASK, ARGUMENTS, SIZE, PIECES, FAILED, NEXT = range(
    0, 10 * LINE, LINE
)
# More pieces than workers, so that one who comes late, or is slower, does less.
PIECES_PER_WORKER = 8

# Turns of waiting after which a thread gives way: other work on its core goes first.
POLITE = 64

# How a processor is told that a loop waits.
PAUSES: dict[str, tuple[str, tuple[int, ...]]] = {
    "x86_64": ("llvm.x86.sse2.pause", ()),
    "amd64": ("llvm.x86.sse2.pause", ()),
    "aarch64": ("llvm.aarch64.hint", (1,)),
    "arm64": ("llvm.aarch64.hint", (1,)),
}

_INT32, _INT64, _POINTER = ir.IntType(32), ir.IntType(64), cgutils.voidptr_t
# A task is called like a compiled function of numba's (result, exception, arguments), so that an
# exception within it ends it: address of the arguments, worker, start, stop.
_TASK_TYPE = ir.FunctionType(
    _INT32, [_POINTER, ir.PointerType(excinfo_ptr_t), _POINTER, _INT64, _INT64, _INT64]
)


def new_crew(most: int) -> np.ndarray:
    """A crew of one, with room for more."""
    crew = np.zeros(NEXT + most * LINE, dtype=np.int64)
    crew[WORKERS] = 1
    return crew


ALONE = new_crew(1)


def _cell(context: Any, builder: Any, array_type: Any, array: Any, index: Any) -> Any:
    data = context.make_array(array_type)(context, builder, array).data
    return builder.gep(data, [index])


@intrinsic
def _load(typingctx, crew, index):
    """crew[index] as other threads left it."""

    def codegen(context, builder, signature, args):
        cell = _cell(context, builder, signature.args[0], *args)
        return builder.load_atomic(cell, "seq_cst", 8)

    return types.int64(crew, types.int64), codegen


@intrinsic
def _add(typingctx, crew, index, value):
    """crew[index] += value at once; what it was before."""

    def codegen(context, builder, signature, args):
        cell = _cell(context, builder, signature.args[0], *args[:2])
        return builder.atomic_rmw("add", cell, args[2], "seq_cst")

    return types.int64(crew, types.int64, types.int64), codegen


@intrinsic
def _pause(typingctx):
    """Let the other thread of this core run while this one waits."""

    def codegen(context, builder, signature, args):
        if platform.machine().lower() in PAUSES:
            name, values = PAUSES[platform.machine().lower()]
            constants = [ir.Constant(_INT32, value) for value in values]
            declared = ir.FunctionType(ir.VoidType(), [_INT32] * len(constants))
            pause = cgutils.get_or_insert_function(builder.module, declared, name)
            builder.call(pause, constants)
        return context.get_dummy_value()

    return types.none(), codegen


@intrinsic
def _give_way(typingctx):
    """Let another thread that wants this core have it."""

    def codegen(context, builder, signature, args):
        if hasattr(os, "sched_yield"):
            declared = ir.FunctionType(_INT32, [])
            give = cgutils.get_or_insert_function(builder.module, declared, "sched_yield")
            builder.call(give, [])
        return context.get_dummy_value()

    return types.none(), codegen


@inner
def _wait(turn):
    """One turn of a loop that waits."""
    _pause()
    if turn % POLITE == 0:
        _give_way()


@intrinsic
def _call(typingctx, task, arguments, worker, start, stop):
    """Call a task by its address; 0 unless it raised an exception."""

    def codegen(context, builder, signature, args):
        function = builder.inttoptr(args[0], ir.PointerType(_TASK_TYPE))
        arguments = builder.inttoptr(args[1], _POINTER)
        exception = cgutils.alloca_once(builder, excinfo_ptr_t)
        nothing = ir.Constant(_POINTER, None)
        code = builder.call(function, [nothing, exception, arguments, *args[2:]])
        return builder.sext(code, _INT64)

    return types.int64(*(types.int64,) * 5), codegen


@inner
def _take_pieces(crew, worker, task, arguments, n, pieces):
    """Take the next piece until none is left; whether one of them failed."""
    failed, workers = np.int64(0), crew[WORKERS]
    for turn in range(workers):
        owner = (worker + turn) % workers
        first, last = pieces * owner // workers, pieces * (owner + 1) // workers
        piece = first + _add(crew, NEXT + owner * LINE, 1)
        while piece < last:
            start, stop = n * piece // pieces, n * (piece + 1) // pieces
            failed |= _call(task, arguments, worker, start, stop)
            piece = first + _add(crew, NEXT + owner * LINE, 1)
    return failed


@inner
def _lead(crew, n, task, arguments):
    """What the caller does: hand out, take part, wait for those who have begun a piece."""
    pieces = min(n, crew[WORKERS] * PIECES_PER_WORKER)
    if crew[WORKERS] == 1 or pieces <= 1:
        return _call(task, arguments, 0, 0, n)
    crew[TASK], crew[ARGUMENTS], crew[SIZE], crew[PIECES] = task, arguments, n, pieces
    crew[FAILED] = 0
    for worker in range(crew[WORKERS]):
        crew[NEXT + worker * LINE] = 0
    _add(crew, TICKET, 1)
    failed = _take_pieces(crew, 0, task, arguments, n, pieces)
    _add(crew, TICKET, 1)
    turn = np.int64(1)
    while _load(crew, INSIDE) != 0:
        _wait(turn)
        turn += 1
    return failed | crew[FAILED]


@kernel
def serve(crew, worker, patience):
    """What a helper does: take part in whatever is handed out, until nothing was for a while."""
    left, seen, turn = patience, np.int64(0), np.int64(1)
    while left > 0:
        ticket = _load(crew, TICKET)
        if ticket == seen or ticket % 2 == 0 or worker >= crew[WORKERS]:
            _wait(turn)
            turn += 1
            left = patience if _load(crew, OPEN) else left - 1
            continue
        # Once INSIDE is raised, a ticket that is still the same stays so until it is lowered.
        _add(crew, INSIDE, 1)
        if _load(crew, TICKET) == ticket:
            failed = _take_pieces(
                crew, worker, crew[TASK], crew[ARGUMENTS], crew[SIZE], crew[PIECES]
            )
            if failed:
                _add(crew, FAILED, 1)
        _add(crew, INSIDE, -1)
        seen, left, turn = ticket, patience, 1


@intrinsic
def share(typingctx, crew, n, body, arguments):
    """body(worker, start, stop, *arguments) for pieces of 0 ... n - 1, on all workers."""
    call = body.get_call_type(typingctx, (types.int64,) * 3 + tuple(arguments.types), {})
    led = types.int64, types.int64, types.int64
    lead_type = typingctx.resolve_value_type(_lead)
    lead_call = lead_type.get_call_type(typingctx, (crew, *led), {})

    def codegen(context, builder, signature, args):
        given, arguments_type = args[3], signature.args[3]
        name = builder.module.get_unique_name("shared_task")
        task = ir.Function(builder.module, _TASK_TYPE, name)
        task.linkage = "internal"
        inside = ir.IRBuilder(task.append_basic_block("entry"))
        values = inside.load(inside.bitcast(task.args[2], ir.PointerType(given.type)))
        each = [inside.extract_value(values, i) for i in range(len(arguments_type))]
        context.get_function(signature.args[2], call)(inside, [*task.args[3:], *each])
        inside.ret(ir.Constant(_INT32, 0))

        place = cgutils.alloca_once_value(builder, given)
        addresses = [builder.ptrtoint(pointer, _INT64) for pointer in (task, place)]
        lead = context.get_function(lead_type, lead_call)
        failed = lead(builder, [args[0], args[1], *addresses])
        with cgutils.if_unlikely(
            builder, builder.icmp_signed("!=", failed, ir.Constant(_INT64, 0))
        ):
            what = ("a kernel's share of the work failed; most likely there is no memory left",)
            context.call_conv.return_user_exc(builder, MemoryError, what)
        return context.get_dummy_value()

    return types.none(crew, types.int64, body, arguments), codegen
