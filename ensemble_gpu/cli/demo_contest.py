"""Fits of several estimators beside each other, in turns: what else the machine does hits them all.

A ratio of two times is the median over the turns of the ratio within a turn.
"""

from __future__ import annotations

import importlib.util
import os
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.ensemble import AdaBoostClassifier as SklearnAdaBoost
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.ensemble import RandomForestClassifier as SklearnForest
from sklearn.metrics import log_loss, roc_auc_score

from ensemble_gpu import AdaBoostClassifier, BoostingClassifier, RandomForestClassifier
from ensemble_gpu.cli.demo_data import Data
from ensemble_gpu.cli.text import seconds, table

# Two times that differ by less than this factor are called equal.
ALIKE = 1.15
# Turns of one estimator that differ by more than this factor: the machine was busy.
BUSY = 2.0
# After this time no contest begins another turn.
MOST_SECONDS = 8.0


@dataclass(frozen=True)
class Contestant:
    """How to make an estimator; `size` says how large its model is."""

    name: str
    size: str
    make: Callable[[], Any]


@dataclass(frozen=True)
class Contest:
    """Our estimators first; `same` is the place of the one that does the same work as the peers."""

    title: str
    contestants: Sequence[Contestant]
    same: int = 0

    @property
    def peers(self) -> range:
        return range(self.same + 1, len(self.contestants))


@dataclass
class Entry:
    """A contestant's times, and its last model."""

    contestant: Contestant
    times: list[float] = field(default_factory=list)
    model: Any = None

    @property
    def median(self) -> float:
        return statistics.median(self.times)

    def cells(self, data: Data) -> list[str]:
        quality = Quality.of(self.model, data)
        shown = [f"{quality.accuracy:.2%}", f"{quality.auc:.4f}", f"{quality.log_loss:.4f}"]
        return [self.contestant.name, self.contestant.size, *shown, seconds(self.median)]


HEADER = ("", "size", "accuracy", "AUC", "log-loss", "fit")


@dataclass(frozen=True)
class Quality:
    """On the test rows; the AUC is the mean over the classes."""

    accuracy: float
    auc: float
    log_loss: float

    @classmethod
    def of(cls, model: Any, data: Data) -> Quality:
        p = np.asarray(model.predict_proba(data.X_test))
        F = p if not hasattr(model, "decision_function") else model.decision_function(data.X_test)
        F = np.asarray(F)
        own = range(p.shape[1])
        columns = [F if k else -F for k in own] if F.ndim == 1 else [F[:, k] for k in own]
        aucs = [roc_auc_score(data.y_test == model.classes_[k], columns[k]) for k in own]
        accuracy = float(np.mean(model.classes_[np.argmax(p, axis=1)] == data.y_test))
        return cls(accuracy, float(np.mean(aucs)), log_loss(data.y_test, p))


def timed(estimator: Any, X: Any, y: Any) -> tuple[Any, float]:
    start = time.perf_counter()
    estimator.fit(X, y)
    return estimator, time.perf_counter() - start


def race(contest: Contest, data: Data, turns: int) -> list[Entry]:
    """All contestants fit in turns, as many as there is time for; kernels are loaded already."""
    entries = [Entry(contestant) for contestant in contest.contestants]
    start = time.perf_counter()
    for turn in range(turns):
        if turn and time.perf_counter() - start > MOST_SECONDS:
            break
        for entry in entries:
            entry.model, taken = timed(entry.contestant.make(), data.X, data.y)
            entry.times.append(taken)
    return entries


def report(
    contest: Contest, entries: Sequence[Entry], data: Data, ratios: bool = True
) -> Iterator[str]:
    """The table, and what it says about time."""
    yield table(HEADER, [entry.cells(data) for entry in entries])
    if not ratios:
        return
    ours = entries[contest.same]
    for entry in (entries[at] for at in contest.peers):
        pairs = zip(entry.times, ours.times, strict=True)
        ratio = statistics.median(theirs / own for theirs, own in pairs)
        yield "  " + compared(ours.contestant.name, entry.contestant.name, ratio)
    spread = max(max(entry.times) / min(entry.times) for entry in entries)
    if spread > BUSY:
        yield (
            f"  (The same fit took up to {spread:.1f} times as long in another turn: the machine "
            "is busy.)"
        )


def compared(ours: str, theirs: str, ratio: float) -> str:
    """A sentence about their time over ours."""
    if ratio > ALIKE:
        return f"{_capital(ours)} is {_times(ratio)} as fast as {theirs}."
    if ratio < 1.0 / ALIKE:
        return f"{_capital(theirs)} is {_times(1.0 / ratio)} as fast as {ours}."
    return f"{_capital(ours)} and {theirs} take about the same time."


def _capital(name: str) -> str:
    """At the beginning of a sentence; scikit-learn stays what it is."""
    return name.replace("ours", "Ours", 1) if name.startswith("ours") else name


def _times(ratio: float) -> str:
    return f"{ratio:.1f} times" if ratio < 10.0 else f"{ratio:,.0f} times"


def busy() -> str | None:
    """How busy the machine is with other things, where it is.

    Programs suffer from that in different ways (threads that wait for each other most): turns do
    not make a ratio fair then.
    """
    processors = os.cpu_count() or 1
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    if load <= processors + 0.5:
        return None
    return f"the load average is {load:.1f} on {processors} processor(s)"


def _lightgbm() -> Callable[..., Any] | None:
    """LightGBM's classifier, where it is installed."""
    if importlib.util.find_spec("lightgbm") is None:
        return None
    from lightgbm import LGBMClassifier

    return LGBMClassifier


def contests(rounds: int, peer_rounds: int, trees: int) -> list[Contest]:
    """AdaBoost, boosted trees, a forest: ours beside scikit-learn's and LightGBM's.

    scikit-learn's AdaBoost gets fewer rounds, and our textbook variant as many.
    """
    few = peer_rounds

    def textbook() -> Any:
        return AdaBoostClassifier(variant="discrete", n_estimators=few, device="auto")

    adaboost = Contest(
        "AdaBoost with stumps",
        [
            Contestant(
                "ours (default)", f"{rounds} rounds",
                lambda: AdaBoostClassifier(n_estimators=rounds, device="auto"),
            ),
            Contestant("ours (textbook)", f"{few} rounds", textbook),
            Contestant(
                "scikit-learn", f"{few} rounds",
                lambda: SklearnAdaBoost(n_estimators=few, random_state=0),
            ),
        ],
        same=1,
    )  # fmt: skip
    grown = f"{trees} trees"
    boosted = [
        Contestant(
            "ours", grown,
            lambda: BoostingClassifier(
                n_estimators=trees, max_depth=None, max_leaf_nodes=31, l2_regularization=0.0,
                subsample=1.0, max_features=None, early_stopping=False, device="auto",
            ),
        ),
        Contestant(
            "scikit-learn (Hist)", grown,
            lambda: HistGradientBoostingClassifier(max_iter=trees, early_stopping=False),
        ),
    ]  # fmt: skip
    lightgbm = _lightgbm()
    if lightgbm is not None:
        boosted.append(
            Contestant("LightGBM", grown, lambda: lightgbm(n_estimators=trees, verbose=-1))
        )
    forest = [
        Contestant(
            "ours", grown,
            lambda: RandomForestClassifier(
                n_estimators=trees, device="auto", n_jobs=-1, random_state=0
            ),
        ),
        Contestant(
            "scikit-learn", grown,
            lambda: SklearnForest(n_estimators=trees, n_jobs=-1, random_state=0),
        ),
    ]  # fmt: skip
    return [
        adaboost,
        Contest("Boosted trees of 31 leaves, 20 rows a leaf", boosted),
        Contest("Random forest", forest),
    ]
