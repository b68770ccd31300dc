"""What a checkpoint says of its fit, and whether another fit may go on from it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ensemble_gpu.estimators.contents import Contents
from ensemble_gpu.estimators.described import (
    described,
    described_parameters,
    differences,
    labels_digest,
)
from ensemble_gpu.estimators.shape import Shape
from ensemble_gpu.saving.runs import read_run

# Words of a RandomState.
KEY = 624
MAY_DIFFER = "Only n_estimators, n_jobs, device and callbacks may differ; resume=None fits anew."


@dataclass(frozen=True)
class Origin:
    """The class, the parameters and the data of a fit, and where its random numbers began.

    `resolved` are the values of parameters that were left to the estimator, `shape` digests of
    what the columns and classes are called.
    """

    estimator: str
    parameters: Mapping[str, Any]
    resolved: Mapping[str, Any]
    shape: Mapping[str, Any]
    contents: Contents
    random_state: Any

    def written(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """As JSON and arrays."""
        contents, state, arrays = self.contents, self.random_state, {}
        if isinstance(state, np.random.RandomState):
            _, key, *rest = state.get_state()
            arrays["random_state"] = np.asarray(key, dtype=np.uint32)
            state = [*map(int, rest[:2]), float(rest[2])]
        told = {
            "estimator": self.estimator,
            "parameters": dict(self.parameters),
            "resolved": dict(self.resolved),
            "shape": dict(self.shape),
            "n_rows": contents.n_rows,
            "rows": dict(contents.rows),
            "features": list(contents.features),
            "others": dict(contents.others),
            "random_state": state if state is None or isinstance(state, list) else int(state),
        }
        return told, arrays

    @classmethod
    def read(cls, told: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Origin:
        """What `written` wrote; a ValueError where it is something else."""
        kinds = {
            "estimator": str, "parameters": dict, "resolved": dict, "shape": dict, "n_rows": int,
            "rows": dict, "features": list, "others": dict,
        }  # fmt: skip
        for name, kind in kinds.items():
            if type(told.get(name)) is not kind:
                raise ValueError(f"its {name!r} is {str(told.get(name))[:80]!r}")
        own = Contents(told["n_rows"], told["rows"], told["features"], told["others"])
        state = _read_state(told.get("random_state"), arrays.get("random_state"))
        return cls(
            told["estimator"], told["parameters"], told["resolved"], told["shape"], own, state
        )

    def check_parameters(self, estimator: Any, path: str) -> None:
        """Raise where the parameters would give another fit."""
        now = type(estimator).__name__
        if self.estimator != now:
            raise ValueError(f"resume={path!r} is a checkpoint of {self.estimator}, not of {now}.")
        resolved = described_resolved(estimator)
        parameters = described_parameters(estimator)
        changed = differences(self.parameters, parameters, self.resolved, resolved)
        if changed:
            raise ValueError(
                f"resume={path!r} was written by a fit with other parameters: "
                f"{', '.join(changed)}. {MAY_DIFFER}"
            )

    def check_data(self, now: Origin, names: Any, path: str) -> None:
        """Raise where the data are others."""
        changed = [
            name for name in now.shape if self.shape.get(name) != now.shape[name]
        ] or self.contents.changes(now.contents, names)
        if changed:
            raise ValueError(
                f"resume={path!r} was written by a fit to other data; what differs: "
                f"{', '.join(changed)}. {MAY_DIFFER}"
            )


def described_resolved(estimator: Any) -> dict[str, Any]:
    return {name: described(value) for name, value in estimator._resolved().items()}


def origin_of(estimator: Any, contents: Contents, random_state: Any) -> Origin:
    """Of a fit that has read its data; `random_state` is where its random numbers began."""
    shape = Shape.of(estimator)
    labels = {f: shape.categories.names(f) for f in shape.categories.values}
    return Origin(
        type(estimator).__name__,
        described_parameters(estimator),
        described_resolved(estimator),
        {
            "the number of features": shape.n_features,
            "the names of the features": labels_digest(shape.names),
            "the classes of y": labels_digest(shape.classes),
            "the categories of X": labels_digest(labels.items()),
        },
        contents,
        random_state,
    )


@dataclass(frozen=True)
class Resumable:
    """A checkpoint that a fit may go on from: its path, its origin, and what else it holds."""

    path: str
    origin: Origin
    told: Mapping[str, Any]
    arrays: Mapping[str, np.ndarray]


def read_checkpoint(path: str | os.PathLike[str]) -> Resumable | None:
    """The checkpoint of a path; None where there is no such file."""
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"resume must be None or the path of a checkpoint; got {path!r}.")
    name = os.fspath(path)
    if not os.path.exists(name):
        return None
    told, arrays = read_run(path)
    try:
        return Resumable(name, Origin.read(told.get("origin", {}), arrays), told, arrays)
    except (ValueError, AttributeError) as error:
        raise ValueError(f"resume={name!r} is no checkpoint of this package: {error}.") from error


def _read_state(told: Any, key: np.ndarray | None) -> Any:
    if told is None or (type(told) is int and 0 <= told < 2**32):
        return told
    fits = isinstance(told, list) and [type(one) for one in told] == [int, int, float]
    whole = key is not None and key.dtype == np.uint32 and key.shape == (KEY,)
    if not fits or not whole or not 0 <= told[0] <= KEY or told[1] not in (0, 1):
        raise ValueError("its 'random_state' is none")
    state = np.random.RandomState(0)
    state.set_state(("MT19937", np.array(key), *told))
    return state
