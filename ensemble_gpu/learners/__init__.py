"""Weak learners: what a boosting round can add to a model. A new learner is one file here."""

from ensemble_gpu.learners.neighbours import Neighbours
from ensemble_gpu.learners.ridge import Ridge

__all__ = ["Neighbours", "Ridge"]
