"""Markdown and JSON from outcomes; ratios are the headline."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from bench.markdown import seconds, table
from bench.measure import Timing
from bench.peers import OURS
from bench.works import AUC, Outcome, Work, works

TARGET_THREADS = 2


def _peers(outcome: Outcome) -> list[str]:
    return [name for name in outcome.timings if not name.startswith(OURS)]


def fastest_peer(outcome: Outcome) -> str:
    """By best time, among those that are not ours."""
    return min(_peers(outcome), key=lambda name: outcome.timings[name].best)


def headline(work: Work, outcome: Outcome) -> dict[str, Any]:
    """Ours, the fastest peer, their ratio and whether the target is met."""
    ours = outcome.timings[work.ours]
    peer = fastest_peer(outcome)
    ratio = outcome.timings[peer].best / ours.best
    figure = ours.best * 1e3 if work.unit == "ms" else ratio
    verdict = ""
    if work.at_least is not None and work.aim is not None:
        sign = -1 if work.unit == "ms" else 1
        reached = [sign * figure >= sign * goal for goal in (work.at_least, work.aim)]
        verdict = "aim reached" if reached[1] else "met" if reached[0] else "missed"
    apart = behind = None
    if outcome.scores:
        best = max(outcome.sign * outcome.scores[name] for name in _peers(outcome))
        apart = outcome.scores[work.ours] - outcome.scores[peer]
        behind = outcome.scores[work.ours] - outcome.sign * best
    if verdict and apart is not None and outcome.sign * apart < -work.tolerance:
        verdict += f", not at equal {outcome.measure}"
    if verdict and ours.threads != TARGET_THREADS:
        verdict += f" ({ours.threads} thread(s); the target is for {TARGET_THREADS})"
    return {
        "work": work.title,
        "ours": ours.best,
        "peer": peer,
        "peer_seconds": outcome.timings[peer].best,
        "ratio": ratio,
        "median_ratio": outcome.timings[peer].median / ours.median,
        "at_least": work.at_least,
        "aim": work.aim,
        "unit": work.unit,
        "verdict": verdict,
        "measure": outcome.measure,
        "score_difference": apart,
        "difference_to_best_peer": behind,
    }  # fmt: skip


def headline_table(lines: list[dict[str, Any]]) -> str:
    """The table of targets."""
    rows = []
    for line in lines:
        unit = " ms" if line["unit"] == "ms" else "x"
        goals = "" if line["aim"] is None else f"{line['at_least']}{unit} / {line['aim']}{unit}"
        apart, behind = line["score_difference"], line["difference_to_best_peer"]
        rows.append([
            line["work"],
            f"**{line['ratio']:.1f}x**",
            f"{line['median_ratio']:.1f}x",
            seconds(line["ours"]),
            f"{seconds(line['peer_seconds'])} ({line['peer']})",
            "" if apart is None else f"{line['measure']} {apart:+.4f}",
            "" if behind is None else f"{behind:+.4f}",
            goals,
            line["verdict"],
        ])  # fmt: skip
    head = [
        "work", "ratio of best", "of medians", "ours", "fastest peer",
        "held out, ours - peer", "ours - best of the peers", "at least / aim", "",
    ]  # fmt: skip
    return table(head, rows)


def detail_table(work: Work, outcome: Outcome) -> str:
    """Everybody's times in one work."""
    ours = outcome.timings[work.ours].best
    rows = [
        [
            name,
            f"{outcome.rounds[name]:,}" if name in outcome.rounds else "",
            seconds(t.best),
            seconds(t.median),
            seconds(min(t.cpu)),
            str(len(t.wall)),
            f"{t.best / ours:.2f}",
            f"{outcome.scores[name]:.5f}" if name in outcome.scores else "",
            f"{min(t.disturbed):.0%}",
        ]
        for name, t in sorted(outcome.timings.items(), key=lambda item: item[1].best)
    ]
    head = [
        "", "rounds", "best", "median", "least CPU", "runs", "time / ours",
        f"held-out {outcome.measure}", "others on the CPU",
    ]  # fmt: skip
    return f"### {work.title}\n\n" + table(head, rows)


def from_json(kept: dict[str, Any], key: str) -> Outcome:
    """The outcome of one work of a run that was written before."""
    work, threads = kept["works"][key], kept["machine"]["threads used"]
    timings = {
        name: Timing(
            threads,
            work["seconds"][name],
            work["cpu_seconds"][name],
            work["share_of_cpu_taken_by_others"][name],
        )
        for name in work["seconds"]
    }
    scores = work["scores"] if "scores" in work else work["auc"]  # files of before
    return Outcome(timings, scores, work.get("measure", AUC), work.get("rounds", {}))


def as_json(work: Work, outcome: Outcome) -> dict[str, Any]:
    """Everything measured in one work."""
    return {
        **headline(work, outcome),
        "seconds": {name: t.wall for name, t in outcome.timings.items()},
        "cpu_seconds": {name: t.cpu for name, t in outcome.timings.items()},
        "share_of_cpu_taken_by_others": {n: t.disturbed for n, t in outcome.timings.items()},
        "scores": outcome.scores,
        "rounds": outcome.rounds,
    }


def combined(runs: list[dict[str, Any]]) -> str:
    """One report from runs of several parts, in their order; texts of parts without rows follow."""
    pairs = [
        (work, from_json(kept, work.key))
        for kept in runs
        for work in works(quick=kept["quick"])
        if work.key in kept["works"]
    ]
    machine = {k: v for k, v in runs[0]["machine"].items() if k != "load before the run"}
    loads = [str(kept["machine"]["load before the run"]) for kept in runs]
    about = [[k, str(v)] for k, v in machine.items()]
    about.append(["load before each part", ", ".join(loads)])
    return "\n".join([
        "# Benchmark\n",
        headline_table([headline(*pair) for pair in pairs]),
        *(detail_table(*pair) for pair in pairs),
        *(text for kept in runs for text in kept.get("texts", [])),
        table(["machine", ""], about),
    ])  # fmt: skip


def main() -> None:
    """`python -m bench.report FILE ...` prints one report from the JSON of several runs."""
    print(combined([json.loads(Path(name).read_text()) for name in sys.argv[1:]]))


if __name__ == "__main__":
    main()
