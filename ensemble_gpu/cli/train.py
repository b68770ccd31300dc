"""`train`: files to a model, its cross-validation and its report."""

from __future__ import annotations

import inspect
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

import ensemble_gpu
from ensemble_gpu.cli.errors import BadInput, listed
from ensemble_gpu.cli.matching import read_for
from ensemble_gpu.cli.models import checked_label, guessed_task, make_estimator
from ensemble_gpu.cli.readers import STANDARD, read_table
from ensemble_gpu.cli.saying import nameless, say, show_results
from ensemble_gpu.cli.scores import OF_TASK, known_labels
from ensemble_gpu.cli.tables import Table, features, texts_among
from ensemble_gpu.cli.writers import check_folder
from ensemble_gpu.metrics import CLASSIFICATION, RANKING
from ensemble_gpu.reporting.report import report_html
from ensemble_gpu.saving.files import SUFFIXES, to_bytes
from ensemble_gpu.selection.splits import make_folds

# Every fifth row is for the report, where no test rows are given.
PARTS = 5


@dataclass(frozen=True)
class Problem:
    """Rows to train on, as an estimator takes them."""

    table: Table
    names: list[str]
    y: np.ndarray
    task: str
    qid: np.ndarray | None

    @property
    def X(self) -> Any:
        return features(self.table, self.names)

    @property
    def extra(self) -> dict[str, Any]:
        return {} if self.qid is None else {"qid": self.qid}

    def take(self, rows: np.ndarray) -> Problem:
        qid = None if self.qid is None else self.qid[rows]
        return Problem(self.table.take(rows), self.names, self.y[rows], self.task, qid)


def run(args: Any) -> int:
    _check_outputs(args)
    problem = _read(args)
    estimator = _estimator(args, problem)
    results: dict[str, Any] = {
        "model": type(estimator).__name__, "task": problem.task, "rows": problem.table.n_rows,
        "features": len(problem.names),
    }  # fmt: skip
    if args.cv is not None:
        results["cross-validation"] = _cross_validated(args, estimator, problem)
    if args.out is not None or args.report is not None:
        _fit(args, estimator, problem, args.resume)
        if hasattr(estimator, "n_estimators_"):
            results["rounds"] = int(estimator.n_estimators_)
        if hasattr(estimator, "model_"):
            results["fingerprint"] = estimator.model_.fingerprint()
    if args.report is not None:
        _report(args, estimator, problem)
        results["report"] = args.report
    if args.out is not None:
        _save(args.out, estimator)
        results["out"] = args.out
    show_results(results, args.json, sys.stderr if args.out == STANDARD else sys.stdout)
    return 0


def _check_outputs(args: Any) -> None:
    """What would fail after the fit fails before it."""
    if args.out is None and args.report is None and args.cv is None:
        raise BadInput("there is nothing to do: give --out, --report or --cv")
    if args.out is not None and args.out != STANDARD:
        if Path(args.out).suffix not in SUFFIXES:
            raise BadInput(
                f"--out must end with {' or '.join(SUFFIXES)}, or be -; got {args.out!r}"
            )
        check_folder(args.out)
    if args.report is not None:
        check_folder(args.report)
    if args.cv is not None and args.cv < 2:
        raise BadInput(f"--cv must be at least 2; got {args.cv}")
    if args.resume is not None and args.out is None:
        raise BadInput("--resume is for a model that is saved: give --out")
    if args.test and args.report is None:
        raise BadInput("--test is for the rows of a --report")


def _read(args: Any) -> Problem:
    table = read_table(args.data)
    label = table.column(args.label)
    task, why = (args.task, "as asked") if args.task else guessed_task(label)
    if args.query is not None:
        task, why = RANKING, f"queries are in {args.query!r}"
    if task == RANKING and args.query is None:
        raise BadInput("--task ranking needs --query, the column that says which rows go together")
    others = [args.label, *args.ignore, *([args.query] if args.query else [])]
    unknown = [name for name in args.ignore if name not in table.columns]
    if unknown:
        raise BadInput(f"--ignore names no columns: {listed(unknown)}; there are "
                       f"{listed(table.names)}")  # fmt: skip
    names = [name for name in table.names if name not in others]
    if not names:
        raise BadInput(f"there are no features beside the label {args.label!r}")
    for name in names:
        table.column(name)
    texts = len(texts_among(table, names))
    say(
        f"{table.n_rows:,} rows, {len(names)} features ({texts} of categories), label "
        f"{args.label!r}",
        quiet=args.quiet,
    )
    say(f"task: {task} ({why}); --task sets another", quiet=args.quiet)
    qid = None if args.query is None else queries(table.column(args.query))
    return Problem(table, names, checked_label(label, args.label, task), task, qid)


def queries(column: np.ndarray) -> np.ndarray:
    """Numbers of queries, whatever they are called."""
    return np.unique(column.astype(str), return_inverse=True)[1].reshape(-1)


def _estimator(args: Any, problem: Problem) -> Any:
    given = {
        "n_estimators": args.rounds, "learning_rate": args.rate, "max_depth": args.depth,
        "loss": args.loss, "random_state": args.seed, "device": args.device, "n_jobs": args.jobs,
    }  # fmt: skip
    texts = texts_among(problem.table, problem.names)
    if texts and isinstance(problem.X, np.ndarray):
        given["categorical_features"] = texts
    return make_estimator(args.model, problem.task, given, args.set)


def _fit(args: Any, estimator: Any, problem: Problem, resume: str | None = None) -> None:
    """Fit with a progress bar; `resume` is a file of checkpoints, to go on from and to write to."""
    watched = "callbacks" in estimator.get_params()
    if resume is not None and "resume" not in inspect.signature(estimator.fit).parameters:
        raise BadInput(f"--resume is not for --model {args.model}")
    callbacks: list[Any] = [] if args.quiet else [ensemble_gpu.ProgressBar()]
    more: dict[str, Any] = {}
    if resume is not None:
        callbacks.append(ensemble_gpu.Checkpoint(resume))
        more = {"resume": resume}
        went = "goes on from" if Path(resume).exists() else "begins, with checkpoints in"
        say(f"the fit {went} {resume}", quiet=args.quiet)
    if watched:
        estimator.set_params(callbacks=callbacks or None)
    X = problem.X
    estimator.fit(X, problem.y, **problem.extra, **more)
    if watched:
        estimator.set_params(callbacks=None)
    if isinstance(X, np.ndarray):
        estimator.feature_names_in_ = np.array(problem.names, dtype=object)


def _cross_validated(args: Any, estimator: Any, problem: Problem) -> dict[str, Any]:
    """Mean and standard error over the folds, of every metric."""
    metrics = OF_TASK[problem.task]
    found = ensemble_gpu.cross_validate(
        estimator, problem.X, problem.y, cv=args.cv, metrics=metrics, random_state=args.seed,
        progress=not args.quiet, **problem.extra,
    )  # fmt: skip
    return {
        name: {"mean": found.mean[name], "standard error": found.standard_error[name]}
        for name in found.metrics
    }


def _report(args: Any, estimator: Any, problem: Problem) -> None:
    title = f"{args.label}: {type(estimator).__name__}"
    if args.test:
        others = [args.label, args.query]
        table, X = read_for(estimator, args.test, others)
        y = checked_label(table.column(args.label), args.label, problem.task)
        if problem.task == CLASSIFICATION:
            y = known_labels(estimator, y, args.label)
        qid = None if args.query is None else queries(table.column(args.query))
        with nameless():
            report_html(estimator, X, y, args.report, title=title, qid=qid)
        return
    say("report: a model of four fifths of the rows, judged by the others", quiet=args.quiet)
    train, test = _parts(args, problem)
    judged = clone(estimator)
    _fit(args, judged, problem.take(train))
    held = problem.take(test)
    note = (
        f"A model of {len(train):,} of {problem.table.n_rows:,} rows, judged by the others. The "
        "saved model has the same settings and all rows."
    )
    with nameless():
        report_html(judged, held.X, held.y, args.report, title=title, note=note, qid=held.qid)


def _parts(args: Any, problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    """Rows to train on and rows to test with, as the first fold of cross-validation."""
    folds = make_folds(
        PARTS, problem.y, problem.table.n_rows, stratified=problem.task == CLASSIFICATION,
        groups=problem.qid, random_state=args.seed,
    )  # fmt: skip
    return folds[0].train, folds[0].test


def _save(path: str, estimator: Any) -> None:
    if path == STANDARD:
        sys.stdout.buffer.write(to_bytes(estimator))
        sys.stdout.flush()
    else:
        ensemble_gpu.save(estimator, path)
