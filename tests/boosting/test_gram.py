"""L2Boost: the squared loss is fitted as a plain loop over residuals does, exactly and cheaply."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from functools import cache
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from ensemble_gpu import BoostingClassifier, BoostingRegressor
from ensemble_gpu.boosting import gram
from ensemble_gpu.boosting.gram import WEIGHT_BITS, Gram, integer_targets
from ensemble_gpu.boosting.strategy import one_by_one
from ensemble_gpu.data.integers import integer_weights
from ensemble_gpu.data.rows import Rows, bin_rows
from ensemble_gpu.kernels.cpu.engine import CpuEngine
from ensemble_gpu.kernels.protocol import Codes, no_counts
from ensemble_gpu.learners.stump import SplitConstraints, StumpSearch
from ensemble_gpu.losses import CustomLoss
from tests.boosters import plain
from tests.boosting.brute_force import TIE, candidates
from tests.datasets import Data, random_data
from tests.places import ENGINES
from tests.products import every_pair

CLOSE = {"none": 1e-9, "whole": 1e-9, "fractional": 2e-7}
STEPS = ["line_search", "newton", "constant"]


def regression(n: int = 120, p: int = 4, seed: int = 0) -> Data:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    X[:, -1] = np.round(X[:, -1])  # ties
    signal = np.sin(2 * X[:, 0]) + 0.5 * np.abs(X[:, 1:]).sum(axis=1)
    return Data(X, signal + X[:, 1] * (X[:, 2] > 0) + 0.3 * rng.normal(size=n))


def weights_of(kind: str, n: int) -> np.ndarray | None:
    rng = np.random.default_rng(1)
    if kind == "none":
        return None
    return rng.integers(1, 5, n).astype(np.float64) if kind == "whole" else rng.gamma(1.0, size=n)


def fit(data: Data, **params: Any) -> BoostingRegressor:
    params = {"n_estimators": 60, "learning_rate": 0.3, **params}
    return BoostingRegressor(**plain(params)).fit(data.X, data.y, data.weights)


@dataclass(frozen=True)
class Stump:
    feature: int
    threshold: float
    missing: str
    left: np.ndarray
    right: np.ndarray


class PlainL2Boost:
    """Residuals in floats; each round the stump with the least squared error, times nu.

    Targets Y [rows, outputs]; a stump has a mean residual for each leaf and output. To leave the
    least squared error is to have the largest sum over leaves of (sum of w r)^2 / (sum of w).
    """

    def __init__(self, n_rounds: int, rate: float, missing: str = "abstain") -> None:
        self.n_rounds, self.rate, self.missing = n_rounds, rate, missing

    def fit(self, X: np.ndarray, Y: np.ndarray, weights: np.ndarray | None) -> PlainL2Boost:
        w = np.ones(len(Y)) if weights is None else weights
        splits = list(candidates(X, self.missing))
        left, right = (np.array([s[side] for s in splits]).astype(float) for side in (3, 4))
        w_left, w_right = left @ w, right @ w
        self.constant = np.average(Y, axis=0, weights=w)
        residual = Y - self.constant
        self.stumps, self.losses = [], []
        for _ in range(self.n_rounds):
            wr = w[:, None] * residual
            s_left, s_right = left @ wr, right @ wr
            with np.errstate(invalid="ignore", divide="ignore"):
                c_left = np.where(w_left[:, None] > 0, s_left / w_left[:, None], 0.0)
                c_right = np.where(w_right[:, None] > 0, s_right / w_right[:, None], 0.0)
            gain = (s_left * c_left + s_right * c_right).sum(axis=1)
            best = int(np.argmax(gain * TIE >= gain.max()))
            f, threshold, side = splits[best][:3]
            c_left, c_right = self.rate * c_left[best], self.rate * c_right[best]
            self.stumps.append(Stump(f, threshold, side, c_left, c_right))
            residual = residual - np.outer(left[best], c_left) - np.outer(right[best], c_right)
            self.losses.append(np.average((residual**2).sum(axis=1), weights=w))
        return self


def assert_same_rounds(found: Any, truth: PlainL2Boost, close: float = 1e-9) -> None:
    """`close`: the resolution of residuals, coarser where fractional weights take bits."""
    rounds = found.model_.rounds
    assert len(rounds) == len(truth.stumps)
    np.testing.assert_allclose(found.model_.intercept, truth.constant, rtol=close, atol=close)
    for t, stump in enumerate(truth.stumps):
        assert rounds.feature[t] == stump.feature, f"round {t}"
        assert rounds.threshold[t] == pytest.approx(stump.threshold, rel=1e-12), f"round {t}"
        for leaf, value in enumerate((stump.left, stump.right)):
            np.testing.assert_allclose(rounds.values[t, :, leaf], value, rtol=1e-6, atol=close)
        np.testing.assert_array_equal(rounds.values[t, :, 2], 0.0)
    np.testing.assert_allclose(found.history_.training, truth.losses, rtol=10 * close)


# --- the algorithm -----------------------------------------------------------------------------


@every_pair(
    "engine, rate, weights",
    ENGINES,
    [1.0, 0.3, 0.05],
    ["none", "whole", "fractional"],
    indirect=["engine"],
)
def test_stumps_are_those_of_a_plain_loop(engine, rate, weights):
    data = regression()
    data = Data(data.X, data.y, weights_of(weights, 120))
    truth = PlainL2Boost(120, rate).fit(data.X, data.y[:, None], data.weights)
    found = fit(data, step="constant", learning_rate=rate, n_estimators=120, max_bins=None)
    assert_same_rounds(found, truth, CLOSE[weights])


@pytest.mark.parametrize("missing", ["abstain", "learn"])
@pytest.mark.parametrize("weights", ["none", "fractional"])
def test_missing_values_are_treated_as_by_a_plain_loop(weights, missing):
    data = regression(seed=2).with_missing()
    data = Data(data.X, data.y, weights_of(weights, 120))
    truth = PlainL2Boost(100, 0.2, missing).fit(data.X, data.y[:, None], data.weights)
    found = fit(data, learning_rate=0.2, n_estimators=100, max_bins=None, missing=missing)
    assert_same_rounds(found, truth, CLOSE[weights])


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_squared_loss_of_classes_is_a_plain_loop_over_codes_of_classes(n_classes):
    data = random_data(n_classes, n=120)
    Y = np.where(data.y[:, None] == np.arange(n_classes), 1.0, -1.0)
    Y = Y[:, 1:] if n_classes == 2 else Y
    truth = PlainL2Boost(100, 0.3).fit(data.X, Y, None)
    found = BoostingClassifier(
        loss="squared", n_estimators=100, learning_rate=0.3, max_bins=None, max_depth=1
    ).fit(data.X, data.y)
    assert_same_rounds(found, truth)


@pytest.mark.parametrize("seed", range(4))
def test_a_plain_loop_agrees_on_more_random_data(seed):
    data = regression(60, 3, seed=100 + seed)
    truth = PlainL2Boost(150, 0.1).fit(data.X, data.y[:, None], None)
    assert_same_rounds(fit(data, learning_rate=0.1, n_estimators=150, max_bins=None), truth)


@pytest.mark.parametrize("weights", ["none", "fractional"])
def test_all_steps_give_the_same_model(engine, weights):
    data = regression()
    data = Data(data.X, data.y, weights_of(weights, 120))
    assert len({fit(data, step=step).model_.fingerprint() for step in STEPS}) == 1


def test_the_squared_loss_by_new_gradients_each_round_picks_the_same_stumps():
    data = regression()
    squares = CustomLoss(
        lambda y, F: (F - y) ** 2.0, lambda y, F: 2.0 * (F - y), lambda y, F: 2.0 + 0.0 * F
    )
    by_pairs, by_gradients = fit(data, step="newton"), fit(data, step="newton", loss=squares)
    a, b = by_pairs.model_.rounds, by_gradients.model_.rounds
    np.testing.assert_array_equal(a.feature, b.feature)
    np.testing.assert_array_equal(a.threshold, b.threshold)
    np.testing.assert_allclose(a.values, b.values, rtol=1e-5, atol=1e-8)


# --- pair counts or passes over the rows -------------------------------------------------------

CASES = ["plain", "whole weights", "fractional weights", "abstain", "learn", "3 classes", "16-bit"]


@cache
def case(name: str) -> tuple[Data, dict[str, Any]]:
    if name == "3 classes":
        return random_data(3).with_weights(), {}
    if name == "16-bit":
        return regression(600, 3, seed=3), {"max_bins": None}
    data = regression(250)
    if name in ("abstain", "learn"):
        return Data(data.X, data.y).with_missing().with_weights(), {"missing": name}
    return Data(data.X, data.y, weights_of(name.split()[0], 250)), {}


def fit_case(name: str, memory: int, **more: Any) -> Any:
    data, params = case(name)
    make = BoostingClassifier if name == "3 classes" else BoostingRegressor
    params = {"loss": "squared", "n_estimators": 80, **params, **more}
    at_once = patch.object(gram, "visits_before_table", lambda *_: 0)
    with patch.object(gram, "MEMORY", memory), at_once:
        return make(**plain(params)).fit(data.X, data.y, data.weights)


def table_bytes(name: str) -> int:
    """Bytes of one feature's pair counts."""
    data, params = case(name)
    widest = max(len(np.unique(x[~np.isnan(x)])) for x in data.X.T)
    width = 1 + (widest if params.get("max_bins", 255) is None else min(widest, 255))
    return width * width * data.X.shape[1] * (2 if data.weights is None else 8)


@pytest.mark.parametrize("name", CASES)
def test_pair_counts_change_nothing(name):
    without, with_tables = fit_case(name, 0), fit_case(name, 2**30)
    assert with_tables.model_.fingerprint() == without.model_.fingerprint()
    np.testing.assert_array_equal(with_tables.history_.training, without.history_.training)


@pytest.mark.parametrize("name", CASES)
def test_tables_that_are_made_late_change_nothing(name):
    at_once = fit_case(name, 2**30)
    for visits in (2, 1_000):
        data, params = case(name)
        make = BoostingClassifier if name == "3 classes" else BoostingRegressor
        late = make(**plain({"loss": "squared", "n_estimators": 80, **params}))
        with patch.object(gram, "visits_before_table", lambda *_, n=visits: n):
            late.fit(data.X, data.y, data.weights)
        assert late.model_.fingerprint() == at_once.model_.fingerprint()
        np.testing.assert_array_equal(late.history_.training, at_once.history_.training)


def test_tables_are_made_where_the_rounds_are_worth_them():
    def visits(n: int, n_rounds: int, p: int = 28) -> int:
        codes = Codes(None, n, p, 256, no_counts(p, 256))
        return gram.visits_before_table(codes, n, n_rounds)

    assert visits(100_000, 1_000) == visits(1_000_000, 1_000) == 0
    assert visits(1_000, 1_000) > 36
    assert 0 < visits(1_000_000, 20) < 20
    assert visits(1_000, 100_000) == 0


@pytest.mark.parametrize("n_tables", [1, 2])
@pytest.mark.parametrize("name", CASES)
def test_a_budget_for_some_of_the_pair_counts_changes_nothing(name, n_tables):
    some = fit_case(name, n_tables * table_bytes(name) + 1)
    assert len(some.model_.tables) > n_tables  # of the features used
    assert some.model_.fingerprint() == fit_case(name, 0).model_.fingerprint()


@pytest.mark.parametrize("memory", [0, 30_000, 2**30], ids=["no", "some", "all"])
@pytest.mark.parametrize("name", ["plain", "abstain", "learn", "3 classes"])
def test_rounds_in_blocks_are_those_one_by_one(name, memory, monkeypatch):
    """With tables of no, some and all features: a block ends where one is missing."""
    blocks = fit_case(name, memory)
    monkeypatch.setattr(Gram, "rounds", one_by_one)
    single = fit_case(name, memory)
    assert blocks.model_.fingerprint() == single.model_.fingerprint()
    np.testing.assert_array_equal(blocks.history_.training, single.history_.training)
    np.testing.assert_array_equal(blocks.errors_, single.errors_)
    assert blocks.stop_reason_ == single.stop_reason_


@pytest.mark.parametrize(
    ("y", "reason"),
    [(np.zeros(40), "no stump lowers"), (np.repeat([0.0, 1.0], 20), "below their resolution")],
)
def test_blocks_end_where_rounds_one_by_one_do(y, reason, monkeypatch):
    X = np.arange(40.0)[:, None]
    found = fit(Data(X, y), n_estimators=5_000)
    monkeypatch.setattr(Gram, "rounds", one_by_one)
    single = fit(Data(X, y), n_estimators=5_000)
    assert reason in found.stop_reason_
    assert (found.stop_reason_, found.n_estimators_) == (single.stop_reason_, single.n_estimators_)


def test_pair_counts_change_nothing_on_the_reference_engine(engine):
    names = ["fractional weights", "learn", "3 classes"]
    for name in names:
        few = fit_case(name, 0, n_estimators=40)
        assert (
            few.model_.fingerprint() == fit_case(name, 2**30, n_estimators=40).model_.fingerprint()
        )


@pytest.mark.parametrize("name", CASES)
def test_fifty_rounds_are_the_first_fifty_of_five_hundred(name):
    long, short = fit_case(name, 2**30, n_estimators=500), fit_case(name, 2**30, n_estimators=50)
    assert len(short.model_.rounds) == 50
    assert len(long.model_.rounds) == 500
    assert long.model_.first(50) == short.model_


# --- residuals ---------------------------------------------------------------------------------


@pytest.mark.parametrize("weights", ["none", "whole", "fractional"])
@pytest.mark.parametrize("missing", ["abstain", "learn"])
@pytest.mark.parametrize("memory", [0, 2**30])
def test_sums_are_those_of_the_residuals_in_every_round(memory, missing, weights, monkeypatch):
    data = regression(200).with_missing()
    engine, w = CpuEngine(1), weights_of(weights, 200)
    binned = bin_rows(engine, Rows(data.X, data.y, w), None, 40, n_ranges=1)
    p, codes = data.X.shape[1], binned.matrix.codes
    none = np.zeros(p, dtype=np.int64)
    constraints = SplitConstraints(missing == "learn", False, none, p, 0, none > 0)
    q = integer_weights(binned.weights, WEIGHT_BITS, engine)
    targets = integer_targets(binned.target[None, :], q, engine)
    monkeypatch.setattr(gram, "MEMORY", memory)
    strategy = Gram(engine, codes, targets, StumpSearch(binned.matrix, constraints), 0.3, 100)
    residual = targets.residuals[0].copy()
    columns = np.array([engine.column(codes, f) for f in range(p)])
    for _ in range(100):
        stump = strategy.best()
        strategy.follow(stump)
        leaf = (columns[stump.feature] > stump.bin).astype(int)
        leaf[columns[stump.feature] == codes.width - 1] = stump.missing_leaf
        residual -= np.rint(stump.values[0, leaf] / targets.quantum).astype(np.int64)
        direct = np.zeros(strategy.S.shape[1:], dtype=np.int64)
        for f in range(p):
            np.add.at(direct[f], columns[f], residual if q is None else residual * q)
        np.testing.assert_array_equal(strategy.S[0], direct)
    y = targets.shift + targets.quantum * (targets.start[0] + targets.residuals[0])
    np.testing.assert_allclose(y, data.y, rtol=0.0, atol=CLOSE[weights])
    tabled = (strategy.tables.tables.slots >= 0) == (strategy.visits > 0)
    assert tabled.all() if memory else (strategy.tables.tables.slots < 0).all()


@pytest.mark.parametrize("weights", ["none", "whole", "fractional"])
def test_history_is_the_mean_squared_error_of_staged_predictions(engine, weights):
    data = regression().with_missing()
    data = Data(data.X, data.y, weights_of(weights, 120))
    found = fit(data, n_estimators=200)
    assert len(found.history_.training) == 200
    for loss, staged in zip(found.history_.training, found.staged_predict(data.X), strict=True):
        error = np.average((data.y - staged) ** 2, weights=data.weights)
        assert loss == pytest.approx(error, rel=CLOSE[weights])


@pytest.mark.parametrize("seed", [6, 16, 24, 30])
@pytest.mark.parametrize("scale", [1.0, 1e-3, 1e5])
def test_the_last_stage_is_the_prediction_to_the_last_bit(seed, scale):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(500, 4))
    data = Data(X, (X[:, 0] + rng.normal(size=500)) * scale)
    found = fit(data, n_estimators=300, learning_rate=0.5)
    *_, last = found.staged_predict(X)
    np.testing.assert_array_equal(last, found.predict(X))
    chosen = list(found.staged_predict(X, [10, 200, 300]))
    np.testing.assert_array_equal(chosen[-1], last)


def test_leaf_values_are_multiples_of_a_power_of_two():
    found = fit(regression(), n_estimators=200)
    spread = np.ptp(regression().y) / 2
    quantum = 2.0 ** (np.frexp(spread)[1] - 40)
    units = found.model_.rounds.values / quantum
    np.testing.assert_array_equal(units, np.rint(units))


# --- sizes and extremes ------------------------------------------------------------------------


def test_twenty_thousand_rounds_run_and_the_model_stays_small():
    found = fit(regression(400, 5), n_estimators=20_000, learning_rate=0.01)
    assert found.n_estimators_ == 20_000
    assert (np.diff(found.history_.training) <= 0.0).all()
    assert len(pickle.dumps(found)) < 200 * 20_000
    again = pickle.loads(pickle.dumps(found))
    assert again.model_ == found.model_


def test_rounds_end_when_nothing_is_left_to_fit():
    X = np.arange(20.0)[:, None]
    found = fit(Data(X, 3.0 * (X[:, 0] > 7)), learning_rate=1.0)
    assert found.n_estimators_ == 1
    assert "stump" in found.stop_reason_
    np.testing.assert_allclose(found.predict(X), 3.0 * (X[:, 0] > 7), atol=1e-11)


@pytest.mark.parametrize("offset", [1e9, -1e12])
def test_a_huge_offset_moves_the_intercept_alone(offset):
    data = regression()
    moved = Data(data.X, data.y + offset)
    plain = fit(Data(data.X, moved.y - offset))  # rounded alike
    found = fit(moved)
    np.testing.assert_array_equal(found.model_.rounds.feature, plain.model_.rounds.feature)
    np.testing.assert_array_equal(found.model_.rounds.threshold, plain.model_.rounds.threshold)
    np.testing.assert_allclose(
        found.model_.rounds.values, plain.model_.rounds.values, rtol=1e-6, atol=1e-9
    )
    np.testing.assert_allclose(
        found.predict(data.X) - offset, plain.predict(data.X), atol=1e-15 * abs(offset)
    )
    np.testing.assert_allclose(found.history_.training, plain.history_.training, rtol=1e-6)


@pytest.mark.parametrize("scale", [1e-12, 1e-120, 1e120])
def test_a_scale_scales_the_model(scale):
    data = regression()
    plain, found = fit(data), fit(Data(data.X, data.y * scale))
    np.testing.assert_array_equal(found.model_.rounds.feature, plain.model_.rounds.feature)
    np.testing.assert_allclose(found.predict(data.X), plain.predict(data.X) * scale, rtol=1e-8)


@pytest.mark.parametrize("power", [-40, 40])
def test_a_power_of_two_scales_the_model_exactly(power):
    data = regression()
    plain, found = fit(data), fit(Data(data.X, data.y * 2.0**power))
    np.testing.assert_array_equal(
        found.model_.rounds.values, plain.model_.rounds.values * 2.0**power
    )


@pytest.mark.parametrize("value", [0.0, 0.1, -1e300, 1e-300])
@pytest.mark.parametrize("weights", ["none", "fractional"])
def test_a_constant_target_is_predicted_exactly_without_a_round(value, weights):
    data = regression()
    found = fit(Data(data.X, np.full(120, value), weights_of(weights, 120)))
    assert found.n_estimators_ == 0
    np.testing.assert_array_equal(found.predict(data.X), value)


def test_two_values_are_fitted_like_any_others():
    data = regression()
    y = np.where(data.y > 0, 7.25, -3.5)
    truth = PlainL2Boost(100, 0.3).fit(data.X, y[:, None], None)
    assert_same_rounds(fit(Data(data.X, y), n_estimators=100, max_bins=None), truth)


def test_leaves_of_one_row_are_fitted_like_any_others():
    rng = np.random.default_rng(4)
    X, y = np.zeros((50, 6)), rng.normal(size=50)
    X[np.arange(6), np.arange(6)] = 1.0  # a threshold of feature f cuts off row f
    y[:6] += [50.0, -40.0, 30.0, -20.0, 10.0, -5.0]
    truth = PlainL2Boost(40, 0.5).fit(X, y[:, None], None)
    assert_same_rounds(fit(Data(X, y), n_estimators=40, learning_rate=0.5, max_bins=None), truth)


def test_an_integer_weight_is_that_many_rows_to_the_last_bit():
    data = regression()
    repeats = np.random.default_rng(5).integers(1, 5, size=120)
    weighted = fit(Data(data.X, data.y, repeats.astype(float)), max_bins=None)
    repeated = fit(Data(data.X.repeat(repeats, axis=0), data.y.repeat(repeats)), max_bins=None)
    assert weighted.model_ == repeated.model_


@pytest.mark.parametrize("weights", ["none", "fractional"])
def test_a_row_of_weight_zero_is_as_if_absent(weights):
    data = regression()
    w = np.ones(120) if weights == "none" else weights_of(weights, 120)
    w[::7] = 0.0
    kept = w > 0.0
    found, expected = fit(Data(data.X, data.y, w)), fit(Data(data.X[kept], data.y[kept], w[kept]))
    assert found.model_ == expected.model_


@pytest.mark.parametrize("weights", [1e-300, 1e300])
def test_extreme_weights_of_one_size_weigh_nothing(weights):
    data = regression()
    w = np.random.default_rng(6).uniform(0.5, 2.0, size=120)
    a, b = fit(Data(data.X, data.y, w)), fit(Data(data.X, data.y, w * weights))
    np.testing.assert_array_equal(a.model_.rounds.feature, b.model_.rounds.feature)
    np.testing.assert_allclose(a.predict(data.X), b.predict(data.X), rtol=1e-6, atol=1e-8)
