"""One model of any loss, bit for bit: over engines, namespaces, devices, threads and row orders."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import cycle, product
from typing import Any

import numpy as np
import pytest

from ensemble_gpu import (
    AdaBoostClassifier,
    BoostingClassifier,
    BoostingRegressor,
    use_engine,
)
from ensemble_gpu.boosting.integers import FINE_ROWS
from ensemble_gpu.boosting.steps import STEPS
from ensemble_gpu.losses import CLASSIFICATION, REGRESSION
from tests.boosters import plain
from tests.datasets import ADVERSARIAL, Data, random_data
from tests.places import DEVICE, NARROW, Place

ROUNDS = 6


@dataclass(frozen=True)
class Case:
    """What is fitted to what; `n_classes` is None for a regression."""

    loss: str
    step: str
    n_classes: int | None
    stump: str = "real"
    weighted: bool = False
    holes: str = "none"
    sampled: bool = False
    n: int = 120
    p: int = 5

    def __str__(self) -> str:
        words = [self.loss, self.step, self.stump if self.n_classes else "", self.holes]
        words += [f"{self.n_classes} classes" if self.n_classes else "regression"]
        words += ["weighted"] * self.weighted + ["sampled"] * self.sampled
        return ", ".join(word for word in words if word not in ("", "none"))

    def estimator(self, **more: Any) -> Any:
        missing = "abstain" if self.holes == "none" else self.holes
        params = {"n_estimators": ROUNDS, "missing": missing, "learning_rate": 0.5, **more}
        if self.loss == "logit":
            return AdaBoostClassifier(variant="logit", **params)
        if self.sampled:
            params = {"subsample": 0.5, "max_features": 3, "random_state": 7, **params}
        if self.n_classes is None:
            return BoostingRegressor(self.loss, **plain(params, step=self.step))
        return BoostingClassifier(self.loss, **plain(params, step=self.step, stump=self.stump))


@cache
def make(case: Case) -> Data:
    data = random_data(case.n_classes or 2, n=case.n, p=case.p)
    if case.n_classes is None:  # positive, skewed, float32 values
        y = np.exp(data.X[:, 0] - 0.5 * data.X[:, 1] + data.y).astype(np.float32)
        data = Data(data.X, y.astype(np.float64))
    data = data.with_weights() if case.weighted else data
    return data if case.holes == "none" else data.with_missing()


def fit(case: Case, **more: Any) -> Any:
    data = make(case)
    return case.estimator(**more).fit(data.X, data.y, data.weights)


@cache
def standard(case: Case) -> str:
    """Fingerprint on the CPU engine from a C-ordered float64 NumPy array, one thread."""
    found = fit(case, n_jobs=1)
    assert found.engine_ == "cpu"
    assert found.n_estimators_ > 0
    return found.model_.fingerprint()


def _allowed(loss: Any, step: str) -> bool:
    return {"newton": loss.has_hessian, "leaf": loss.has_leaf_step}.get(step, True)


def _cases() -> list[Case]:
    """Every loss, step and kind of stump; weights, holes and sampling in turn."""
    variety = cycle(product([False, True], ["none", "abstain", "learn"], [False, False, True]))
    cases = []
    for name, loss in CLASSIFICATION.items():
        for step, k, stump in product(STEPS, [2, 3], ["real", "discrete"]):
            if _allowed(loss, step):
                cases.append(Case(name, step, k, stump, *next(variety)))
    for name, loss in REGRESSION.items():
        for step, _ in product(STEPS, range(2)):
            if _allowed(loss, step):
                cases.append(Case(name, step, None, "real", *next(variety)))
    for k in (2, 3):
        cases.append(Case("logit", "newton", k, "real", k == 2, "learn"))
    return cases


CASES = _cases()
# One of each loss, with everything at once; the steps in turn.
FEW = [
    Case("logistic", "newton", 2, "real", True, "abstain"),
    Case("logistic", "line_search", 3, "discrete", True, "learn", True),
    Case("exponential", "line_search", 2, "real", True, "learn"),
    Case("exponential", "constant", 3, "real", False, "abstain", True),
    Case("squared", "newton", 2, "real", True, "learn"),
    Case("truncated_squared", "newton", 3, "discrete", True, "abstain"),
    Case("hinge", "line_search", 2, "real", True, "abstain", True),
    Case("logit", "newton", 2, "real", True, "learn"),
    Case("squared", "constant", None, "real", True, "abstain"),
    Case("absolute", "line_search", None, "real", True, "learn"),
    Case("huber", "newton", None, "real", True, "abstain", True),
    Case("quantile", "line_search", None, "real", False, "learn", True),
    Case("poisson", "line_search", None, "real", True, "abstain"),
]


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=str)
def test_reference_engine_gives_the_model_of_the_cpu_engine(case):
    with use_engine("reference"):
        found = fit(case)
    assert found.engine_ == "reference"
    assert found.model_.fingerprint() == standard(case)


@pytest.mark.slow
@pytest.mark.parametrize("case", FEW, ids=str)
def test_every_namespace_and_device_gives_the_same_model(place: Place, case):
    data = make(case)
    X = place.put(data.X)
    found = case.estimator().fit(X, place.put(data.y), place.put(data.weights))
    assert found.engine_ == {"numpy": "cpu", "cupy": "cuda"}.get(place.name, "reference")
    assert found.model_.fingerprint() == standard(case)
    place.check(found.predict(X), "float64" if case.n_classes is None else "int64")


@pytest.mark.parametrize("place", NARROW, ids=str)
def test_a_device_without_wide_types_gives_the_same_model(place):
    case = Case("logistic", "newton", 2)
    data = make(case)
    X, y = place.put(data.X.astype(np.float32)), place.put(data.y.astype(np.int32))
    found = case.estimator(device="cpu").fit(X, y)
    assert found.model_.fingerprint() == standard(case)


LAYOUTS = {
    "Fortran order": np.asfortranarray,
    "float32": lambda X: X.astype(np.float32),
    "non-contiguous": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
}


@pytest.mark.parametrize(("case", "layout"), list(zip(FEW, cycle(LAYOUTS))), ids=str)
def test_memory_layout_and_float_width_do_not_change_the_model(case, layout):
    data = make(case)
    found = case.estimator().fit(LAYOUTS[layout](data.X), data.y, data.weights)
    assert found.model_.fingerprint() == standard(case)


def test_a_float32_target_is_read_as_its_float64_copy():
    for case in [case for case in FEW if case.n_classes is None]:
        data = make(case)
        found = case.estimator().fit(data.X, data.y.astype(np.float32), data.weights)
        assert found.model_.fingerprint() == standard(case)


# Few rows have 30 bits a gradient and an integer weight (Fine), many 18 bits (Packed) and, on the
# CPU engine, several blocks.
LARGE = [
    Case("logistic", "newton", 2, n=33_000, p=3),
    Case("logistic", "line_search", 2, "discrete", True, "learn", n=33_000, p=3),
    Case("logistic", "newton", 3, "real", True, "abstain", True, n=33_000, p=3),
    Case("squared", "newton", 3, "real", True, "learn", n=33_000, p=3),
    Case("poisson", "line_search", None, "real", True, "abstain", n=33_000, p=3),
    Case("huber", "constant", None, "real", False, "none", True, n=33_000, p=3),
]
MIDDLE = [
    Case("logistic", "line_search", 3, "real", True, "learn", n=FINE_ROWS, p=9),
    Case("squared", "newton", None, "real", True, "abstain", n=FINE_ROWS, p=9),
]


@pytest.mark.slow
@pytest.mark.parametrize("n_jobs", [2, 4])
@pytest.mark.parametrize("case", [*LARGE, *MIDDLE], ids=str)
def test_the_model_is_the_same_for_any_thread_count(case, n_jobs):
    assert fit(case, n_jobs=n_jobs).model_.fingerprint() == standard(case)


@pytest.mark.parametrize("case", LARGE, ids=str)
def test_the_reference_engine_agrees_on_many_rows(case):
    expected = standard(case)
    with use_engine("reference"):
        assert fit(case).model_.fingerprint() == expected


def test_a_last_block_without_a_drawn_row_is_not_left_as_it_was():
    n = 2**15 + 1  # a block of the CPU engine and one row; the reference engine has one block
    data = random_data(n=n, p=2)
    estimator = BoostingClassifier(n_estimators=12, subsample=0.5, random_state=1, max_depth=1)
    found = estimator.fit(data.X, data.y).model_.fingerprint()
    with use_engine("reference"):
        assert estimator.fit(data.X, data.y).model_.fingerprint() == found


def test_a_device_agrees_on_many_rows():
    case, place = LARGE[1], DEVICE
    data = make(case)
    found = case.estimator().fit(*map(place.put, (data.X, data.y, data.weights)))
    assert found.model_.fingerprint() == standard(case)


def test_few_and_many_rows_pick_the_same_stumps():
    # 15,000 rows once are Fine, twice they are Packed: coarser gradients, the same choice.
    case = Case("logistic", "newton", 2, n=15_000, p=3)
    X, y = np.round(make(case).X, 1), make(case).y
    fine = case.estimator().fit(X, y).model_.rounds
    packed = case.estimator().fit(X.repeat(2, axis=0), y.repeat(2)).model_.rounds
    np.testing.assert_array_equal(fine.feature, packed.feature)
    np.testing.assert_array_equal(fine.threshold, packed.threshold)
    np.testing.assert_allclose(fine.values, packed.values, rtol=1e-4, atol=1e-6)


NOT_SAMPLED = [case for case in FEW if not case.sampled]


@pytest.mark.parametrize("case", [*NOT_SAMPLED, LARGE[0], LARGE[4]], ids=str)
def test_the_order_of_the_rows_does_not_change_the_model(case):
    data = make(case)
    order = np.random.default_rng(10).permutation(len(data.y))
    weights = None if data.weights is None else data.weights[order]
    found = case.estimator().fit(data.X[order], data.y[order], weights)
    assert found.model_.fingerprint() == standard(case)


WHOLE = [
    Case("logistic", "newton", 2),
    Case("logistic", "line_search", 3, "discrete", holes="learn"),
    Case("exponential", "line_search", 2),
    Case("squared", "newton", 3),
    Case("truncated_squared", "newton", 2, holes="abstain"),
    Case("hinge", "line_search", 3),
    Case("logit", "newton", 2),
    Case("squared", "newton", None),
    Case("absolute", "line_search", None),
    Case("huber", "newton", None),
    Case("quantile", "constant", None),
    Case("poisson", "newton", None, holes="learn"),
]


@pytest.mark.parametrize("case", WHOLE, ids=str)
def test_a_row_of_weight_three_is_three_rows(case):
    data = make(case)
    repeats = np.random.default_rng(14).integers(1, 4, size=case.n)
    weighted = case.estimator().fit(data.X, data.y, repeats.astype(float))
    repeated = case.estimator().fit(data.X.repeat(repeats, axis=0), data.y.repeat(repeats))
    a, b = weighted.model_, repeated.model_
    np.testing.assert_array_equal(a.rounds.feature, b.rounds.feature)
    np.testing.assert_array_equal(a.rounds.threshold, b.rounds.threshold)
    np.testing.assert_allclose(a(data.X), b(data.X), rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("case", FEW, ids=str)
def test_a_row_of_weight_zero_is_as_if_absent(case):
    if case.sampled or not case.weighted:
        case = Case(case.loss, case.step, case.n_classes, case.stump, True, case.holes)
    data = make(case)
    kept = data.weights > 0.0
    found = case.estimator().fit(data.X[kept], data.y[kept], data.weights[kept])
    assert found.model_.fingerprint() == standard(case)


@pytest.mark.parametrize("case", FEW, ids=str)
def test_six_rounds_are_the_first_six_of_thirty(engine, case):
    long = fit(case, n_estimators=30).model_
    assert len(long.rounds) > ROUNDS
    assert long.first(ROUNDS).fingerprint() == standard(case)


@pytest.mark.parametrize("case", FEW, ids=str)
def test_watching_does_not_change_the_model(case):
    seen = []
    found = fit(case, callbacks=[seen.append])
    assert len(seen) == found.n_estimators_
    assert found.model_.fingerprint() == standard(case)


@pytest.mark.parametrize("case", FEW, ids=str)
def test_the_last_stage_is_the_prediction_to_the_last_bit(case):
    X, found = make(case).X, fit(case, n_estimators=40)
    *_, last = found.model_.staged(X)
    np.testing.assert_array_equal(last, found.model_(X))


ROUGH = [
    Case("logistic", "newton", 2),
    Case("truncated_squared", "line_search", 2, "discrete", holes="learn"),
    Case("exponential", "constant", 2, holes="learn"),
    Case("squared", "newton", 2),
    Case("hinge", "line_search", 2),
]


@pytest.mark.slow
@pytest.mark.parametrize("case", ROUGH, ids=str)
@pytest.mark.parametrize("name", ADVERSARIAL)
def test_adversarial_data_gives_one_finite_model_on_all_engines(name, case):
    data = ADVERSARIAL[name]()
    found = case.estimator(n_estimators=20, callbacks=[lambda info: None]).fit(
        data.X, data.y, data.weights
    )
    for array in (
        found.model_.rounds.values, found.model_.intercept, found.errors_, found.alphas_,
        found.feature_importances_, found.history_.training, found.decision_function(data.X),
        found.predict_proba(data.X), found.predict_log_proba(data.X),
    ):  # fmt: skip
        assert np.isfinite(array).all()
    assert np.abs(found.decision_function(data.X)).max() < 1e3
    with use_engine("reference"):
        again = case.estimator(n_estimators=20).fit(data.X, data.y, data.weights)
    assert again.model_ == found.model_


def test_other_parameters_give_other_models():
    assert len({standard(case) for case in FEW}) == len(FEW)


# --- torch and JAX -----------------------------------------------------------------------------


@pytest.mark.interop
@pytest.mark.parametrize("case", [*FEW, LARGE[1]], ids=str)
def test_torch_and_jax_give_the_model_of_numpy_and_get_their_own_arrays(library, case):
    data = make(case)
    X = library.put(data.X)
    found = case.estimator().fit(X, library.put(data.y), library.put(data.weights))
    assert found.engine_ == "cpu"
    assert found.model_.fingerprint() == standard(case)
    predicted, here = found.predict(X), fit(case).predict(data.X)
    library.check(predicted, "float64" if case.n_classes is None else "int64")
    np.testing.assert_allclose(library.host(predicted), here, rtol=1e-12)
    library.check(next(found.staged_predict(X)), "float64" if case.n_classes is None else "int64")


@pytest.mark.interop
@pytest.mark.parametrize("case", FEW, ids=str)
def test_the_reference_engine_on_torch_and_jax_gives_the_model_of_numpy(library, case):
    data = make(case)
    with use_engine("reference"):
        found = case.estimator().fit(*map(library.put, (data.X, data.y, data.weights)))
    assert found.engine_ == "reference"
    assert found.model_.fingerprint() == standard(case)
