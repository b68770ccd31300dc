"""The cost sheet (bench/cuda_cost.py) finds what it counts, for every tree kernel."""

from __future__ import annotations

import pytest

from bench import cuda_trees
from bench.cuda_cost import work_of
from bench.cuda_limits import GPUS, Gpu, block_of, occupancy
from ensemble_gpu.kernels.cuda.launch import device_plan
from tests.cuda.compiled.conftest import Built
from tests.cuda.signatures import KERNELS

TREES = {name for name, kernel in KERNELS.items() if ".trees." in kernel.__module__}


def test_every_tree_kernel_is_in_the_sheet() -> None:
    assert set(cuda_trees.HOT) == TREES


def test_a_unit_of_work_has_instructions_and_bytes(plain: Built) -> None:
    """Bounds that a loop found by mistake, or one unrolled by another factor, would break."""
    for k in plain.kernels:
        if k.kernel in TREES and k.signature == 0:
            hot, count = cuda_trees.HOT[k.kernel], cuda_trees.per_unit(k)
            assert 10 < count / max(1, hot.turns) < 120, k.kernel
            assert hot.n_bytes > 0, k.kernel
            assert work_of(k)[0] == hot.unit


def test_a_cell_is_scanned_in_few_instructions(plain: Built) -> None:
    for k in plain.kernels:
        if k.kernel.startswith("split_"):
            assert 10 < cuda_trees.per_cell(k) < 40, k.kernel


@pytest.mark.parametrize("gpu", GPUS, ids=lambda gpu: gpu.name)
def test_blocks_of_node_kernels_share_a_multiprocessor(gpu: Gpu, plain: Built) -> None:
    plan = device_plan(gpu.processors)
    for k in plain.kernels:
        if k.kernel.startswith("split_"):
            block = block_of(k.kernel, plan)
            assert block == plan.node_threads
            resident = occupancy(k, gpu, block) * gpu.threads / block
            assert resident >= (1 if k.kernel.endswith("_large") else 5), k.kernel
