"""From a label and a name on the command line to an estimator."""

from __future__ import annotations

import inspect
import json
from typing import Any

import numpy as np

import ensemble_gpu
from ensemble_gpu.cli.errors import BadInput
from ensemble_gpu.cli.tables import is_text
from ensemble_gpu.metrics import CLASSIFICATION, RANKING, REGRESSION

TASKS = (CLASSIFICATION, REGRESSION, RANKING)
# Whole numbers with at most so many distinct values are classes.
MOST_CLASSES = 20
MODELS: dict[str, dict[str, str]] = {
    "adaboost": {CLASSIFICATION: "AdaBoostClassifier"},
    "boosting": {
        CLASSIFICATION: "BoostingClassifier",
        REGRESSION: "BoostingRegressor",
        RANKING: "BoostingRanker",
    },
    "forest": {CLASSIFICATION: "RandomForestClassifier", REGRESSION: "RandomForestRegressor"},
    "tree": {CLASSIFICATION: "DecisionTreeClassifier", REGRESSION: "DecisionTreeRegressor"},
}


def guessed_task(label: np.ndarray) -> tuple[str, str]:
    """The task, and why."""
    if is_text(label):
        return CLASSIFICATION, f"the label holds {len(set(label.tolist()))} distinct texts"
    if label.dtype == bool:
        return CLASSIFICATION, "the label is true or false"
    found = np.unique(label)
    if len(found) <= MOST_CLASSES and np.equal(found, np.floor(found)).all():
        return CLASSIFICATION, f"the label holds {len(found)} distinct whole numbers"
    return REGRESSION, f"the label holds {len(found):,} distinct numbers"


def checked_label(label: np.ndarray, name: str, task: str) -> np.ndarray:
    """The label as `fit` takes it: no value is missing; texts are for classes."""
    missing = (
        [v is None for v in label.tolist()] if is_text(label) else np.isnan(label.astype(float))
    )
    n = int(np.sum(missing))
    if n:
        raise BadInput(f"label {name!r} is missing in {n:,} of {len(label):,} rows")
    if task == CLASSIFICATION:
        return np.array(label.tolist()) if is_text(label) else label
    if is_text(label):
        raise BadInput(f"label {name!r} holds texts, such as {label[0]!r}; {task} needs numbers")
    return label.astype(np.float64)


def make_estimator(model: str, task: str, given: dict[str, Any], more: list[str]) -> Any:
    """The estimator of a name, with the parameters that were given.

    `given` are those with an option of their own (None: not given), `more` are texts name=value.
    """
    if task not in MODELS[model]:
        others = [name for name, tasks in MODELS.items() if task in tasks]
        raise BadInput(f"--model {model} is not for {task}; --model {', '.join(others)} is")
    kind = getattr(ensemble_gpu, MODELS[model][task])
    known = list(inspect.signature(kind).parameters)
    parameters = {name: value for name, value in given.items() if value is not None}
    parameters |= dict(_setting(text) for text in more)
    unknown = sorted(set(parameters) - set(known))
    if unknown:
        raise BadInput(
            f"{kind.__name__} has no parameter {', '.join(unknown)}; it has {', '.join(known)}"
        )
    return kind(**parameters)


def _setting(text: str) -> tuple[str, Any]:
    """name=value; the value is JSON, or text where it is none."""
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise BadInput(f"--set takes name=value, such as max_depth=3; got {text!r}")
    try:
        return name.strip(), json.loads(value)
    except json.JSONDecodeError:
        return name.strip(), value
