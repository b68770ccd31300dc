"""How many rounds a call finds."""

from __future__ import annotations

from ensemble_gpu.boosting.blocks import BlockSize


def test_blocks_grow_while_they_are_short_and_shrink_when_they_are_long():
    block, sizes = BlockSize(), []
    for seconds in (0.001, 0.001, 0.007, 0.02, 0.02):
        block.note(seconds)
        sizes.append(block.rounds)
    assert sizes == [16, 32, 32, 16, 8]
