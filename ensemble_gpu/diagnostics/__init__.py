"""What theory says about a fitted model; host arrays and tables, whatever library X is of.

`margins` alone are arrays of the library of X. The pictures are in `plotting`.
"""

from ensemble_gpu.diagnostics.boosting_report import (
    BoostingReport,
    Condition,
    RoundTable,
    Suspect,
    report,
)
from ensemble_gpu.diagnostics.complexity import stump_complexity, stump_dimension, vc_complexity
from ensemble_gpu.diagnostics.consistency import (
    DeviationBound,
    RademacherComplexity,
    deviation_bound,
    rademacher_complexity,
)
from ensemble_gpu.diagnostics.decomposition import Decomposition, bias_variance
from ensemble_gpu.diagnostics.margin_bounds import (
    GeneralisationBound,
    MarginBracket,
    generalisation_bound,
    margin_bound,
    margin_bracket,
)
from ensemble_gpu.diagnostics.margin_values import MarginCurves, margin_curves, margins
from ensemble_gpu.diagnostics.training import (
    EXPONENTIAL,
    after,
    check_boosted_classifier,
    staged_errors,
    training_error_bound,
)

__all__ = [
    "BoostingReport",
    "Condition",
    "Decomposition",
    "DeviationBound",
    "EXPONENTIAL",
    "GeneralisationBound",
    "MarginBracket",
    "MarginCurves",
    "RademacherComplexity",
    "RoundTable",
    "Suspect",
    "after",
    "bias_variance",
    "check_boosted_classifier",
    "deviation_bound",
    "generalisation_bound",
    "margin_bound",
    "margin_bracket",
    "margin_curves",
    "margins",
    "rademacher_complexity",
    "report",
    "staged_errors",
    "stump_complexity",
    "stump_dimension",
    "training_error_bound",
    "vc_complexity",
]
