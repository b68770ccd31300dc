"""What predictions of a model are worth on rows of a file."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import is_classifier

from ensemble_gpu import metrics
from ensemble_gpu.cli.errors import BadInput
from ensemble_gpu.metrics import CLASSIFICATION, RANKING, REGRESSION

# Those of cross-validation; the first decides.
OF_TASK = {
    CLASSIFICATION: ["log_loss", "roc_auc", "accuracy", "brier"],
    REGRESSION: ["rmse", "mae", "r2"],
    RANKING: ["ndcg@10", "map", "pairwise_error"],
}


def task_of(estimator: Any) -> str:
    task = getattr(estimator, "_task", None)
    if task is not None:
        return str(task)
    return CLASSIFICATION if is_classifier(estimator) else REGRESSION


def judged(estimator: Any, X: Any, y: np.ndarray, qid: np.ndarray | None) -> dict[str, Any]:
    """Metrics by name."""
    task = task_of(estimator)
    if task == CLASSIFICATION:
        return _classes(estimator, X, y)
    prediction = np.asarray(estimator.predict(X))
    if task == RANKING:
        return {
            "ndcg@10": metrics.ndcg(y, prediction, qid=qid, k=10),
            "map": metrics.average_precision_by_query((y > 0).astype(int), prediction, qid=qid),
            "pairwise_error": metrics.pairwise_error(y, prediction, qid=qid),
        }
    if prediction.ndim > 1:
        return {
            f"quantile_loss@{q:g}": metrics.quantile_loss(y, prediction[:, k], quantile=float(q))
            for k, q in enumerate(estimator.quantile)
        }
    return {
        "rmse": metrics.rmse(y, prediction),
        "mae": metrics.mae(y, prediction),
        "r2": metrics.r2(y, prediction) if np.ptp(y) > 0.0 else float("nan"),
    }


def _classes(estimator: Any, X: Any, y: np.ndarray) -> dict[str, Any]:
    labels = np.asarray(estimator.classes_)
    p, prediction = np.asarray(estimator.predict_proba(X)), np.asarray(estimator.predict(X))
    found: dict[str, Any] = {"log_loss": metrics.log_loss(y, p, labels=labels.tolist())}
    if len(np.unique(y)) == len(labels):
        scores = p
        if hasattr(estimator, "decision_function"):
            scores = np.asarray(estimator.decision_function(X))
        scores = scores[:, 1] if scores.ndim == 2 and scores.shape[1] == 2 else scores
        found["roc_auc"] = metrics.roc_auc(y, scores)
    found["accuracy"] = metrics.accuracy(y, prediction)
    found["balanced_accuracy"] = metrics.balanced_accuracy(y, prediction)
    found["brier"] = metrics.brier(y, p, labels=labels.tolist())
    return found


def known_labels(estimator: Any, y: np.ndarray, name: str) -> np.ndarray:
    """Labels of the type of the model's; an error that lists those it has not seen."""
    classes = np.asarray(estimator.classes_)
    if classes.dtype.kind in "OUST" and y.dtype.kind not in "OUST":
        y = np.array([str(v) for v in y.tolist()])
    unknown = sorted(set(y.tolist()) - set(classes.tolist()), key=str)
    if unknown:
        raise BadInput(
            f"label {name!r} holds {unknown[:8]!r}, which the model does not know; it knows "
            f"{classes.tolist()[:20]!r}"
        )
    return y
