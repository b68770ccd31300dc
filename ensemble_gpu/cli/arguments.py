"""The commands and their options; nothing heavy is imported, so that help comes at once."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ensemble_gpu
from ensemble_gpu.cli.errors import Parser

DEVICES = ("cpu", "cuda", "auto")
MODELS = ("adaboost", "boosting", "forest", "tree")
TASKS = ("classification", "regression", "ranking")
DATA = "CSV, TSV, Parquet or Arrow files, patterns such as 'part-*.csv', or - for standard input"

Run = Callable[[argparse.Namespace], int]


def make_parser(prog: str) -> argparse.ArgumentParser:
    parser = Parser(
        prog=prog,
        description="AdaBoost, gradient boosting, decision trees, random forests and bagging on "
        "any array library; the same model on CPU and GPU.",
    )
    parser.add_argument(
        "--version", action="version", version=f"ensemble_gpu {ensemble_gpu.__version__}"
    )
    names = "train,evaluate,predict,show,export,demo,doctor,compile"
    commands = parser.add_subparsers(
        title="commands", metavar=f"{{{names}}}", dest="command", parser_class=Parser
    )
    for add in (_train, _evaluate, _predict, _show, _export, _demo, _doctor, _compile):
        add(commands)
    return parser


def _shared(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--quiet", action="store_true", help="no words and no progress bar")
    parser.add_argument(
        "--traceback", action="store_true", help="where something fails, show where in the program"
    )


def _device(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--device", choices=DEVICES, help="where to compute (default: the CPU)")


def _json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="results as JSON, for programs")


def _query(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--query", metavar="COLUMN", help="ranking: which rows belong to one query")


def _train(commands: Any) -> None:
    parser = commands.add_parser(
        "train", help="train a model on the rows of files",
        description="Train a model on the rows of files. Columns of texts are categories. Results "
        "go to standard output, words and progress to standard error.",
    )  # fmt: skip
    parser.add_argument("data", nargs="+", metavar="FILE", help=DATA)
    parser.add_argument("--label", required=True, metavar="COLUMN", help="what to predict")
    parser.add_argument("--out", metavar="FILE", help="the model: .safetensors, .json, or -")
    parser.add_argument("--model", choices=MODELS, default="boosting", help="default: %(default)s")
    parser.add_argument("--task", choices=TASKS, help="default: guessed from the label, and said")
    parser.add_argument("--rounds", type=int, metavar="N", help="rounds, or trees of a forest")
    parser.add_argument("--rate", type=float, metavar="NU", help="learning rate")
    parser.add_argument("--depth", type=int, metavar="N", help="depth of trees; 1: stumps")
    parser.add_argument("--loss", metavar="NAME", help="loss of boosting, such as absolute")
    parser.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE",
        help="any other parameter of the estimator; may be given several times",
    )  # fmt: skip
    parser.add_argument("--ignore", nargs="+", default=[], metavar="COLUMN", help="no features")
    _query(parser)
    parser.add_argument("--cv", type=int, metavar="K", help="cross-validate with K folds")
    parser.add_argument("--report", metavar="FILE", help="an HTML page about the model")
    parser.add_argument(
        "--test", nargs="+", metavar="FILE",
        help="rows for the report (default: a fifth of the rows, judging a model of the others)",
    )  # fmt: skip
    parser.add_argument(
        "--resume", metavar="FILE",
        help="write checkpoints to this .safetensors file, and go on from it where it exists",
    )  # fmt: skip
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="default: %(default)s")
    parser.add_argument("--jobs", type=int, metavar="N", help="threads (default: all)")
    _device(parser)
    _json(parser)
    _shared(parser)
    parser.set_defaults(run=_lazily("train"))


def _evaluate(commands: Any) -> None:
    parser = commands.add_parser("evaluate", help="judge a model by the rows of files")
    parser.add_argument("model", metavar="MODEL", help="a saved model, or -")
    parser.add_argument("data", nargs="+", metavar="FILE", help=DATA)
    parser.add_argument("--label", required=True, metavar="COLUMN", help="the truth")
    _query(parser)
    parser.add_argument("--report", metavar="FILE", help="an HTML page about the model")
    _device(parser)
    _json(parser)
    _shared(parser)
    parser.set_defaults(run=_lazily("evaluate"))


def _predict(commands: Any) -> None:
    parser = commands.add_parser("predict", help="predict the rows of files")
    parser.add_argument("model", metavar="MODEL", help="a saved model, or -")
    parser.add_argument("data", nargs="+", metavar="FILE", help=DATA)
    parser.add_argument(
        "--out", default="-", metavar="FILE",
        help=".csv, .tsv or .parquet (default: CSV to standard output)",
    )  # fmt: skip
    parser.add_argument("--proba", action="store_true", help="probabilities of the classes too")
    parser.add_argument(
        "--id", nargs="+", default=[], metavar="COLUMN", help="columns to copy beside them"
    )
    _device(parser)
    _shared(parser)
    parser.set_defaults(run=_lazily("predict"))


def _show(commands: Any) -> None:
    parser = commands.add_parser("show", help="what is in a model")
    parser.add_argument("model", metavar="MODEL", help="a saved model, or -")
    parser.add_argument("--feature", metavar="NAME", help="the table of a feature (stumps)")
    _json(parser)
    _shared(parser)
    parser.set_defaults(run=_lazily("show"))


def _export(commands: Any) -> None:
    parser = commands.add_parser("export", help="a model for programs without Python")
    parser.add_argument("model", metavar="MODEL", help="a saved model, or -")
    parser.add_argument(
        "out", metavar="FILE",
        help="by its ending: .onnx, .c, .py, .treelite; or .safetensors, .json",
    )  # fmt: skip
    _shared(parser)
    parser.set_defaults(run=_lazily("export"))


def _demo(commands: Any) -> None:
    parser = commands.add_parser(
        "demo", help="train, compare with scikit-learn, check that models are equal, draw pictures"
    )
    parser.add_argument(
        "--out", default="demo_output", metavar="DIR",
        help="folder for the pictures (default: %(default)s)",
    )  # fmt: skip

    def run(args: argparse.Namespace) -> int:
        from ensemble_gpu.cli.demo import run as run_demo

        return run_demo(Path(args.out))

    parser.set_defaults(run=run)


def _doctor(commands: Any) -> None:
    parser = commands.add_parser(
        "doctor", help="what is installed, which engine runs where, and how to fix problems"
    )
    parser.add_argument(
        "--selftest", action="store_true",
        help="also run every kernel on the GPU and compare with the CPU",
    )  # fmt: skip

    def run(args: argparse.Namespace) -> int:
        from ensemble_gpu.cli.doctor import run as run_doctor

        return run_doctor(selftest=args.selftest)

    parser.set_defaults(run=run)


def _compile(commands: Any) -> None:
    parser = commands.add_parser(
        "compile",
        help="compile all kernels now, in parallel processes: for container images and CI",
        description="Compile all kernels into the cache, so that no fit has to wait for it. "
        "NUMBA_CACHE_DIR says where the cache is.",
    )
    parser.add_argument(
        "--jobs", type=int, metavar="N", help="processes (default: one a processor)"
    )
    parser.add_argument(
        "--only", nargs="+", metavar="ESTIMATOR",
        help="only what these estimators need, for example AdaBoostClassifier",
    )  # fmt: skip

    def run(args: argparse.Namespace) -> int:
        from ensemble_gpu.cli.compile import ESTIMATORS
        from ensemble_gpu.cli.compile import run as run_compile

        if args.jobs is not None and args.jobs < 1:
            parser.error(f"--jobs must be at least 1; got {args.jobs}")
        unknown = sorted(set(args.only or ()) - set(ESTIMATORS))
        if unknown:
            parser.error(f"--only must name some of {', '.join(ESTIMATORS)}; got {unknown}")
        return run_compile(args.jobs, args.only or ESTIMATORS)

    parser.set_defaults(run=run)


def _lazily(name: str) -> Run:
    """The command of a module that is imported when it runs."""

    def run(args: argparse.Namespace) -> int:
        from importlib import import_module

        return import_module(f"ensemble_gpu.cli.{name}").run(args)

    return run
