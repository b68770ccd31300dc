"""Forest: immutable, hashable by content, the same bits on every engine."""

from __future__ import annotations

import pickle
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier, RandomForestRegressor
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from ensemble_gpu import use_engine
from ensemble_gpu.kernels.cpu.threads import Run
from ensemble_gpu.kernels.cpu.trees import evaluate as kernels
from ensemble_gpu.kernels.tree_protocol import LEAF
from ensemble_gpu.model.forest import Forest, Nodes
from tests.model.trees import by_hand, from_sklearn, leaf_by_hand, random_forest, rows_for
from tests.places import NARROW, STRICT, Place

FOREST = random_forest()
X = rows_for(FOREST)


def data(load, missing: bool = False) -> tuple[np.ndarray, np.ndarray]:
    values, y = load(return_X_y=True)
    values = values.astype(np.float32)
    if missing:
        values[np.random.default_rng(0).random(values.shape) < 0.2] = np.nan
    return values, y


PEERS = [
    (DecisionTreeClassifier(random_state=0), load_wine),
    (DecisionTreeRegressor(max_depth=5, random_state=0), load_diabetes),
    (RandomForestClassifier(12, random_state=0), load_breast_cancer),
    (RandomForestRegressor(12, random_state=0), load_diabetes),
    (ExtraTreesClassifier(8, random_state=0), load_wine),
]
IDS = [type(p).__name__ for p, _ in PEERS]


@pytest.fixture(params=[False, True], ids=["complete", "missing"])
def missing(request):
    return request.param


@pytest.mark.parametrize(("peer", "load"), PEERS, ids=IDS)
def test_predictions_equal_those_of_scikit_learn(peer, load, missing, engine):
    values, y = data(load, missing)
    peer.fit(values, y)
    found = from_sklearn(peer)(values)
    if hasattr(peer, "classes_"):
        np.testing.assert_array_equal(found, peer.predict_proba(values))
    else:
        np.testing.assert_array_equal(found[:, 0], peer.predict(values))


@pytest.mark.parametrize(("peer", "load"), PEERS, ids=IDS)
def test_leaves_and_paths_equal_those_of_scikit_learn(peer, load, missing):
    values, y = data(load, missing)
    peer.fit(values, y)
    forest = from_sklearn(peer)
    np.testing.assert_array_equal(forest.apply(values), peer.apply(values).reshape(len(y), -1))
    found, starts = forest.decision_path(values)
    expected = peer.decision_path(values)
    if isinstance(expected, tuple):
        expected, n_nodes_ptr = expected
        np.testing.assert_array_equal(starts, n_nodes_ptr)
    assert found.shape == expected.shape
    assert found.has_canonical_format
    assert abs(found - expected).nnz == 0


@pytest.mark.parametrize(("peer", "load"), PEERS, ids=IDS)
def test_importances_equal_those_of_scikit_learn(peer, load):
    peer.fit(*data(load))
    found = from_sklearn(peer).importances()
    np.testing.assert_allclose(found, peer.feature_importances_, rtol=1e-12, atol=1e-15)


def test_importances_of_leaves_alone_are_zero():
    peer = RandomForestRegressor(3).fit(np.zeros((5, 2)), np.ones(5))
    np.testing.assert_array_equal(from_sklearn(peer).importances(), [0.0, 0.0])


def test_depth_and_leaves_equal_those_of_scikit_learn():
    peer = RandomForestClassifier(5, random_state=1).fit(*data(load_wine))
    forest = from_sklearn(peer)
    assert [forest.depth(t) for t in range(5)] == [e.get_depth() for e in peer.estimators_]
    assert [forest.n_leaves(t) for t in range(5)] == [e.get_n_leaves() for e in peer.estimators_]


@pytest.mark.parametrize("average", [True, False])
@pytest.mark.parametrize("n_outputs", [1, 2, 5])
def test_tests_of_every_kind_equal_plain_python(engine, average, n_outputs):
    forest = random_forest(n_outputs=n_outputs, average=average)
    rows = rows_for(forest)
    np.testing.assert_array_equal(forest(rows), by_hand(forest, rows))


def test_leaves_equal_plain_python(engine):
    expected = [[leaf_by_hand(FOREST, t, x) - FOREST.starts[t] for t in range(5)] for x in X]
    found = FOREST.apply(X)
    assert found.dtype == np.int64
    np.testing.assert_array_equal(found, expected)


@given(st.integers(0, 10_000), st.sampled_from([np.float32, np.float64]), st.booleans())
def test_engines_agree_to_the_last_bit(seed, dtype, average):
    forest = random_forest(seed, n_trees=seed % 4 + 1, depth=seed % 9, average=average)
    rows = rows_for(forest, 60, seed).astype(dtype)
    with use_engine("reference"):
        expected, leaves = forest(rows), forest.apply(rows)
    np.testing.assert_array_equal(forest(rows), expected)
    np.testing.assert_array_equal(forest.apply(rows), leaves)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("threads", [1, 2, 4])
def test_threads_and_blocks_do_not_change_a_bit(dtype, threads, monkeypatch):
    forest = random_forest(3, n_trees=4)
    rows = rows_for(forest, 2500).astype(dtype)
    with use_engine("reference"):
        expected, leaves = forest(rows), forest.apply(rows)
    monkeypatch.setattr(kernels, "WALKS_PER_THREAD", 1)
    for block_bytes, group_bytes in ((1 << 10, 1 << 8), (1 << 16, 1 << 12)):
        monkeypatch.setattr(kernels, "BLOCK_BYTES", block_bytes)
        monkeypatch.setattr(kernels, "GROUP_BYTES", group_bytes)
        np.testing.assert_array_equal(forest(rows, n_jobs=threads), expected)
        np.testing.assert_array_equal(forest.apply(rows, n_jobs=threads), leaves)


def test_blocks_of_the_reference_engine_do_not_change_a_bit(monkeypatch):
    monkeypatch.setattr("ensemble_gpu.kernels.reference.trees.evaluate.BLOCK_ROWS", 64)
    with use_engine("reference"):
        np.testing.assert_array_equal(FOREST(X), by_hand(FOREST, X))
        assert FOREST.apply(X).shape == (len(X), 5)


@pytest.mark.parametrize("n", [0, 1, 2, 63, 64, 65])
def test_any_number_of_rows_will_do(engine, n):
    np.testing.assert_array_equal(FOREST(X[:n]), by_hand(FOREST, X[:n]))
    assert FOREST.apply(X[:n]).shape == (n, 5)
    assert FOREST.decision_path(X[:n])[0].shape == (n, len(FOREST.nodes))


def test_memory_order_type_and_writability_of_rows_do_not_matter():
    expected = FOREST(X)
    strided = np.repeat(X, 2, axis=0)[::2]
    locked = X.copy()
    locked.flags.writeable = False
    for rows in (np.asfortranarray(X), strided, X[::-1][::-1], locked):
        np.testing.assert_array_equal(FOREST(rows), expected)
        np.testing.assert_array_equal(FOREST.apply(rows), FOREST.apply(X))
    assert X.flags.writeable
    whole = np.nan_to_num(X, posinf=5.0).astype(np.int64)
    np.testing.assert_array_equal(FOREST(whole), FOREST(whole.astype(np.float64)))


def test_float32_rows_are_parted_as_their_float64_copies():
    """Thresholds between two float32 numbers, or beyond them all, are not rounded to the wrong."""
    rng = np.random.default_rng(0)
    rows = np.sort(rng.normal(size=200).astype(np.float32))[:, None]
    rows = np.concatenate([rows, [[np.inf], [-np.inf], [3e38], [-3e38], [1e-45], [np.nan]]])
    rows = rows.astype(np.float32)
    x = rows[:, 0].astype(np.float64)
    near = [np.nextafter(x[:200], -np.inf), x[:200], np.nextafter(x[:200], np.inf)]
    thresholds = np.concatenate([*near, [1e300, -1e300, np.inf, 1e-320, -1e-320]])
    forest = Forest.join(stump(threshold) for threshold in thresholds)
    expected = np.where(x[:, None] <= thresholds, 1, 2)
    np.testing.assert_array_equal(forest.apply(rows), expected)
    np.testing.assert_array_equal(forest.apply(x[:, None]), expected)


def stump(threshold: float, n_features: int = 1, feature: int = 0) -> Forest:
    nodes = Nodes(
        np.array([feature, LEAF, LEAF]), np.array([threshold, np.nan, np.nan]), np.zeros(3, bool),
        np.array([1, LEAF, LEAF]), np.array([2, LEAF, LEAF]), np.full(3, LEAF),
        np.array([[0.0], [-1.0], [1.0]]), np.ones(3), np.array([4, 2, 2]), np.array([4.0, 2, 2]),
    )  # fmt: skip
    return Forest(nodes, np.array([0]), n_features)


def test_words_too_long_for_32_bits_are_written_in_64(monkeypatch):
    monkeypatch.setattr(kernels, "_fits", lambda *_: False)
    forest, rows = random_forest(8), X.astype(np.float32)
    np.testing.assert_array_equal(forest(rows), by_hand(forest, rows))


def test_many_features_of_which_few_are_used():
    forest = Forest.join([stump(0.0, 70_000, 69_999), stump(0.5, 70_000, 3)])
    rows = np.random.default_rng(0).normal(size=(70, 70_000))
    expected = np.where(rows[:, [69_999, 3]] <= [0.0, 0.5], -1.0, 1.0).mean(axis=1)
    np.testing.assert_array_equal(forest(rows)[:, 0], expected)


def test_a_model_takes_arrays_of_any_namespace_and_device(place: Place):
    found, leaves = FOREST(place.put(X)), FOREST.apply(place.put(X))
    place.check(found, "float64")
    place.check(leaves, "int64")
    np.testing.assert_array_equal(place.host(found), FOREST(X))
    np.testing.assert_array_equal(place.host(leaves), FOREST.apply(X))
    path = FOREST.decision_path(place.put(X))[0]
    assert abs(path - FOREST.decision_path(X)[0]).nnz == 0


@pytest.mark.parametrize("place", NARROW, ids=str)
def test_devices_without_64_bits_get_their_widest_types(place):
    rows = place.xp.asarray(X.astype(np.float32), device=place.device)
    with pytest.warns(RuntimeWarning, match="no 64-bit numbers"):
        found = FOREST(rows)
    assert found.dtype == place.xp.float32
    expected = FOREST(X.astype(np.float32)).astype(np.float32)
    np.testing.assert_array_equal(place.host(found), expected)


@pytest.mark.interop
def test_other_libraries_get_their_own_arrays_back(library):
    for dtype in (np.float32, np.float64):
        rows = X.astype(dtype)
        found = FOREST(library.put(rows))
        library.check(found, "float64")
        np.testing.assert_array_equal(library.host(found), FOREST(rows))
        library.check(FOREST.apply(library.put(rows)), "int64")
        with use_engine("reference"):
            np.testing.assert_array_equal(library.host(FOREST(library.put(rows))), FOREST(rows))


def test_unknown_categories_behave_like_missing_values():
    unknown, absent = X.copy(), X.copy()
    unknown[:, 4], absent[:, 4] = 1234.5, np.nan
    np.testing.assert_array_equal(FOREST(unknown), FOREST(absent))
    assert (FOREST(unknown) != FOREST(X)).any()


@pytest.mark.parametrize("average", [True, False])
def test_stages_equal_shorter_models(place, average):
    forest = random_forest(average=average)
    stages = list(forest.staged(place.put(X)))
    assert len(stages) == len(forest)
    for t, stage in enumerate(stages):
        place.check(stage, "float64")
        np.testing.assert_array_equal(place.host(stage), forest.first(t + 1)(X))


@pytest.mark.parametrize("average", [True, False])
def test_chosen_stages_equal_shorter_models(average, monkeypatch):
    monkeypatch.setattr("ensemble_gpu.model.forest.STAGED_LEAVES", 3 * len(X))
    forest = random_forest(n_trees=9, average=average)
    chosen = [0, 2, 2, 7, 9]
    for n, stage in zip(chosen, forest.staged(X, chosen), strict=True):
        np.testing.assert_array_equal(stage, forest.first(n)(X))


@pytest.mark.parametrize("rounds", [[3, 2], [-1], [6]])
def test_stages_out_of_order_or_range_are_refused(rounds):
    with pytest.raises(ValueError, match="rounds must ascend from 0 to 5"):
        list(FOREST.staged(X, rounds))


@pytest.mark.parametrize("rounds", [3, [1.5], [True]])
def test_stages_that_are_no_integers_are_refused(rounds):
    with pytest.raises(TypeError, match="rounds must"):
        list(FOREST.staged(X, rounds))


def test_trees_add_up_to_the_forest():
    boosted = random_forest(average=False)
    parts = [boosted.tree(t)(X) for t in range(len(boosted))]
    np.testing.assert_allclose(sum(parts) + boosted.intercept, boosted(X), rtol=1e-12)


def test_joined_trees_are_the_forest():
    plain = random_forest(intercept=np.zeros(2))
    again = Forest.join(plain.tree(t) for t in range(len(plain)))
    assert again == plain
    both = Forest.join([plain, random_forest(9, n_trees=3, categories=plain.categories,
                                             intercept=np.zeros(2))])  # fmt: skip
    assert len(both) == 8
    assert both.first(5) == plain


def test_joining_pads_shorter_subsets():
    short = Forest.join([stump(0.5, 7)])
    joined = Forest.join([random_forest(intercept=np.zeros(2)).tree(0)])
    wide = replace(short.nodes, value=np.zeros((3, 2)))
    both = Forest.join([Forest(wide, [0], 7, categories=joined.categories), joined])
    np.testing.assert_array_equal(both.tree(1)(X), joined(X))


@pytest.mark.parametrize(
    ("other", "name"),
    [
        (stump(0.0), "n_features"), (random_forest(n_outputs=3), "n_outputs"),
        (random_forest(average=False), "average"),
        (random_forest(intercept=np.ones(2)), "intercept"),
        (random_forest(categories={}), "categories"),
    ],
)  # fmt: skip
def test_forests_that_differ_cannot_be_joined(other, name):
    with pytest.raises(ValueError, match=f"forests must have the same {name}"):
        Forest.join([FOREST, other])


def test_nothing_cannot_be_joined():
    with pytest.raises(ValueError, match="at least one Forest"):
        Forest.join([])


def test_a_forest_of_no_tree_is_its_intercept(engine):
    empty = FOREST.first(0)
    assert len(empty) == 0
    np.testing.assert_array_equal(empty(X), np.tile(FOREST.intercept, (len(X), 1)))
    assert empty.apply(X).shape == (len(X), 0)
    assert empty.decision_path(X)[0].shape == (len(X), 0)


def test_attributes_can_neither_be_set_nor_deleted():
    for name in ("nodes", "starts", "intercept", "categories", "anything"):
        with pytest.raises(AttributeError, match="immutable"):
            setattr(FOREST, name, None)
        with pytest.raises(AttributeError, match="immutable"):
            delattr(FOREST, name)
    with pytest.raises(TypeError):
        FOREST.categories[0] = None


@pytest.mark.parametrize("copied", [False, True], ids=["built", "unpickled"])
def test_arrays_cannot_be_written(copied):
    forest = pickle.loads(pickle.dumps(FOREST)) if copied else FOREST
    arrays = [*vars(forest.nodes).values(), forest.starts, forest.subsets, forest.intercept]
    for array in [*arrays, *forest.categories.values()]:
        assert not array.flags.writeable


def test_a_pickled_forest_is_the_same_and_holds_no_second_copy():
    FOREST(X)
    again = pickle.loads(pickle.dumps(FOREST))
    assert again == FOREST
    np.testing.assert_array_equal(again(X), FOREST(X))
    assert len(pickle.dumps(FOREST)) == len(pickle.dumps(random_forest()))


def test_equal_forests_have_equal_hashes_and_fingerprints():
    again = random_forest()
    assert again is not FOREST
    assert again == FOREST
    assert hash(again) == hash(FOREST)
    assert FOREST != "another thing"
    assert len(FOREST.fingerprint()) == 64


def rebuilt(**changes) -> Forest:
    state = FOREST.__getstate__() | changes
    return Forest(state.pop("nodes"), state.pop("starts"), state.pop("n_features"), **state)


@pytest.mark.parametrize("name", [f.name for f in fields(Nodes) if f.name not in ("left", "right")])
def test_the_fingerprint_changes_with_any_value_of_a_node(name):
    array = getattr(FOREST.nodes, name).copy()
    if array.dtype == bool:
        array[0] = ~array[0]
    elif name == "threshold":
        array[np.flatnonzero(np.isfinite(array))[0]] += 1e-13
    elif name == "subset":
        first, second = np.flatnonzero(array >= 0)[:2]
        array[[first, second]] = array[[second, first]]
    elif name == "feature":
        i = np.flatnonzero(np.isfinite(FOREST.nodes.threshold))[0]
        array[i] = {0: 1, 1: 0}.get(array[i], 0)
    else:
        array.flat[1] += 1
    assert rebuilt(nodes=replace(FOREST.nodes, **{name: array})) != FOREST


def test_the_fingerprint_changes_with_everything_else():
    found = {
        FOREST.fingerprint(), FOREST.first(4).fingerprint(),
        rebuilt(n_features=8).fingerprint(), rebuilt(average=False).fingerprint(),
        rebuilt(intercept=FOREST.intercept + 1e-15).fingerprint(),
        rebuilt(subsets=FOREST.subsets ^ np.uint64(2)).fingerprint(),
        rebuilt(categories=dict(FOREST.categories) | {2: np.arange(5)}).fingerprint(),
    }  # fmt: skip
    assert len(found) == 7


def test_the_fingerprint_does_not_see_kinds_of_zero_and_nan():
    value = FOREST.nodes.value.copy()
    value[0] = 0.0
    threshold = np.where(np.isnan(FOREST.nodes.threshold), -np.nan, FOREST.nodes.threshold)
    zero = rebuilt(nodes=replace(FOREST.nodes, value=value))
    value = np.where(value == 0.0, -0.0, value)
    assert rebuilt(nodes=replace(FOREST.nodes, value=value, threshold=threshold)) == zero


def test_repr_tells_trees_nodes_depth_and_fingerprint():
    text = repr(FOREST)
    assert text.startswith(f"Forest(5 tree(s), {len(FOREST.nodes)} nodes, depth 7, 7 features, 2 ")
    assert FOREST.fingerprint()[:12] in text


@pytest.mark.parametrize("shape", [(3, 6), (3, 8), (7,)])
def test_rows_of_another_width_are_refused(shape):
    with pytest.raises(ValueError, match=r"X must have shape \(rows, 7\); got"):
        FOREST(np.zeros(shape))


@pytest.mark.parametrize("t", [-1, 5])
def test_a_tree_out_of_range_is_refused(t):
    for ask in (FOREST.tree, FOREST.depth, FOREST.n_leaves):
        with pytest.raises(ValueError, match=f"from 0 to 4; got {t}"):
            ask(t)


def test_a_tree_that_is_no_integer_is_refused():
    with pytest.raises(TypeError, match=r"tree must be an integer; got 1\.5"):
        FOREST.tree(1.5)


def broken(name: str, at: int, value: float) -> Nodes:
    array = getattr(FOREST.nodes, name).copy()
    array[at] = value
    return replace(FOREST.nodes, **{name: array})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"nodes": broken("left", 0, 0)}, "children of node 0"),
        ({"nodes": broken("right", 0, 0)}, "children of node 0"),
        ({"nodes": broken("right", 0, 10_000)}, "children of node 0"),
        ({"nodes": broken("feature", 0, 7)}, "nodes.feature must be from -1 to 6; got 7"),
        ({"nodes": broken("subset", 0, 9999)}, "nodes.subset must be from -1 to"),
        ({"nodes": replace(FOREST.nodes, weight=np.ones(3))}, "nodes.weight must be an array of"),
        ({"starts": [1]}, "starts must be ascending"),
        ({"intercept": np.zeros(3)}, "intercept must be of shape"),
        ({"categories": {9: np.zeros(1)}}, "categories must be keyed by features from 0 to 6"),
        ({"categories": {2: np.zeros(2)}}, r"categories\[2\] must be ascending"),
        ({"categories": {2: np.arange(129.0)}}, "at most 128 values"),
    ],
)  # fmt: skip
def test_arrays_that_are_no_forest_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        rebuilt(**changes)


def test_the_packing_is_done_once():
    forest = random_forest(4)
    kernels.evaluate_forest(X, forest.packed, Run(1))
    assert kernels.compact(forest.packed, X.dtype) is kernels.compact(forest.packed, X.dtype)


def test_strict_devices_compute_in_their_own_memory():
    for place in STRICT:
        place.check(FOREST(place.put(X[:3])), "float64")
