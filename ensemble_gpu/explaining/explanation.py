"""Shapley values of rows, as `explain` returns them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ensemble_gpu.arrays.namespace import locate, to_numpy
from ensemble_gpu.arrays.sparse import is_sparse


@dataclass(frozen=True, eq=False)
class Explanation:
    """What each feature adds to each output of the model, row by row.

    base_values + the sum of a row's values over the features are the row's outputs (`scores`).

    Attributes
    ----------
    values : array [n, features, outputs], of X's library and on its device
    base_values : array [outputs], the outputs where nothing is known about a row
    data : X as the model sees it (labels of categories as numbers)
    feature_names : list of str
    output_names : list of the classes of outputs, or None where there is one output, or no class
    """

    values: Any = field(repr=False)
    base_values: Any
    data: Any = field(repr=False)
    feature_names: list[str] = field(repr=False)
    output_names: list[Any] | None = None

    def __len__(self) -> int:
        return int(self.values.shape[0])

    @property
    def n_outputs(self) -> int:
        return int(self.values.shape[2])

    @property
    def scores(self) -> Any:
        """The outputs of the model [n, outputs]: base values plus the sum of the values."""
        xp = locate(self.values).xp
        return self.base_values[None, :] + xp.sum(self.values, axis=1)

    @property
    def mean_abs(self) -> np.ndarray:
        """Mean of |value| over the rows: float64 [features, outputs] on the host."""
        return np.abs(to_numpy(self.values)).mean(axis=0)

    def output(self, output: Any = None) -> int:
        """The number of an output; None: of the only one, of two the second, else an error."""
        names, n = self.output_names, self.n_outputs
        if output is None:
            if n <= 2:
                return n - 1
            raise ValueError(
                f"output must be chosen: the model has {n} outputs; one of {names or range(n)!r}."
            )
        if names is not None and output in names:
            return names.index(output)
        if (
            not isinstance(output, bool)
            and isinstance(output, int | np.integer)
            and 0 <= output < n
        ):
            return int(output)
        allowed = f"from 0 to {n - 1}" + ("" if names is None else f", or one of {names!r}")
        raise ValueError(f"output must be {allowed}; got {output!r}.")

    def to_shap(self, output: Any = None) -> Any:
        """The same as an `Explanation` of the package shap, which its plots take.

        `output`: the number or class of an output; None: the only one, or all of them.
        """
        from shap import Explanation as Shap

        values, base = to_numpy(self.values), to_numpy(self.base_values)
        data = self.data.toarray() if is_sparse(self.data) else to_numpy(self.data)
        base = np.repeat(base[None, :], len(values), axis=0)
        names: Any = self.output_names
        if output is not None or self.n_outputs == 1:
            k = self.output(output)
            values, base, names = values[:, :, k], base[:, k], None
        return Shap(
            values=values, base_values=base, data=data, feature_names=self.feature_names,
            output_names=names,
        )  # fmt: skip

    def plot(self, row: int = 0, output: Any = None, *, most: int = 10, ax: Any = None) -> Any:
        """The largest values of one row as bars from the base value on; matplotlib Axes."""
        from ensemble_gpu.explaining.pictures import plot_local

        return plot_local(self, row, output, most=most, ax=ax)
