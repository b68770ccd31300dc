"""numba's front end, without what our functions do not need.

A kernel consists of up to a hundred small functions, and numba spends more time on typing and
lowering them than LLVM on the code. Most of what it does there twice or for nothing is left out:

- Flags are part of the key under which implementations of overloaded functions are found. numba's
  have one hash, whatever they say, and are compared option by option: `Options` are compared by
  what is set.
- What an operator makes of two numbers is found by trying all that numba knows about it, each time:
  `Context` remembers it.
- A function that is called with 0 and with n is compiled for both, as if 0 were a type: `Context`
  takes both for numbers. LLVM knows the 0 again where the function becomes part of its caller.
- Passes that look for closures, context managers, array expressions and the like find none here:
  `pipeline` is numba's without them. A function that needs one does not compile.
"""

from __future__ import annotations

from typing import Any

from numba.core import types
from numba.core.compiler import DefaultPassBuilder, Flags, PassManager
from numba.core.typed_passes import NativeLowering

from ensemble_gpu.kernels.borrowing import BorrowingPass

# By their names: numba's versions differ in where they are.
NEEDLESS = frozenset({
    "WithLifting", "InlineClosureLikes", "RewriteDynamicRaises", "MakeFunctionToJitFunction",
    "FindLiterallyCalls", "LiteralUnroll", "LiteralPropagationSubPipelinePass", "InlineOverloads",
    "NopythonRewrites", "NoPythonSupportedFeatureValidation", "DumpParforDiagnostics",
})  # fmt: skip

_KNOWN: dict[tuple[Any, ...], Any] = {}


class Options(Flags):
    """Flags that are equal where the same options are set to the same values."""

    def __hash__(self) -> int:
        return hash(frozenset(name for name, value in self._values.items() if value is True))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Options) and self._values == other._values


class Context:
    """A typing context that remembers operations on numbers, and compiles for no single value."""

    def __init__(self, context: Any) -> None:
        self._context = context

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def resolve_function_type(self, function: Any, args: Any, kws: Any) -> Any:
        """The signature of a call."""
        numbers = not kws and all(isinstance(a, types.Number | types.Boolean) for a in args)
        if isinstance(function, types.Dispatcher):
            args = tuple(types.unliteral(a) for a in args)
            return self._context.resolve_function_type(function, args, kws)
        if not numbers:
            return self._context.resolve_function_type(function, args, kws)
        key = function, args
        if key not in _KNOWN:
            _KNOWN[key] = self._context.resolve_function_type(function, args, kws)
        return _KNOWN[key]


def pipeline(state: Any) -> PassManager:
    """numba's passes, less those that find nothing."""
    own = PassManager("kernels")
    for one, what in DefaultPassBuilder.define_nopython_pipeline(state).passes:
        if one is NativeLowering:
            one = BorrowingPass
        if (one if isinstance(one, type) else type(one)).__name__ not in NEEDLESS:
            own.add_pass(one, what)
    own.finalize()
    return own
