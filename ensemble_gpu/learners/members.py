"""Members of a pool: fitted classifiers, functions, or columns of X, and what they answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ensemble_gpu.arrays.namespace import NUMPY, Where, is_array, locate
from ensemble_gpu.arrays.sparse import column, is_sparse
from ensemble_gpu.model.base import NoFingerprintError, canonical_bytes
from ensemble_gpu.model.committee import check_reach


@dataclass(frozen=True, eq=False)
class Member:
    """Number `number` of a pool: its `source` is a classifier, a function, or None for a column.

    A classifier answers labels, those of `classes`. The others answer -1, 0 or +1, or, where there
    are three classes or more, labels; NaN among labels abstains.
    """

    number: int
    source: Any
    classes: np.ndarray | None

    def __str__(self) -> str:
        if self.source is None:
            return f"column {self.number} of X"
        return f"members[{self.number}] ({type(self.source).__name__})"

    @property
    def _answers_labels(self) -> bool:
        several = self.classes is not None and len(self.classes) > 2
        return several or (self.classes is not None and hasattr(self.source, "predict"))

    def __call__(self, X: Any, where: Where) -> Any:
        """Its answers -1, 0, +1, or of three or more classes their numbers, -1 where it abstains.

        Integers [n] in the namespace of X.
        """
        raw = self._shaped(self._asked(X, where), X.shape[0], where)
        if not self._answers_labels:
            return as_signs(raw, str(self), where)
        assert self.classes is not None
        index = self._numbers(raw, self.classes, where)
        return index if len(self.classes) > 2 else 2 * index - 1

    def _asked(self, X: Any, where: Where) -> Any:
        """What the member says about X, which it must leave as it is."""
        if self.source is None:
            return column(X, self.number)
        if hasattr(self.source, "predict"):
            check_reach(self.source, where)
        given, before = X, None
        if where is NUMPY and not is_sparse(X):
            given = X.view()
            given.flags.writeable = False
        else:
            before = X.copy() if is_sparse(X) else where.xp.asarray(X, copy=True)
        ask = self.source.predict if hasattr(self.source, "predict") else self.source
        try:
            answers = ask(given)
        except Exception as error:
            raise ValueError(
                f"{self} raised {type(error).__name__} when it was asked about X: {error}"
            ) from error
        if before is not None and not _unchanged(X, before, where):
            raise ValueError(f"{self} has changed the X that it was given; let it work on a copy.")
        return answers

    def _shaped(self, raw: Any, n: int, where: Where) -> Any:
        """The answers as an array [n] of X's library."""
        if not is_array(raw):
            raw = np.asarray(raw)
        shape = tuple(raw.shape)
        if shape != (n,):
            hint = " Probabilities are no answers: give their sign or the label."
            raise ValueError(
                f"{self} must answer once for each of the {n} rows of X; got an array of shape "
                f"{shape}.{hint if len(shape) == 2 else ''}"
            )
        if locate(raw).xp is not where.xp:
            raise ValueError(
                f"{self} must answer with an array of X's library, {where}; got {locate(raw)}."
            )
        return raw

    def _numbers(self, raw: Any, classes: np.ndarray, where: Where) -> Any:
        """The numbers of labels among the classes; -1 for NaN."""
        xp = where.xp
        out = where.zeros(raw.shape, xp.int64) - 1
        for k, label in enumerate(classes.tolist()):
            out = xp.where(raw == label, where.full(k, xp.int64), out)
        unknown = out < 0
        numbers = where is not NUMPY or raw.dtype.kind in "fiub"
        if len(classes) > 2 and numbers and xp.isdtype(raw.dtype, "real floating"):
            unknown = unknown & ~xp.isnan(raw)
        if bool(xp.any(unknown)):
            first = where.host(raw[unknown])[0]
            raise ValueError(
                f"{self} must answer with labels of y, {classes.tolist()!r}; got {first!r}."
            )
        return out

    def canonical(self) -> bytes:
        if self.source is None:
            return canonical_bytes([self.number])
        own = getattr(getattr(self.source, "model_", None), "fingerprint", None)
        if own is None:
            raise NoFingerprintError(
                f"{self} has no fingerprint; estimators of this package and columns of X have."
            )
        return canonical_bytes([self.number]) + own().encode()


def as_signs(raw: Any, who: str, where: Where) -> Any:
    """Answers -1, 0 and +1 as int8; an error that names `who` where they are others."""
    xp = where.xp
    if where is NUMPY and raw.dtype.kind not in "fiub":
        raise ValueError(f"{who} must answer -1, 0 or +1; got {raw.flat[0]!r}.")
    if raw.dtype == xp.int8 and int(xp.min(raw)) >= -1 and int(xp.max(raw)) <= 1:
        return raw
    raw = where.as_float64(raw)
    wrong = (raw != 0.0) & (raw != 1.0) & (raw != -1.0)
    if bool(xp.any(wrong)):
        raise ValueError(
            f"{who} must answer -1, 0 or +1; got {float(raw[wrong][0])!r}. Probabilities are no "
            "answers: give the sign of p - 1/2."
        )
    return xp.astype(raw, xp.int8, copy=False)


@dataclass(frozen=True)
class AnswersOnly:
    """A member of which only answers for the training rows are known: column `number` of them."""

    number: int

    def __call__(self, X: Any, where: Where) -> Any:
        raise ValueError(
            "The pool was given answers for the training rows, and no members to ask about X: call "
            "model_.of_answers(answers) with the members' answers for these rows."
        )

    def canonical(self) -> bytes:
        return canonical_bytes([self.number])


def _unchanged(X: Any, before: Any, where: Where) -> bool:
    if is_sparse(X):
        return X.shape == before.shape and np.array_equal(X.data, before.data, equal_nan=True)
    xp = where.xp
    return bool(xp.all((before == X) | (xp.isnan(X) & xp.isnan(before))))
