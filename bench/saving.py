"""Files of models beside pickle, XGBoost's and LightGBM's own: `python -m bench.saving`.

stumps   1,000 rounds of AdaBoost on 20,000 x 10; the peers' 1,000 rounds of two leaves
forest   about 350,000 nodes; the peers' forests on the same rows, grown as far as they go

For each: nodes (of stumps: rounds), the size of the file, bytes a node, and the best processor time
of saving and of loading, in turns, with the file in the system's cache. Ours is loaded with the
fingerprint verified and without, which still checks the structure; the peers' formats hold float32
(XGBoost) or text of 17 digits (LightGBM) and no checks of that kind. Prints a table and writes it
to bench/results/saving.md.
"""

from __future__ import annotations

import argparse
import pickle
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bench.markdown import seconds, table

RESULTS = Path(__file__).parent / "results" / "saving.md"
ROWS, FEATURES, ROUNDS, TREES = 20_000, 10, 1_000, 63


@dataclass(frozen=True)
class Contestant:
    """A format: how to save a model to a file, and how to load it."""

    name: str
    file: str
    nodes: int
    save: Callable[[Path], Any]
    load: Callable[[Path], Any]


def _data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(ROWS, FEATURES))
    return X, (X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=ROWS) > 0).astype(np.int64)


def _ours(name: str, model: Any, nodes: int) -> Iterator[Contestant]:
    import ensemble_gpu

    def load(path: Path) -> Any:
        return ensemble_gpu.load(path)

    def unverified(path: Path) -> Any:
        return ensemble_gpu.load(path, verify=False)

    def pickled(path: Path) -> Any:
        path.write_bytes(pickle.dumps(model, protocol=5))

    def unpickled(path: Path) -> Any:
        return pickle.loads(path.read_bytes())

    yield Contestant(f"{name}, verified", "a.safetensors", nodes, model.save, load)
    yield Contestant(f"{name}, not verified", "b.safetensors", nodes, model.save, unverified)
    yield Contestant(f"{name}, JSON", "a.json", nodes, model.save, load)
    yield Contestant(f"{name}, pickle", "a.pickle", nodes, pickled, unpickled)


def _xgboost(X: np.ndarray, y: np.ndarray, rounds: int, **params: Any) -> Iterator[Contestant]:
    import xgboost as xgb

    own = {"objective": "binary:logistic", "tree_method": "hist", "nthread": 1, **params}
    model = xgb.train(own, xgb.DMatrix(X, y), rounds)
    nodes = sum(text.count("\n") for text in model.get_dump())

    def load(path: Path) -> Any:
        return xgb.Booster(model_file=path)

    for suffix in ("ubj", "json"):
        yield Contestant(f"XGBoost, {suffix}", f"x.{suffix}", nodes, model.save_model, load)


def _lightgbm(X: np.ndarray, y: np.ndarray, rounds: int, **params: Any) -> Iterator[Contestant]:
    import lightgbm as lgb

    own = {"objective": "binary", "verbosity": -1, "num_threads": 1, **params}
    model = lgb.train(own, lgb.Dataset(X, y), rounds)
    nodes = sum(2 * tree["num_leaves"] - 1 for tree in model.dump_model()["tree_info"])

    def load(path: Path) -> Any:
        return lgb.Booster(model_file=path)

    yield Contestant("LightGBM, text", "l.txt", nodes, model.save_model, load)


def stumps() -> list[Contestant]:
    from ensemble_gpu import AdaBoostClassifier

    X, y = _data()
    ours = AdaBoostClassifier(n_estimators=ROUNDS, n_jobs=1).fit(X, y)
    return [
        *_ours("ours", ours, ROUNDS),
        *_xgboost(X, y, ROUNDS, max_depth=1, eta=0.3),
        *_lightgbm(X, y, ROUNDS, num_leaves=2, learning_rate=0.3),
    ]


def forest() -> list[Contestant]:
    from ensemble_gpu import RandomForestClassifier

    X, y = _data()
    ours = RandomForestClassifier(TREES, random_state=0, n_jobs=1).fit(X, y)
    return [
        *_ours("ours", ours, len(ours.model_.nodes)),
        *_xgboost(
            X, y, 1, num_parallel_tree=TREES, max_depth=0, subsample=0.63, colsample_bynode=0.3,
            eta=1.0, min_child_weight=0.0, reg_lambda=0.0,
        ),
        *_lightgbm(
            X, y, TREES, boosting="rf", num_leaves=5_000, min_data_in_leaf=1, bagging_freq=1,
            bagging_fraction=0.63, feature_fraction_bynode=0.3, min_sum_hessian_in_leaf=0.0,
        ),
    ]  # fmt: skip


PARTS = {"stumps": stumps, "forest": forest}


def _measured(contestants: list[Contestant], repeats: int) -> str:
    best: dict[tuple[str, str], float] = {}
    sizes = {}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(repeats):
            for one in contestants:
                path = Path(folder) / one.file
                for what in ("save", "load"):
                    start = time.process_time()
                    made = getattr(one, what)(path)
                    spent = time.process_time() - start
                    del made
                    key = one.name, what
                    best[key] = min(best.get(key, np.inf), spent)
                sizes[one.name] = path.stat().st_size
    rows = [
        [
            one.name, f"{one.nodes:,}", f"{sizes[one.name] / 2**20:.3g}",
            f"{sizes[one.name] / one.nodes:.0f}", *(seconds(best[one.name, w]) for w in SPENT),
        ]
        for one in contestants
    ]  # fmt: skip
    return table(["format", "nodes", "MiB", "bytes a node", "save", "load"], rows)


SPENT = ("save", "load")


def main(given: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.saving", description=__doc__)
    parser.add_argument("--only", action="append", choices=PARTS, help="one part")
    parser.add_argument("--repeats", type=int, default=15, help="of each contestant (default: 15)")
    chosen = parser.parse_args(given)
    parts = [
        f"## {name}\n\n{_measured(PARTS[name](), chosen.repeats)}" for name in chosen.only or PARTS
    ]
    text = "# Files of models\n\nBest processor times, one thread.\n\n" + "\n".join(parts)
    print(text)
    if not chosen.only:
        RESULTS.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
