"""What predictions are worth, computed where the arrays live; names and directions of metrics.

of scores          roc_auc, roc_auc_interval, compare_roc_auc, average_precision, roc_curve,
                   roc_convex_hull, precision_recall_curve
of labels          confusion_matrix, accuracy, error, balanced_accuracy, precision, recall,
                   f_score, matthews
of probabilities   log_loss, brier, calibration_curve
of rankings        ndcg, dcg, average_precision_by_query, reciprocal_rank, pairwise_error
of numbers         mse, rmse, mae, r2, quantile_loss, poisson_deviance
"""

from ensemble_gpu.metrics.curves import (
    PrecisionRecallCurve,
    RocCurve,
    precision_recall_curve,
    roc_convex_hull,
    roc_curve,
)
from ensemble_gpu.metrics.decisions import (
    accuracy,
    balanced_accuracy,
    confusion_matrix,
    error,
    f_score,
    matthews,
    precision,
    recall,
)
from ensemble_gpu.metrics.named import (
    ALIASES,
    CLASSIFICATION,
    METRICS,
    RANKING,
    REGRESSION,
    Metric,
    metric_named,
    metric_value,
)
from ensemble_gpu.metrics.numbers import mae, mse, poisson_deviance, quantile_loss, r2, rmse
from ensemble_gpu.metrics.probabilities import (
    CalibrationCurve,
    brier,
    calibration_curve,
    log_loss,
)
from ensemble_gpu.metrics.queries import (
    average_precision_by_query,
    dcg,
    ndcg,
    pairwise_error,
    reciprocal_rank,
)
from ensemble_gpu.metrics.ranking import (
    AreaDifference,
    AreaInterval,
    average_precision,
    compare_roc_auc,
    roc_auc,
    roc_auc_interval,
)

__all__ = [
    "ALIASES",
    "AreaDifference",
    "AreaInterval",
    "CLASSIFICATION",
    "CalibrationCurve",
    "METRICS",
    "Metric",
    "PrecisionRecallCurve",
    "RANKING",
    "REGRESSION",
    "RocCurve",
    "accuracy",
    "average_precision",
    "average_precision_by_query",
    "balanced_accuracy",
    "brier",
    "calibration_curve",
    "compare_roc_auc",
    "confusion_matrix",
    "dcg",
    "error",
    "f_score",
    "log_loss",
    "mae",
    "matthews",
    "metric_named",
    "metric_value",
    "mse",
    "ndcg",
    "pairwise_error",
    "poisson_deviance",
    "precision",
    "precision_recall_curve",
    "quantile_loss",
    "r2",
    "recall",
    "reciprocal_rank",
    "rmse",
    "roc_auc",
    "roc_auc_interval",
    "roc_convex_hull",
    "roc_curve",
]
