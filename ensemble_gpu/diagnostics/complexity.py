"""How rich a class of learners h = +-1 is: bounds on its Rademacher complexity.

    Rad_m(H) = E max_h (1/m) sum_i s_i h(x_i) <= sqrt(2 ln N / m)        (Massart)

over random signs s_i, where H has N different answers on m rows; N <= (e m / d)^d for a class of
VC dimension d <= m (Sauer). Convex combinations of H have the same complexity as H.
"""

from __future__ import annotations

import math
from typing import Any

from ensemble_gpu.data.parameters import check_integer, check_real


def vc_complexity(d: int, m: int) -> float:
    """sqrt(2 d ln(e m / d) / m), which bounds Rad_m of a class of VC dimension d; 1 at the most.

    Parameters
    ----------
    d : int >= 1, the VC dimension: d + 1 for half-spaces in d dimensions, 2 d for boxes, d + 1 for
        balls (`stump_dimension` for stumps)
    m : int >= 1, rows
    """
    check_integer("d", d, 1)
    check_integer("m", m, 1)
    if m <= d:
        return 1.0
    return min(1.0, math.sqrt(2.0 * d * math.log(math.e * m / d) / m))


def stump_complexity(p: int, m: int) -> float:
    """sqrt(2 ln(4 p m) / m): m thresholds a feature, two signs, two sides for missing values.

    Parameters
    ----------
    p : int >= 1, features
    m : int >= 1, rows
    """
    check_integer("p", p, 1)
    check_integer("m", m, 1)
    return min(1.0, math.sqrt(2.0 * math.log(4.0 * p * m) / m))


def stump_dimension(p: int) -> int:
    """The largest d with 2^d <= 2 p (d - 1) + 2: stumps of p features shatter no more rows.

    On d rows a feature has d - 1 thresholds that tell them apart, with two signs; two stumps are
    constant.

    Parameters
    ----------
    p : int >= 1, features
    """
    check_integer("p", p, 1)
    d = 1
    while 2 ** (d + 1) <= 2 * p * d + 2:
        d += 1
    return d


def complexity_of(estimator: Any, complexity: float | None, m: int) -> float:
    """The one given; of stumps the bound, where none is."""
    if complexity is not None:
        check_real("complexity", complexity, 0.0)
        return float(complexity)
    if getattr(estimator, "estimator", None) is not None:
        raise ValueError(
            "complexity must be given for learners other than stumps (vc_complexity, "
            f"rademacher_complexity); estimator is {estimator.estimator!r}."
        )
    return stump_complexity(int(estimator.n_features_in_), m)
