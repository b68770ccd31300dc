"""Cross-validation in one pass: bins are cut once, every round is judged from one fit a fold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ensemble_gpu.metrics import CLASSIFICATION
from ensemble_gpu.selection.fitting import Family, bins_of_folds, common_bins
from ensemble_gpu.selection.folds import Judging, judged_families, prepared
from ensemble_gpu.selection.judging import judges, read_held, task_of
from ensemble_gpu.selection.result import CrossValidation
from ensemble_gpu.selection.splits import make_folds

BINS = ("shared", "fold")


def cross_validate(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    sample_weight: Any = None,
    qid: Any = None,
    cv: Any = 5,
    groups: Any = None,
    metrics: Any = None,
    rounds: Any = None,
    bins: str = "shared",
    return_estimators: bool = False,
    return_apparent: bool = False,
    random_state: Any = 0,
    progress: bool | Callable[[int, int], Any] | None = None,
) -> CrossValidation:
    """Mean over folds b of R_b, the metric on fold b of the model of the other folds.

    One fit a fold judges all numbers of rounds: what the first rounds predict is part of what all
    of them do. On the CPU folds are fitted side by side, on a thread each (n_jobs of the estimator
    says how many); the result does not depend on it. The rows' labels are read on the host to make
    the folds; X stays where it is.

    Parameters
    ----------
    estimator : classifier, regressor or ranker of this package, or of scikit-learn; it is not
        changed
    X, y : rows and targets, of any library and device that the estimator takes
    sample_weight : weights of the rows, in training and in metrics; of a ranker also of queries
    qid : of a ranker: the query of each row. Queries are held out as a whole, unless `groups` says
        what is
    cv : int, splitter of scikit-learn or list of (train, test) positions
        A number of folds: drawn by random_state, stratified by label for classifiers (and by
        groups). Repeated, time-ordered and leave-one-out folds are scikit-learn's RepeatedKFold,
        TimeSeriesSplit and LeaveOneOut.
    groups : label of the group of each row; groups are held out as a whole
    metrics : names (as of early stopping), callables metric(y, prediction) -> float, or a list
        None: log-loss, RMSE, or NDCG@10. The first decides.
    rounds : None, "all" or ascending list of int
        Numbers of rounds that are judged, of boosting. early_stopping is off then: the held-out
        rows choose the rounds. None: the whole model.
    bins : {"shared", "fold"}
        "shared": features are binned once, at edges from all rows: held-out features (not labels)
        take part in placing thresholds. "fold": each fold bins its own training rows, as a separate
        fit would. Without meaning for estimators without bins.
    return_estimators : whether the folds' estimators are kept
    return_apparent : whether the rows that were trained on are judged as well
    random_state : seed of the folds
    progress : True for a bar on standard error, or a callable that gets (folds done, folds)

    Returns
    -------
    CrossValidation
    """
    if bins not in BINS:
        raise ValueError(f"bins must be one of {BINS!r}; got {bins!r}.")
    task = task_of(estimator, qid)
    judged = judges(metrics, task, estimator)
    held, classes = read_held(X, y, sample_weight, task, qid)
    folds = make_folds(
        cv, y, held.n, stratified=task == CLASSIFICATION, groups=qid if groups is None else groups,
        random_state=random_state,
    )  # fmt: skip
    source = prepared(estimator, rounds)
    common = common_bins(source, held) if bins == "shared" else None
    judging = Judging(
        judged, rounds, held, folds, bins_of_folds(common, folds, held.n), return_apparent
    )
    ((found,),) = judged_families([Family(source)], judging, progress, "cross_validate")
    return replace(
        found.result,
        out_of_fold=judging.out_of_fold(found, None if classes is None else len(classes)),
        apparent=judging.apparent([found])[0] if return_apparent else None,
        estimators=found.models if return_estimators else None,
    )
