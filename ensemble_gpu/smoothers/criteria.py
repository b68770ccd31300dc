"""When to stop: criteria of (RSS, df) of n rows, smaller is better.

    aic   ln(RSS / n) + 2 df / n
    aicc  ln(RSS / n) + (1 + df / n) / (1 - (df + 2) / n)        where df < n - 2
    bic   ln(RSS / n) + ln(n) df / n
    gmdl  ln S + (df / n) ln F,  S = RSS / (n - df),  F = (sum y^2 - RSS) / (df S)   where df < n
    gcv   (RSS / n) / (1 - df / n)^2                             where df < n

n is the sum of the weights. Where a criterion is not defined it is infinite.
"""

from __future__ import annotations

import numpy as np

FORMULAS = ("aic", "aicc", "bic", "gmdl", "gcv")
CRITERIA = (*FORMULAS, "cv", None)


def curves(rss: np.ndarray, df: np.ndarray, n: float, squares: float) -> dict[str, np.ndarray]:
    """Every criterion [rounds] from RSS and df [rounds]; `squares` is the sum of w y^2."""
    with np.errstate(divide="ignore", invalid="ignore"):
        fit = np.log(rss / n)
        corrected = (1.0 + df / n) / (1.0 - (df + 2.0) / n)
        S = rss / (n - df)
        F = (squares - rss) / (df * S)
        found = {
            "aic": fit + 2.0 * df / n,
            "aicc": np.where(df < n - 2.0, fit + corrected, np.inf),
            "bic": fit + np.log(n) * df / n,
            "gmdl": np.where((df < n) & (F > 0.0), np.log(S) + df / n * np.log(F), np.inf),
            "gcv": np.where(df < n, rss / n / (1.0 - df / n) ** 2, np.inf),
        }
    return {name: np.where(np.isnan(curve), np.inf, curve) for name, curve in found.items()}


def first_minimum(curve: np.ndarray, name: str, df: np.ndarray, n: float) -> int:
    """The first k with the least criterion; an error where it is defined for none."""
    if not (curve < np.inf).any():
        raise ValueError(
            f"criterion={name!r} is not defined: after one round the smoother has {df[0]:.1f} "
            f"degrees of freedom for n_samples = {n:g}. Use a weaker smoother, "
            "criterion='bic' or 'cv', or criterion=None with a number of rounds."
        )
    return int(np.argmin(curve)) + 1
