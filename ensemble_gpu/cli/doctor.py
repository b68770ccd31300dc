"""`python -m ensemble_gpu doctor`: facts, findings and fixes, for people and bug reports."""

from __future__ import annotations

import os
from collections.abc import Iterable

from ensemble_gpu.cli.driver import Driver
from ensemble_gpu.cli.facts import Facts, gather
from ensemble_gpu.cli.findings import Finding, examine, has_gpu
from ensemble_gpu.cli.text import heading, paragraph, table

MEANING = {
    "cpu": "cpu (numba kernels on all cores)",
    "cuda": "cuda (numba kernels on the GPU)",
    "reference": "reference (array-API calls only: portable, slow)",
}


def run(selftest: bool = False) -> int:
    """Print the report; 0 where all that is installed is consistent, 1 where not."""
    facts = gather()
    findings = examine(facts)
    print(report(facts, findings))
    broken = any(finding.broken for finding in findings)
    passed = not selftest or _selftest()
    return 0 if passed and not broken else 1


def report(facts: Facts, findings: list[Finding]) -> str:
    """The whole text."""
    return "\n".join(
        [
            f"ensemble_gpu {facts.version} on Python {facts.python}, {facts.system}",
            heading("Packages"),
            table(("package", "version"), _packages(facts)),
            heading("GPU"),
            *_gpu(facts),
            heading("Which engine runs"),
            *_engines(facts),
            heading("Findings"),
            *_findings(facts, findings),
        ]
    )


def _packages(facts: Facts) -> list[list[str]]:
    rows = [[name, version] for name, version in facts.packages.items()]
    rows += [[name, version] for name, version in facts.cupy_wheels.items()]
    missing = {"numba-cuda", "torch", "jax", "array-api-strict"} - set(facts.packages)
    if facts.cupy is None:
        missing.add("cupy")
    return rows + [[name, "-"] for name in sorted(missing)]


def _gpu(facts: Facts) -> Iterable[str]:
    yield f"  driver:       {_driver(facts.driver, facts.driver_release)}"
    runtime = facts.cupy.runtime if facts.cupy else None
    yield f"  CUDA runtime: {f'{_dotted(runtime)}, from CuPy' if runtime else 'none'}"
    if has_gpu(facts) and facts.driver:
        rows = [
            [str(i), d.name, f"{d.memory / 2**30:.1f} GiB", _dotted(d.capability)]
            for i, d in enumerate(facts.driver.devices)
        ]
        yield table(("GPU", "name", "memory", "compute capability"), rows)
    else:
        yield "  devices:      none"
    if facts.simulator:
        yield "  NUMBA_ENABLE_CUDASIM is set: numba's simulator runs the CUDA kernels."


def _driver(driver: Driver | None, release: str | None) -> str:
    if driver is None:
        return "none"
    name = f"NVIDIA {release}" if release else "NVIDIA"
    return f"{name}, runs CUDA up to {_dotted(driver.cuda)}"


def _dotted(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"


def _engines(facts: Facts) -> Iterable[str]:
    rows = [[n.name, n.place, MEANING[n.engine]] for n in facts.namespaces]
    if facts.cupy is not None and not any(n.name == "cupy" for n in facts.namespaces):
        rows.append(["cupy", "-", "none: there is no GPU that CuPy can use"])
    if rows:
        yield table(("arrays of", "on", "engine"), rows)
    if facts.failure:
        yield paragraph(f"none: {facts.failure}", "  ")
        return
    if facts.cache is not None:
        yield paragraph(f"Compiled kernels are kept in {facts.cache.folder or 'no folder'}.", "  ")
    yield paragraph(
        "Frames and lists are read into NumPy. The model is the same on every engine.", "  "
    )


def _findings(facts: Facts, findings: list[Finding]) -> Iterable[str]:
    if not findings and not has_gpu(facts):
        yield paragraph(
            "Nothing to fix. There is no NVIDIA GPU here, which is fine: everything runs on the "
            "CPU, and the models are the same as on a GPU.",
            "  ",
        )
    elif not findings:
        yield "  Nothing to fix."
    for number, finding in enumerate(findings, 1):
        kind = "problem" if finding.broken else "note"
        yield paragraph(f"{number}. {kind}: {finding.problem}", "  ")
        yield paragraph(f"fix: {finding.fix}", "     ")


def _selftest() -> bool:
    """Run and print the self-test; whether nothing failed."""
    from ensemble_gpu.cli import selftest

    print(heading("Self-test"))
    where = selftest.target()
    if where is None:
        print(_what_would_run([case.name for case in selftest.CASES]))
        return True
    sizes = selftest.sizes_for(where)
    print(f"  {where.name}: kernels and whole fits beside the CPU engine ({os.cpu_count()} cores)")
    outcomes = [*selftest.check_kernels(where, sizes), *selftest.check_fits(where, sizes)]
    timed_twice = any(outcome.again_seconds is not None for outcome in outcomes)
    header = ("test", "result", "CPU", f"{where.name}, first", "again")
    cells = [outcome.cells() for outcome in outcomes]
    print(table(header, cells) if timed_twice else table(header[:-1], [c[:-1] for c in cells]))
    failures = [outcome for outcome in outcomes if outcome.failure is not None]
    for outcome in failures:
        print(paragraph(f"FAILED {outcome.name}: {outcome.failure}", "  "))
    if failures:
        print(paragraph(
            f"{len(failures)} of {len(outcomes)} tests failed: please report this, with everything "
            "above.", "  ",
        ))  # fmt: skip
    else:
        print(f"  All {len(outcomes)} tests passed: bit for bit the results of the CPU engine.")
    return not failures


def _what_would_run(cases: list[str]) -> str:
    return "\n".join(
        [
            paragraph(
                "There is no GPU that CuPy can use, so there is nothing to test here. On a GPU "
                "this runs every kernel (encode, requantise, histogram, score, update, predict) "
                "and these fits, and compares each with the CPU engine to the last bit:",
                "  ",
            ),
            *(f"    - {case}" for case in cases),
            paragraph("To see it on tiny data without a GPU, in numba's simulator:", "  "),
            "    NUMBA_ENABLE_CUDASIM=1 python -m ensemble_gpu doctor --selftest",
        ]
    )
