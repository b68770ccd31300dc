"""What all models have in common: they are immutable, and equal where their fingerprints are.

The fingerprint is the SHA-256 of a name and of arrays in a canonical form:

floats             float64 with one zero and one NaN
unsigned integers  uint64
the others         int64

all little-endian and in C order, one after the other. Lengths come first, as an array of their own,
so that no two models have the same bytes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

# Entries of an array that become canonical bytes at once.
PART = 1 << 15


class Model:
    """An immutable function on the host; a subclass is called with X and gives F [n, outputs].

    A subclass names its format, yields its canonical bytes, and returns the arguments of its
    constructor as its state, so that a pickle holds nothing that can be computed from them.
    """

    _format: ClassVar[bytes]

    def _assign(self, **attributes: Any) -> None:
        """Set attributes; for constructors only."""
        for name, value in attributes.items():
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable; cannot set {name!r}.")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable; cannot delete {name!r}.")

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]

    def _canonical(self) -> Iterator[bytes]:
        """Everything that the predictions, the stages and the importances depend on."""
        raise NotImplementedError

    def fingerprint(self) -> str:
        """SHA-256 of the canonical bytes: equal fingerprints mean equal models."""
        digest = hashlib.sha256(self._format)
        for part in self._canonical():
            digest.update(part)
        return digest.hexdigest()

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Model) and self._identity() == other._identity())

    def __hash__(self) -> int:
        return hash(self._identity())

    def _identity(self) -> object:
        """What equal models share; a model that has no fingerprint is equal to itself alone."""
        try:
            return self.fingerprint()
        except NoFingerprintError:
            return id(self)


class NoFingerprintError(TypeError):
    """The model holds learners of other packages, whose content has no canonical bytes."""


def canonical_bytes(array: Any) -> bytes:
    """Bytes that equal arrays share, whatever their memory layout, byte order and precision."""
    array = np.asarray(array)
    if array.dtype.kind == "f":
        array = np.where(np.isnan(array), np.nan, array + 0.0)
    kind = {"f": "<f8", "u": "<u8"}.get(array.dtype.kind, "<i8")
    return np.ascontiguousarray(array, dtype=kind).tobytes()


def canonical_parts(array: Any) -> Iterator[bytes]:
    """`canonical_bytes` of a long array, some entries at a time: they stay in the cache."""
    flat = np.ascontiguousarray(array).reshape(-1)
    for start in range(0, max(1, len(flat)), PART):
        yield canonical_bytes(flat[start : start + PART])


def read_only(array: Any, dtype: Any) -> np.ndarray:
    """A read-only contiguous array of the type; the caller's memory where it is that already."""
    own = np.ascontiguousarray(array, dtype=dtype).view()
    own.flags.writeable = False
    return own


def check_array(name: str, array: np.ndarray, shape: tuple[int | None, ...]) -> None:
    """Raise where an array has another shape (None: any size), or is not finite."""
    fits = array.ndim == len(shape) and all(
        asked in (None, own) for asked, own in zip(shape, array.shape, strict=True)
    )
    if not fits:
        sizes = ", ".join("any" if size is None else str(size) for size in shape)
        raise ValueError(f"{name} must have shape ({sizes}); got {array.shape}.")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite; got NaN or infinity.")


def check_range(name: str, array: np.ndarray, low: int, high: int) -> None:
    """Raise where an integer is below `low` or above `high`."""
    if len(array) and (array.min() < low or array.max() > high):
        outside = array[(array < low) | (array > high)]
        raise ValueError(f"{name} must be from {low} to {high}; got {int(outside[0])}.")


def check_length(name: str, n: int) -> None:
    """Raise where a model of the first n rounds or trees cannot be."""
    if n < 0:
        raise ValueError(f"{name} must be an integer >= 0; got {n!r}.")
