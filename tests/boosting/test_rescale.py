"""The rescale strategy: integer weights stay the exponential weights of the model so far."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from ensemble_gpu.arrays.namespace import locate
from ensemble_gpu.boosting import rescale
from ensemble_gpu.boosting.loop import boost
from ensemble_gpu.boosting.rescale import Rescale
from ensemble_gpu.boosting.rules import rule_for
from ensemble_gpu.data.matrix import bin_matrix, sort_by_class
from ensemble_gpu.kernels.fixedpoint import log2_fixed
from ensemble_gpu.kernels.protocol import ABSTAIN, LEFT, RIGHT, Criterion, Layout
from ensemble_gpu.kernels.select import engine_for
from ensemble_gpu.learners.stump import Stump
from tests.datasets import Data, random_data

VARIANTS = ["real", "discrete", "gentle"]


@dataclass
class Followed:
    """A strategy with the rows in its order, and the exact logarithms of their weights."""

    strategy: Rescale
    layout: Layout
    X: np.ndarray
    sign: np.ndarray  # +1 where a plane's class is the row's, -1 otherwise [plane, row]
    logs: np.ndarray  # [plane, row]
    matrix: Any
    votes: bool

    def follow(self, stump: Stump) -> None:
        """Weights times exp(-Y F), from the stump alone."""
        x = self.X[:, stump.feature]
        right = x > self.matrix.threshold(stump.feature, stump.bin)
        leaf = np.where(np.isnan(x), stump.missing_leaf, np.where(right, RIGHT, LEFT))
        values = stump.values[:, leaf]
        if self.votes:  # SAMME: rows voted wrong grow by exp(alpha)
            own = self.sign > 0
            wrong = (leaf != ABSTAIN) & ((values * own).sum(axis=0) == 0)
            self.logs += stump.alpha * wrong
        else:
            self.logs -= self.sign * values
        self.strategy.follow(stump)

    def relative_weights(self) -> tuple[np.ndarray, np.ndarray]:
        """(found, exact) of every (plane, row), each divided by its largest."""
        q = np.stack([np.asarray(q) for q in self.strategy.histograms.q]).astype(np.float64)
        classes = np.repeat(np.arange(self.layout.n_classes), np.diff(self.layout.starts))
        found = q * self.strategy.scale[self.layout.group_of[:, classes]]
        logs = self.logs[: len(q)]
        return found / found.max(), np.exp(logs - logs.max())


def start(data: Data, variant: str, rate: float = 1.0, n_jobs: int = 1) -> Followed:
    n_classes = int(data.y.max()) + 1
    where = locate(data.X)
    engine, rule = engine_for(where, n_jobs), rule_for(variant, n_classes)
    rows = sort_by_class(data.y, n_classes, None, where)
    layout = Layout(rows.starts, rule.group_of)
    matrix = bin_matrix(engine, data.X, rows.rows, layout, 255)
    order = np.asarray(rows.rows)
    logs, log_weights, lightest = np.zeros(len(order)), None, 1.0
    if data.weights is not None:
        logs = np.log(data.weights[order])
        log_weights = log2_fixed(data.weights[order], where)
        lightest = float(data.weights.min())
    criterion = Criterion(rule.kind, np.zeros(layout.n_groups), False, matrix.n_thresholds(False))
    histograms = engine.histograms(matrix.codes, layout, log_weights)
    strategy = Rescale(histograms, matrix.codes, layout, rule, criterion, rate, lightest)
    own = data.y[order] == np.arange(n_classes)[:, None]
    sign = np.where(own, 1.0, -1.0)
    if rule.n_outputs == 1:
        sign = sign[1:]
    planes = np.repeat(logs[None, :], sign.shape[0] if rule.link != "votes" else 1, axis=0)
    return Followed(
        strategy, layout, data.X[order], sign, planes.copy(), matrix, (rule.link == "votes")
    )


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("variant", VARIANTS)
def test_integer_weights_are_the_exponential_weights_of_the_model(engine, variant, n_classes):
    followed = start(random_data(n_classes).with_missing(), variant)
    for _ in range(60):
        followed.follow(followed.strategy.best())
        found, exact = followed.relative_weights()
        np.testing.assert_allclose(found, exact, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("variant", VARIANTS)
def test_drift_is_gone_after_a_requantisation(engine, variant):
    data = random_data()
    followed = start(Data(data.X, data.y, np.random.default_rng(0).uniform(0.1, 4.0, 250)), variant)
    requantised = 0
    for _ in range(300):
        followed.follow(followed.strategy.best())
        if followed.strategy.rounds_since == 0:
            requantised += 1
            found, exact = followed.relative_weights()
            np.testing.assert_allclose(found, exact, rtol=1e-6, atol=2.0**-27)
    assert requantised >= 1


def test_rows_too_light_to_count_come_back_when_the_heavy_row_is_learned(engine):
    """One row of 2^40 rounds all others of its class to q = 0; boosting brings them level."""
    data = random_data(n=80)
    weights = np.ones(80)
    weights[np.flatnonzero(data.y == 1)[0]] = 2.0**40
    followed = start(Data(data.X, data.y, weights), "real")
    before, _ = followed.relative_weights()
    lost = before[0] == 0
    assert lost.sum() == (data.y == 1).sum() - 1
    for _ in range(60):
        followed.follow(followed.strategy.best())
    followed.strategy._requantise()
    after, exact = followed.relative_weights()
    counts_again = lost & (exact[0] > 2.0**-25)
    assert counts_again.sum() > lost.sum() / 2
    assert (after[0, counts_again] > 0).all()
    np.testing.assert_allclose(after, exact, rtol=1e-6, atol=2.0**-27)


def test_all_rows_are_requantised_every_so_many_rounds(engine, monkeypatch):
    monkeypatch.setattr(rescale, "REQUANTISE_EVERY", 7)
    followed = start(random_data(), "gentle", rate=0.1)
    since = []
    for _ in range(21):
        followed.follow(followed.strategy.best())
        since.append(followed.strategy.rounds_since)
    assert since == [1, 2, 3, 4, 5, 6, 0] * 3


@pytest.mark.parametrize("variant", VARIANTS)
def test_only_rows_outside_the_larger_leaf_are_touched(variant):
    followed = start(random_data(), variant)
    for _ in range(10):
        stump = followed.strategy.best()
        x = followed.X[:, stump.feature]
        right = x > followed.matrix.threshold(stump.feature, stump.bin)
        before = np.asarray(followed.strategy.histograms.q).copy()
        followed.follow(stump)
        if followed.strategy.rounds_since:
            touched = (np.asarray(followed.strategy.histograms.q) != before).any(axis=0)
            smaller = right if right.sum() <= (~right).sum() else ~right
            assert not touched[~smaller].any()


def test_scales_stay_near_one(engine):
    followed = start(random_data(4), "real")
    for _ in range(40):
        followed.follow(followed.strategy.best())
        assert 0.5 <= followed.strategy.scale.max() <= 1.0


class Script:
    """A strategy that hands out given stumps."""

    def __init__(self, stumps: list[Stump], reason: str = "nothing left") -> None:
        self.stumps, self.reason, self.followed = list(stumps), reason, 0

    def best(self) -> Stump | None:
        return self.stumps.pop(0) if self.stumps else None

    def follow(self, stump: Stump) -> None:
        self.followed += 1


PLAIN = Stump(0, 0, ABSTAIN, np.zeros((1, 3)), 1.0, 0.4, False)
PERFECT = Stump(0, 0, ABSTAIN, np.zeros((1, 3)), 1.0, 0.0, True)


def test_the_loop_runs_the_asked_number_of_rounds_and_follows_all_but_the_last():
    script = Script([PLAIN] * 9)
    trace = boost(script, 4, [])
    assert trace.n_rounds == 4
    assert script.followed == 3
    assert trace.stop_reason == "all 4 rounds were run"


def test_the_loop_ends_with_the_reason_of_the_strategy():
    trace = boost(Script([PLAIN] * 2), 10, [])
    assert (trace.n_rounds, trace.stop_reason) == (2, "nothing left")


def test_the_loop_keeps_a_perfect_stump_and_ends():
    trace = boost(Script([PLAIN, PERFECT, PLAIN]), 10, [])
    assert trace.n_rounds == 2
    assert "correctly" in trace.stop_reason


def test_the_loop_tells_every_watcher_before_it_ends():
    seen = []
    watchers = [lambda t, stump: "enough" if t == 2 else None, lambda t, stump: seen.append(t)]
    trace = boost(Script([PLAIN] * 9), 9, watchers)
    assert seen == [1, 2]
    assert trace.stop_reason == "enough"
