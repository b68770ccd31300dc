"""Shapley values of trees: the game, the integral, and what its solution needs of the nodes.

A set S of features is known. A test of a feature in S sends x where it belongs; at any other test x
goes both ways, by the shares of the training weight there ("path-dependent", Lundberg et al. 2018).
So leaf l with value v_l is worth

    v_l  prod_{j in S} o_j  prod_{j not in S} z_j

with, over the tests of feature j on the way to l, o_j = 1 where x passes all of them (else 0), and
z_j the product of their shares. The Shapley value of j is its mean worth when features come in
random order, or, each feature being there with probability t (Owen 1972),

    phi_j = sum_l v_l (o_j - z_j) int_0^1 prod_{k != j} (z_k (1 - t) + o_k t) dt

The integrand is a polynomial of degree d - 1, d the number of features on the way, so ceil(d / 2)
points of Gauss and Legendre give the integral exactly; all its factors are >= 0, so nothing
cancels. Both engines do this: `reference` leaf by leaf, `cpu` for all leaves below an edge at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class PathShares:
    """One entry a node, but `points`, which has one a tree.

    The edge of a node leads to it from its `parent` (-1: it is a root), whose feature is the edge's
    feature. `twin` is the nearest node above whose edge has the same feature (-1: there is none).
    `share` is z_j on the way down to the node, j the edge's feature; `reach` the product of the
    shares of all tests on the way. A child's share is its part of both children's weight; of their
    rows, where they weigh nothing. `points` are those of the quadrature.
    """

    parent: np.ndarray
    depth: np.ndarray
    twin: np.ndarray
    share: np.ndarray
    reach: np.ndarray
    points: np.ndarray


def quadrature(points: int) -> tuple[np.ndarray, np.ndarray]:
    """Places and weights that integrate polynomials below degree 2 `points` over [0, 1]."""
    at, weight = np.polynomial.legendre.leggauss(points)
    return 0.5 * (at + 1.0), 0.5 * weight
