"""`python -m ensemble_gpu demo`: train, compare with scikit-learn, check identity, draw."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import AdaBoostClassifier as SklearnAdaBoost
from sklearn.metrics import roc_auc_score

from ensemble_gpu import AdaBoostClassifier, ProgressBar, __version__
from ensemble_gpu.arrays import cupy as gpu
from ensemble_gpu.cli.demo_data import Data, generated, shipped
from ensemble_gpu.cli.text import heading, paragraph, seconds, table
from ensemble_gpu.diagnostics import after
from ensemble_gpu.kernels.cpu.threads import Run

# scikit-learn gets all the rounds if that takes less than this, else what fits into half of it.
PEER_SECONDS = 20.0


@dataclass(frozen=True)
class Scale:
    """How much the demo does."""

    rows: int = 100_000
    test_rows: int = 25_000
    rounds: int = 500
    # The reference engine is the portable oracle, not the fast one: fewer rows for it.
    identity_rows: int = 4_000
    identity_rounds: int = 50


@dataclass(frozen=True)
class Result:
    """One line of a comparison; no time where it is part of another line's."""

    name: str
    rounds: int
    accuracy: float
    auc: float
    fit_seconds: float | None

    @property
    def per_round(self) -> float:
        return (self.fit_seconds or 0.0) / self.rounds

    def cells(self) -> list[str]:
        times = ["", ""]
        if self.fit_seconds is not None:
            times = [seconds(self.fit_seconds), f"{1000 * self.per_round:.2f} ms"]
        return [self.name, str(self.rounds), f"{self.accuracy:.2%}", f"{self.auc:.4f}", *times]


HEADER = ("", "rounds", "accuracy", "AUC", "fit", "per round")


@dataclass(frozen=True)
class Fitted:
    """A data set with our model on it."""

    data: Data
    model: AdaBoostClassifier
    cold_seconds: float
    warm_seconds: float


def run(out: Path, scale: Scale | None = None) -> int:
    """The whole demo; 0, or 1 where models that must be equal differ."""
    scale = scale or Scale()
    start = time.perf_counter()
    print(f"ensemble_gpu {__version__}: AdaBoost with stumps, on any array library")
    data = generated(scale.rows, scale.test_rows)
    large = _first_fit(data, scale)
    _compare(large)
    fits = [large]
    for ships in shipped():
        fits.append(_fit(ships, scale.rounds))
        _compare(fits[-1])
    same = _check_identity(data, scale)
    _draw(fits[1], large, out)
    print(f"\nThe demo took {time.perf_counter() - start:.0f} s.")
    return 0 if same else 1


# --- fits ------------------------------------------------------------------------------------


def _timed(estimator: Any, X: Any, y: Any) -> tuple[Any, float]:
    start = time.perf_counter()
    estimator.fit(X, y)
    return estimator, time.perf_counter() - start


def _fit(data: Data, rounds: int) -> Fitted:
    """Fit twice: the first fit of a process compiles kernels or loads them from disk."""
    print(heading(str(data)))
    bar = AdaBoostClassifier(
        n_estimators=rounds, device="auto", callbacks=[ProgressBar("  training")]
    )
    _, cold = _timed(bar, data.X, data.y)
    model, warm = _timed(AdaBoostClassifier(n_estimators=rounds, device="auto"), data.X, data.y)
    return Fitted(data, model, cold, warm)


def _first_fit(data: Data, scale: Scale) -> Fitted:
    print(
        "\n" + paragraph("The first fit after installation compiles the kernels, which can take "
        "half a minute; they are kept on disk for the next run.")
    )  # fmt: skip
    fitted = _fit(data, scale.rounds)
    model = fitted.model
    engine = f"{model.engine_} ({Run.of(None).threads} threads)" if model.engine_ == "cpu" else (
        model.engine_
    )  # fmt: skip
    print(f"  engine: {engine}")
    print(
        f"  fit: {seconds(fitted.cold_seconds)} cold (kernels compiled, or loaded from disk), "
        f"{seconds(fitted.warm_seconds)} warm"
    )
    print(paragraph(f"model: {model.model_!r}", "  ") + "\n")
    return fitted


# --- beside scikit-learn ---------------------------------------------------------------------


def _result(name: str, estimator: Any, rounds: int, taken: float | None, data: Data) -> Result:
    """AUC of the margins, which do not saturate as probabilities do; mean over the classes."""
    F = estimator.decision_function(data.X_test)
    if F.ndim == 1:
        auc = roc_auc_score(data.y_test, F)
    else:
        auc = np.mean([roc_auc_score(data.y_test == k, F[:, k]) for k in range(F.shape[1])])
    accuracy = float(np.mean(estimator.predict(data.X_test) == data.y_test))
    return Result(name, rounds, accuracy, float(auc), taken)


def _peer_rounds(data: Data, rounds: int) -> int:
    """All of them, or as many as fit into half of PEER_SECONDS by a trial of two rounds."""
    _, trial = _timed(SklearnAdaBoost(n_estimators=2, random_state=0), data.X, data.y)
    if trial / 2.0 * rounds <= PEER_SECONDS:
        return rounds
    return max(2, int(PEER_SECONDS / 2.0 / (trial / 2.0)))


def _compare(fitted: Fitted) -> None:
    """Our default, our discrete variant (scikit-learn's algorithm) and scikit-learn."""
    data, rounds = fitted.data, fitted.model.n_estimators_
    peer_rounds = _peer_rounds(data, rounds)
    discrete = AdaBoostClassifier(variant="discrete", n_estimators=peer_rounds, device="auto")
    ours, ours_taken = _timed(discrete, data.X, data.y)
    peer, peer_taken = _timed(
        SklearnAdaBoost(n_estimators=peer_rounds, random_state=0), data.X, data.y
    )
    results = [_result("ensemble_gpu, real", fitted.model, rounds, fitted.warm_seconds, data)]
    if peer_rounds < rounds:
        early = after(fitted.model, peer_rounds)
        results.append(_result("  its first rounds", early, peer_rounds, None, data))
    results.append(_result("ensemble_gpu, discrete", ours, ours.n_estimators_, ours_taken, data))
    done = len(peer.estimators_)
    results.append(_result("scikit-learn (discrete)", peer, done, peer_taken, data))
    print(table(HEADER, [r.cells() for r in results]))
    for note in _notes(data, rounds, peer_rounds, results):
        print(paragraph(note, "  "))


def _notes(data: Data, rounds: int, peer_rounds: int, results: list[Result]) -> Iterator[str]:
    peer = results[-1].per_round
    if peer_rounds < rounds:
        yield (
            f"scikit-learn was given {peer_rounds} rounds: {rounds} would take it about "
            f"{peer * rounds:.0f} s. Compare the time per round, and accuracy at equal "
            "rounds."
        )
    same, default = (peer / results[at].per_round for at in (-2, 0))
    yield (
        f"scikit-learn takes {same:.3g} times as long for a round of the same algorithm, "
        f"{default:.3g} times as long as our default variant."
    )
    if data.truth is not None:
        accuracy = float(np.mean((data.truth > 0.0) == data.y_test))
        yield (
            "The best that any model can do on these labels, which are partly chance: accuracy "
            f"{accuracy:.2%}, AUC {roc_auc_score(data.y_test, data.truth):.4f}."
        )


# --- the same model everywhere ---------------------------------------------------------------


@dataclass(frozen=True)
class Place:
    """One way to fit: arrays moved by `put`, threads of the CPU engine."""

    name: str
    put: Callable[[np.ndarray], Any]
    n_jobs: int | None = None


def _places() -> list[Place]:
    places = [
        Place("NumPy, 1 thread", np.asarray, 1),
        Place(f"NumPy, all threads ({Run.of(None).threads})", np.asarray, None),
    ]
    if importlib.util.find_spec("array_api_strict"):
        import array_api_strict

        device = array_api_strict.Device("device1")
        places.append(
            Place("array-api-strict, device1", lambda a: array_api_strict.asarray(a, device=device))
        )
    if gpu.available():
        places.append(Place("CuPy", gpu.to_gpu))
    return places


def _check_identity(data: Data, scale: Scale) -> bool:
    """Fingerprints of fits that must be equal, printed; whether they are."""
    print(heading("The same model everywhere"))
    host = [p for p in _places() if p.put is np.asarray]
    few = min(scale.identity_rows, scale.rows)
    rows, groups = [], []
    for n, places in ((scale.rows, host), (few, _places())):
        X, y = data.X[:n], data.y[:n]
        prints = []
        for place in places:
            model = AdaBoostClassifier(n_estimators=scale.identity_rounds, n_jobs=place.n_jobs)
            _, taken = _timed(model, place.put(X), place.put(y))
            prints.append(model.model_.fingerprint())
            rows.append([f"{n:,} rows", place.name, model.engine_, seconds(taken), prints[-1][:16]])
        groups.append(prints)
    print(table(("", "arrays", "engine", "fit", "fingerprint"), rows))
    same = all(len(set(prints)) == 1 for prints in groups)
    if same:
        verdict = "Equal fingerprints mean equal models, to the last bit of every value."
    else:
        verdict = "THE FINGERPRINTS DIFFER: this is a bug, please report it with the lines above."
    print(paragraph(f"{scale.identity_rounds} rounds each. {verdict}", "  "))
    if not importlib.util.find_spec("array_api_strict"):
        print("  (array-api-strict is not installed: pip install 'ensemble_gpu[test]'.)")
    return same


# --- pictures --------------------------------------------------------------------------------


def _draw(small: Fitted, large: Fitted, out: Path) -> None:
    print(heading("Pictures"))
    try:
        import matplotlib

        matplotlib.use("Agg")
        import matplotlib.pyplot as plt

        from ensemble_gpu.plotting import curves as plotting
    except ImportError:
        print("  none: matplotlib is not installed (pip install 'ensemble_gpu[plot]').")
        return
    out.mkdir(parents=True, exist_ok=True)
    textbook = AdaBoostClassifier(variant="discrete", n_estimators=small.model.n_estimators_)
    textbook.fit(small.data.X, small.data.y)

    def pair(title: str) -> tuple[Any, Any, Any]:
        figure, axes = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained")
        figure.suptitle(title)
        return figure, *axes

    def learning() -> Any:
        figure, *axes = pair("Learning curves")
        for fitted, ax in zip((small, large), axes, strict=True):
            d = fitted.data
            plotting.plot_learning_curve(fitted.model, d.X, d.y, d.X_test, d.y_test, ax=ax)
            ax.set_title(f"{d.name}, {len(d.y):,} rows")
        return figure

    def margin() -> Any:
        figure, *axes = pair(f"Cumulative distribution of the training margins: {small.data.name}")
        for model, ax in zip((textbook, small.model), axes, strict=True):
            plotting.plot_margins(model, small.data.X, small.data.y, ax=ax)
            ax.set_title(f'variant="{model.variant}"', pad=16)
        return figure

    def shape() -> Any:
        names = large.data.feature_names
        return plotting.plot_shape_functions(large.model, X=large.data.X, feature_names=names)

    pictures = {
        "learning_curve.png": ("train and test error under the bound on train error", learning),
        "margins.png": ("margins of the training rows after 5, 50 and 500 rounds", margin),
        "shape_functions.png": ("what the most important generated features add to F", shape),
    }
    for name, (what, draw) in pictures.items():
        figure = draw()
        figure.savefig(out / name, dpi=130)
        plt.close(figure)
        print(f"  {out / name}: {what}")
