"""`python -m ensemble_gpu demo`: train, compare with others, check identity, draw."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.metrics import roc_auc_score

from ensemble_gpu import __version__
from ensemble_gpu.cli.demo_contest import Contest, Quality, busy, contests, race, report, timed
from ensemble_gpu.cli.demo_data import Data, generated, shipped
from ensemble_gpu.cli.demo_keeping import Kept, keep
from ensemble_gpu.cli.demo_pictures import draw
from ensemble_gpu.cli.demo_places import ESTIMATORS, fingerprints
from ensemble_gpu.cli.text import heading, paragraph, seconds, table
from ensemble_gpu.kernels.cpu.threads import Run
from ensemble_gpu.kernels.later import compile_now


@dataclass(frozen=True)
class Scale:
    """How much the demo does."""

    rows: int = 20_000
    test_rows: int = 10_000
    rounds: int = 500
    # scikit-learn's AdaBoost takes seconds for this many.
    peer_rounds: int = 20
    trees: int = 50
    turns: int = 3
    # The reference engine is the portable oracle, not the fast one: fewer rows for it.
    identity_rows: int = 1_000
    identity_rounds: int = 10


def run(out: Path, scale: Scale | None = None) -> int:
    """The whole demo; 0, or 1 where models that must be equal differ."""
    scale = scale or Scale()
    compile_now()
    start, others = time.perf_counter(), busy()
    print(f"ensemble_gpu {__version__}: boosting, trees and random forests on any array library")
    large = generated(scale.rows, scale.test_rows)
    each = contests(scale.rounds, scale.peer_rounds, scale.trees)
    _warm_up(each, large)
    _compare(each, large, scale.turns, others)
    small = shipped()
    _on_real_data(contests(scale.rounds, 5 * scale.peer_rounds, scale.trees), small)
    same = _check_identity(large, scale)
    _draw(small[0], large, scale.rounds, out)
    kept = _keep(small[0], scale.rounds, out)
    print(f"\nThe demo took {time.perf_counter() - start:.0f} s.")
    return 0 if same and kept else 1


def _warm_up(each: list[Contest], data: Data) -> None:
    """A fit of each of ours, which compiles its kernels or loads them."""
    print(
        "\n" + paragraph("The first fit after installation compiles the kernels, which can take "
        "half a minute; they are kept on disk for the next run.")
    )  # fmt: skip
    for contest in each:
        taken = 0.0
        for contestant in contest.contestants[: contest.same + 1]:
            model, own = timed(contestant.make(), data.X, data.y)
            taken += own
        print(f"  first fit of {_lower(contest.title)}: {seconds(taken)}")
    threads = f", {Run.of(None).threads} threads" if model.engine_ == "cpu" else ""
    print(f"  engine: {model.engine_}{threads}")


def _short(title: str) -> str:
    """A title in a table."""
    return title.split(" of ")[0].split(" with ")[0]


def _lower(title: str) -> str:
    """A title within a sentence."""
    return title if title.startswith("AdaBoost") else title[0].lower() + title[1:]


def _compare(each: list[Contest], data: Data, turns: int, others: str | None) -> None:
    """Quality and time on generated rows; a single turn and no ratio where others are at work."""
    print(heading(str(data)))
    text = (
        f"Times are medians of up to {turns} fits, everybody in turns; ratios are medians as well, "
        "so that other work on this machine does little to them."
    )
    if others is not None:
        turns = 1
        text = (
            f"Other programs are at work: {others}. Times are those of one fit, and say little "
            "about who is faster; run the demo again when the machine is idle."
        )
    print(paragraph(text, "  "))
    for contest in each:
        print(f"\n  {contest.title}\n")
        for line in report(contest, race(contest, data, turns), data, others is None):
            print(line)
    if data.truth is not None:
        accuracy = float(np.mean((data.truth > 0.0) == data.y_test))
        text = (
            "The best that any model can do on these labels, which are partly chance: accuracy "
            f"{accuracy:.2%}, AUC {roc_auc_score(data.y_test, data.truth):.4f}."
        )
        print("\n" + paragraph(text, "  "))


def _on_real_data(each: list[Contest], sets: list[Data]) -> None:
    """Accuracy on the sets that scikit-learn ships."""
    print(heading("Real data: accuracy on a quarter of the rows, held out"))
    rows = []
    for contest in each:
        for contestant in contest.contestants:
            cells = [f"{_short(contest.title)}: {contestant.name}", contestant.size]
            for data in sets:
                quality = Quality.of(contestant.make().fit(data.X, data.y), data)
                cells.append(f"{quality.accuracy:.1%}")
            rows.append(cells)
    names = [data.name for data in sets]
    print(table(("", "size", *names), rows))


def _check_identity(data: Data, scale: Scale) -> bool:
    """Fingerprints of fits that must be equal, printed; whether they are."""
    print(heading("The same model everywhere"))
    n = min(scale.identity_rows, scale.rows)
    rows = list(fingerprints(data.X[:n], data.y[:n], scale.identity_rounds))
    print(table(("arrays", "engine", *ESTIMATORS), rows))
    same = all(row[2:] == rows[0][2:] for row in rows)
    if same:
        verdict = "Equal fingerprints mean equal models, to the last bit of every value."
    else:
        verdict = "THE FINGERPRINTS DIFFER: this is a bug, please report it with the lines above."
    print(paragraph(f"{n:,} rows, {scale.identity_rounds} rounds or trees. {verdict}", "  "))
    return same


def _draw(small: Data, large: Data, rounds: int, out: Path) -> None:
    print(heading("Pictures"))
    try:
        for path, what in draw(small, large, rounds, out):
            print(f"  {path}: {what}")
    except ImportError:
        print("  none: matplotlib is not installed (pip install 'ensemble_gpu[plot]').")


def _keep(small: Data, rounds: int, out: Path) -> bool:
    """Save a model, load it again, and write its report; whether the loaded model is the same."""
    print(heading("A model that lasts"))
    kept: Kept = keep(small, rounds, out)
    print(f"  {kept.model}: {kept.bytes:,} bytes, saved and loaded in {seconds(kept.seconds)}")
    print(f"  {kept.report}: what it is worth and why, as a page")
    if kept.same:
        verdict = "Loaded from the file it has the same fingerprint and the same predictions."
    else:
        verdict = "THE LOADED MODEL DIFFERS: this is a bug, please report it with the lines above."
    print(paragraph(verdict, "  "))
    return kept.same
