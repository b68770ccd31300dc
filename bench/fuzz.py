"""Mutations of valid model files: `python -m bench.fuzz --mutations 100000`.

Each mutated file must give a ValueError, or an estimator that predicts finite or other numbers for
rows of its width (or refuses them with a ValueError): no other exception, no crash, no hang, no
memory beyond a limit. The mutations, from the outside in:

bits        a few bits anywhere
bytes       cut, lengthened, a part removed, doubled, or taken from another file
header      a value of the header is another, is gone, or is moved: types, shapes, offsets, strings
object      the same for the JSON of the object: numbers, texts, types, parts of other files
arrays      entries of an array are others: NaN, infinities, -1, large numbers, neighbours'
text        the same for the .json file, as bytes

Every other file is loaded without a comparison of the fingerprint, which lets more mutations
through to the checks of structure. A worker process does the loading; if it dies, the case that it
was at is told. The same seed gives the same mutations.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import signal
import subprocess
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np

SEED = 19
# A case may take so many seconds of processor time, and the process so much memory more than it has
# at the beginning.
SECONDS, MEMORY = 10, 4 << 30
KINDS = ("bits", "bytes", "header", "object", "arrays", "text")
NASTY: list[Any] = [
    None, True, False, 0, 1, -1, 2, 3, 255, 2**31 - 1, 2**31, 2**63, -(2**63), 10**30, 0.5, -0.0,
    1e308, "", "x", "NaN", "Infinity", "float64", "F64", "U8", "BOOL", "model_", "<U1000000000", [],
    [[]], {}, [1, 2], {"type": "tuple", "items": []}, {"type": "float", "value": "NaN"},
    {"type": "float", "value": "-Infinity"}, {"type": "map", "items": []},
    {"type": "array", "name": "model_.intercept"}, {"type": "labels", "dtype": "<U9", "items": []},
    {"type": "AdaBoostClassifier", "params": {}, "fitted": {}},
    {"type": "Always", "label": 0}, {"type": "RandomState"}, {"type": "posix.system"},
]  # fmt: skip
NUMBERS = [np.nan, np.inf, -np.inf, -1, 0, 1, 2, 3, 5, 100, 2**31 - 1, -(2**31), 1e300, 0.5]


def originals() -> list[tuple[bytes, bytes, np.ndarray]]:
    """Small files of several kinds, as bytes and as text, and rows to predict."""
    from ensemble_gpu.saving.document import written
    from ensemble_gpu.saving.files import to_bytes
    from ensemble_gpu.saving.text import to_text

    found = []
    for estimator, X in _estimators():
        text = to_text(written(estimator, "0")).encode()
        found.append((to_bytes(estimator), text, X))
    return found


def _estimators() -> list[tuple[Any, np.ndarray]]:
    import ensemble_gpu as eg
    from ensemble_gpu.learners import HalfSpaces, Pool, Rectangles
    from ensemble_gpu.smoothers import Spline

    rng = np.random.default_rng(SEED)
    X = rng.normal(size=(40, 3))
    X[::7, 1] = np.nan
    full = np.where(np.isnan(X), 0.0, X)
    C = np.concatenate([X, rng.integers(0, 4, (40, 1))], axis=1)
    y, t = (full[:, 0] > 0).astype(int), np.digitize(full[:, 0], [-0.5, 0.5])
    words, r = np.array(["no", "yes"])[y], full[:, 0] + full[:, 2]
    tree = eg.DecisionTreeClassifier(max_depth=2, n_jobs=1)
    one = {"n_jobs": 1, "random_state": 0}
    fits: list[tuple[Any, np.ndarray, Any]] = [
        (eg.AdaBoostClassifier(n_estimators=6, n_jobs=1), X, words),
        (eg.AdaBoostClassifier(n_estimators=4, n_jobs=1), X, t),
        (eg.RandomForestClassifier(3, max_depth=3, categorical_features=[3], **one), C, t),
        (eg.BoostingRegressor(n_estimators=3, max_depth=2, n_jobs=1), X, r),
        (eg.AdaBoostClassifier(tree, n_estimators=2, n_jobs=1, variant="discrete"), X, y),
        (eg.BaggingRegressor(n_estimators=2, random_state=0), X, r),
        (eg.AdaBoostClassifier(HalfSpaces(5), n_estimators=2, n_jobs=1), full, y),
        (eg.AdaBoostClassifier(Rectangles(), n_estimators=2, variant="discrete"), full, y),
        (eg.NeighboursClassifier(3), full, t),
        (eg.L2BoostRegressor(Spline(n_knots=4), n_estimators=3, componentwise=True), full, r),
        (eg.RidgeRegressor(), full, r),
        (eg.DecisionTreeRegressor(max_depth=3, n_jobs=1), X, r),
    ]  # fmt: skip
    pool = Pool([eg.DecisionTreeClassifier(max_depth=1, n_jobs=1).fit(full, y) for _ in range(2)])
    fits.append((eg.AdaBoostClassifier(pool, n_estimators=2, variant="discrete"), full, y))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [(estimator.fit(X, y), X[:8]) for estimator, X, y in fits]


class Mutator:
    """Mutations drawn from a generator."""

    def __init__(self, files: Sequence[tuple[bytes, bytes, np.ndarray]], seed: int) -> None:
        self.files, self.rng = files, random.Random(seed)

    def case(self, kind: str) -> tuple[bytes, np.ndarray]:
        """A mutated file, and rows that the original predicts."""
        data, text, X = self.rng.choice(self.files)
        return getattr(self, f"_{kind}")(text if kind == "text" else data), X

    def _bits(self, data: bytes) -> bytes:
        out = bytearray(data)
        for _ in range(self.rng.choice((1, 1, 2, 8))):
            out[self.rng.randrange(len(out))] ^= 1 << self.rng.randrange(8)
        return bytes(out)

    def _bytes(self, data: bytes) -> bytes:
        a, b = sorted(self.rng.randrange(len(data) + 1) for _ in range(2))
        other = self.rng.choice(self.files)[0]
        return self.rng.choice((
            data[:a], data + data[a:b], data[:a] + data[b:], data[:a] + data[a:b] * 2 + data[b:],
            data[:a] + other[a:b] + data[b:], data[:a] + other[a:],
            self.rng.randrange(2**64).to_bytes(8, "little") + data[8:],
            self.rng.randrange(len(data) + 99).to_bytes(8, "little") + data[8:],
        ))  # fmt: skip

    def _text(self, data: bytes) -> bytes:
        if self.rng.random() < 0.5:
            return self._bits(data)
        root = json.loads(data)
        for _ in range(self.rng.choice((1, 1, 2))):
            self._change(root)
        return json.dumps(root).encode()

    def _header(self, data: bytes) -> bytes:
        header, body = _split(data)
        for _ in range(self.rng.choice((1, 1, 2))):
            self._change(header)
        return _joined(header, body)

    def _object(self, data: bytes) -> bytes:
        header, body = _split(data)
        root = json.loads(header["__metadata__"]["json"])
        for _ in range(self.rng.choice((1, 1, 2, 3))):
            self._change(root)
        header["__metadata__"]["json"] = json.dumps(root)
        return _joined(header, body)

    def _arrays(self, data: bytes) -> bytes:
        from ensemble_gpu.saving.container import DTYPES

        header, body = _split(data)
        out = bytearray(body)
        names = [name for name in header if name != "__metadata__"]
        for _ in range(self.rng.choice((1, 1, 2))):
            entry = header[self.rng.choice(names)]
            begin, end = entry["data_offsets"]
            if begin == end:
                continue
            array = np.frombuffer(bytes(out[begin:end]), DTYPES[entry["dtype"]]).copy()
            self._change_array(array)
            out[begin:end] = array.tobytes()
        return _joined(header, bytes(out))

    def _change_array(self, array: np.ndarray) -> None:
        at = self.rng.randrange(len(array))
        if self.rng.random() < 0.4:
            array[at] = array[self.rng.randrange(len(array))]
            return
        with np.errstate(all="ignore"):
            value = np.array(self.rng.choice(NUMBERS))
            array[at : at + self.rng.choice((1, 1, 3))] = value.astype(array.dtype)

    def _change(self, root: Any) -> None:
        """Change one value somewhere in a tree of lists and objects."""
        at = root
        while True:
            keys = list(at) if isinstance(at, dict) else list(range(len(at)))
            if not keys:
                return
            key = self.rng.choice(keys)
            if not isinstance(at[key], dict | list) or self.rng.random() < 0.15:
                break
            at = at[key]
        how = self.rng.random()
        if how < 0.15:
            del at[key]
        elif how < 0.3:
            at[key] = deepcopy(at[self.rng.choice(keys)])
        elif how < 0.45 and isinstance(at[key], int | float):
            at[key] = at[key] + self.rng.choice((1, -1, 8, 1000))
        elif how < 0.55:
            at[key] = self._elsewhere()
        elif how < 0.6 and isinstance(at, dict):
            at[self.rng.choice(("type", "x", "n_jobs", "classes_", "link_"))] = deepcopy(at[key])
        else:
            at[key] = deepcopy(self.rng.choice(NASTY))

    def _elsewhere(self) -> Any:
        """A part of another file's object."""
        header, _ = _split(self.rng.choice(self.files)[0])
        at = json.loads(header["__metadata__"]["json"])
        for _ in range(self.rng.randrange(1, 6)):
            keys = list(at) if isinstance(at, dict) else list(range(len(at)))
            if not keys:
                return at
            at = at[self.rng.choice(keys)]
            if not isinstance(at, dict | list):
                break
        return at


def _split(data: bytes) -> tuple[Any, bytes]:
    n = int.from_bytes(data[:8], "little")
    return json.loads(data[8 : 8 + n]), data[8 + n :]


def _joined(header: Any, body: bytes) -> bytes:
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + body


def outcome(data: bytes, X: np.ndarray, kind: str, verify: bool) -> str:
    """What becomes of a file: refused, predicts, or refuses the rows. Others are raised."""
    from ensemble_gpu.saving.document import read
    from ensemble_gpu.saving.files import from_bytes
    from ensemble_gpu.saving.text import from_text

    try:
        made = read(from_text(data), verify) if kind == "text" else from_bytes(data, verify=verify)
    except ValueError:
        return "refused"
    p = getattr(made, "n_features_in_", None) or getattr(made, "n_features", 1)
    try:
        (made.predict if hasattr(made, "predict") else made)(_rows(X, p))
    except ValueError:
        return "refuses the rows"
    return "predicts"


def _rows(X: np.ndarray, p: int) -> np.ndarray:
    """The rows with p columns; of a great many a few hundred, which are refused."""
    return np.resize(X, (X.shape[0], min(p, 400)))


def run(
    n: int, seed: int, tell: Callable[[int], None] = lambda k: None, first: int = 0
) -> Counter[tuple[str, str]]:
    """Outcomes of n mutations from number `first` on; each has a seed of its own."""
    files, found = originals(), Counter[tuple[str, str]]()
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for k in range(first, n):
            kind = KINDS[k % len(KINDS)]
            tell(k)
            data, X = Mutator(files, seed * 10**9 + k).case(kind)
            try:
                found[kind, outcome(data, X, kind, verify=k // len(KINDS) % 2 == 0)] += 1
            except Exception as error:
                raise AssertionError(f"mutation {k} ({kind}) of seed {seed}: {error!r}") from error
    return found


def _worker(n: int, seed: int, first: int) -> None:
    """Prints the number of each case before it, and the counts at the end."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

    def tell(k: int) -> None:
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        if k % 100 == 0:
            print(k, flush=True)

    found = run(n, seed, tell, first)
    signal.setitimer(signal.ITIMER_PROF, 0)
    print(json.dumps([[*key, count] for key, count in found.items()]), flush=True)


def main(given: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.fuzz", description=__doc__)
    parser.add_argument("--mutations", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--first", type=int, default=0, help="the number of the first mutation")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args(given)
    if chosen.worker:
        _worker(chosen.mutations, chosen.seed, chosen.first)
        return 0
    start = time.perf_counter()
    command = [sys.executable, "-m", "bench.fuzz", "--worker"]
    for name in ("mutations", "seed", "first"):
        command += [f"--{name}", str(getattr(chosen, name))]
    lines = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        for line in child.stdout or ():
            lines.append(line.strip())
    if child.returncode:
        print(f"The worker died ({child.returncode}) within 100 of mutation {lines[-1]}.")
        return 1
    counts = {(kind, what): n for kind, what, n in json.loads(lines[-1])}
    outcomes = sorted({what for _, what in counts})
    print(f"| mutation | {' | '.join(outcomes)} |")
    print(f"|---|{'---|' * len(outcomes)}")
    for kind in KINDS:
        row = (f"{counts.get((kind, what), 0):,}" for what in outcomes)
        print(f"| {kind} | {' | '.join(row)} |")
    seconds = time.perf_counter() - start
    print(f"\n{sum(counts.values()):,} mutations in {seconds:.0f} s, none crashed.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
