"""`evaluate`: what a saved model is worth on rows of files."""

from __future__ import annotations

from typing import Any

from ensemble_gpu.cli.errors import BadInput
from ensemble_gpu.cli.loading import loaded
from ensemble_gpu.cli.matching import read_for
from ensemble_gpu.cli.models import checked_label
from ensemble_gpu.cli.saying import nameless, say, show_results
from ensemble_gpu.cli.scores import judged, known_labels, task_of
from ensemble_gpu.cli.train import queries
from ensemble_gpu.cli.writers import check_folder
from ensemble_gpu.metrics import CLASSIFICATION, RANKING
from ensemble_gpu.reporting.report import report_html


def run(args: Any) -> int:
    estimator = loaded(args.model, args.device)
    task = task_of(estimator)
    if task == RANKING and args.query is None:
        raise BadInput("the model ranks rows of queries: --query must name their column")
    if args.report is not None:
        check_folder(args.report)
    table, X = read_for(estimator, args.data, [args.label, args.query])
    y = checked_label(table.column(args.label), args.label, task)
    if task == CLASSIFICATION:
        y = known_labels(estimator, y, args.label)
    qid = None if args.query is None else queries(table.column(args.query))
    say(f"{table.n_rows:,} rows, {type(estimator).__name__}, {task}", quiet=args.quiet)
    with nameless():
        results = {"rows": table.n_rows, **judged(estimator, X, y, qid)}
        if args.report is not None:
            title = f"{args.label}: {type(estimator).__name__}"
            report_html(estimator, X, y, args.report, title=title, qid=qid)
    show_results(results, args.json)
    return 0
