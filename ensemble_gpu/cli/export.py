"""`export`: a model for programs without Python, in the form that the file's ending names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import ensemble_gpu
from ensemble_gpu.cli.errors import BadInput
from ensemble_gpu.cli.loading import loaded
from ensemble_gpu.cli.saying import say
from ensemble_gpu.cli.writers import check_folder


def _onnx(estimator: Any, path: Path) -> None:
    path.write_bytes(ensemble_gpu.to_onnx(estimator).SerializeToString())


def _treelite(estimator: Any, path: Path) -> None:
    ensemble_gpu.to_treelite(estimator).serialize(path)


def _code(language: str) -> Callable[[Any, Path], None]:
    def write(estimator: Any, path: Path) -> None:
        path.write_text(ensemble_gpu.to_code(estimator, language), encoding="utf-8")

    return write


WAYS: dict[str, Callable[[Any, Path], None]] = {
    ".onnx": _onnx,
    ".treelite": _treelite,
    ".c": _code("c"),
    ".py": _code("python"),
    ".safetensors": lambda estimator, path: ensemble_gpu.save(estimator, path),
    ".json": lambda estimator, path: ensemble_gpu.save(estimator, path),
}


def run(args: Any) -> int:
    path = Path(args.out)
    if path.suffix not in WAYS:
        raise BadInput(f"FILE must end with one of {', '.join(WAYS)}; got {args.out!r}")
    check_folder(args.out)
    WAYS[path.suffix](loaded(args.model), path)
    say(f"{args.out}: {path.stat().st_size:,} bytes", quiet=args.quiet)
    return 0
