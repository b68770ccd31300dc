"""A fitted estimator as source code that needs nothing else."""

from __future__ import annotations

import keyword
from typing import Any

from ensemble_gpu.export.code_c import c_code
from ensemble_gpu.export.code_python import python_code
from ensemble_gpu.export.source import source_of

LANGUAGES = {"c": c_code, "python": python_code}


def to_code(estimator: Any, language: str, *, name: str = "model") -> str:
    """A fitted estimator of stumps or trees as source code without dependencies.

    Parameters
    ----------
    estimator : a fitted estimator, or its model_, as in `to_onnx`
    language : "c" (C99, and C++) or "python"
    name : str, default="model"
        What names in C begin with: `model_scores` ...; in Python it is in the docstring only.

    Returns
    -------
    str
        Functions of one row x, a list of numbers, NaN where they are missing: `scores` are the
        outputs, with the bits of `model_(X)`; of a classifier `label` (in C its index) and
        `probabilities`, of a regressor or a ranker `prediction`, a number for each output of
        `predict`. A category is the number that it had in training.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from ensemble_gpu import BoostingRegressor, to_code
    >>> X, y = load_diabetes(return_X_y=True)
    >>> fitted = BoostingRegressor(n_estimators=50).fit(X, y)
    >>> program = {}
    >>> exec(to_code(fitted, "python"), program)
    >>> program["prediction"](X[0]) == fitted.predict(X[:1])[0]
    True
    """
    if language not in LANGUAGES:
        raise ValueError(f"language must be one of {tuple(LANGUAGES)}; got {language!r}.")
    if not isinstance(name, str) or not name.isidentifier() or not name.isascii():
        raise ValueError(f"name must be an identifier of ASCII letters and digits; got {name!r}.")
    if keyword.iskeyword(name):
        raise ValueError(f"name must not be a keyword; got {name!r}.")
    return LANGUAGES[language](source_of(estimator), name)
