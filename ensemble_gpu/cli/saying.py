"""Results on standard output, words and progress on standard error."""

from __future__ import annotations

import json
import math
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ensemble_gpu.cli.text import table

# Of scikit-learn, where X has no names: the command line has matched the columns itself.
NAMELESS = "X does not have valid feature names"


def say(words: str, *, quiet: bool = False) -> None:
    if not quiet:
        print(words, file=sys.stderr, flush=True)


@contextmanager
def nameless() -> Iterator[None]:
    """Arrays in the order of the model's columns, without their names."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=NAMELESS)
        yield


def show_results(results: dict[str, Any], as_json: bool, stream: Any = None) -> None:
    """Names and values, as two columns or as JSON."""
    stream = stream or sys.stdout
    if as_json:
        print(json.dumps(_plain(results), indent=2), file=stream)
        return
    rows = [line for name, value in results.items() for line in _lines(name, value)]
    width = max((len(name) for name, _ in rows), default=0)
    for name, value in rows:
        print(f"{name.ljust(width)}  {value}", file=stream)


def _lines(name: str, value: Any) -> list[list[str]]:
    """One line, or one for each part of a dict of dicts."""
    if isinstance(value, dict) and all(isinstance(one, dict) for one in value.values()):
        return [[f"{name}, {part}", _text(one)] for part, one in value.items()]
    return [] if value is None else [[name, _text(value)]]


def show_table(header: list[str], rows: list[list[str]]) -> None:
    print(table(header, rows, ""))


def _plain(value: Any) -> Any:
    """JSON has no NaN and no infinity: null."""
    if isinstance(value, dict):
        return {str(name): _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value.item() if hasattr(value, "item") else value


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_text(one)}" for name, one in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(_text, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
