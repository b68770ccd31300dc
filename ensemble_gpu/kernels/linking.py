"""Inner functions as LLVM code only.

numba optimises every function and turns it into machine code, also where the only use of it is to
be linked into its callers, which are optimised again as a whole. Here an inner function stays the
LLVM code that it was lowered to: what a kernel consists of is optimised once, in the kernel. That
takes a third off the time of a first fit.

Two compilers for `njit(pipeline_class=...)`; `PIPELINES` is empty where numba lacks what they rest
on, and functions are compiled in numba's own way.
"""

from __future__ import annotations

from typing import Any

from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.environment import lookup_environment

from ensemble_gpu.kernels.frontend import Context, Options, pipeline

ENVIRONMENT = "_ZN08NumbaEnv"  # how numba's variables start that point to functions' environments
NEEDED = ("_optimize_final_module", "_finalize_final_module", "_finalize_specific")


class _NoMachineCode:
    """Stands in for the code generator of a library without machine code."""

    @staticmethod
    def set_env(env_name: str, env: Any) -> None:
        """There is no variable yet; the kernel sets it."""


class InnerLibrary(JITCodeLibrary):
    """Code to be linked into others."""

    codegen = _NoMachineCode

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        self._ensure_finalized()
        return 0


class KernelLibrary(JITCodeLibrary):
    """Machine code; sets the environments of the inner functions that became part of it."""

    def _finalize_specific(self) -> None:
        super()._finalize_specific()
        codegen: Any = self._codegen
        for variable in self._final_module.global_variables:
            env = lookup_environment(variable.name)
            if variable.name.startswith(ENVIRONMENT) and env is not None:
                codegen.set_env(variable.name, env)


class _Compiler(Compiler):
    library_class: type[JITCodeLibrary]

    def __init__(
        self, typingctx: Any, targetctx: Any, library: Any, args: Any, returns: Any, flags: Any,
        *others: Any,
    ) -> None:  # fmt: skip
        if library is None:
            library = self.library_class(targetctx.codegen(), self.library_class.__name__)
            library.enable_object_caching()
        super().__init__(typingctx, targetctx, library, args, returns, Options(flags), *others)
        self.state.typingctx = Context(typingctx)

    def define_pipelines(self) -> list[Any]:
        return [pipeline(self.state)]


class KernelCompiler(_Compiler):
    library_class = KernelLibrary


class InnerCompiler(_Compiler):
    library_class = InnerLibrary


PIPELINES = (
    {"kernel": KernelCompiler, "inner": InnerCompiler}
    if all(hasattr(JITCodeLibrary, name) for name in NEEDED)
    else {}
)
