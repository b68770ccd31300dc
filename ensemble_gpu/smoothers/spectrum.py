"""Repeated smoothing: F_k = F_k-1 + nu S (y - F_k-1), in the eigenvectors of S.

With z = U' W^1/2 (y - F_0), q_i = 1 - nu lambda_i and B_k = I - (I - nu S)^k:

    F_k = F_0 + B_k (y - F_0),    RSS_k = sum q^2k z^2 (and what U does not reach),
    tr B_k = sum (1 - q^k),       F_k = F_0 + S c_k,    c_k = nu sum over j < k of residuals r_j.

F_0 is 0, or J y, the weighted mean. The operator of y is then J + B_k (I - J), whose trace is
tr B_k + 1 - u' B_k u (u the unit vector of J): one more where S knows no constants.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ensemble_gpu.arrays.linalg import trace
from ensemble_gpu.data.parameters import check_integer, check_not_negative, check_real
from ensemble_gpu.smoothers.protocol import Iterated, SmootherRows, Spectral

# Eigenvalues this far outside their range are rounding errors, relative to the largest.
ROUNDING = 1e-10
ZERO, MEAN, OFFSET = "zero", "mean", "offset"
INITS = (MEAN, ZERO, OFFSET)


@dataclass(frozen=True)
class Settings:
    """nu, the most rounds, and F_0."""

    rate: float
    n_rounds: int
    init: str


@dataclass(frozen=True)
class Boosted:
    """All k at once: weighted RSS and degrees of freedom [rounds], and the model of k rounds."""

    rss: np.ndarray
    df: np.ndarray
    penalty: float
    model: Callable[[int], Any]


@dataclass(frozen=True)
class BiasVariance:
    """Mean over the rows of bias^2, variance and their sum after 1, 2, ... rounds [rounds]."""

    bias2: np.ndarray
    variance: np.ndarray
    mse: np.ndarray


def start_of(y: Any, rows: SmootherRows, init: str) -> float:
    """F_0, the weighted mean of y or 0."""
    if init == ZERO:
        return 0.0
    xp = rows.where.xp
    return float(xp.mean(y) if rows.weights is None else xp.sum(rows.weights * y) / rows.total)


def check_range(eigenvalues: np.ndarray, rate: float) -> np.ndarray:
    """Eigenvalues that lie in [0, 2 / nu), or an error; rounding errors are removed."""
    low, high = float(eigenvalues.min(initial=0.0)), float(eigenvalues.max(initial=0.0))
    if low < -ROUNDING * max(high, -low):
        raise ValueError(
            f"the smoother has an eigenvalue of {low:.3g}; all must be >= 0, or residuals grow "
            "with every round."
        )
    if rate * high >= 2.0:
        raise ValueError(
            f"learning_rate {rate:g} times the largest eigenvalue of the smoother, {high:.3g}, is "
            f"{rate * high:.3g}; it must be below 2, or residuals grow with every round."
        )
    return np.maximum(eigenvalues, 0.0)


def spectral_boosted(
    parts: Spectral, y: Any, rows: SmootherRows, settings: Settings
) -> list[Boosted]:
    """L2Boost for each penalty of a symmetric smoother."""
    eigenvalues = check_range(parts.eigenvalues, settings.rate)
    start = start_of(y, rows, settings.init)
    z, outside = _seen(parts, y - start, rows)
    one = _constant(parts, rows) if settings.init == MEAN else None
    return [
        _of_penalty(parts, i, 1.0 - settings.rate * own, z, outside, one, start, settings)
        for i, own in enumerate(eigenvalues)
    ]


def _of_penalty(
    parts: Spectral, i: int, q: np.ndarray, z: np.ndarray, outside: float,
    one: np.ndarray | None, start: float, settings: Settings,
) -> Boosted:  # fmt: skip
    K, rate = settings.n_rounds, settings.rate
    rss, df = np.empty(K), np.empty(K)
    rho, power = z.copy(), np.ones_like(q)
    counted = np.ones_like(q) if one is None else 1.0 - one * one
    for k in range(K):
        rho *= q
        power *= q
        rss[k] = outside + rho @ rho
        df[k] = counted @ (1.0 - power)

    def model(k: int) -> Any:
        tau = np.empty((k, len(z)))
        rho = rate * z
        for j in range(k):
            tau[j] = rho
            rho = rho * q
        return parts.model(tau, i, start)

    return Boosted(rss, df + (one is not None), float(parts.penalties[i]), model)


def _seen(parts: Spectral, y: Any, rows: SmootherRows) -> tuple[np.ndarray, float]:
    """z = U' W^1/2 y on the host, and the square of what U does not reach."""
    xp, host = rows.where.xp, rows.where.host
    y = rows.weighted(y[:, None])
    z = xp.matmul(parts.U.T, y)
    left = y - xp.matmul(parts.U, z)
    outside = float(xp.sum(left * left)) if parts.U.shape[1] < parts.U.shape[0] else 0.0
    return host(z)[:, 0].copy(), outside


def _constant(parts: Spectral, rows: SmootherRows) -> np.ndarray:
    """U' u, u the unit vector W^1/2 1 / |W^1/2 1|."""
    xp = rows.where.xp
    one = rows.weighted(xp.ones_like(rows.X[:, :1]))
    return rows.where.host(xp.matmul(parts.U.T, one))[:, 0] / np.sqrt(rows.total)


def iterated_boosted(
    parts: Iterated, y: Any, rows: SmootherRows, settings: Settings
) -> list[Boosted]:
    """L2Boost round by round: residuals, and (I - nu S)^k, whose trace gives df."""
    where, xp, n = rows.where, rows.where.xp, rows.X.shape[0]
    start = start_of(y, rows, settings.init)
    # Columns: the residuals, and the identity, whose sum is (I - nu S)^k 1.
    A = xp.concat([(y - start)[:, None], where.put(np.eye(n))], axis=1)
    rss, df = np.empty(settings.n_rounds), np.empty(settings.n_rounds)
    residuals = np.empty((settings.n_rounds, n))
    for k in range(settings.n_rounds):
        residuals[k] = where.host(A[:, 0])
        A = A - settings.rate * parts.smooth(A)
        rss[k] = float(xp.sum(A[:, 0] * A[:, 0]))
        rest = A[:, 1:]
        df[k] = n - trace(rest, where)
        if settings.init == MEAN:
            df[k] += float(xp.sum(rest)) / n
    rate = settings.rate
    return [Boosted(rss, df, 0.0, lambda k: parts.model(rate * residuals[:k], start))]


def bias_variance(
    parts: Spectral | Iterated, penalty: int, f: Any, sigma: float, rows: SmootherRows,
    settings: Settings,
) -> BiasVariance:  # fmt: skip
    """Of y = f + noise of variance sigma^2 / w_i; sums over rows are weighted and divided by sum w.

        bias^2_k = mean(q^2k mu^2),    variance_k = sigma^2 mean((1 - q^k)^2),    mu = U' f

    With F_0 = J y: mu of f - J f, and the operator J + B_k (I - J) in place of B_k.
    """
    f = f - start_of(f, rows, settings.init)
    if isinstance(parts, Iterated):
        return _iterated_bias(parts, f, sigma, rows, settings)
    q = 1.0 - settings.rate * check_range(parts.eigenvalues, settings.rate)[penalty]
    mu, outside = _seen(parts, f, rows)
    counted, extra = np.ones_like(q), 0.0
    if settings.init != ZERO:
        counted, extra = 1.0 - _constant(parts, rows) ** 2, 1.0
    bias2, variance = np.empty((2, settings.n_rounds))
    power = np.ones_like(q)
    for k in range(settings.n_rounds):
        mu *= q
        power *= q
        bias2[k] = outside + mu @ mu
        variance[k] = counted @ (1.0 - power) ** 2 + extra
    bias2, variance = bias2 / rows.total, variance * (sigma * sigma / rows.total)
    return BiasVariance(bias2, variance, bias2 + variance)


def _iterated_bias(
    parts: Iterated, f: Any, sigma: float, rows: SmootherRows, settings: Settings
) -> BiasVariance:
    where, xp, n = rows.where, rows.where.xp, rows.X.shape[0]
    identity = where.put(np.eye(n))
    centre = identity if settings.init == ZERO else identity - 1.0 / n
    A = xp.concat([f[:, None], centre], axis=1)  # B_k C + J = I - (I - nu S)^k C for C = I - J
    bias2, variance = np.empty((2, settings.n_rounds))
    for k in range(settings.n_rounds):
        A = A - settings.rate * parts.smooth(A)
        B = identity - A[:, 1:]
        bias2[k], variance[k] = float(xp.sum(A[:, 0] * A[:, 0])) / n, float(xp.sum(B * B)) / n
    variance *= sigma * sigma
    return BiasVariance(bias2, variance, bias2 + variance)


def _components(
    eigenvalues: Any, name: str, given: Any, rate: float
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Eigenvalues in their range, and a finite number for each of them."""
    check_real("learning_rate", rate, 0.0)
    own, given = (np.asarray(one, dtype=np.float64) for one in (eigenvalues, given))
    if own.ndim != 1 or not len(own) or not np.isfinite(own).all():
        raise ValueError(f"eigenvalues must be a list of finite numbers; got {eigenvalues!r}.")
    if given.shape != own.shape or not np.isfinite(given).all():
        raise ValueError(
            f"{name} must hold a finite number for each of the {len(own)} eigenvalues; got shape "
            f"{given.shape}."
        )
    return check_range(own, rate), given


def another_fit_helps(
    eigenvalues: Any, signal: Any, *, k: int = 1, learning_rate: float = 1.0
) -> np.ndarray:
    """Whether fit k + 1 lowers the expected squared error of each component.

        mu^2 / sigma^2 > (2 - q^k - q^(k+1)) / (q^k (1 + q)),    q = 1 - nu lambda

    Parameters
    ----------
    eigenvalues : array [r], lambda in [0, 2 / nu)
    signal : array [r], mu^2 / sigma^2 with mu the components of the true function
    k : int >= 0
    learning_rate : float > 0, nu

    Returns
    -------
    bool array [r]
    """
    check_integer("k", k, 0)
    own, signal = _components(eigenvalues, "signal", signal, learning_rate)
    if (signal < 0.0).any():
        raise ValueError(f"signal must hold numbers >= 0; the lowest is {signal.min():g}.")
    q = 1.0 - learning_rate * own
    # (q^2k - q^2k+2) mu^2 > ((1 - q^k+1)^2 - (1 - q^k)^2) sigma^2, both sides over (1 - q) q^k
    return (own > 0.0) & (
        q**k * q**k * (1.0 - q * q) * signal > (1.0 - q ** (k + 1)) ** 2 - (1.0 - q**k) ** 2
    )


@dataclass(frozen=True)
class BestRounds:
    """k of the least expected squared error, that error, and those of k = 0 and of k to infinity.

    `beats_limits`: it is below both. Some k beats that of infinity wherever 0 < lambda <= 1 and not
    all are 1; both are beaten by a real k > 0, though a first whole fit may be too strong for that.
    """

    k: int
    mse: float
    mse_at_zero: float
    mse_at_infinity: float

    @property
    def beats_limits(self) -> bool:
        return self.mse < min(self.mse_at_zero, self.mse_at_infinity)


def best_rounds(
    eigenvalues: Any, mu: Any, sigma: float, *, learning_rate: float = 1.0, most: int = 10_000
) -> BestRounds:
    """The k in 1 ... most that minimises mean(q^2k mu^2) + sigma^2 mean((1 - q^k)^2)."""
    check_not_negative("sigma", sigma)
    check_integer("most", most, 1)
    own, mu = _components(eigenvalues, "mu", mu, learning_rate)
    q, mu2 = 1.0 - learning_rate * own, mu * mu
    power, errors = np.ones_like(q), np.empty(most)
    for k in range(most):
        power *= q
        errors[k] = (power * power * mu2 + sigma * sigma * (1.0 - power) ** 2).mean()
    limit = np.where(own > 0.0, sigma * sigma, mu2).mean()
    k = int(np.argmin(errors))
    return BestRounds(k + 1, float(errors[k]), float(mu2.mean()), float(limit))
