"""interaction_cst: the features on any path of any tree are all in one of the sets."""

from __future__ import annotations

from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor

from ensemble_gpu import BaggingRegressor, BoostingClassifier, BoostingRegressor, use_engine
from ensemble_gpu.data.interactions import Interactions, read_interactions
from ensemble_gpu.kernels.cpu.trees.whole_grower import WholeGrower
from ensemble_gpu.kernels.tree_protocol import LEAF
from ensemble_gpu.model.forest import Forest
from tests.boosters import plain
from tests.places import DEVICE

P = 6


def problem(n: int = 500) -> tuple[np.ndarray, np.ndarray]:
    """Features that all interact, with missing values."""
    rng = np.random.default_rng(3)
    X = np.round(rng.normal(size=(n, P)), 2)
    y = X[:, 0] * X[:, 1] + X[:, 1] * X[:, 2] + np.abs(X[:, 3] + X[:, 4]) * X[:, 5] + X[:, 4]
    X[rng.random(X.shape) < 0.05] = np.nan
    return X, y


def paths(forest: Forest) -> set[frozenset[int]]:
    """The sets of features that are tested on the ways to the leaves."""
    nodes, found = forest.nodes, set()
    open_ = [(int(root), frozenset[int]()) for root in forest.starts]
    while open_:
        i, tested = open_.pop()
        if nodes.feature[i] == LEAF:
            found.add(tested)
            continue
        tested = tested | {int(nodes.feature[i])}
        open_ += [(int(nodes.left[i]), tested), (int(nodes.right[i]), tested)]
    return found


def allowed_sets(cst: Any) -> list[set[int]]:
    if cst == "pairwise":
        return [set(pair) for pair in combinations(range(P), 2)]
    if cst == "no_interactions":
        return [{f} for f in range(P)]
    sets = [set(own) for own in cst]
    return [*sets, set(range(P)).difference(*sets)]


CONSTRAINTS: list[Any] = [
    "pairwise",
    "no_interactions",
    [{0, 1}, {2, 3, 4, 5}],
    [[0, 1, 2], (1, 2, 3)],  # 4 and 5 are a set more; 1 and 2 leave both others open
    [{0}, {5}],
]
SIZES: list[dict[str, Any]] = [
    {"max_depth": 4},
    {"max_leaf_nodes": 9},
    {"max_depth": 5, "max_features": 2, "min_samples_leaf": 5, "n_jobs": 1},
]


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("cst", CONSTRAINTS, ids=str)
def test_every_path_stays_within_a_set(cst, size):
    X, y = problem()
    model = BoostingRegressor(**plain(size, n_estimators=20, interaction_cst=cst, random_state=0))
    found = paths(model.fit(X, y).model_)
    sets = allowed_sets(cst)
    assert all(any(path <= own for own in sets) for path in found)
    assert max(map(len, found)) >= min(2, max(map(len, sets)))  # and uses what it leaves
    if size == SIZES[0]:  # the constraint bites: without it paths leave the sets
        free = paths(model.set_params(interaction_cst=None).fit(X, y).model_)
        assert not all(any(path <= own for own in sets) for path in free)


def test_without_interactions_the_model_is_a_sum_of_functions_of_one_feature():
    X, y = problem()
    model = (
        BoostingRegressor(**plain(max_depth=4, interaction_cst="no_interactions")).fit(X, y).model_
    )
    rng = np.random.default_rng(0)
    a, b = X[rng.integers(0, len(X), 200)], X[rng.integers(0, len(X), 200)]
    for f in range(P):  # F(b_f, b_rest) - F(a_f, b_rest) does not depend on the rest
        ends = [a.copy(), b.copy(), a.copy(), b.copy()]
        ends[0][:, f], ends[1][:, f] = b[:, f], a[:, f]
        F = [model(rows)[:, 0] for rows in ends]
        np.testing.assert_allclose(F[0] - F[2], F[3] - F[1], atol=1e-9)
    free = BoostingRegressor(**plain(max_depth=4)).fit(X, y).model_
    F = [free(rows)[:, 0] for rows in ends]
    assert np.abs((F[0] - F[2]) - (F[3] - F[1])).max() > 0.1


@pytest.mark.parametrize("more", [{}, {"max_features": 3}, {"max_leaf_nodes": 7}], ids=str)
@pytest.mark.parametrize("cst", [[range(P)], [[0, 1], [5, 4, 3, 2, 1, 0]], []], ids=str)
def test_sets_that_forbid_nothing_change_nothing(cst, more):
    X, y = problem()
    model = BoostingRegressor(**plain(more, max_depth=4, n_estimators=5, random_state=1))
    free = model.fit(X, y).model_.fingerprint()
    assert model.set_params(interaction_cst=cst).fit(X, y).model_.fingerprint() == free


def test_two_features_are_any_pair_and_one_is_alone():
    X, y = problem()
    pair = BoostingRegressor(**plain(n_estimators=5, max_depth=4, interaction_cst="pairwise"))
    free = BoostingRegressor(**plain(n_estimators=5, max_depth=4))
    assert pair.fit(X[:, :2], y).model_ == free.fit(X[:, :2], y).model_
    alone = pair.set_params(interaction_cst="no_interactions").fit(X[:, :1], y).model_
    assert alone == free.fit(X[:, :1], y).model_


def test_stumps_have_nothing_to_forbid():
    X, y = problem()
    model = BoostingRegressor(
        n_estimators=10,
        max_depth=1,
    )
    free = model.fit(X, y).model_
    assert model.set_params(interaction_cst="no_interactions").fit(X, y).model_ == free


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", [0, 2, 3])
@pytest.mark.parametrize("cst", ["pairwise", [[0, 1, 2], [1, 2, 3]]], ids=str)
def test_the_model_is_the_same_on_every_engine(cst, n_classes):
    X, y = problem(300)
    params = {"n_estimators": 4, "max_depth": 4, "interaction_cst": cst, "random_state": 5}
    kind: Any = BoostingRegressor
    if n_classes:
        kind, y = (
            BoostingClassifier,
            np.digitize(y, np.quantile(y, np.linspace(0, 1, n_classes + 1)[1:-1])),
        )
    for more in ({}, {"max_features": 2}, {"categorical_features": [1]}):
        rows = X
        if more == {"categorical_features": [1]}:
            rows = X.copy()
            rows[:, 1] = np.rint(np.abs(3.0 * rows[:, 1]))
        prints = {
            kind(**params, **more, n_jobs=jobs).fit(rows, y).model_.fingerprint() for jobs in (1, 2)
        }
        with use_engine("reference"):
            prints.add(kind(**params, **more).fit(rows, y).model_.fingerprint())
        strict = kind(**params, **more).fit(DEVICE.put(rows), DEVICE.put(y))
        assert {strict.model_.fingerprint()} == prints


@pytest.mark.slow
def test_large_nodes_and_threads_find_the_same_trees():
    """Nodes that take over sums of their parents stand beside nodes that may not test all."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30_000, P))
    y = X[:, 0] * X[:, 1] + X[:, 2] * X[:, 3] + np.sin(X[:, 4]) * X[:, 5]
    cst = [[0, 1, 2, 3, 4], [0, 5]]
    fits = [
        BoostingRegressor(
            **plain(
                n_estimators=3, max_depth=6, interaction_cst=cst, early_stopping=False, n_jobs=jobs
            )
        ).fit(X, y)
        for jobs in (1, 2)
    ]
    with use_engine("reference"):
        fits.append(
            BoostingRegressor(
                **plain(n_estimators=3, max_depth=6, interaction_cst=cst, early_stopping=False)
            ).fit(X, y)
        )
    assert len({fit.model_.fingerprint() for fit in fits}) == 1
    sets = [{0, 1, 2, 3, 4}, {0, 5}]
    assert all(any(path <= own for own in sets) for path in paths(fits[0].model_))


@pytest.mark.slow
@pytest.mark.parametrize("cst", ["no_interactions", [{0, 1}, {2, 3}], "pairwise"], ids=str)
def test_scikit_learn_finds_the_same_functions(cst):
    """No noise, few values: both grow the trees that the constraint leaves, to their gains."""
    rng = np.random.default_rng(1)
    X = rng.integers(0, 6, size=(3000, 4)).astype(float)
    y = X[:, 0] * X[:, 1] + 3.0 * X[:, 2] + 0.1 * X[:, 0] * X[:, 2] + np.sqrt(X[:, 3]) * X[:, 2]
    y += 1e-3 * rng.normal(size=len(y))
    ours = BoostingRegressor(**plain(max_leaf_nodes=8, min_samples_leaf=20, interaction_cst=cst))
    theirs = HistGradientBoostingRegressor(
        max_leaf_nodes=8, min_samples_leaf=20, interaction_cst=cst, early_stopping=False,
        max_iter=100, learning_rate=0.1,
    )  # fmt: skip
    F, G = ours.fit(X, y).predict(X), theirs.fit(X, y).predict(X)
    spread = np.std(y)
    errors = [np.sqrt(np.mean((f - y) ** 2)) / spread for f in (F, G)]
    assert errors[0] == pytest.approx(errors[1], rel=0.02)
    assert np.sqrt(np.mean((F - G) ** 2)) / spread < 0.02


def test_sets_may_name_features():
    pandas = pytest.importorskip("pandas")
    X, y = problem()
    frame = pandas.DataFrame(X, columns=list("abcdef"))
    named = BoostingRegressor(
        **plain(n_estimators=5, max_depth=4, interaction_cst=[{"a", "c"}, ["b"]])
    )
    indexed = BoostingRegressor(**plain(n_estimators=5, max_depth=4, interaction_cst=[{0, 2}, [1]]))
    assert named.fit(frame, y).model_ == indexed.fit(X, y).model_
    with pytest.raises(ValueError, match="'q'; X has"):
        named.set_params(interaction_cst=[["q"]]).fit(frame, y)
    bagged = BaggingRegressor(named.set_params(interaction_cst=[["a", "c"]]), 3, max_features=4)
    for learner, drawn in zip(
        bagged.fit(frame, y).estimators_, bagged.estimators_features_, strict=True
    ):
        groups = [set(drawn[own].tolist()) for own in learner.interaction_cst]
        assert groups == [own for own in [{0, 2} & set(drawn.tolist())] if own]


@pytest.mark.parametrize(
    ("cst", "says"),
    [
        ("triples", "'pairwise', 'no_interactions' or a sequence .*; got 'triples'"),
        ([[0, P]], f"from 0 to {P - 1}; got {P}"),
        ([[-1]], "got -1"),
        ([[0.5]], "got 0.5"),
        ([[True]], "got True"),
        ([0, 1], r"sequence of sets .*; got \[0, 1\]"),
        (5, "got 5"),
        (["ab"], r"got \['ab'\]"),
        ([["a"]], "'a', but X had no feature names"),
    ],
)
def test_bad_sets_are_named_and_nothing_is_fitted(cst, says):
    X, y = problem(50)
    model = BoostingRegressor(**plain(max_depth=2, interaction_cst=cst))
    with pytest.raises(ValueError, match="interaction_cst .*" + says):
        model.fit(X, y)
    assert not hasattr(model, "model_")


def test_what_is_allowed_shrinks_along_a_path():
    sets = read_interactions([[0, 1, 2], [1, 2, 3]], 6, None)
    assert isinstance(sets, Interactions)
    way = [sets.allowed(frozenset(tested)) for tested in ([], [1], [1, 3], [0, 1])]
    assert way == [None, (0, 1, 2, 3), (1, 2, 3), (0, 1, 2)]
    assert all(b is not None and (a is None or set(b) <= set(a)) for a, b in pairwise(way[:3]))
    assert sets.allowed(frozenset([5])) == (4, 5)


WIDE_SETS: list[Any] = [
    "pairwise",
    "no_interactions",
    [set(range(60)), set(range(50, 70))],  # more features than a word has bits
    [{0, 66}, {1, 2, 67}, set(range(3, 66))],
]


@pytest.mark.parametrize("size", [*SIZES, {"max_depth": 5, "max_features": 40}], ids=str)
@pytest.mark.parametrize("cst", WIDE_SETS, ids=["pairwise", "none", "overlap", "apart"])
def test_whole_trees_are_those_grown_level_by_level(cst, size, monkeypatch):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(5000, 70)).astype(np.float32)
    X[rng.random(X.shape) < 0.02] = np.nan
    Z = np.nan_to_num(X)
    y = Z[:, 0] * Z[:, 66] + Z[:, 1] * Z[:, 67] + np.abs(Z[:, 3] + Z[:, 55]) * Z[:, 65]
    model = BoostingRegressor(
        **plain(size, n_estimators=2, interaction_cst=cst, random_state=0, max_bins=64)
    )
    whole = model.fit(X, y).model_
    monkeypatch.setattr(WholeGrower, "grows_whole", lambda self, limits: False)
    assert model.fit(X, y).model_ == whole
