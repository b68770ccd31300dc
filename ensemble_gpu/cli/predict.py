"""`predict`: predictions of a saved model for rows of files."""

from __future__ import annotations

from typing import Any

import numpy as np

from ensemble_gpu.cli.errors import BadInput
from ensemble_gpu.cli.loading import loaded
from ensemble_gpu.cli.matching import read_for
from ensemble_gpu.cli.readers import STANDARD
from ensemble_gpu.cli.saying import nameless, say
from ensemble_gpu.cli.scores import task_of
from ensemble_gpu.cli.writers import check_writable, write_table
from ensemble_gpu.metrics import CLASSIFICATION

PREDICTION = "prediction"


def run(args: Any) -> int:
    check_writable(args.out)
    estimator = loaded(args.model, args.device)
    if args.proba and task_of(estimator) != CLASSIFICATION:
        raise BadInput(f"--proba is for classifiers; the model is a {type(estimator).__name__}")
    table, X = read_for(estimator, args.data, args.id)
    columns = {name: table.column(name) for name in args.id}
    with nameless():
        columns |= predicted(estimator, X, args.proba)
    write_table(columns, args.out)
    if args.out != STANDARD:
        say(f"{table.n_rows:,} predictions in {args.out}", quiet=args.quiet)
    return 0


def predicted(estimator: Any, X: Any, proba: bool) -> dict[str, np.ndarray]:
    """Columns of predictions by name: of several quantiles one each, of classes probabilities."""
    found = np.asarray(estimator.predict(X))
    if found.ndim > 1:
        names = [f"{PREDICTION}_{q:g}" for q in estimator.quantile]
        return {name: found[:, k] for k, name in enumerate(names)}
    columns = {PREDICTION: found}
    if proba:
        p = np.asarray(estimator.predict_proba(X))
        labels = np.asarray(estimator.classes_).tolist()
        columns |= {f"probability_{label}": p[:, k] for k, label in enumerate(labels)}
    return columns
