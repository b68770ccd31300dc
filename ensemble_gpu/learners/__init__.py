"""Weak learners: what a boosting round can add to a model. A new learner is one file here."""

from ensemble_gpu.learners.balls import Balls
from ensemble_gpu.learners.boxes import Boxes
from ensemble_gpu.learners.half_spaces import HalfSpaces
from ensemble_gpu.learners.neighbours import Neighbours
from ensemble_gpu.learners.pool import Pool
from ensemble_gpu.learners.rectangles import Rectangles
from ensemble_gpu.learners.ridge import Ridge

__all__ = ["Balls", "Boxes", "HalfSpaces", "Neighbours", "Pool", "Rectangles", "Ridge"]
