"""What batches cannot be: errors name the batch, what was given and what is allowed."""

from __future__ import annotations

import re

import numpy as np
import polars as pl
import pytest
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from ensemble_gpu import (
    AdaBoostClassifier,
    BaggingClassifier,
    Batches,
    BoostingClassifier,
    BoostingRanker,
    L1BoostingClassifier,
    L2BoostRegressor,
    LinearClassifier,
    NeighboursClassifier,
    RandomForestClassifier,
    cross_validate,
    use_engine,
)
from tests.batches.cases import WHOLE, K, X, Y, cut

GOOD = cut(X, Y)
FRAME = pl.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": Y})
TEXTS = FRAME.with_columns(b=pl.Series(["u"] * len(Y)))


def parts(*changed, **options):
    """The usual batches with others at their end."""
    return Batches([*GOOD, *changed], **options)


SOURCES = {
    "which can be walked once only": lambda: Batches(part for part in GOOD),
    "Give the function that makes it": lambda: Batches(iter(GOOD)),
    "source must be paths": lambda: Batches(7),
    "put it into a list": lambda: Batches(FRAME),
    "there is no file 'nowhere.parquet'": lambda: Batches("nowhere.parquet"),
    r"no file matches 'nowhere-\*.parquet'": lambda: Batches("nowhere-*.parquet"),
    "batch_rows must be": lambda: Batches(GOOD, batch_rows=0),
    "progress must be": lambda: Batches(GOOD, progress="yes"),
    "label must be the name of a column": lambda: Batches([FRAME], label=3),
    "features must be a list of names": lambda: Batches([FRAME], features="a"),
    r"features names columns more than once: \['a'\]": lambda: Batches([], features=["a", "a"]),
    "features holds 'y', which is the label": lambda: Batches([], label="y", features=["y"]),
    "codes_path must be a path or None": lambda: Batches(GOOD, codes_path=3),
}
FITS = {
    "Batches hold no rows": lambda: Batches([(X[:0], Y[:0])]),
    "batch 5 has 9 features; batch 0 has 10": lambda: parts((X[:9, :9], Y[:9])),
    "batch 5 has dtype float64; batch 0 has dtype float32":
        lambda: parts((X[:9].astype(np.float64), Y[:9])),
    "X has 9 rows, y of batch 5 has 8": lambda: parts((X[:9], Y[:8])),
    "batch 5: Input X contains infinity": lambda: parts((np.full_like(X[:2], np.inf), Y[:2])),
    "y of batch 5 has dtype <U1": lambda: parts((X[:2], np.array(["a", "b"]))),
    "batch 5 has a sample_weight": lambda: parts((X[:2], Y[:2], WHOLE[:2])),
    "batch 1 has no sample_weight": lambda: Batches([(X, Y, WHOLE), (X, Y)]),
    "batch 5 has no y": lambda: parts((X[:2],)),
    "batch 0 has no y": lambda: Batches([FRAME]),
    "batch 5 must be .X, y. or .X, y, sample_weight.; got a tuple of 4":
        lambda: parts((X, Y, WHOLE, K)),
    "batch 5 must be .X, y., .X, y, sample_weight., a frame": lambda: parts({"X": X}),
    "batch 5 is sparse": lambda: parts((sparse.csr_matrix(X[:2]), Y[:2])),
    "batch 5 is a frame; batch 0 is an array": lambda: parts((FRAME[:2], Y[:2])),
    "batch 5: Expected 2D array": lambda: parts((X[0], np.zeros(10, dtype=int))),
    r"batch 1 has the features \['b'\]; batch 0 has \['a', 'b'\]":
        lambda: Batches([FRAME, FRAME.drop("a")], label="y"),
    r"batch 1 has the features \['b', 'a'\]":
        lambda: Batches([FRAME, FRAME.select("b", "a", "y")], label="y"),
    "batch 0 lacks the features 'z'; it has the columns 'a', 'b', 'y'":
        lambda: Batches([FRAME], label="y", features=["z"]),
    "batch 1 has dtype String in feature 'b'; batch 0 has dtype Float32":
        lambda: Batches([FRAME, TEXTS], label="y"),
    "batch 1 has dtype Float64 in feature 'a'; batch 0 has dtype Float32":
        lambda: Batches([FRAME, FRAME.cast({"a": pl.Float64})], label="y"),
    "batch 0: X must hold numbers .* it has column 'b' .dtype String.":
        lambda: Batches([TEXTS], label="y"),
    "label='z' is no column of batch 0": lambda: Batches([FRAME], label="z"),
    "weight='z' is no column of batch 0": lambda: Batches([FRAME], label="y", weight="z"),
    "weight='w' is no column of batch 1":
        lambda: Batches([FRAME.with_columns(w=pl.lit(1.0)), FRAME], label="y", weight="w"),
    "y must hold at least 2 classes": lambda: Batches([(X, np.zeros(len(X)))]),
    r"source\(\) must return an iterator over batches; got int": lambda: Batches(lambda: 3),
}  # fmt: skip
ESTIMATORS = {
    "estimator=LinearClassifier.* looks at values of X": AdaBoostClassifier(LinearClassifier()),
    "BaggingClassifier looks at values": BaggingClassifier(),
    "L1BoostingClassifier looks at values": L1BoostingClassifier(),
    "oob_score=True evaluates trees on values of X": RandomForestClassifier(oob_score=True),
    "capacity='max_depth' evaluates trees": RandomForestClassifier(capacity="max_depth"),
    "NeighboursClassifier looks at values": NeighboursClassifier(),
    "LinearClassifier looks at values": LinearClassifier(),
    "L2BoostRegressor looks at values": L2BoostRegressor(),
}


@pytest.mark.parametrize("message", SOURCES)
def test_sources(message):
    with pytest.raises((TypeError, ValueError, FileNotFoundError), match=message):
        SOURCES[message]()


@pytest.mark.parametrize("message", FITS)
def test_batches_that_do_not_go_together(message):
    model = AdaBoostClassifier(n_estimators=2)
    with pytest.raises((TypeError, ValueError), match=message):
        model.fit(FITS[message]())
    assert not [name for name in vars(model) if name.endswith("_")]


@pytest.mark.parametrize("message", ESTIMATORS)
def test_estimators_that_need_all_of_X(message):
    with pytest.raises(TypeError, match=message):
        ESTIMATORS[message].fit(Batches(GOOD), None)


def test_rankings():
    data = Batches(GOOD)
    with pytest.raises(TypeError, match="BoostingRanker compares rows within queries"):
        BoostingRanker().fit(data, Y, qid=Y)


@pytest.mark.parametrize("given", [{"y": Y}, {"sample_weight": WHOLE}])
def test_what_the_batches_hold_is_not_given_beside_them(given):
    name = next(iter(given))
    with pytest.raises(ValueError, match=f"{name} must be None where X is Batches"):
        AdaBoostClassifier().fit(Batches(GOOD), **given)


def test_without_batches_y_is_required():
    for estimator in (AdaBoostClassifier(), RandomForestClassifier(), BoostingClassifier()):
        with pytest.raises(ValueError, match="requires y to be passed, but the target y is None"):
            estimator.fit(X)


def test_predict_says_what_predicts_batches():
    model = AdaBoostClassifier(n_estimators=2).fit(Batches(GOOD))
    with pytest.raises(TypeError, match="predict_batches predicts batch by batch"):
        model.predict(Batches(GOOD))


def test_rows_that_change_between_two_walks():
    calls = []

    def batches():
        calls.append(1)
        return GOOD if len(calls) < 3 else GOOD[:3]

    model = AdaBoostClassifier(n_estimators=2)
    with pytest.raises(ValueError, match="gave 900 rows first and 300 for the edges"):
        model.fit(Batches(batches))
    calls = [1] * 5
    with pytest.raises(ValueError, match="gave 300 rows first and more for the edges"):
        model.fit(Batches(lambda: GOOD[:3] if calls.pop() and len(calls) > 2 else GOOD))


def test_another_engine_than_the_cpu():
    with use_engine("reference"), pytest.raises(ValueError, match="the engine is 'reference'"):
        AdaBoostClassifier().fit(Batches(GOOD))


def test_an_error_leaves_the_last_fit_as_it_was():
    model = AdaBoostClassifier(n_estimators=2).fit(X, Y)
    before = model.model_.fingerprint()
    with pytest.raises(ValueError, match="batch 5 has 9 features"):
        model.fit(parts((X[:9, :9], Y[:9])))
    check_is_fitted(model)
    assert model.model_.fingerprint() == before


def test_cross_validation():
    with pytest.raises((TypeError, ValueError), match="Batches"):
        cross_validate(AdaBoostClassifier(), Batches(GOOD), None)


def test_messages_do_not_end_twice():
    for message in (*SOURCES, *FITS):
        assert not re.search(r"\.\.$", message)
