"""PTX and SASS of every kernel without a GPU: `python -m tests.cuda.sass 80 plain out`.

There are two ways to machine code, and users run the second. PLAIN: libnvvm makes PTX, ptxas makes
SASS of it. LINKED: with numba-cuda[cu12] or [cu13] nvJitLink is installed, and `@cuda.jit` then
links with link-time optimisation; here the same linker is called with the same options, and says
what registers and memory its code takes.

Needs numba-cuda and the toolkit wheels (the extra cuda-proof). One process compiles for one compute
capability, because device functions are compiled for "the current device", which has to be
pretended. For each kernel and signature k the directory gets k.ptx, k.txt (ptxas -v) and k.sass.
"""

from __future__ import annotations

import re
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests.cuda.signatures import KERNELS, SIGNATURES, Argument, Array

CAPABILITIES = ("75", "80", "86", "90", "120")
PLAIN, LINKED = "plain", "linked"


@dataclass(frozen=True)
class Compiled:
    """One kernel for one signature and capability."""

    kernel: str
    signature: int
    ptx: str
    sass: tuple[str, ...]
    registers: int
    shared_bytes: int
    spill_bytes: int
    stack_bytes: int


@cache
def tool(name: str) -> Path:
    """A file of the installed toolkit wheels, of one wheel set with libnvvm."""
    found = sorted(Path(sysconfig.get_path("purelib")).glob(f"nvidia/*/{name}"))
    if not found:
        raise FileNotFoundError(f"{name} not found: pip install 'ensemble_gpu[cuda-proof]'")
    return found[-1]


def signatures_of(kernel: str, build: str) -> list[tuple[Argument, ...]]:
    """Those that are compiled: linking takes longer, and one kind of X stands for all of them."""
    return SIGNATURES[kernel] if build == PLAIN else SIGNATURES[kernel][:1]


def numba_type(argument: Argument) -> Any:
    from numba import types

    if isinstance(argument, Array):
        layout: Any = argument.layout
        return types.Array(getattr(types, argument.dtype), argument.ndim, layout)
    return getattr(types, argument)


def compile_all(capability: str, build: str, target: Path, names: tuple[str, ...] = ()) -> None:
    """Compile every kernel (or the named ones) in this process."""
    from ensemble_gpu.kernels.cuda._numba import cuda

    cc = (int(capability[:-1]), int(capability[-1]))
    dispatcher: Any = cuda.dispatcher
    dispatcher.get_current_device = lambda: SimpleNamespace(compute_capability=cc)

    for name in names or tuple(KERNELS):
        for k, signature in enumerate(signatures_of(name, build)):
            arguments = tuple(numba_type(a) for a in signature)
            function, stem = KERNELS[name].py_func, target / f"{name}-{k}"
            most = KERNELS[name].targetoptions.get("max_registers")
            if build == PLAIN:
                ptx, _ = cuda.compile_ptx(function, arguments, cc=cc, device=False)
                _assemble(ptx, capability, most, stem)
            else:
                code, _ = cuda.compile(
                    function, arguments, cc=cc, device=False, abi="numba", output="ltoir"
                )
                _link(code, capability, most, stem)
            _disassemble(stem)


def _assemble(ptx: str, capability: str, most_registers: int | None, stem: Path) -> None:
    source, cubin = stem.with_suffix(".ptx"), stem.with_suffix(".cubin")
    source.write_text(ptx)
    bound = [] if most_registers is None else [f"-maxrregcount={most_registers}"]
    report = subprocess.run(
        [tool("bin/ptxas"), f"-arch=sm_{capability}", *bound, "-v", source, "-o", cubin],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    stem.with_suffix(".txt").write_text(report.stderr)


def _link(code: bytes, capability: str, most_registers: int | None, stem: Path) -> None:
    """PTX and machine code by nvJitLink from a kernel's LTO-IR; it reports what ptxas -v does."""
    from cuda.core import Linker, LinkerOptions, ObjectCode

    options: dict[str, Any] = {
        "arch": f"sm_{capability}", "link_time_optimization": True,
        "max_register_count": most_registers,
    }  # fmt: skip
    ptx = Linker(ObjectCode.from_ltoir(code), options=LinkerOptions(**options, ptx=True))
    stem.with_suffix(".ptx").write_bytes(ptx.link("ptx").code.rstrip(b"\0"))
    linker = Linker(
        ObjectCode.from_ltoir(code),
        options=LinkerOptions(**options, verbose=True, ptxas_options="-v"),
    )
    stem.with_suffix(".cubin").write_bytes(linker.link("cubin").code)
    stem.with_suffix(".txt").write_text(linker.get_info_log().rstrip("\0"))


def _disassemble(stem: Path) -> None:
    cubin = stem.with_suffix(".cubin")
    listing = subprocess.run(
        [tool("bin/nvdisasm"), "-c", cubin], capture_output=True, text=True, check=True
    )
    stem.with_suffix(".sass").write_text(listing.stdout)
    cubin.unlink()


def compiled(
    capability: str, target: Path, build: str = PLAIN, names: tuple[str, ...] = ()
) -> list[Compiled]:
    """Compile in a process of its own and read the results."""
    target.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", __spec__.name, capability, build, str(target), *names]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"compiling for sm_{capability} failed:\n{done.stderr}")
    return [_read(path) for path in sorted(target.glob("*.ptx"))]


def _read(path: Path) -> Compiled:
    kernel, signature = path.stem.rsplit("-", 1)
    report = path.with_suffix(".txt").read_text()

    def number(pattern: str) -> int:
        return max((int(n) for n in re.findall(pattern, report)), default=0)

    lines = path.with_suffix(".sass").read_text().splitlines()
    code = [
        re.sub(r"/\*[0-9a-fx]*\*/", "", line).strip(" ;")
        for line in lines
        if re.match(r"\s+/\*[0-9a-f]{4,}\*/", line) or line.startswith(".L")
    ]
    return Compiled(
        kernel, int(signature), path.read_text(), tuple(code),
        number(r"Used (\d+) registers"), number(r"(\d+) bytes smem"),
        number(r"(\d+) bytes spill stores") + number(r"(\d+) bytes spill loads"),
        number(r"(\d+) bytes stack frame"),
    )  # fmt: skip


def loop_around(sass: tuple[str, ...], instruction: str) -> list[str]:
    """Lines (labels included) of the innermost loop that holds the most of an instruction.

    A loop is the range from a label to a later branch back to it.
    """
    at = {line[:-1]: i for i, line in enumerate(sass) if line.startswith(".L")}
    loops = []
    for i, line in enumerate(sass):
        target = branch_target(line)
        if target is not None and at.get(target, i) < i:
            body = list(sass[at[target] : i + 1])
            loops.append((sum(instruction in s for s in body), -len(body), body))
    return max(loops, key=lambda found: found[:2])[2] if loops else []


def branch_target(line: str) -> str | None:
    """The label that a branch goes to."""
    found = re.search(r"BRA(?:\.\w+)* (?:\w+, )*`\((\.L\w+)\)", line)
    return found[1] if found else None


if __name__ == "__main__":
    compile_all(sys.argv[1], sys.argv[2], Path(sys.argv[3]), tuple(sys.argv[4:]))
