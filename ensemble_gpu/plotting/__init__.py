"""Pictures of models; every function takes an `ax` and returns it, displays keep it as `ax_`."""

from ensemble_gpu.plotting.curves import (
    plot_history,
    plot_learning_curve,
    plot_margins,
    plot_shape_functions,
)
from ensemble_gpu.plotting.diagnostics import (
    plot_bias_variance,
    plot_deviation_bounds,
    plot_generalisation_bound,
    plot_margin_curves,
    plot_report,
)
from ensemble_gpu.plotting.displays import (
    CalibrationDisplay,
    ConfusionDisplay,
    PrecisionRecallDisplay,
    RocDisplay,
)
from ensemble_gpu.plotting.formulas import (
    plot_impurities,
    plot_losses,
    plot_minimiser,
    plot_psi,
    plot_risks,
)
from ensemble_gpu.plotting.regions import plot_decision_regions
from ensemble_gpu.plotting.rounds import plot_criterion
from ensemble_gpu.plotting.tree import plot_tree

__all__ = [
    "CalibrationDisplay",
    "ConfusionDisplay",
    "PrecisionRecallDisplay",
    "RocDisplay",
    "plot_bias_variance",
    "plot_criterion",
    "plot_decision_regions",
    "plot_deviation_bounds",
    "plot_generalisation_bound",
    "plot_history",
    "plot_impurities",
    "plot_learning_curve",
    "plot_losses",
    "plot_margin_curves",
    "plot_margins",
    "plot_minimiser",
    "plot_psi",
    "plot_report",
    "plot_risks",
    "plot_shape_functions",
    "plot_tree",
]
