"""What a file says: the estimator or model as JSON, its arrays, and a few words about it.

format        "ensemble_gpu"
schema        "1"; a reader takes its own and all older ones
kind          the class of what is saved
fingerprint   of the model ("" where it has none)
version       of the package that wrote the file
json          the object itself, as writing.py writes it
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ensemble_gpu.saving.container import Container, dumped, parsed, refuse
from ensemble_gpu.saving.reading import Reader
from ensemble_gpu.saving.registry import ESTIMATORS, MODELS, name_of
from ensemble_gpu.saving.writing import CannotBeSavedError, Writer

FORMAT, SCHEMA = "ensemble_gpu", 1
# The kind of a checkpoint whose estimator cannot be saved: its object says why.
NO_MODEL = "Checkpoint"
MOST_DIGITS = 6
# Estimators that a fit leaves something on; the others are parameters of these.
FITTABLE = frozenset(name for name, entry in ESTIMATORS.items() if entry.required)


@dataclass(frozen=True)
class Document:
    """A file's content; `root` is JSON that refers to the arrays."""

    kind: str
    fingerprint: str
    version: str
    root: Any
    arrays: Mapping[str, np.ndarray]

    @property
    def words(self) -> dict[str, str]:
        """All but the object and its arrays."""
        return {
            "format": FORMAT, "schema": str(SCHEMA), "kind": self.kind,
            "fingerprint": self.fingerprint, "version": self.version,
        }  # fmt: skip

    def packed(self) -> Container:
        return Container({**self.words, "json": dumped(self.root)}, self.arrays)


def written(value: Any, version: str) -> Document:
    """An estimator or a model as a document."""
    name = name_of(value)
    if name is None or name not in FITTABLE.union(MODELS):
        raise CannotBeSavedError(
            f"{type(value).__name__} cannot be saved: fitted estimators of this package and their "
            "models can."
        )
    if name in ESTIMATORS:
        check_is_fitted(value)
    writer = Writer()
    root = writer.value(value, "")
    return Document(name, fingerprint_of(value), version, root, writer.arrays)


def check_words(words: Mapping[str, Any]) -> None:
    """Refuse what is no file of ours, or of a schema that is not known yet."""
    if words.get("format") != FORMAT:
        refuse(f"its format is {words.get('format')!r}, not {FORMAT!r}")
    schema = words.get("schema")
    if not isinstance(schema, str) or not schema.isdecimal() or len(schema) > MOST_DIGITS:
        refuse(f"its schema is {schema!r}")
    if not 1 <= int(schema) <= SCHEMA:
        refuse(
            f"its schema is {schema}, written by version {words.get('version')!r}; this one reads "
            f"schemas up to {SCHEMA}"
        )
    for name in ("kind", "fingerprint", "version"):
        if not isinstance(words.get(name), str):
            refuse(f"it has no {name}")


def unpacked_document(container: Container) -> Document:
    """The document that a container holds."""
    words = container.metadata
    check_words(words)
    if "json" not in words:
        refuse("it has no json")
    root = parsed(words["json"], "the object")
    kind, fingerprint, version = (words[name] for name in ("kind", "fingerprint", "version"))
    return Document(kind, fingerprint, version, root, container.arrays)


def read(document: Document, verify: bool) -> Any:
    """The estimator or model of a document."""
    root = document.root
    if document.kind == NO_MODEL:
        refuse(f"it is a checkpoint to resume a fit from, and holds no model ({str(root)[:300]})")
    if document.kind not in FITTABLE and document.kind not in MODELS:
        refuse(f"its kind is {document.kind!r}, which this version does not know")
    if not isinstance(root, dict) or root.get("type") != document.kind:
        refuse(f"its kind is {document.kind!r}, and it holds another")
    try:
        found = Reader(document.arrays).value(root, "")
    except RecursionError:
        refuse("its object is nested too deeply")
    if verify and fingerprint_of(found) != document.fingerprint:
        refuse(
            f"its fingerprint is {document.fingerprint!r}, and that of the model in it "
            f"{fingerprint_of(found)!r}: it was changed"
        )
    return found


def fingerprint_of(value: Any) -> str:
    """Of the model; of several members a digest of theirs. "" where nothing is fitted."""
    model = getattr(value, "model_", value)
    if hasattr(model, "fingerprint"):
        return model.fingerprint()
    members = getattr(value, "estimators_", None)
    if members is None:
        members = [one for one in (getattr(value, "estimator_", None),) if one is not None]
    if not members:
        return ""
    digest = hashlib.sha256()
    for k, member in enumerate(members):
        features = getattr(value, "estimators_features_", None)
        if features is not None:
            digest.update(np.ascontiguousarray(features[k], dtype="<i8").tobytes())
        digest.update(_of_member(member).encode())
    return digest.hexdigest()


def _of_member(member: Any) -> str:
    label = getattr(member, "label", None)
    return fingerprint_of(member) if label is None else f"always {label}"
