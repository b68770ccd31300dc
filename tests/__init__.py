"""The tests mirror the rooms of the package."""

import os

# Before scikit-learn and SciPy are imported: without it scikit-learn skips its array-API checks.
os.environ.setdefault("SCIPY_ARRAY_API", "1")
