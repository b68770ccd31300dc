"""Models as C and as Python: the same bits, on every row that is near a threshold."""

from __future__ import annotations

import ctypes
import platform
import shutil
import subprocess
from functools import cache

import numpy as np
import pytest

from ensemble_gpu import AdditiveModel, to_code
from ensemble_gpu.export.source import source_of
from tests.export.adversarial import many_rows, stumps
from tests.export.fits import ESTIMATORS, THREE, fitted, rows, taken
from tests.export.rows import edge_rows

NAMES = list(ESTIMATORS)
DOUBLES = ctypes.POINTER(ctypes.c_double)


def of_name(name: str) -> str:
    return f"model_{NAMES.index(name)}"


@cache
def expected(name: str) -> tuple:
    """Rows, their scores by the model, and those of the rows that estimators take."""
    model = source_of(fitted(name)).model
    X = edge_rows(model, rows())
    return X, model(X), taken(name, X)


@pytest.fixture(scope="module")
def library(tmp_path_factory) -> ctypes.CDLL:
    """All models in one library; products and sums may be fused, where the processor can."""
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler")
    folder = tmp_path_factory.mktemp("code")
    files = [folder / f"{of_name(name)}.c" for name in NAMES]
    for file, name in zip(files, NAMES, strict=True):
        file.write_text(to_code(fitted(name), "c", name=of_name(name)))
    for name, model in stumps().items():
        files.append(folder / f"{name}.c")
        files[-1].write_text(to_code(model, "c", name=name))
    flags = ["-std=c99", "-O2", "-Wall", "-Wextra", "-Werror", "-pedantic", "-ffp-contract=fast"]
    flags += ["-march=native"] if platform.machine() == "x86_64" else []
    target = folder / "models.so"
    subprocess.run(["cc", *flags, "-shared", "-fPIC", *files, "-o", target, "-lm"], check=True)
    return ctypes.CDLL(str(target))


def run_c(function, X: np.ndarray, width: int) -> np.ndarray:
    out, X = np.full((len(X), width), np.nan), np.ascontiguousarray(X)
    for x, row in zip(X, out, strict=True):
        function(x.ctypes.data_as(DOUBLES), row.ctypes.data_as(DOUBLES))
    return out


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_c_has_the_bits_of_the_model(name, library):
    X, scores, _ = expected(name)
    found = run_c(getattr(library, f"{of_name(name)}_scores"), X, scores.shape[1])
    np.testing.assert_array_equal(found, scores)


@pytest.mark.parametrize("name", ["tables", "sum", "mean"])
def test_sums_of_terms_of_all_sizes_have_the_bits_of_the_model(name, library):
    model = stumps()[name]
    X = edge_rows(model, many_rows())
    found = run_c(getattr(library, f"{name}_scores"), X, model.n_outputs)
    np.testing.assert_array_equal(found, model(X))
    program: dict = {}
    exec(to_code(model, "python"), program)
    np.testing.assert_array_equal([program["scores"](x) for x in X.tolist()], model(X))


@pytest.mark.parametrize("name", NAMES)
def test_c_predicts_as_the_estimator(name, library):
    estimator, (X, scores, own) = fitted(name), expected(name)
    X, prefix = X[own], of_name(name)
    if not hasattr(estimator, "classes_"):
        found = run_c(getattr(library, f"{prefix}_prediction"), X, scores.shape[1])
        predicted = estimator.predict(X).reshape(len(X), -1)
        np.testing.assert_allclose(found, predicted, rtol=1e-14, atol=0.0)
        return
    K = len(estimator.classes_)
    found = run_c(getattr(library, f"{prefix}_probabilities"), X, K)
    np.testing.assert_allclose(found, estimator.predict_proba(X), rtol=1e-13, atol=1e-14)
    label = getattr(library, f"{prefix}_label")
    index = [label(x.ctypes.data_as(DOUBLES)) for x in np.ascontiguousarray(X)]
    np.testing.assert_array_equal(estimator.classes_[index], estimator.predict(X))
    names = (ctypes.c_char_p * K).in_dll(library, f"{prefix}_classes")
    assert [text.decode() for text in names] == [str(label) for label in estimator.classes_]


@pytest.mark.parametrize("name", NAMES)
def test_python_has_the_bits_of_the_model_and_predicts_as_the_estimator(name):
    estimator, (X, scores, own) = fitted(name), expected(name)
    program: dict = {}
    exec(to_code(estimator, "python"), program)
    np.testing.assert_array_equal([program["scores"](x) for x in X.tolist()], scores)
    X = X[own]
    if hasattr(estimator, "classes_"):
        assert [program["label"](x) for x in X.tolist()] == estimator.predict(X).tolist()
        found = [program["probabilities"](x) for x in X.tolist()]
        np.testing.assert_allclose(found, estimator.predict_proba(X), rtol=1e-13, atol=1e-14)
    else:
        found = [program["prediction"](x) for x in X.tolist()]
        np.testing.assert_allclose(found, estimator.predict(X), rtol=1e-14, atol=0.0)


def test_the_fits_have_every_kind_of_model_and_test():
    sources = [source_of(fitted(name)) for name in NAMES]
    forests = [s.model for s in sources if not isinstance(s.model, AdditiveModel)]
    assert {s.link for s in sources} == {
        "margins", "votes", "logistic", "linear", "shares", "identity", "log", "increasing",
    }  # fmt: skip
    assert any(forest.subsets.size for forest in forests)
    sides = [forest.nodes.missing_left[forest.nodes.feature >= 0] for forest in forests]
    assert np.concatenate(sides).any()
    assert not np.concatenate(sides).all()
    assert any(np.isinf(forest.nodes.threshold).any() for forest in forests)
    assert any(s.scale != 1.0 for s in sources)


def test_a_model_alone_has_scores_only():
    model = fitted("adaboost").model_
    program: dict = {}
    exec(to_code(model, "python"), program)
    assert program["scores"](rows()[0].tolist()) == model(rows()[:1])[0].tolist()
    assert "label" not in program
    assert "prediction" not in program
    assert "_label" not in to_code(model, "c")


def test_python_imports_math_alone():
    code = to_code(fitted("tree"), "python")
    assert [line for line in code.splitlines() if "import" in line] == ["import math"]
    assert repr(THREE[2]) in code


@pytest.mark.parametrize(
    ("language", "name", "message"),
    [
        ("java", "model", r"language must be one of \('c', 'python'\); got 'java'"),
        ("c", "my model", "name must be an identifier of ASCII letters and digits; got 'my model'"),
        ("c", "für", "name must be an identifier of ASCII letters and digits; got 'für'"),
        ("python", "for", "name must not be a keyword; got 'for'"),
    ],
)
def test_a_wrong_language_or_name_is_an_error(language, name, message):
    with pytest.raises(ValueError, match=message):
        to_code(fitted("adaboost"), language, name=name)
