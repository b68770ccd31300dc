"""The best of a grid of parameters by cross-validation, and of all numbers of rounds with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import train_test_split

from ensemble_gpu.estimators.base import ArrayEstimator
from ensemble_gpu.metrics import CLASSIFICATION, Metric
from ensemble_gpu.selection.cross_validation import BINS
from ensemble_gpu.selection.fitting import Family, bins_of_folds, common_bins
from ensemble_gpu.selection.folds import Judged, Judging, judged_families, prepared
from ensemble_gpu.selection.judging import Held, Judge, judges, outcomes, read_held, task_of, values
from ensemble_gpu.selection.result import CrossValidation
from ensemble_gpu.selection.splits import host_labels, make_folds

RULES = ("min", "one_se")
ROUNDS = "n_estimators"


@dataclass(frozen=True)
class Risk:
    """A line of the table of `tune`: one set of parameters.

    `apparent` is the mean over folds of the metric on the rows that were trained on, `validated`
    that on held-out rows, after `rounds` rounds (None: the estimator has no stages); both speak of
    models of `n_rows` rows. `test` is that of the chosen model, fitted to all rows but those of the
    test share, on the latter.
    """

    parameters: dict[str, Any]
    rounds: int | None
    apparent: float
    validated: float
    standard_error: float
    n_rows: int
    test: float | None = None
    chosen: bool = False


@dataclass(frozen=True)
class RiskTable:
    """The lines of all sets of parameters, in the order of the grid."""

    metric: str
    rows: list[Risk]

    def to_frame(self) -> Any:
        """A pandas frame, a row a set of parameters."""
        import pandas as pd

        return pd.DataFrame(
            [
                {**row.parameters, "rounds": row.rounds, "R_app": row.apparent,
                 "R_CV": row.validated, "standard error": row.standard_error,
                 "training rows": row.n_rows, "R_test": row.test, "chosen": row.chosen}
                for row in self.rows
            ]
        )  # fmt: skip

    def __str__(self) -> str:
        lines = [f"{self.metric}: R_app, R_CV +- standard error, training rows, R_test"]
        for row in self.rows:
            what = ", ".join(f"{name}={value!r}" for name, value in row.parameters.items())
            what += "" if row.rounds is None else f", {row.rounds} rounds"
            test = "" if row.test is None else f", {row.test:.6g}"
            mark = "*" if row.chosen else " "
            lines.append(
                f"{mark} {what}: {row.apparent:.6g}, {row.validated:.6g} +- "
                f"{row.standard_error:.2g}, {row.n_rows}{test}"
            )
        return "\n".join(lines)


def tune(
    estimator: Any,
    X: Any,
    y: Any,
    grid: Mapping[str, Any],
    *,
    sample_weight: Any = None,
    qid: Any = None,
    cv: Any = 5,
    groups: Any = None,
    metric: Any = None,
    rule: str = "min",
    rounds: Any = "auto",
    bins: str = "shared",
    test_size: float | None = None,
    random_state: Any = 0,
    progress: bool | Callable[[int, int], Any] | None = None,
) -> Any:
    """Fit with the parameters of the least cross-validated risk R_CV = mean over folds of R_b.

    Of boosting the number of rounds is chosen from the curve of the same fits: it costs none. Nor
    do further values of a parameter of which a fit contains them: n_estimators of boosting (with a
    given learning rate, without early stopping and calibration), of forests and of
    L2BoostRegressor (criterion=None), ccp_alpha of decision trees, n_neighbors, l2 of
    RidgeRegressor. All folds of all candidates share the bins, and fits run side by side, on a
    thread each. The chosen model is fitted anew to all rows. Where the metric only asks for
    labels, or for the order of the scores of two classes (not log_loss, brier or a callable), folds
    of AdaBoost are not calibrated: the choice is the same.

    Parameters
    ----------
    estimator : classifier, regressor or ranker; it is not changed
    X, y, sample_weight, qid, cv, groups, bins, random_state : as of `cross_validate`; the
        folds are the same for all candidates
    grid : {parameter: list of values}; all combinations are tried, the simplest first by
        convention
    metric : name or callable that decides; None: log-loss, RMSE, or NDCG@10
    rule : {"min", "one_se"}
        "min": the best mean, ties to fewer rounds and to the earlier in the grid. "one_se": of the
        best candidate the fewest rounds, without rounds the earliest candidate, whose mean is
        within one standard error of the best.
    rounds : "auto", None, "all" or list of int
        Numbers of rounds to choose from; "auto": all of them for boosting, unless the grid has
        n_estimators; None: the whole model.
    test_size : share of the rows, of queries where there are any (0 to 1), kept apart for R_test;
        None: none
    progress : True for a bar on standard error, or a callable that gets (fits done, fits)

    Returns
    -------
    the fitted estimator, with `table_` (RiskTable: R_app, R_CV, standard error, R_test, training
    rows), `best_params_`, and `validation_` (CrossValidation of the chosen parameters)
    """
    if rule not in RULES:
        raise ValueError(f"rule must be one of {RULES!r}; got {rule!r}.")
    if bins not in BINS:
        raise ValueError(f"bins must be one of {BINS!r}; got {bins!r}.")
    candidates = list(_candidates(estimator, grid))
    task = task_of(estimator, qid)
    judged = judges(metric, task, estimator)
    if len(judged) > 1:
        raise ValueError(f"metric must be a single one; got {metric!r}.")
    if isinstance(rounds, str) and rounds == "auto":
        rounds = "all" if hasattr(estimator, "_staged") and ROUNDS not in grid else None
    every, classes = read_held(X, y, sample_weight, task, qid)
    source = _judged_alike(estimator, judged[0], classes)
    train, test = _apart(every, task, test_size, random_state)
    if test is not None and groups is not None:
        raise ValueError("test_size is drawn row by row, groups would be cut; give one of them.")
    common = common_bins(prepared(source, rounds), train) if bins == "shared" else None
    folds = make_folds(
        cv, train.y, train.n, stratified=task == CLASSIFICATION,
        groups=train.qid if groups is None else groups, random_state=random_state,
    )  # fmt: skip
    judging = Judging(
        judged, rounds, train, folds, bins_of_folds(common, folds, train.n), on_own_rows=True
    )
    families, places = _families(source, candidates, grid, rounds)
    found = _in_order(judged_families(families, judging, progress, "tune"), places)
    best, at = _chosen([one.result for one in found], rule)
    model = _final(estimator, candidates[best], found[best].models[0], at)
    model.fit(train.X, train.y, **train.to_fit())
    tested = None if test is None else _risk(model, test, judged)
    model.best_params_ = {**candidates[best], **({} if at is None else {ROUNDS: at})}
    model.validation_ = replace(
        found[best].result,
        out_of_fold=judging.out_of_fold(found[best], None if classes is None else len(classes)),
    )
    ats = [at if k == best else one.result.best_round for k, one in enumerate(found)]
    apparent = judging.apparent([one.after(n) for one, n in zip(found, ats, strict=True)])
    lines = [
        _line(one.result, parameters, n, float(own[judged[0].name].mean()))
        for one, parameters, n, own in zip(found, candidates, ats, apparent, strict=True)
    ]
    lines[best] = replace(lines[best], test=tested, chosen=True)
    model.table_ = RiskTable(judged[0].name, lines)
    return model


def _judged_alike(estimator: Any, judge: Judge, classes: Any) -> Any:
    """An estimator, perhaps cheaper, of which the metric says the same.

    Probabilities of a class among three or more have another order with another scale.
    """
    metric = judge.source
    if not (isinstance(metric, Metric) and metric.scale_free):
        return estimator
    if not isinstance(estimator, ArrayEstimator) or (metric.ranks and len(classes) > 2):
        return estimator
    return estimator._for_order()


def _families(
    estimator: Any, candidates: list[dict[str, Any]], grid: Mapping[str, Any], rounds: Any
) -> tuple[list[Family], list[list[int]]]:
    """Candidates that one fit contains, together; and the places of each family's candidates.

    Where rounds are judged, every candidate has a curve, and a fit, of its own.
    """
    places: dict[tuple[int | None, ...], list[int]] = {}
    sources: dict[tuple[int | None, ...], tuple[Any, str | None]] = {}
    numbers = product(*(range(len(options)) for options in grid.values()))
    for k, at in enumerate(numbers):
        family = next((key for name in grid if (key := _without(at, grid, name)) in places), None)
        if family is None:
            source = prepared(clone(estimator).set_params(**candidates[k]), rounds)
            alone = rounds is not None or not isinstance(source, ArrayEstimator)
            contained = () if alone else source._contained()
            axis = next((name for name in grid if name in contained), None)
            family = _without(at, grid, axis)
            sources[family] = source, axis
        places.setdefault(family, []).append(k)
    families = []
    for key, (source, axis) in sources.items():
        values: tuple[Any, ...] = tuple(candidates[k][axis] if axis else None for k in places[key])
        if axis == ROUNDS and hasattr(source, "_staged"):
            source._check_values(axis, list(values))
            families.append(Family(source.set_params(n_estimators=max(values)), stages=values))
        else:
            families.append(Family(source, axis, values))
    return families, list(places.values())


def _without(
    at: tuple[int, ...], grid: Mapping[str, Any], axis: str | None
) -> tuple[int | None, ...]:
    """The places of a candidate's values in the grid, but for that of the axis."""
    return tuple(None if name == axis else i for name, i in zip(grid, at, strict=True))


def _in_order(found: list[list[Judged]], places: list[list[int]]) -> list[Judged]:
    """What the families have found, in the order of the candidates."""
    flat = {
        k: one
        for of_family, own in zip(found, places, strict=True)
        for one, k in zip(of_family, own, strict=True)
    }
    return [flat[k] for k in range(len(flat))]


def _candidates(estimator: Any, grid: Any) -> Iterator[dict[str, Any]]:
    if not isinstance(grid, Mapping) or not grid:
        raise ValueError(f"grid must be a dict {{parameter: list of values}}; got {grid!r}.")
    known = estimator.get_params()
    for name, options in grid.items():
        if name not in known:
            raise ValueError(
                f"grid has the parameter {name!r}, which {type(estimator).__name__} does not; its "
                f"parameters are {sorted(known)!r}."
            )
        if not isinstance(options, list | tuple | np.ndarray) or len(options) == 0:
            raise ValueError(
                f"grid[{name!r}] must be a list of values, not empty; got {options!r}."
            )
    for combination in product(*grid.values()):
        yield dict(zip(grid, combination, strict=True))


def _apart(
    every: Held, task: str, test_size: float | None, random_state: Any
) -> tuple[Held, Held | None]:
    if test_size is None:
        return every, None
    if not 0.0 < test_size < 1.0:
        raise ValueError(f"test_size must be None or a share between 0 and 1; got {test_size!r}.")
    items = np.arange(every.n)
    index = None if every.groups is None else every.where.host(every.groups.index)
    if index is not None:
        items = np.unique(index)
    train, test = train_test_split(
        items, test_size=test_size, random_state=random_state,
        stratify=host_labels(every.y) if task == CLASSIFICATION else None,
    )  # fmt: skip
    if index is not None:
        train, test = (np.flatnonzero(np.isin(index, part)) for part in (train, test))
    return every.take(np.sort(train)), every.take(np.sort(test))


def _chosen(found: list[CrossValidation], rule: str) -> tuple[int, int | None]:
    """Which candidate, and after how many rounds."""
    sign = -1.0 if found[0].greater_is_better[found[0].metrics[0]] else 1.0
    risks = [sign * np.atleast_1d(one.mean[one.metrics[0]]) for one in found]
    at_best = [int(np.argmin(risk)) for risk in risks]
    # ties to fewer rounds, then to the earlier
    best = min(
        range(len(found)), key=lambda k: (risks[k][at_best[k]], _rounds(found[k], at_best[k]), k)
    )
    place = at_best[best]
    if rule == "one_se":
        error = np.atleast_1d(found[best].standard_error[found[best].metrics[0]])[place]
        limit = risks[best][place] + error
        if found[best].rounds is None:
            best = next(k for k, risk in enumerate(risks) if risk[0] <= limit)
        place = int(np.argmax(risks[best] <= limit))
    rounds = found[best].rounds
    return best, None if rounds is None else int(rounds[place])


def _rounds(one: CrossValidation, place: int) -> int:
    return 0 if one.rounds is None else int(one.rounds[place])


def _final(estimator: Any, parameters: dict[str, Any], of_fold: Any, at: int | None) -> Any:
    """The estimator to fit to all rows; `of_fold` is a fold's."""
    model = clone(estimator).set_params(**parameters)
    if at is None:
        return model
    model.set_params(**{ROUNDS: at, "early_stopping": False})
    if model.learning_rate is None:  # it would follow from the number of rounds
        model.set_params(learning_rate=of_fold._rate)
    return model


def _risk(model: Any, held: Held, judged: list[Judge]) -> float:
    return values(judged, next(outcomes(model, held, None)), held)[0]


def _line(
    one: CrossValidation, parameters: dict[str, Any], at: int | None, apparent: float
) -> Risk:
    name = one.metrics[0]
    place = 0 if one.rounds is None or at is None else int(np.searchsorted(one.rounds, at))
    return Risk(
        parameters,
        at,
        apparent,
        float(np.atleast_1d(one.mean[name])[place]),
        float(np.atleast_1d(one.standard_error[name])[place]),
        round(float(np.mean([len(train) for train, _ in one.folds]))),
    )
