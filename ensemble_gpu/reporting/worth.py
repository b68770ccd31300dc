"""The first numbers of a report: what the predictions are worth."""

from __future__ import annotations

import numpy as np

from ensemble_gpu import metrics
from ensemble_gpu.metrics import CLASSIFICATION, RANKING
from ensemble_gpu.reporting.page import Section, tiles
from ensemble_gpu.reporting.subject import Subject
from ensemble_gpu.reporting.text import number, percent

Tile = tuple[str, str, str]


def worth(subject: Subject) -> Section:
    """A tile a metric, with what a model without features would reach beside it."""
    if subject.task == CLASSIFICATION:
        found = _of_classes(subject)
    elif subject.task == RANKING:
        found = _of_rankings(subject)
    elif subject.prediction.ndim > 1:
        found = _of_quantiles(subject)
    else:
        found = _of_numbers(subject)
    return Section("scores", "Scores", "On the test rows.", tiles(found))


def _of_classes(subject: Subject) -> list[Tile]:
    y, p, labels = subject.y, subject.probabilities, subject.classes.tolist()
    counts = np.bincount(subject.own, minlength=len(labels))
    usual = counts.max() / len(y)
    right = metrics.accuracy(y, subject.prediction)
    found = [("Accuracy", percent(right, 2), f"most frequent class: {percent(usual, 2)}")]
    if (counts > 0).all():
        balanced = metrics.balanced_accuracy(y, subject.prediction)
        found.append(("Balanced accuracy", percent(balanced, 2), "mean recall of the classes"))
        found += _areas(subject, counts)
    if p is not None:
        share = np.maximum(counts / len(y), 1e-300)
        usual_loss = float(-(counts / len(y) * np.log(share)).sum())
        loss = metrics.log_loss(y, p, labels=labels)
        found.append(("Log-loss", number(loss), f"shares of the classes: {number(usual_loss)}"))
        found.append(("Brier score", number(metrics.brier(y, p, labels=labels)), "lower is better"))
    return found


def _areas(subject: Subject, counts: np.ndarray) -> list[Tile]:
    scores = subject.scores
    if scores is None:
        return []
    if len(counts) > 2:
        area = metrics.roc_auc(subject.y, scores)
        return [("ROC AUC", number(area), "mean over the classes")]
    if counts.min() < 2:
        return [("ROC AUC", number(metrics.roc_auc(subject.y, scores)), "chance: 0.5")]
    found = metrics.roc_auc_interval(subject.y, scores)
    reach = f"95 %: {number(found.low)} to {number(found.high)}"
    return [("ROC AUC", number(found.area), reach)]


def _of_numbers(subject: Subject) -> list[Tile]:
    y, prediction = subject.y, subject.prediction
    error = metrics.rmse(y, prediction)
    found = [
        ("RMSE", number(error), f"always the mean: {number(float(np.std(y)))}"),
        ("MAE", number(metrics.mae(y, prediction)), "mean of |y - prediction|"),
    ]
    if np.ptp(y) > 0.0:
        r2 = metrics.r2(y, prediction)
        found.insert(0, ("R²", number(r2), "share of the variance explained"))
    bias = float(np.mean(prediction - y))
    return [*found, ("Bias", number(bias, 3), "mean of prediction - y")]


def _of_quantiles(subject: Subject) -> list[Tile]:
    quantiles = subject.estimator.quantile
    found = []
    for k, q in enumerate(quantiles):
        column = subject.prediction[:, k]
        loss = metrics.quantile_loss(subject.y, column, quantile=float(q))
        below = float(np.mean(subject.y <= column))
        found.append((f"Quantile {q:g}", percent(below), f"of y below; loss {number(loss)}"))
    return found


def _of_rankings(subject: Subject) -> list[Tile]:
    y, scores, qid = subject.y, subject.prediction, subject.qid
    assert qid is not None
    wrong = metrics.pairwise_error(y, scores, qid=qid)
    return [
        ("NDCG@10", number(metrics.ndcg(y, scores, qid=qid, k=10)), "mean over queries"),
        ("NDCG", number(metrics.ndcg(y, scores, qid=qid)), "all ranks"),
        ("Pairwise error", percent(wrong, 2), "chance: 50 %"),
        ("Queries", f"{len(np.unique(qid)):,}", "in the test rows"),
    ]
