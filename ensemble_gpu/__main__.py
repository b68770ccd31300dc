"""`ensemble-gpu` and `python -m ensemble_gpu`: the commands of cli/arguments.py."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from ensemble_gpu.cli.arguments import make_parser
from ensemble_gpu.cli.errors import BAD_INPUT, BadInput, one_line

INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; without one, print the help. Returns the exit code, 2 for bad input."""
    as_module = Path(sys.argv[0]).name == "__main__.py"
    prog = "python -m ensemble_gpu" if as_module else "ensemble-gpu"
    parser = make_parser(prog)
    args = parser.parse_args(arguments)
    if args.command is None:
        parser.print_help()
        return 0
    # Estimators and files say what is wrong with what they were given by these errors.
    said = (BadInput, ValueError, TypeError, OSError, ImportError)
    try:
        return args.run(args)
    except BrokenPipeError:  # who reads has had enough
        sys.stderr.close()
        return 0
    except KeyboardInterrupt:
        print(f"{prog} {args.command}: interrupted", file=sys.stderr)
        return INTERRUPTED
    except said as error:
        if getattr(args, "traceback", True):
            raise
        print(f"{prog} {args.command}: error: {one_line(error)}", file=sys.stderr)
        return BAD_INPUT


if __name__ == "__main__":
    sys.exit(main())
