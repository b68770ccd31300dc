"""Bounds on the scores of blocks: what they leave out could not have been chosen."""

from __future__ import annotations

import numpy as np

from ensemble_gpu.kernels.cpu import score
from ensemble_gpu.kernels.cpu.bounds import BLOCK, RAREST, block_space
from ensemble_gpu.kernels.cpu.sharing import ALONE
from ensemble_gpu.kernels.protocol import CONFIDENCE, GENTLE, MAJORITY
from tests.products import every_pair

KINDS = {"confidence": CONFIDENCE, "gentle": GENTLE, "majority": MAJORITY}
WIDTH, FEATURES = 130, 11


def sums_of(n_rows: int, planes: int, missing: float, signal: float, seed: int) -> np.ndarray:
    """sums[group, tile, lane, code] of integer weights; every group has one total."""
    generator = np.random.default_rng(seed)
    sums = np.zeros((2 * planes, 2, 8, WIDTH), dtype=np.int64)
    x = generator.normal(size=(n_rows, FEATURES))
    codes = np.clip(((x + 3.0) * (WIDTH - 1) / 6.0).astype(int), 0, WIDTH - 2)
    codes[generator.random(codes.shape) < missing] = WIDTH - 1
    for plane in range(planes):
        own = signal * x[:, plane] + generator.normal(size=n_rows) > 0.3
        q = (2.0 ** generator.uniform(-5, 29, n_rows)).astype(np.int64)
        for f in range(FEATURES):
            at = (2 * plane + own, np.full(n_rows, f // 8), np.full(n_rows, f % 8), codes[:, f])
            np.add.at(sums, at, q)
    return sums


def found_split(sums, kind, learn, scale, blocks):
    groups = len(sums)
    lowest = np.zeros(FEATURES)
    leaf_sums, record = np.zeros((groups, 3), dtype=np.int64), np.zeros(3, dtype=np.int64)
    largest, top = np.zeros((1, groups), dtype=np.int64), np.zeros(groups, dtype=np.int64)
    n_thresholds = np.full(FEATURES, WIDTH - 2 + learn, dtype=np.int64)
    n_thresholds[3], n_thresholds[7] = 0, 5
    criterion = n_thresholds, kind, 0.5 * scale, learn
    found = lowest, leaf_sums, record, largest, top
    spaces = score.workspace(1, groups, WIDTH)
    cost = score.split(ALONE, sums, scale, criterion, spaces, blocks, found)
    return cost, record.tolist(), leaf_sums.tolist()


# votes of more than two classes have no pairs of groups
@every_pair(
    "name, planes, signal, missing, learn",
    KINDS, [1, 3], [0.0, 0.3, 3.0], [0.0, 0.001], [False, True],
    makes_sense=lambda name, planes, *_: name != "majority" or planes == 1,
)  # fmt: skip
def test_the_split_is_that_of_all_scores(name, planes, signal, missing, learn):
    for seed in range(6):
        n_rows = (20, 300, 5_000)[seed % 3]
        sums = sums_of(n_rows, planes, missing, signal, seed)
        scale = np.random.default_rng(seed).uniform(0.1, 1.0, len(sums))
        scored = [
            found_split(
                sums, KINDS[name], learn, scale,
                block_space(1, len(sums), FEATURES, WIDTH, pairs=pairs),
            )
            for pairs in (True, False)
        ]  # fmt: skip
        assert scored[0] == scored[1]


def test_blocks_are_left_out():
    sums = sums_of(5_000, 1, 0.0, 1.0, 0)
    blocks = block_space(1, 2, FEATURES, WIDTH, pairs=True)
    found_split(sums, CONFIDENCE, False, np.ones(2), blocks)
    assert blocks[3].sum() == (FEATURES - 2) * -(-(WIDTH - 2) // BLOCK) + 1
    assert 1 <= blocks[6].sum() < 0.2 * blocks[3].sum()


def test_a_feature_with_missing_values_is_scored_as_a_whole():
    sums = sums_of(5_000, 1, 0.1, 1.0, 0)
    blocks = block_space(1, 2, FEATURES, WIDTH, pairs=True)
    found_split(sums, CONFIDENCE, False, np.ones(2), blocks)
    assert (blocks[3] == -1).all()


def test_bounds_are_tried_ever_more_rarely_where_they_leave_most_blocks():
    noise = sums_of(5_000, 1, 0.1, 0.0, 0)
    blocks = block_space(1, 2, FEATURES, WIDTH, pairs=True)
    tried = []
    for _ in range(2_000):
        found_split(noise, CONFIDENCE, False, np.ones(2), blocks)
        tried.append(blocks[7][0] == blocks[7][1])
    assert 5 < sum(tried) < 20
    assert blocks[7][1] == RAREST


def test_few_codes_have_no_bounds():
    assert block_space(1, 2, FEATURES, 20, pairs=True)[0].size == 0
