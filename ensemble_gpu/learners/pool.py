"""A pool of given classifiers: each round takes the best of them.

With h_l(x_i) in {-1, 0, +1} the answer of member l (0 abstains), D_i the weights and y_i = +-1,

    r_l = sum_i D_i y_i h_l(x_i) = W+ - W-,    e_l = (1 - r_l) / 2 where nobody abstains

and "edge" takes the member with the largest r_l (signed: |r_l|), the textbook's least weighted
error (of K classes the largest (K - 1) W+ - W-, as a guess is right once in K); "Z" the one with
the least Z_l = W0 + 2 sqrt(W+ W-), the best together with its alpha = 1/2 ln(W+ / W-). Answers are
found once; a round is one product of a matrix of bits and integer weights
(kernels/cpu/answers.py). Of members of equal merit the first is taken.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from ensemble_gpu.arrays.namespace import check_same_place, is_array
from ensemble_gpu.data.parameters import check_choice, check_flag
from ensemble_gpu.kernels.protocol import ABSTAIN, LEFT, N_LEAVES, RIGHT, Answers, Engine
from ensemble_gpu.learners.members import AnswersOnly, Member, as_signs
from ensemble_gpu.learners.protocol import LearnerRows
from ensemble_gpu.learners.votes import ClassVoters, Found, GradientVoters, Voters

CHOICES = ("edge", "Z")
# Columns of a matrix of answers that are read at a time.
BLOCK = 64


class Pool(BaseEstimator):
    """Given classifiers as the weak learners of boosting; a round takes the best of them.

    For `AdaBoostClassifier(Pool([...]), variant="discrete")`, and as `estimator` of
    BoostingClassifier (two classes) and BoostingRegressor with any loss. The model holds a
    coefficient for each member that was chosen, and asks no other. It is the same to the last bit
    on every engine and array library.

    Parameters
    ----------
    members : list, array, or None
        Classifiers that are fitted already, which answer labels of y; or functions of X, which
        answer -1, 0 (no answer) or +1, for three or more classes labels (NaN: no answer). None:
        the columns of X are the members, a matrix of such answers. An array [n, members] of X's
        library, such as int8: the answers -1, 0, +1 for the training rows; `model_.coefficients`
        and `model_.of_answers` are then what a fit is good for, as nobody can be asked about other
        rows. Clones of a pool share its members.
    signed : bool, default=False
        Whether a member may be taken with its answers reversed: coefficients of either sign.
    choose : {"edge", "Z"}, default="edge"
        What the best member is: the one with the largest edge r = W+ - W-, or with the least
        Z = W0 + 2 sqrt(W+ W-). They differ where members abstain; for other losses than the
        exponential "Z" takes the largest gain S^2 / A.
    """

    def __init__(self, members: Any = None, *, signed: bool = False, choose: str = "edge") -> None:
        self.members = members
        self.signed = signed
        self.choose = choose

    variants = ("discrete",)

    @property
    def two_classes(self) -> bool:
        """Whether answers are signs, which know two classes only."""
        return self.signed or self.choose != "edge"

    def __sklearn_clone__(self) -> Pool:
        """The same members: they are data, fitted before."""
        return Pool(self.members, signed=self.signed, choose=self.choose)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.sparse = True
        return tags

    def check(self) -> None:
        """Raise where the parameters are wrong."""
        check_flag("signed", self.signed)
        check_choice("choose", self.choose, CHOICES)
        members = self.members
        if members is None:
            return
        if is_array(members):
            if members.ndim != 2 or members.shape[1] == 0:
                raise ValueError(
                    "members must have shape (rows, members) where they are answers; got "
                    f"{tuple(members.shape)}."
                )
            return
        if not isinstance(members, list | tuple):
            raise TypeError(
                "members must be a list of fitted classifiers and functions, an array of their "
                f"answers, or None for the columns of X; got {type(members).__name__}."
            )
        if not members:
            raise ValueError("members must hold a classifier or a function at least; got none.")
        for number, one in enumerate(members):
            if isinstance(one, type) or not (hasattr(one, "predict") or callable(one)):
                raise TypeError(
                    f"members[{number}] must be a fitted classifier or a function of X; got "
                    f"{one!r}."
                )

    def voters(self, rows: LearnerRows) -> Voters:
        """What AdaBoost's rounds go by: the members' right and wrong answers."""
        n_classes = 0 if rows.classes is None else len(rows.classes)
        if n_classes > 2 and (self.signed or self.choose != "edge"):
            raise ValueError(
                "Only binary classification is supported by a Pool with signed=True or "
                f"choose='Z'. The type of the target is multiclass: {n_classes} classes."
            )
        found = PoolMembers(self, rows, right=True)
        n_features = rows.X.shape[1]
        if n_classes > 2:
            return ClassVoters(found, n_features, n_classes)
        return Voters(found, n_features)

    def gradient_learner(self, rows: LearnerRows) -> PoolVoters:
        """What the rounds of any other loss go by."""
        self.check()
        if rows.n_outputs > 1:
            raise ValueError(
                "Only binary classification is supported by estimator Pool of any loss. The type "
                f"of the target is multiclass: {rows.n_outputs} outputs. AdaBoostClassifier takes "
                "more classes, with variant='discrete'."
            )
        return PoolVoters(rows.engine, PoolMembers(self, rows, right=False), rows.X.shape[1])


class PoolMembers:
    """A pool's answers for the training rows, or which of them are right (a Finder)."""

    def __init__(self, pool: Pool, rows: LearnerRows, *, right: bool) -> None:
        given = pool.members
        self.matrix = _checked_answers(given, rows) if is_array(given) else None
        sources = given
        if given is None or self.matrix is not None:
            sources = [None] * (rows.X if given is None else given).shape[1]
        self.members = [Member(k, source, rows.classes) for k, source in enumerate(sources)]
        self.engine: Engine = rows.engine
        self.signed, self.choose = pool.signed, pool.choose
        # What a guess gets wrong for each that it gets right.
        self.others = 1 if rows.classes is None else len(rows.classes) - 1
        blocks = self._blocks(rows, right)
        self.packed: Answers = rows.engine.pack_answers(blocks, rows.X.shape[0])

    def _blocks(self, rows: LearnerRows, right: bool) -> Iterator[Any]:
        """int8 [row, members]: answers, or +1 where they are right and -1 where not."""
        xp, where = rows.where.xp, rows.where
        several = rows.classes is not None and len(rows.classes) > 2
        one, none = (where.full(number, xp.int8) for number in (1, 0))
        signs = xp.where(rows.target > 0, one, -one)[:, None]
        for found in self._answers(rows):
            if right and several:
                voted = xp.where(found == rows.target[:, None], one, -one)
                found = xp.where(found < 0, none, voted)
            elif right:
                found = found * signs
            yield self.engine.adopt(xp.astype(found, xp.int8, copy=False))

    def _answers(self, rows: LearnerRows) -> Iterator[Any]:
        """What the members say about the rows, [row, members]."""
        if self.matrix is None:
            for member in self.members:
                yield member(rows.X, rows.where)[:, None]
            return
        for first in range(0, len(self.members), BLOCK):
            block = self.matrix[:, first : min(first + BLOCK, len(self.members))]
            yield as_signs(block, f"columns {first} ... of the answers", rows.where)

    def voter(self, key: int) -> Member | AnswersOnly:
        return self.members[key] if self.matrix is None else AnswersOnly(key)

    def rights(self, key: int) -> Any:
        return self.engine.answer(self.packed, key)

    answers = rights

    def by_weight(self, q: Any) -> Found | None:
        sums = self.engine.answer_sums(self.packed, q[None, :])[0]
        wrong, right = sums[LEFT], sums[RIGHT]
        edge = self.others * right - wrong
        size = np.abs(edge) if self.signed else edge
        if self.choose == "edge":
            best = int(np.argmax(size))
        else:
            total = int(self.engine.where.xp.sum(self.engine.where.xp.astype(q, self._int64)))
            half_Z = 0.5 * (total - right - wrong) + np.sqrt(right.astype(np.float64) * wrong)
            best = int(np.argmin(np.where(size > 0, half_Z, np.inf)))
        return Found(best, sums[None, :, best]) if size[best] > 0 else None

    @property
    def _int64(self) -> Any:
        return self.engine.where.xp.int64

    def by_gradient(self, S: Any, H: Any, barred: list[int]) -> Found | None:
        xp = self.engine.where.xp
        sums = self.engine.answer_sums(self.packed, xp.stack([S, H]))
        edge = sums[0, RIGHT] - sums[0, LEFT]
        edge[barred] = 0
        best = self.best_of(edge, sums[1].sum(axis=0))
        return None if best is None else Found(best, sums[:, :, best])

    def best_of(self, edge: np.ndarray, weight: np.ndarray) -> int | None:
        """The member with the best edge sum_i u_i h_i; `weight` that of the rows it answers for."""
        size = np.abs(edge) if self.signed else edge
        merit = size
        if self.choose == "Z":
            merit = np.maximum(size, 0) * (size / np.maximum(weight, 1))
        best = int(np.argmax(merit))
        return best if size[best] > 0 else None

    def edges(self, u: Any) -> np.ndarray:
        """sum_i u_i h_l(x_i) of every member, for int64 u [row]; on the host."""
        sums = self.engine.answer_sums(self.packed, u[None, :])[0]
        return sums[RIGHT] - sums[LEFT]

    def sizes(self, weights: Any) -> np.ndarray:
        """sum_i w_i h_l(x_i)^2 of every member."""
        return self.engine.answer_sums(self.packed, weights[None, :])[0].sum(axis=0)

    def gram(self, key: int, weights: Any) -> np.ndarray:
        """sum_i w_i h_m(x_i) h_l(x_i) of every member m with the member l = key."""
        where, xp = self.engine.where, self.engine.where.xp
        sign = np.zeros(N_LEAVES, dtype=np.int64)
        sign[[LEFT, RIGHT, ABSTAIN]] = -1, 1, 0
        return self.edges(xp.take(where.put(sign), self.answers(key)) * weights)


def _checked_answers(given: Any, rows: LearnerRows) -> Any:
    """A matrix of answers, as the engine sees X."""
    n, several = rows.X.shape[0], rows.classes is not None and len(rows.classes) > 2
    if given.shape[0] != n or several:
        raise ValueError(
            f"members must be answers -1, 0, +1 for the {n} rows that take part, of two classes; "
            f"got an array of shape {tuple(given.shape)}"
            + (f" for {len(rows.classes or ())} classes." if several else ".")
        )
    view = rows.engine.view(given)
    check_same_place(rows.where, members=view)
    return view


class PoolVoters(GradientVoters):
    """The members of a pool, for any loss."""

    finder: PoolMembers
