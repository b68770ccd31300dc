"""Weak learners: what a boosting round can add to a model. A new learner is one file here."""

from ensemble_gpu.learners.pool import Pool

__all__ = ["Pool"]
