"""Trees and forests beside scikit-learn, LightGBM, XGBoost and CatBoost: `python -m bench.forests`.

Every model is fitted from raw float32 rows with the same number of trees and threads. scikit-learn's
forest is the same algorithm as ours, but for our 255 bins. LightGBM's and XGBoost's draw 63.2% of the
rows without replacement instead of a bootstrap sample, with as many features a node, and stop, as
ours, when a leaf is pure. Boosted trees have depth 6, no penalty and no least leaf; CatBoost's are
oblivious: one question a level, which is less work and another model.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import catboost
import lightgbm
import numpy as np
import psutil
import xgboost
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.ensemble import RandomForestClassifier as SklearnForest
from sklearn.ensemble import RandomForestRegressor as SklearnForestRegressor
from sklearn.tree import DecisionTreeClassifier as SklearnTree

from bench.child import forget_peak, peak
from bench.data import Shape, Split, generated, regression
from bench.losses import squared_error
from bench.measure import Effort, Timing, auc, interleave, log_loss, machine
from bench.peers import (
    MAX_BINS,
    OURS,
    WARM_ROWS,
    Job,
    catboost_settings,
    lightgbm_settings,
    openmp,
    xgboost_settings,
)
from bench.report import TARGET_THREADS, seconds, table
from ensemble_gpu import BoostingClassifier
from ensemble_gpu.bagging.forest import RandomForestClassifier, RandomForestRegressor
from ensemble_gpu.trees.tree import DecisionTreeClassifier

RESULTS = Path(__file__).parent / "results"
SKLEARN = "scikit-learn"
FEATURES = 28
DEPTH, RATE = 6, 0.1
EQUAL_LEAVES = 1_024
MOST_LEAVES = 1 << 17  # that LightGBM allows
IN_BAG = 0.632
ONE_ROW_CALLS = 200

Predict = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Fitted:
    """A model: its predictions and, counted when asked for, the mean leaves of a tree."""

    predict: Predict
    leaves: Callable[[], float]


Fit = Callable[[Job], Fitted]


@dataclass(frozen=True)
class Contest:
    """Who fits what: a kind of FITS, the trees of everybody, the measures on held-out rows.

    `also` adds a line of ours with another number of trees.
    """

    kind: str
    shape: Shape
    trees: int
    names: tuple[str, ...] = ()
    measures: tuple[str, ...] = ("AUC",)
    memory: bool = False
    also: int = 0

    @property
    def split(self) -> Split:
        return regression(self.shape) if "MSE" in self.measures else generated(self.shape)

    def jobs(self, threads: int) -> dict[str, tuple[Fit, Job]]:
        """{line of the table: how to fit, and what}."""
        fits, split = FITS[self.kind], self.split
        job = Job(split.X, split.y, self.trees, RATE, threads)
        jobs = {name: (fits[name], job) for name in self.names or fits}
        if self.also:
            jobs[f"{OURS}, {self.also} trees"] = fits[OURS], replace(job, rounds=self.also)
        return jobs


@dataclass(frozen=True)
class Outcome:
    """By contestant: times, leaves a tree, bytes at the peak, and scores by measure."""

    timings: dict[str, Timing]
    leaves: dict[str, float]
    peaks: dict[str, int] = field(default_factory=dict)
    scores: dict[str, dict[str, float]] = field(default_factory=dict)


@dataclass(frozen=True)
class Work:
    """One row: the ratio is to the fastest of `rivals`, of medians; without rivals: of all.

    Our first score may be worse by `tolerance`, our memory must be below theirs.
    """

    key: str
    title: str
    run: Callable[[Effort], Outcome]
    rivals: tuple[str, ...] = ()
    at_least: float | None = None
    aim: float | None = None
    tolerance: float = 0.002


def _like_sklearn(estimator: Any, **settings: Any) -> Fit:
    """Ours and scikit-learn's, told the trees, the threads and the seed where they have them."""
    known = estimator().get_params()

    def fit(job: Job) -> Fitted:
        told = {"n_estimators": job.rounds, "n_jobs": job.threads, "random_state": 0}
        common = {name: value for name, value in told.items() if name in known}
        model = estimator(**common, **settings).fit(job.X, job.y)
        answer = getattr(model, "predict_proba", model.predict)

        def predict(X: np.ndarray) -> np.ndarray:
            if hasattr(model, "estimators_"):  # scikit-learn starts its threads for one row, too
                model.n_jobs = job.threads if len(X) > 1 else 1
            return answer(X)

        return Fitted(predict, partial(_mean_leaves, model))

    return fit


def _mean_leaves(model: Any) -> float:
    if hasattr(model, "model_"):
        return statistics.fmean(model.model_.n_leaves(t) for t in range(len(model.model_)))
    return statistics.fmean(tree.get_n_leaves() for tree in getattr(model, "estimators_", [model]))


def _lightgbm(**settings: Any) -> Fit:
    def fit(job: Job) -> Fitted:
        told = {**lightgbm_settings(job), "min_data_in_leaf": 1, "min_sum_hessian_in_leaf": 0.0}
        booster = lightgbm.train(told | settings, lightgbm.Dataset(job.X, job.y), job.rounds)

        def leaves() -> float:
            counts = re.findall(r"^num_leaves=(\d+)", booster.model_to_string(), re.MULTILINE)
            return statistics.fmean(map(int, counts))

        return Fitted(lambda X: np.asarray(booster.predict(X, num_threads=job.threads)), leaves)

    return fit


def _lightgbm_forest(leaves: int) -> Fit:
    return _lightgbm(
        boosting="rf", num_leaves=leaves, bagging_freq=1, bagging_fraction=IN_BAG,
        feature_fraction_bynode=FEATURES**-0.5, histogram_pool_size=512,
    )  # fmt: skip


def _xgboost(*, forest: bool = False, **settings: Any) -> Fit:
    """One round of `trees` parallel trees is XGBoost's random forest."""

    def fit(job: Job) -> Fitted:
        told = {**xgboost_settings(job), "reg_lambda": 0.0, "min_child_weight": 0.0, **settings}
        if forest:
            told |= {"num_parallel_tree": job.rounds, "learning_rate": 1.0, "subsample": IN_BAG}
            told |= {"colsample_bynode": FEATURES**-0.5}
        matrix = xgboost.QuantileDMatrix(job.X, job.y, max_bin=MAX_BINS, nthread=job.threads)
        booster = xgboost.train(told, matrix, 1 if forest else job.rounds)

        def leaves() -> float:
            return statistics.fmean(tree.count("leaf=") for tree in booster.get_dump())

        return Fitted(booster.inplace_predict, leaves)

    return fit


def _catboost(job: Job) -> Fitted:
    settings = {**catboost_settings(job), "depth": DEPTH, "l2_leaf_reg": 0.0}
    model = catboost.CatBoostClassifier(**settings).fit(job.X, job.y)
    predict = partial(model.predict_proba, thread_count=job.threads)
    return Fitted(predict, lambda: statistics.fmean(model.get_tree_leaf_counts()))


def _histogram_boosting(job: Job) -> Fitted:
    model = HistGradientBoostingClassifier(
        max_iter=job.rounds, learning_rate=job.rate, max_depth=DEPTH, max_leaf_nodes=None,
        min_samples_leaf=1, max_bins=MAX_BINS, early_stopping=False,
    )  # fmt: skip
    with openmp(job.threads):
        model.fit(job.X, job.y)
    trees = [tree for one_round in model._predictors for tree in one_round]
    count = partial(statistics.fmean, [tree.get_n_leaf_nodes() for tree in trees])
    return Fitted(model.predict_proba, count)


def _forests(leaves: int | None = None) -> dict[str, Fit]:
    """Fully grown, or with so many leaves a tree, the best first."""
    if leaves is None:
        xgboost_leaves: dict[str, Any] = {"max_cached_hist_node": 4_096}
    else:
        xgboost_leaves = {"grow_policy": "lossguide", "max_leaves": leaves}
    return {
        OURS: _like_sklearn(RandomForestClassifier, max_leaf_nodes=leaves),
        SKLEARN: _like_sklearn(SklearnForest, max_leaf_nodes=leaves),
        "LightGBM": _lightgbm_forest(leaves or MOST_LEAVES),
        "XGBoost": _xgboost(forest=True, max_depth=0, **xgboost_leaves),
    }


FITS: dict[str, dict[str, Fit]] = {
    "forest": _forests(),
    "equal leaves": _forests(EQUAL_LEAVES),
    "regression": {
        OURS: _like_sklearn(RandomForestRegressor),
        SKLEARN: _like_sklearn(SklearnForestRegressor),
    },
    "boosting": {
        OURS: _like_sklearn(BoostingClassifier, max_depth=DEPTH, learning_rate=RATE),
        "LightGBM": _lightgbm(max_depth=DEPTH, num_leaves=1 << DEPTH),
        "XGBoost": _xgboost(max_depth=DEPTH),
        "CatBoost, oblivious": _catboost,
        "sklearn HistGB": _histogram_boosting,
    },
    "tree": {
        OURS: _like_sklearn(DecisionTreeClassifier),
        SKLEARN: _like_sklearn(SklearnTree),
    },
    "exact tree": {
        OURS: _like_sklearn(DecisionTreeClassifier, max_bins=None),
        SKLEARN: _like_sklearn(SklearnTree),
    },
}
MEASURES: dict[str, Callable[[np.ndarray, np.ndarray], float]] = {
    "AUC": auc,
    "log loss": log_loss,
    "MSE": squared_error,
}


def _warm_up(fit: Fit, job: Job) -> None:
    few = replace(job, X=job.X[:WARM_ROWS], y=job.y[:WARM_ROWS], rounds=2)
    fit(few).predict(few.X[:1])


@lru_cache(maxsize=1)
def _fit(contest: Contest, effort: Effort) -> Outcome:
    """From raw rows to fitted models, which the timings keep."""
    split, jobs = contest.split, contest.jobs(effort.threads)
    for fit, job in jobs.values():
        _warm_up(fit, job)
    timings = interleave({name: partial(fit, job) for name, (fit, job) in jobs.items()}, effort)
    answers = {name: timing.result.predict(split.X_test) for name, timing in timings.items()}
    scores = {
        measure: {name: MEASURES[measure](split.y_test, a) for name, a in answers.items()}
        for measure in contest.measures
    }
    leaves = {name: timing.result.leaves() for name, timing in timings.items()}
    peaks = _peaks(contest, effort.threads) if contest.memory else {}
    return Outcome(timings, leaves, peaks, scores)


def _peaks(contest: Contest, threads: int) -> dict[str, int]:
    """Bytes that each fit adds at its peak to a process of its own that holds X."""
    peaks = {}
    for name in contest.jobs(threads):
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            peaks[name] = pool.submit(_added_bytes, contest, name, threads).result()
    return peaks


def _added_bytes(contest: Contest, name: str, threads: int) -> int:
    fit, job = contest.jobs(threads)[name]
    _warm_up(fit, job)
    forget_peak()
    before = psutil.Process().memory_info().rss
    model = fit(job)
    added = max(0, peak() - before)
    del model
    return added


def _predict(contest: Contest, calls: int, effort: Effort) -> Outcome:
    """Of all training rows, or of one row `calls` times: seconds a call."""
    fitted = _fit(contest, effort)
    X = contest.split.X if calls == 1 else contest.split.X[:1]
    repeated = {n: partial(_repeat, t.result.predict, X, calls) for n, t in fitted.timings.items()}
    timings = interleave(repeated, replace(effort, repeats=2 * effort.repeats + 1))
    return Outcome({n: t.times(1.0 / calls) for n, t in timings.items()}, fitted.leaves)


def _repeat(predict: Predict, X: np.ndarray, times: int) -> None:
    for _ in range(times):
        predict(X)


def works(rows: int, million: int, trees: int, few: int) -> list[Work]:
    """The rows of the table; scikit-learn's slow ones have `few` trees, and so have ours there."""
    hundred, large = Shape(rows, FEATURES), Shape(million, FEATURES)
    classes = Shape(rows, FEATURES, 10)
    both, losses = (OURS, SKLEARN), ("AUC", "log loss")
    forest = Contest("forest", hundred, trees, memory=True)
    equal = Contest("equal leaves", hundred, trees)
    predict = f"predict {rows:,} rows, {trees} trees"

    def fit(*settings: Any, **more: Any) -> Callable[[Effort], Outcome]:
        return partial(_fit, Contest(*settings, **more))

    return [
        Work("forest", f"forest, {hundred}, {trees} trees", partial(_fit, forest), (SKLEARN,), 5),
        Work("predict", f"{predict}, fully grown", partial(_predict, forest, 1), (), 1),
        Work("one-row", f"predict one row, {trees} trees, fully grown",
             partial(_predict, forest, ONE_ROW_CALLS), (), 1),
        Work("predict-equal", f"{predict} of at most {EQUAL_LEAVES:,} leaves",
             partial(_predict, equal, 1), (), 1),
        Work("forest-million", f"forest, {large}, {few} trees (time is linear in them)",
             fit("forest", large, few, both, memory=True, also=trees), (SKLEARN,), 5),
        Work("forest-classes", f"forest, {classes}, {few} trees",
             fit("forest", classes, few, both), (SKLEARN,)),
        Work("forest-regression", f"forest, regression, {hundred}, {few} trees",
             fit("regression", hundred, few, both, ("MSE",)), (SKLEARN,)),
        Work("boosting", f"boosted trees of depth {DEPTH}, {hundred}, {trees} rounds",
             fit("boosting", hundred, trees, (), losses), aim=1),
        Work("boosting-million", f"boosted trees of depth {DEPTH}, {large}, {trees} rounds",
             fit("boosting", large, trees, (), losses, memory=True), aim=1),
        Work("tree", f"one tree on {MAX_BINS} bins, {hundred}", fit("tree", hundred, 1)),
        Work("tree-exact", f"one exact tree, {hundred}", fit("exact tree", hundred, 1)),
    ]  # fmt: skip


def headline(work: Work, outcome: Outcome) -> list[str]:
    """work, ratio, ours, fastest peer, quality difference, at least / aim, met."""
    timings, peaks = outcome.timings, outcome.peaks
    rivals = work.rivals or tuple(name for name in timings if not name.startswith(OURS))
    rival = min(rivals, key=lambda name: timings[name].median)
    ratio = timings[rival].median / timings[OURS].median
    short = [] if ratio >= (work.at_least or work.aim or 0.0) else ["time"]
    quality = []
    for i, (measure, scores) in enumerate(outcome.scores.items()):
        apart = scores[OURS] - scores[rival]
        quality.append(f"{measure} {apart:+.4f}")
        if i == 0 and (apart if measure == "AUC" else -apart) < -work.tolerance:
            short.append(measure)
    if peaks:
        quality.append(f"memory {peaks[OURS] / peaks[rival]:.2f}x")
        if peaks[OURS] >= peaks[rival]:
            short.append("memory")
    if not outcome.scores:
        quality.append(f"leaves {outcome.leaves[OURS]:,.0f} / {outcome.leaves[rival]:,.0f}")
    goals = " / ".join("" if goal is None else f"{goal}x" for goal in (work.at_least, work.aim))
    verdict = "" if goals == " / " else f"missed: {', '.join(short)}" if short else "met"
    if verdict and timings[OURS].threads != TARGET_THREADS:
        verdict += f" ({timings[OURS].threads} thread(s); the target is for {TARGET_THREADS})"
    ours, theirs = seconds(timings[OURS].median), seconds(timings[rival].median)
    return [work.title, f"**{ratio:.2f}x**", ours, f"{theirs} ({rival})", ", ".join(quality),
            goals.strip(), verdict]  # fmt: skip


def detail_table(work: Work, outcome: Outcome) -> str:
    """Everybody's figures in one work."""
    ours = outcome.timings[OURS].median
    rows = [
        [
            name, seconds(t.median), seconds(t.best), str(len(t.wall)), f"{t.median / ours:.2f}",
            *(f"{scores[name]:.5f}" for scores in outcome.scores.values()),
            f"{outcome.leaves[name]:,.0f}",
            *([f"{outcome.peaks[name] / 2**20:,.0f} MiB"] if outcome.peaks else []),
            f"{min(t.disturbed):.0%}",
        ]
        for name, t in sorted(outcome.timings.items(), key=lambda item: item[1].median)
    ]  # fmt: skip
    head = ["", "median", "best", "runs", "time / ours", *outcome.scores, "leaves a tree",
            *(["peak beyond X"] if outcome.peaks else []), "others on the CPU"]  # fmt: skip
    return f"### {work.title}\n\n" + table(head, rows)


def _as_json(outcome: Outcome) -> dict[str, Any]:
    return {
        "seconds": {name: t.wall for name, t in outcome.timings.items()},
        "cpu_seconds": {name: t.cpu for name, t in outcome.timings.items()},
        "share_of_cpu_taken_by_others": {n: t.disturbed for n, t in outcome.timings.items()},
        "scores": outcome.scores,
        "leaves": outcome.leaves,
        "peak_bytes": outcome.peaks,
    }


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.forests", description=__doc__)
    add = parser.add_argument
    add("--quick", action="store_true", help="20,000 rows, 20 trees, no targets")
    add("--rows", type=int, help="of every set, to try the program; no targets")
    add("--only", action="append", choices=[w.key for w in works(1, 1, 1, 1)], help="repeatable")
    add("--json", type=Path, metavar="PATH", help="where to write the JSON, and the text beside it")
    add("--threads", type=int, default=2, help="threads of everybody (default: 2)")
    add("--repeats", type=int, default=3, help="runs of each contestant (default: 3)")
    add("--budget", type=float, metavar="SECONDS",
        help="no further run of a contestant beyond this (default: 60, quick: 0.6)")  # fmt: skip
    add("--patience", type=float, default=0.0, help="as in python -m bench")
    return parser.parse_args()


def main() -> None:
    """Run what was asked for, print and write."""
    options = _arguments()
    small = options.quick or options.rows is not None
    rows = options.rows or 20_000
    chosen = works(rows, rows, 20, 5) if small else works(100_000, 1_000_000, 100, 20)
    budget = (0.6 if small else 60.0) if options.budget is None else options.budget
    effort = Effort(options.threads, options.repeats, budget, options.patience)
    path = options.json or RESULTS / "forests" / ("quick.json" if small else "results.json")
    path.parent.mkdir(parents=True, exist_ok=True)
    data: dict[str, Any] = {"machine": machine(effort.threads), "quick": small, "works": {}}
    lines, details = [], []
    for work in chosen:
        if work.key in (options.only or [w.key for w in chosen]):
            work = replace(work, at_least=None, aim=None) if small else work
            outcome = work.run(effort)
            data["works"][f"trees-{work.key}"] = _as_json(outcome)
            lines.append(headline(work, outcome))
            details.append(detail_table(work, outcome))
            print(details[-1], flush=True)
    head = ["work", "ratio", "ours", "fastest peer", "quality difference", "at least / aim", "met"]
    first = "## Trees and forests\n\n" + table(head, lines)
    print(first)
    data["texts"] = [first, *details]
    path.write_text(json.dumps(data, indent=1) + "\n")
    about = table(["machine", ""], [[key, str(value)] for key, value in data["machine"].items()])
    path.with_suffix(".md").write_text("\n".join([first, *details, about]))


if __name__ == "__main__":
    main()
