"""Data of the recorded fits: the same bits on every platform.

Only integers, uniform numbers and operations that IEEE 754 rounds correctly: no sine, no normal
deviate, no matrix product. Nothing here may change, or every fingerprint changes with it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine


@dataclass(frozen=True)
class Data:
    """Rows of a fit; `validation` holds X_val, y_val and perhaps sample_weight_val.

    `ranking` is what a ranker compares: qid (and qid_val), or pairs and perhaps pair_weight.
    """

    X: Any
    y: np.ndarray | None
    weights: np.ndarray | None = None
    validation: dict[str, np.ndarray] = field(default_factory=dict)
    ranking: dict[str, np.ndarray] = field(default_factory=dict)


def bell(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Sums of four uniform numbers around 0, as float32 holds them."""
    a, b, c, d = rng.random((4, *shape))
    return (a + b + c + d - 2.0).astype(np.float32).astype(np.float64)


def classes(n: int, k: int, seed: int = 0) -> Data:
    """K overlapping classes, six features, the last with ties."""
    rng = np.random.default_rng(seed)
    y = rng.integers(k, size=n)
    y[:k] = np.arange(k)
    X = 0.6 * bell(rng, k, 6)[y] + bell(rng, n, 6)
    X[:, 1] = np.where((X[:, 2] > 0.0) == (y % 2 == 0), X[:, 1], X[:, 1] - 0.5)
    X[:, 5] = np.round(2.0 * X[:, 5])
    return Data(X.astype(np.float32).astype(np.float64), y)


def real(n: int, seed: int = 0) -> Data:
    """A real target of six features, the last with ties."""
    rng = np.random.default_rng(seed)
    X = bell(rng, n, 6)
    X[:, 5] = np.round(2.0 * X[:, 5])
    y = 2.0 * X[:, 0] + X[:, 1] * X[:, 2] + np.abs(X[:, 3]) + 0.4 * X[:, 5] + 0.5 * bell(rng, n)
    return Data(X, y.astype(np.float32).astype(np.float64))


def counts(n: int, seed: int = 0) -> Data:
    """Whole numbers from 0 on."""
    data = real(n, seed)
    return replace(data, y=np.floor(np.maximum(data.y + 1.0, 0.0)))


def mixed(n: int, k: int = 0, seed: int = 0) -> Data:
    """Two columns of numbers, one of five and one of nine categories, holes in the last.

    A real target, or with `k` one of k classes.
    """
    rng = np.random.default_rng(seed)
    X = bell(rng, n, 4)
    X[:, 2], X[:, 3] = rng.integers(5, size=n), rng.integers(9, size=n)
    five, nine = np.array([0.4, -1.1, 1.5, -0.3, 0.8]), bell(rng, 9)
    y = X[:, 0] + five[X[:, 2].astype(int)] + nine[X[:, 3].astype(int)]
    y = y * (1.0 + 0.3 * X[:, 1]) + 0.3 * bell(rng, n)
    X[rng.random(n) < 0.1, 3] = np.nan
    if not k:
        return Data(X, y.astype(np.float32).astype(np.float64))
    cuts = np.sort(y)[[n * i // k for i in range(1, k)]]
    return Data(X, np.searchsorted(cuts, y))


def frame(n: int, k: int = 0) -> Data:
    """The same in a frame: names, and a data type that says what is a category."""
    data = mixed(n, k)
    labels = np.array(["ash", "birch", "cedar", "elm", "fir"], dtype=object)
    tree = pd.Categorical(labels[data.X[:, 2].astype(int)])
    columns = {"a": data.X[:, 0], "b": data.X[:, 1], "tree": tree, "d": data.X[:, 3]}
    return replace(data, X=pd.DataFrame(columns))


def with_holes(data: Data, share: float = 0.15) -> Data:
    """NaN in a share of the cells; the first column keeps its values."""
    X = data.X.copy()
    hole = np.random.default_rng(11).random(X.shape) < share
    hole[:, 0] = False
    X[hole] = np.nan
    return replace(data, X=X)


def weighted(data: Data) -> Data:
    """Weights that are no whole numbers, some of them zero."""
    weights = 0.25 + 2.0 * np.random.default_rng(12).random(len(data.y))
    weights[::17] = 0.0
    return replace(data, weights=weights)


def repeated(data: Data) -> Data:
    """Weights from 0 to 4, whole."""
    weights = np.random.default_rng(13).integers(0, 5, size=len(data.y))
    return replace(data, weights=weights.astype(np.float64))


def with_validation(data: Data, n_val: int, weights_too: bool = False) -> Data:
    """The last rows are for validation."""
    val = {"X_val": data.X[-n_val:], "y_val": data.y[-n_val:]}
    if weights_too:
        val["sample_weight_val"] = 0.5 + np.random.default_rng(14).random(n_val)
    weights = None if data.weights is None else data.weights[:-n_val]
    return Data(data.X[:-n_val], data.y[:-n_val], weights, val)


def noisy(data: Data, share: float = 0.1) -> Data:
    """A share of the labels or targets drawn anew, so that more rounds soon do harm."""
    rng = np.random.default_rng(15)
    other = rng.permutation(data.y)
    return replace(data, y=np.where(rng.random(len(data.y)) < share, other, data.y))


def odd_columns(data: Data) -> Data:
    """A constant column, one without any value, one that repeats another, huge and tiny values."""
    X = data.X.copy()
    X[:, 1] = 1.5
    X[:, 2] = np.nan
    X[:, 3] = X[:, 0]
    X[:, 4] = X[:, 4] * 2.0**120
    X[:, 5] = X[:, 5] * 2.0**-130
    return replace(data, X=X)


def ranking(n: int, n_queries: int, seed: int = 0) -> Data:
    """Five levels of relevance in queries of unequal sizes, which come in any order."""
    data = real(n, seed)
    assert data.y is not None
    cuts = np.sort(data.y)[[n * i // 20 for i in (10, 15, 18, 19)]]
    qid = np.random.default_rng(17).integers(n_queries, size=n) * 7 % (3 * n_queries)
    return replace(data, y=np.searchsorted(cuts, data.y).astype(np.float64), ranking={"qid": qid})


def with_categories(data: Data) -> Data:
    """The last two columns are five and nine categories."""
    X, rng = data.X.copy(), np.random.default_rng(18)
    X[:, 4], X[:, 5] = rng.integers(5, size=len(X)), rng.integers(9, size=len(X))
    return replace(data, X=X)


def by_query_weighted(data: Data) -> Data:
    """Weights of queries, one of them zero."""
    weights = 0.25 + np.random.default_rng(19).random(len(np.unique(data.ranking["qid"])))
    weights[3] = 0.0
    return replace(data, weights=weights)


def ranking_with_validation(n: int, n_queries: int) -> Data:
    """A third of the queries is for validation, and so is a share of noise."""
    data = noisy(ranking(n, n_queries), 0.2)
    assert data.y is not None
    qid = data.ranking["qid"]
    held = qid % 3 == 0
    val = {"X_val": data.X[held], "y_val": data.y[held]}
    queries = {"qid": qid[~held], "qid_val": qid[held]}
    return Data(data.X[~held], data.y[~held], None, val, queries)


def preferences(n: int, n_pairs: int, weights_too: bool = False) -> Data:
    """Given pairs of rows, some of them the wrong way round; weights that are no whole numbers."""
    data, rng = noisy(real(n), 0.2), np.random.default_rng(20)
    assert data.y is not None
    pairs = rng.integers(n, size=(n_pairs, 2))
    pairs = pairs[data.y[pairs[:, 0]] != data.y[pairs[:, 1]]]
    turned = data.y[pairs[:, 0]] < data.y[pairs[:, 1]]
    queries = {"pairs": np.where(turned[:, None], pairs[:, ::-1], pairs)}
    if weights_too:
        queries["pair_weight"] = 0.25 + rng.random(len(pairs))
    return Data(data.X, None, None, {}, queries)


def bundled(load: Any) -> Data:
    X, y = load(return_X_y=True)
    return Data(X, y)


def _digits() -> Data:
    data = bundled(load_digits)
    return Data(data.X[:700], data.y[:700])


def _extreme_weights() -> Data:
    exponents = np.random.default_rng(16).integers(-900, 900, size=400)
    return replace(classes(400, 2), weights=np.ldexp(1.0, exponents))


def _one_against_many() -> Data:
    return replace(classes(400, 2), y=(np.arange(400) == 17).astype(np.int64))


def _labels() -> Data:
    data = classes(400, 3)
    return replace(data, y=np.array(["wren", "lark", "kite"])[data.y])


def _single_precision(data: Data) -> Data:
    return replace(data, X=data.X.astype(np.float32))


MAKERS = {
    "two classes": lambda: classes(400, 2),
    "two classes, 1500 rows": lambda: classes(1500, 2),
    "two classes, holes": lambda: with_holes(classes(400, 2)),
    "two classes, weights": lambda: weighted(classes(400, 2)),
    "two classes, whole weights": lambda: repeated(classes(400, 2)),
    "two classes, holes and weights": lambda: weighted(with_holes(classes(400, 2))),
    "two classes, noise": lambda: noisy(classes(500, 2)),
    "two classes, validation": lambda: with_validation(noisy(classes(600, 2)), 200),
    "two classes, weights, validation": lambda: with_validation(
        weighted(noisy(classes(600, 2))), 200, weights_too=True
    ),
    "two classes, float32": lambda: _single_precision(classes(400, 2)),
    "two classes, odd columns": lambda: odd_columns(classes(400, 2)),
    "two classes, extreme weights": _extreme_weights,
    "one row against many": _one_against_many,
    "two classes, 20500 rows": lambda: classes(20_500, 2),
    "two classes, 22500 rows, weights": lambda: weighted(classes(22_500, 2)),
    "two classes, 140000 rows": lambda: classes(140_000, 2),
    "three classes": lambda: classes(400, 3),
    "three classes, labels": _labels,
    "three classes, weights": lambda: weighted(classes(400, 3)),
    "three classes, 20500 rows": lambda: classes(20_500, 3),
    "four classes": lambda: classes(500, 4),
    "four classes, holes": lambda: with_holes(classes(500, 4)),
    "four classes, holes and weights": lambda: weighted(with_holes(classes(500, 4))),
    "four classes, noise": lambda: noisy(classes(600, 4)),
    "four classes, validation": lambda: with_validation(noisy(classes(700, 4)), 200),
    "real": lambda: real(400),
    "real, 1500 rows": lambda: real(1500),
    "real, holes": lambda: with_holes(real(400)),
    "real, weights": lambda: weighted(real(400)),
    "real, whole weights": lambda: repeated(real(400)),
    "real, holes and weights": lambda: weighted(with_holes(real(400))),
    "real, noise": lambda: noisy(real(500)),
    "real, validation": lambda: with_validation(noisy(real(600)), 200),
    "real, odd columns": lambda: odd_columns(real(400)),
    "real, float32": lambda: _single_precision(real(400)),
    "real, 20500 rows": lambda: real(20_500),
    "real, 22500 rows, weights": lambda: weighted(real(22_500)),
    "counts": lambda: counts(400),
    "counts, weights": lambda: weighted(counts(400)),
    "categories, two classes": lambda: mixed(400, 2),
    "categories, two classes, weights": lambda: weighted(mixed(400, 2)),
    "categories, three classes": lambda: mixed(400, 3),
    "categories, real": lambda: mixed(400),
    "categories, real, weights": lambda: weighted(mixed(400)),
    "frame, two classes": lambda: frame(400, 2),
    "frame, real": lambda: frame(400),
    "ranking": lambda: ranking(500, 25),
    "ranking, holes": lambda: with_holes(ranking(500, 25)),
    "ranking, weights": lambda: weighted(ranking(500, 25)),
    "ranking, holes and weights": lambda: weighted(with_holes(ranking(500, 25))),
    "ranking, weights of queries": lambda: by_query_weighted(ranking(500, 25)),
    "ranking, categories": lambda: with_categories(ranking(500, 25)),
    "ranking, validation": lambda: ranking_with_validation(750, 36),
    "ranking, noise": lambda: noisy(ranking(600, 30), 0.2),
    "ranking, 20500 rows": lambda: ranking(20_500, 700),
    "pairs": lambda: preferences(300, 900),
    "pairs, weights": lambda: preferences(300, 900, weights_too=True),
    "iris": lambda: bundled(load_iris),
    "wine": lambda: bundled(load_wine),
    "breast cancer": lambda: bundled(load_breast_cancer),
    "digits": _digits,
    "diabetes": lambda: bundled(load_diabetes),
}


@cache
def data(name: str) -> Data:
    """A data set by its name; nobody writes into it."""
    made = MAKERS[name]()
    arrays = (*made.validation.values(), *made.ranking.values())
    for array in (made.X, made.y, made.weights, *arrays):
        if isinstance(array, np.ndarray):
            array.flags.writeable = False
    return made
