"""A hostile file gets a ValueError that says what is wrong, and nothing else happens."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import ensemble_gpu as eg
from bench import fuzz
from ensemble_gpu.model.additive import Rounds
from ensemble_gpu.saving.consistency import check_work
from ensemble_gpu.saving.container import Container, pieces, unpacked
from ensemble_gpu.saving.document import read
from ensemble_gpu.saving.files import from_bytes, to_bytes
from ensemble_gpu.saving.text import from_text
from tests.saving.cases import fitted

# Besides the arrays, how many times the length of its header a file may take when it is loaded.
MULTIPLE = 64


def split(data: bytes) -> tuple[Any, bytes]:
    n = int.from_bytes(data[:8], "little")
    return json.loads(data[8 : 8 + n]), data[8 + n :]


def joined(header: Any, body: bytes) -> bytes:
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + body


@pytest.fixture(scope="module")
def stumps() -> bytes:
    return to_bytes(fitted("AdaBoost, labels"))


@pytest.fixture(scope="module")
def forest() -> bytes:
    return to_bytes(fitted("forest"))


def test_header_longer_than_the_file(stumps):
    for n in (len(stumps) - 7, 2**63, 2**64 - 1):
        with pytest.raises(ValueError, match=rf"its header would have {n} bytes, and the file has"):
            from_bytes(n.to_bytes(8, "little") + stumps[8:])


def test_truncated_anywhere(stumps):
    for n in range(0, len(stumps), 97):
        with pytest.raises(ValueError, match="not a model file of this package"):
            from_bytes(stumps[:n])


def changed(name: str, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(entry: dict[str, Any]) -> None:
        entry[name] = value

    return change


HEADERS = [
    (changed("data_offsets", [0, 2**40]), "no two data_offsets from 0"),
    (changed("data_offsets", [8, 16]), "takes .* bytes, and has those from 8 to 16"),
    (changed("data_offsets", [-8, 0]), "no two data_offsets"),
    (changed("data_offsets", "0"), "no two data_offsets"),
    (changed("dtype", "F128"), "has dtype 'F128', and may have F64"),
    (changed("dtype", ["F64"]), "has dtype"),
    (changed("dtype", "F32"), "takes 1?[0-9]+ bytes"),
    (changed("shape", [2**62, 0]), "no shape of at most 8 sizes"),
    (changed("shape", [-1]), "no shape"),
    (changed("shape", [1] * 9), "no shape"),
    (changed("more", 1), "needs dtype, shape and data_offsets alone"),
]


@pytest.mark.parametrize(("change", "told"), HEADERS, ids=lambda x: x if isinstance(x, str) else "")
def test_entry_of_an_array(stumps, change, told):
    header, body = split(stumps)
    change(header["model_.rounds.threshold"])
    with pytest.raises(ValueError, match=f"array 'model_.rounds.threshold'.*{told}"):
        from_bytes(joined(header, body))


def test_arrays_that_overlap_or_leave_a_gap(stumps):
    header, body = split(stumps)
    names = [name for name, entry in header.items() if entry.get("shape") == [8]]
    header[names[0]]["data_offsets"] = header[names[1]]["data_offsets"]
    with pytest.raises(ValueError, match=r"begins at .*, and the one before it ends at"):
        from_bytes(joined(header, body))
    with pytest.raises(ValueError, match=r"the arrays end at .*, and the file has"):
        from_bytes(stumps + b"12345678")


def test_bool_of_other_bytes(forest):
    header, body = split(forest)
    begin, _ = header["model_.nodes.missing_left"]["data_offsets"]
    with pytest.raises(ValueError, match="of BOOL holds bytes other than 0 and 1"):
        from_bytes(joined(header, body[:begin] + b"\x02" + body[begin + 1 :]))


WORDS = [
    ("format", "pickle", "its format is 'pickle'"), ("schema", "2", "schema is 2, written by "),
    ("schema", "x", "its schema is 'x'"), ("kind", "os.system", "kind is 'os.system', which"),
    ("kind", "Forest", "its kind is 'Forest', and it holds another"), ("json", "{", "is not JSON"),
    ("fingerprint", "00", "its fingerprint is '00', and that of the model in it"),
    ("json", '{"a": 1, "a": 2}', "a name occurs twice"), ("json", "[NaN]", "NaN is no JSON number"),
    ("json", "[" * 100_000, "is not JSON"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value", "told"), WORDS, ids=lambda x: str(x)[:20])
def test_words_of_the_header(stumps, name, value, told):
    header, body = split(stumps)
    header["__metadata__"][name] = value
    with pytest.raises(ValueError, match=told):
        from_bytes(joined(header, body))


def with_array(data: bytes, name: str, change: Callable[[np.ndarray], Any]) -> bytes:
    """The file with other entries in an array."""
    found = unpacked(data)
    array = found.arrays[name].copy()
    change(array)
    return b"".join(pieces(Container(found.metadata, {**found.arrays, name: array})))


def put(at: Any, value: Any) -> Callable[[np.ndarray], None]:
    def change(array: np.ndarray) -> None:
        array[at] = value

    return change


def two_parents(right: np.ndarray) -> None:
    """Two inner nodes with the same child."""
    first, second, *_ = np.flatnonzero(right >= 0)
    right[first] = right[second]


STUMPS = [
    ("model_.rounds.threshold", put(0, np.nan), "threshold must be numbers; got NaN"),
    ("model_.rounds.feature", put(0, 4), "rounds.feature must be from 0 to 3; got 4"),
    ("model_.rounds.feature", put(0, -1), "rounds.feature must be from 0 to 3; got -1"),
    ("model_.rounds.missing_leaf", put(0, 3), "rounds.missing_leaf must be from 0 to 2; got 3"),
    ("model_.rounds.values", put((0, 0, 0), np.inf), "rounds.values must be finite"),
    ("model_.rounds.values", put((0, 0, 0), 0.5), "model_.tables does not follow"),
    ("model_.tables.thresholds", put(0, 0.5), "model_.tables does not follow"),
    ("model_.intercept", put(0, np.nan), "intercept must be finite"),
]
FOREST = [
    ("model_.nodes.threshold", put(slice(None), np.nan), "threshold of node .* must be a number"),
    ("model_.nodes.feature", put(0, 5), "nodes.feature must be from -1 to 4; got 5"),
    ("model_.nodes.left", put(0, 0), r"the children of node 0 must be 1 and a later node"),
    ("model_.nodes.right", put(0, 0), r"the children of node 0 must be 1 and a later node"),
    ("model_.nodes.right", put(0, 2**31 - 1), r"the children of node 0 must be 1 and a later node"),
    ("model_.nodes.right", two_parents, "must be trees, whose .* one node each"),
    ("model_.nodes.feature", put(-1, 0), r"the children of node \d+ must be"),
    ("model_.nodes.left", put(-1, 0), r"the children of leaves must be -1"),
    ("model_.nodes.value", put(0, np.nan), "nodes.value must be finite"),
    ("model_.starts", put(1, 0), "starts must be ascending from 0"),
    ("model_.starts", put(0, 1), "starts must be ascending from 0"),
    ("model_.categories.4", put(0, np.nan), r"categories\[4\] must be ascending, without NaN"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "change", "told"), STUMPS + FOREST)
def test_content_of_an_array(stumps, forest, name, change, told):
    data = forest if "nodes" in name or "starts" in name or "categories" in name else stumps
    with pytest.raises(ValueError, match=told):
        from_bytes(with_array(data, name, change), verify=False)


def test_entry_that_only_the_fingerprint_notices(forest):
    data = with_array(forest, "model_.nodes.value", put(0, 0.25))
    from_bytes(data, verify=False)
    with pytest.raises(ValueError, match=r"its fingerprint is .*: it was changed"):
        from_bytes(data)


def edited(data: bytes, *path: Any, value: Any) -> bytes:
    """The file with another value in the JSON of its object."""
    header, body = split(data)
    root = json.loads(header["__metadata__"]["json"])
    at = root
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    header["__metadata__"]["json"] = json.dumps(root)
    return joined(header, body)


OBJECTS = [
    (("params", "n_jobs"), 10**6, "n_jobs=1000000, and may have 1024"),
    (("params", "n_jobs"), "all", "a parameter that it does not take"),
    (("params", "estimatr"), 3, "has no parameter estimatr"),
    (("params", "variant"), {"type": "posix.system", "items": []}, "of type 'posix.system'"),
    (("params", "random_state"), {"type": "RandomState"}, "random_state is no RandomState"),
    (("fitted", "classes_"), {"type": "array", "name": "model_.rounds.values"}, "must be labels"),
    (("fitted", "classes_", "items"), ["no", "no"], "not distinct labels"),
    (("fitted", "classes_", "items"), ["no"], "classes, and its model 1 outputs"),
    (("fitted", "classes_", "dtype"), "<U999999999", "far more memory"),
    (("fitted", "n_features_in_"), 3, "n_features_in_=3, and its model 4 features"),
    (("fitted", "link_"), "identity", "cannot have link_='identity'"),
    (("fitted", "scale_"), -1.0, "has to be positive"),
    (("fitted", "model_"), {"type": "array", "name": "alphas_"}, "model_ must be a AdditiveModel"),
    (("fitted", "model_", "n_features"), True, "model_.n_features must be an integer"),
    (("fitted", "model_", "rounds"), {"type": "Rounds"}, r"model_.rounds \(Rounds\) needs feature"),
    (("fitted", "__class__"), "x", "has no attribute '__class__'"),
    (("fitted",), {"scale_": 1.0}, "is fitted and lacks classes_, link_"),
    (("fitted", "alphas_", "name"), "nothing", "array 'nothing', which the file does not have"),
]


@pytest.mark.parametrize(("path", "value", "told"), OBJECTS, ids=lambda x: str(x)[:30])
def test_object(stumps, path, value, told):
    with pytest.raises(ValueError, match=told):
        from_bytes(edited(stumps, *path, value=value), verify=False)


def test_device_of_the_training_need_not_be_there(stumps):
    loaded = from_bytes(edited(stumps, "params", "device", value="cuda"))
    assert loaded.device == "cuda"
    assert len(loaded.predict(np.zeros((2, 4)))) == 2


def test_members_have_to_fit(tmp_path):
    data = to_bytes(fitted("bagging"))
    header, _ = split(data)
    root = json.loads(header["__metadata__"]["json"])
    name = root["fitted"]["estimators_features_"][0]["name"]
    with pytest.raises(ValueError, match=r"estimators_features_\.0 are no features"):
        from_bytes(with_array(data, name, put(0, 99)), verify=False)
    trees = to_bytes(fitted("AdaBoost, trees"))
    learner = {"type": "DecisionTreeClassifier", "params": {}, "fitted": {}}
    with pytest.raises(ValueError, match=r"learners\.0 is not fitted"):
        from_bytes(
            edited(trees, "fitted", "model_", "learners", "items", 0, value=learner), verify=False
        )


HEAVY = [
    '{"__metadata__":{},"a":[' + ",".join(["[]"] * 60_000) + "]}",
    '{"__metadata__":{},"a":[' + ",".join(['{"a":{}}'] * 30_000) + "]}",
    '{"__metadata__":{},"a":[' + ",".join(["1.5"] * 60_000) + "]}",
    '{"__metadata__":{' + ",".join(f'"{k}":""' for k in range(20_000)) + "}}",
]


@pytest.mark.parametrize("text", HEAVY, ids=lambda t: t[23:40])
def test_memory_is_a_small_multiple_of_the_header(text):
    data = len(text).to_bytes(8, "little") + text.encode()
    assert peak(lambda: from_bytes(data)) < MULTIPLE * len(data)


@pytest.mark.slow
def test_memory_of_an_object_is_a_small_multiple_of_the_header(stumps):
    for value in ([[]] * 50_000, [{"type": "tuple", "items": []}] * 10_000, [0.5] * 50_000):
        data = edited(stumps, "fitted", "classes_", "items", value=value)
        assert peak(lambda data=data: from_bytes(data)) < MULTIPLE * len(data)


def peak(load: Callable[[], Any]) -> int:
    """Bytes that a file takes which is refused in the end."""
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="not a model file"):
            load()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_stumps_that_would_take_hours_to_add_up():
    n = 200_000
    rounds = Rounds(
        np.zeros(n, dtype=np.int64), np.arange(float(n)), np.zeros(n, dtype=np.int64),
        np.zeros((n, 1, 3)), np.zeros(n), np.zeros(n),
    )  # fmt: skip
    with pytest.raises(ValueError, match="200000 stumps with too many thresholds"):
        check_work(rounds, "model_.rounds")
    check_work(replace(rounds, threshold=np.arange(n) % 255.0), "model_.rounds")
    check_work(replace(rounds, feature=np.arange(n) % 99), "model_.rounds")


def test_text_that_is_not_a_model():
    for text in (
        "",
        "[]",
        "{}",
        '{"format": "ensemble_gpu", "schema": "1"}',
        "\xff",
        "[" * 100_000,
    ):
        with pytest.raises(ValueError, match="not a model file of this package"):
            read(from_text(text), True)


def test_deep_nesting_is_refused(stumps):
    value: Any = []
    for _ in range(300):
        value = {"type": "tuple", "items": [value]}
    with pytest.raises(ValueError, match=r"nested too deeply|is not JSON|does not take"):
        from_bytes(edited(stumps, "params", "variant", value=value))


@pytest.mark.slow
def test_mutated_files_are_refused_or_predict():
    found = fuzz.run(1_200, seed=5)
    assert sum(found.values()) == 1_200
    assert {kind for kind, _ in found} == set(fuzz.KINDS)
    assert sum(n for (_, what), n in found.items() if what == "predicts") > 100


@pytest.mark.long
def test_many_mutated_files_are_refused_or_predict():
    assert sum(fuzz.run(10_000, seed=6).values()) == 10_000


def test_load_of_a_file_that_is_none(tmp_path):
    path = tmp_path / "m.safetensors"
    path.write_bytes(b"")
    with pytest.raises(ValueError, match="it has 0 bytes"):
        eg.load(path)
    with pytest.raises(ValueError, match="it has 0 bytes"):
        eg.read_header(path)
    with pytest.raises(FileNotFoundError):
        eg.load(tmp_path / "none.safetensors")
