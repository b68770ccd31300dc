"""`python -m ensemble_gpu`: demo, doctor and compile."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import ensemble_gpu


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; without one, print the help. Returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m ensemble_gpu",
        description="AdaBoost, gradient boosting, decision trees, random forests and bagging on "
        "any array library; the same model on CPU and GPU.",
    )
    parser.add_argument(
        "--version", action="version", version=f"ensemble_gpu {ensemble_gpu.__version__}"
    )
    commands = parser.add_subparsers(
        title="commands", metavar="{demo,doctor,compile}", dest="command"
    )
    demo = commands.add_parser(
        "demo", help="train, compare with scikit-learn, check that models are equal, draw pictures"
    )
    demo.add_argument(
        "--out", default="demo_output", metavar="DIR",
        help="folder for the pictures (default: %(default)s)",
    )  # fmt: skip
    doctor = commands.add_parser(
        "doctor", help="what is installed, which engine runs where, and how to fix problems"
    )
    doctor.add_argument(
        "--selftest", action="store_true",
        help="also run every kernel on the GPU and compare with the CPU",
    )  # fmt: skip
    compiling = commands.add_parser(
        "compile",
        help="compile all kernels now, in parallel processes: for container images and CI",
        description="Compile all kernels into the cache, so that no fit has to wait for it. "
        "NUMBA_CACHE_DIR says where the cache is.",
    )
    compiling.add_argument(
        "--jobs", type=int, metavar="N", help="processes (default: one a processor)"
    )
    compiling.add_argument(
        "--only", nargs="+", metavar="ESTIMATOR",
        help="only what these estimators need, for example AdaBoostClassifier",
    )  # fmt: skip
    args = parser.parse_args(arguments)
    # Imported when needed: help must not wait for scikit-learn and numba.
    if args.command == "demo":
        from pathlib import Path

        from ensemble_gpu.cli.demo import run as run_demo

        return run_demo(Path(args.out))
    if args.command == "doctor":
        from ensemble_gpu.cli.doctor import run as run_doctor

        return run_doctor(selftest=args.selftest)
    if args.command == "compile":
        from ensemble_gpu.cli.compile import ESTIMATORS
        from ensemble_gpu.cli.compile import run as run_compile

        if args.jobs is not None and args.jobs < 1:
            compiling.error(f"--jobs must be at least 1; got {args.jobs}")
        unknown = sorted(set(args.only or ()) - set(ESTIMATORS))
        if unknown:
            compiling.error(f"--only must name some of {', '.join(ESTIMATORS)}; got {unknown}")
        return run_compile(args.jobs, args.only or ESTIMATORS)
    parser.print_help()
    return 0


if __name__ == "__main__":
    sys.exit(main())
