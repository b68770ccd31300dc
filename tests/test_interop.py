"""torch and JAX: the model of NumPy, answers in their namespace, device and data type.

Imports are inside the tests: selected without the libraries, these tests fail, they do not skip.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from ensemble_gpu import AdaBoostClassifier, BoostingRanker, metrics, use_engine
from tests.datasets import ADVERSARIAL, Data, fit, random_data
from tests.libraries import Jax
from tests.ranking import ranking

pytestmark = pytest.mark.interop

VARIANTS = ["real", "discrete", "gentle"]


@pytest.mark.parametrize("holes", ["none", "abstain", "learn"])
@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
@pytest.mark.parametrize(("variant", "n_classes"), list(product(VARIANTS, [2, 5])))
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_model_is_that_of_numpy(library, dtype, variant, n_classes, weighted, holes):
    data = random_data(n_classes)
    data = data.with_weights() if weighted else data
    data = data if holes == "none" else data.with_missing()
    params = {"variant": variant, "missing": "abstain" if holes == "none" else holes}
    X, y = library.put(data.X.astype(dtype)), library.put(data.y)
    found = AdaBoostClassifier(n_estimators=20, **params).fit(X, y, library.put(data.weights))
    assert found.engine_ == "cpu"
    assert found.model_.fingerprint() == fit(data, **params).model_.fingerprint()


@pytest.mark.parametrize(("variant", "n_classes"), [("real", 2), ("discrete", 3)])
def test_the_reference_engine_runs_on_the_library_itself(library, variant, n_classes):
    data = random_data(n_classes, n=80, p=3).with_missing().with_weights()
    with use_engine("reference"):
        found = AdaBoostClassifier(n_estimators=5, variant=variant)
        found.fit(library.put(data.X), library.put(data.y), library.put(data.weights))
        assert found.engine_ == "reference"
    expected = fit(data, n_estimators=5, variant=variant)
    assert found.model_.fingerprint() == expected.model_.fingerprint()


@pytest.mark.parametrize("name", ADVERSARIAL)
def test_adversarial_data_give_the_model_of_numpy(library, name):
    data = ADVERSARIAL[name]()
    found = AdaBoostClassifier(n_estimators=20)
    found.fit(library.put(data.X), library.put(data.y), library.put(data.weights))
    assert found.model_.fingerprint() == fit(data).model_.fingerprint()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_outputs_have_the_namespace_device_and_dtype_of_x(library, dtype, n_classes):
    data = random_data(n_classes, n=60)
    X, y = library.put(data.X.astype(dtype)), library.put(data.y)
    found = AdaBoostClassifier(n_estimators=6).fit(X, y)
    here = fit(Data(data.X.astype(dtype), data.y), n_estimators=6)
    for method in ("decision_function", "predict_proba", "predict_log_proba"):
        answer = getattr(found, method)(X)
        library.check(answer, dtype)
        expected = getattr(here, method)(data.X.astype(dtype))
        np.testing.assert_allclose(library.host(answer), expected, rtol=1e-6)
        assert tuple(answer.shape) == expected.shape
    library.check(found.predict(X), "int64")
    np.testing.assert_array_equal(library.host(found.predict(X)), here.predict(data.X))
    for method in ("staged_decision_function", "staged_predict_proba"):
        library.check(next(getattr(found, method)(X)), dtype)
    library.check(next(found.staged_predict(X)), "int64")
    library.check(found.model_(X), "float64")
    assert found.score(X, y) == pytest.approx(here.score(data.X, data.y), rel=1e-6)


def test_predict_is_the_argmax_of_proba(library):
    data = random_data(4)
    found = AdaBoostClassifier(n_estimators=30).fit(library.put(data.X), library.put(data.y))
    for dtype in (np.float32, np.float64):
        X = library.put(random_data(4, n=2000, seed=9).X.astype(dtype))
        proba = library.host(found.predict_proba(X))
        np.testing.assert_array_equal(library.host(found.predict(X)), proba.argmax(axis=1))


def test_a_model_trained_there_predicts_on_numpy(library):
    data = random_data()
    found = AdaBoostClassifier(n_estimators=6).fit(library.put(data.X), library.put(data.y))
    here = fit(data, n_estimators=6)
    np.testing.assert_array_equal(found.predict_proba(data.X), here.predict_proba(data.X))


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8", "bool"])
def test_integer_features_and_labels(library, dtype):
    data = random_data()
    X = np.clip(np.round(2 * data.X + 8), 0, 60).astype(dtype)
    found = AdaBoostClassifier(n_estimators=8)
    found.fit(library.put(X), library.put(data.y.astype(np.int32)))
    assert found.model_ == fit(Data(X, data.y), n_estimators=8).model_


def test_string_labels_with_features_of_the_library(library):
    data = random_data()
    labels = np.where(data.y == 1, "yes", "no")
    found = AdaBoostClassifier(n_estimators=4).fit(library.put(data.X), labels)
    assert set(found.predict(library.put(data.X))) == {"no", "yes"}


def test_numpy_labels_are_refused_with_a_way_out(library):
    data = random_data()
    with pytest.raises(ValueError, match=r"numpy on cpu. Move y"):
        AdaBoostClassifier().fit(library.put(data.X), data.y)


def test_early_stopping_gives_the_model_of_numpy(library):
    data = random_data()
    params = {"n_estimators": 40, "early_stopping": True, "random_state": 0}
    found = AdaBoostClassifier(**params).fit(library.put(data.X), library.put(data.y))
    assert found.model_ == fit(data, **params).model_


def test_validation_rows_of_the_library(library):
    data, other = random_data(), random_data(seed=1)
    found = AdaBoostClassifier(n_estimators=5)
    found.fit(
        library.put(data.X), library.put(data.y),
        X_val=library.put(other.X), y_val=library.put(other.y),
    )  # fmt: skip
    here = AdaBoostClassifier(n_estimators=5)
    here.fit(data.X, data.y, X_val=other.X, y_val=other.y)
    np.testing.assert_allclose(found.validation_loss_, here.validation_loss_, rtol=1e-9)


def test_a_torch_tensor_that_needs_a_gradient_and_a_strided_one():
    import torch

    data = random_data()
    X = torch.asarray(data.X, dtype=torch.float64).requires_grad_()
    y = torch.asarray(data.y)
    expected = fit(data, n_estimators=5).model_
    assert AdaBoostClassifier(n_estimators=5).fit(X, y).model_ == expected
    strided = torch.asarray(np.ascontiguousarray(data.X.T)).T
    assert AdaBoostClassifier(n_estimators=5).fit(strided, y).model_ == expected


def test_torch_half_precision_is_read_exactly():
    import torch

    data = random_data()
    X = torch.asarray(np.round(data.X, 1), dtype=torch.bfloat16)
    found = AdaBoostClassifier(n_estimators=5).fit(X, torch.asarray(data.y))
    wide = X.to(torch.float64).numpy()
    assert found.model_ == fit(Data(wide, data.y), n_estimators=5).model_


def test_jax_without_64_bit_numbers_gives_the_model_and_its_own_types():
    import jax
    import jax.numpy as jnp

    assert not jax.config.jax_enable_x64
    data = random_data(3)
    X, y = jnp.asarray(data.X.astype(np.float32)), jnp.asarray(data.y)
    found = AdaBoostClassifier(n_estimators=10).fit(X, y)
    assert found.model_ == fit(data, n_estimators=10).model_
    library = Jax()
    library.check(found.predict_proba(X), "float32")
    library.check(found.predict(X), "int32")
    library.check(found.decision_function(X), "float32")


@pytest.mark.parametrize(
    "parameters",
    [{"early_stopping": True, "metric": ["ndcg@5", "loss"]}, {"loss": "logistic"},
     {"loss": "lambda"}, {"variant": "rankboost"}, {"max_depth": 2}],
    ids=str,
)  # fmt: skip
def test_a_ranking_is_that_of_numpy_on_both_engines(library, parameters):
    X, y, qid = ranking(80, 5, missing=0.1)
    expected = BoostingRanker(n_estimators=4, **parameters).fit(X, y, qid=qid)
    rows, level, query = map(library.put, (X, y, qid))
    for engine in ("cpu", "reference"):
        with use_engine(engine):
            found = BoostingRanker(n_estimators=4, **parameters).fit(rows, level, qid=query)
        assert found.engine_ == engine
        assert found.model_.fingerprint() == expected.model_.fingerprint()
    library.check(found.predict(rows), "float64")
    for name in ("ndcg", "average_precision_by_query", "reciprocal_rank", "pairwise_error"):
        metric = getattr(metrics, name)
        score = metric(level, found.predict(rows), qid=query)
        assert score == metric(y, expected.predict(X), qid=qid)
