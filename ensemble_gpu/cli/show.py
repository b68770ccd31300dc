"""`show`: what is in a model file, as text."""

from __future__ import annotations

from typing import Any

import numpy as np

import ensemble_gpu
from ensemble_gpu.cli.errors import BadInput, listed
from ensemble_gpu.cli.loading import loaded
from ensemble_gpu.cli.readers import STANDARD
from ensemble_gpu.cli.saying import show_results, show_table
from ensemble_gpu.cli.scores import task_of
from ensemble_gpu.metrics import CLASSIFICATION
from ensemble_gpu.reporting.settings import described, settings

MOST_FEATURES = 20


def run(args: Any) -> int:
    estimator = loaded(args.model)
    names = feature_names(estimator)
    if args.feature is not None:
        _show_feature(estimator, names, args.feature, args.json)
        return 0
    results = _header(args.model, estimator)
    importances = getattr(estimator, "feature_importances_", None)
    if importances is None or args.json:
        if importances is not None:
            order = np.argsort(-importances, kind="stable")
            results["importances"] = {names[f]: float(importances[f]) for f in order}
        show_results(results, args.json)
        return 0
    show_results(results, False)
    order = np.argsort(-importances, kind="stable")[:MOST_FEATURES]
    print()
    show_table(["feature", "importance"], [[names[f], f"{importances[f]:.4f}"] for f in order])
    return 0


def feature_names(estimator: Any) -> list[str]:
    known = getattr(estimator, "feature_names_in_", None)
    if known is None:
        return [f"feature {f}" for f in range(estimator.n_features_in_)]
    return [str(name) for name in known]


def _header(path: str, estimator: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"model": type(estimator).__name__, "task": task_of(estimator)}
    if path != STANDARD:
        header = ensemble_gpu.read_header(path)
        found["written by"] = f"ensemble_gpu {header['version']} (schema {header['schema']})"
    if hasattr(estimator, "model_"):
        found["fingerprint"] = estimator.model_.fingerprint()
        found["holds"] = type(estimator.model_).__name__
    if hasattr(estimator, "n_estimators_"):
        found["rounds"] = int(estimator.n_estimators_)
    if hasattr(estimator, "stop_reason_"):
        found["ended because"] = estimator.stop_reason_
    found["features"] = int(estimator.n_features_in_)
    if task_of(estimator) == CLASSIFICATION:
        found["classes"] = [str(label) for label in np.asarray(estimator.classes_).tolist()]
    found["settings"] = ", ".join(f"{k}={v}" for k, v in settings(estimator)[0]) or "defaults"
    return found


def _show_feature(estimator: Any, names: list[str], name: str, as_json: bool) -> None:
    """The table of a feature: what each interval adds to F."""
    if name not in names:
        raise BadInput(f"the model has no feature {name!r}; it has {listed(names, 20)}")
    feature = names.index(name)
    model: Any = getattr(estimator, "model_", None)
    table: Any = model.shape_function(feature) if hasattr(model, "shape_function") else None
    if not hasattr(table, "thresholds"):
        raise BadInput(
            f"--feature shows tables of models of stumps; this is a {type(estimator).__name__} "
            f"with a {type(model).__name__} ({described(estimator)})"
        )
    edges = [-np.inf, *table.thresholds.tolist(), np.inf]
    outputs = _outputs(estimator, table.values.shape[1])
    if as_json:
        show_results(
            {
                "feature": name, "thresholds": table.thresholds.tolist(), "outputs": outputs,
                "values": table.values.tolist(), "missing": table.missing.tolist(),
            }, True,
        )  # fmt: skip
        return
    rows = [
        [f"{low:g} < x <= {high:g}" if high < np.inf else f"{low:g} < x",
         *(f"{v:.6g}" for v in values)]
        for low, high, values in zip(edges, edges[1:], table.values, strict=False)
    ]  # fmt: skip
    rows.append(["missing", *(f"{v:.6g}" for v in table.missing)])
    show_table([name, *outputs], rows)


def _outputs(estimator: Any, n: int) -> list[str]:
    if n == 1:
        return ["adds to F"]
    labels = getattr(estimator, "classes_", range(n))
    return [f"adds to F of {label}" for label in np.asarray(labels).tolist()]
