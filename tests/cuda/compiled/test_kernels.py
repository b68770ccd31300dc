"""What the compiler made of every kernel: PTX, registers, shared memory, SASS."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from ensemble_gpu.kernels.jit import digest
from tests.cuda.compiled.conftest import Built
from tests.cuda.sass import PLAIN, Compiled, loop_around, numba_type
from tests.cuda.signatures import KERNELS, SIGNATURES

SPLITS = ("split_rows", "split_rows_large", "split_sums", "split_sums_large")
# 64 registers let two blocks of 512 threads share a multiprocessor, 80 three blocks of 256, 72
# seven of 128.
MOST_REGISTERS = {"score": 80, "choose": 80, **dict.fromkeys(SPLITS, 72)}
ROW_KERNEL_REGISTERS = 64
STATIC_SHARED_BYTES = 48 * 1024
HISTOGRAMS = ("build", "build_wide", "update", "update_wide", "sum_parts", "sum_direct")

TREES = (
    "sum_parts", "sum_direct", "subtract", "mark", "scatter", "restore", "number_rows", "compare",
    "sum_by", "leaves",
)  # fmt: skip
ANSWERS = ("digits_of", "count_answers")

# Instructions on doubles that the kernels of integers may have: load and test a factor, int to
# double, one product, round half to even.
RESCALE = {
    "ld.global.f64", "setp.ltu.f64", "setp.ge.f64", "cvt.rn.f64.s32", "mul.f64",
    "cvt.rni.s64.f64", "cvt.rni.s32.f64", "mov.f64",
}  # fmt: skip
DOUBLES = {
    "build": set(),
    "build_wide": set(),
    "heaviest": set(),
    "update": RESCALE,
    "update_wide": RESCALE,
    "quantise": {"ld.global.f64", "mul.f64", "cvt.rni.s64.f64", "cvt.rni.s32.f64"},
    "pack": {"ld.param.f64", "ld.global.f64", "mul.f64", "cvt.rni.s64.f64"},
    **{name: set[str]() for name in (*TREES, *ANSWERS)},
}
ROWWISE = ("exponentiate", "move", "pack")


def barriers(ptx: str) -> int:
    return len(re.findall(r"^\s+bar(?:rier)?\.sync", ptx, flags=re.MULTILINE))


def opcodes(ptx: str) -> set[str]:
    """Instructions of a PTX text, with their types."""
    return set(re.findall(r"^\s+(?:@!?%\w+ )?([a-z][a-z0-9_.]*)\s", ptx, flags=re.MULTILINE))


def test_every_signature_compiles(plain: Built) -> None:
    expected = {(name, k) for name, found in SIGNATURES.items() for k in range(len(found))}
    assert {(k.kernel, k.signature) for k in plain.kernels} == expected


def test_every_kernel_is_linked(linked: Built) -> None:
    assert {k.kernel for k in linked.kernels} == set(SIGNATURES)


def test_linked_code_has_the_barriers_of_plain_code(
    linked: Built, built: Callable[[str, str], Built]
) -> None:
    """None is optimised away, and none is doubled into two branches."""
    plain = {k.kernel: k for k in built(linked.capability, PLAIN).kernels if k.signature == 0}
    for k in linked.kernels:
        assert barriers(k.ptx) == barriers(plain[k.kernel].ptx), k.kernel
    assert sum(barriers(k.ptx) for k in linked.kernels) > 20


def test_no_product_is_fused_with_a_sum(kernels: list[Compiled]) -> None:
    for k in kernels:
        fused = {op for op in opcodes(k.ptx) if op.startswith(("fma", "mad")) and ".f" in op}
        assert not fused, k.kernel


def test_no_product_is_fused_by_the_assembler(kernels: list[Compiled]) -> None:
    """A `mul.f64` and an `add.f64` of PTX may still become one DFMA of SASS."""
    found = {k.kernel: k for k in kernels if k.kernel in ROWWISE}
    assert set(found) == set(ROWWISE)
    for k in found.values():
        assert not [line for line in k.sass if "DFMA" in line], k.kernel
    products = [line for line in found["exponentiate"].sass if "DMUL" in line]
    assert len(products) == 6  # t, the rest, three digits, the last factor


def test_kernels_of_integers_use_doubles_only_to_rescale(kernels: list[Compiled]) -> None:
    checked = [k for k in kernels if k.kernel in DOUBLES]
    assert {k.kernel for k in checked} == set(DOUBLES)
    for k in checked:
        assert {op for op in opcodes(k.ptx) if ".f64" in op or ".f32" in op} <= DOUBLES[k.kernel]


def test_rounding_is_half_to_even(kernels: list[Compiled]) -> None:
    for k in kernels:
        if k.kernel in ("update", "update_wide", "quantise", "exponentiate", "pack"):
            assert any(op.startswith("cvt.rni.") for op in opcodes(k.ptx)), k.kernel


def test_roots_and_quotients_of_scores_are_correctly_rounded(kernels: list[Compiled]) -> None:
    for k in kernels:
        found = {op for op in opcodes(k.ptx) if op.startswith(("sqrt", "div", "rcp", "rsqrt"))}
        wanted = {"sqrt.rn.f64", "div.rn.f64"} if k.kernel in ("score", "choose") else set()
        if k.kernel in (*SPLITS, "evaluate_forest"):
            wanted = {"div.rn.f64"}
        assert found == wanted, k.kernel


def test_products_of_stumps_are_rounded_for_themselves(kernels: list[Compiled]) -> None:
    """The one that is not, the limit of a tie, is only compared."""
    for k in kernels:
        if k.kernel in ("score", "choose"):
            products = re.findall(r"^\s+(mul(?:\.rn)?\.f64)\s", k.ptx, flags=re.MULTILINE)
            assert products.count("mul.rn.f64") >= 4, k.kernel
            assert products.count("mul.f64") == (k.kernel == "choose"), k.kernel


def test_products_of_splits_are_rounded_for_themselves(kernels: list[Compiled]) -> None:
    """`mul.rn` is what the assembler may not fuse; frexp scales denormal numbers, exactly."""
    scaling = "0d4350000000000000;"  # 2^54
    for k in kernels:
        if k.kernel in SPLITS:
            products = re.findall(r"^\s+mul(?:\.rn)?\.f64\s.*$", k.ptx, flags=re.MULTILINE)
            assert any("mul.rn.f64" in line for line in products)
            free = [line for line in products if "mul.f64" in line]
            assert all(line.endswith(scaling) for line in free), k.kernel


def test_nothing_divides_64_bit_integers(kernels: list[Compiled]) -> None:
    for k in kernels:
        assert not {op for op in opcodes(k.ptx) if re.match(r"(div|rem)\.[su]64", op)}, k.kernel


def test_the_index_of_a_sum_that_is_subtracted_has_64_bits() -> None:
    """A node may have more than 2^31 sums: features x codes x columns."""
    from numba import types
    from numba.cuda.compiler import compile_cuda

    arguments = tuple(numba_type(a) for a in SIGNATURES["subtract"][0])
    compiled = compile_cuda(KERNELS["subtract"].py_func, types.void, arguments, cc=(8, 0))
    found = compiled.type_annotation.typemap
    assert {t for name, t in found.items() if name.split(".")[0] == "j"} == {types.int64}


def test_nothing_spills_or_uses_a_stack(kernels: list[Compiled]) -> None:
    for k in kernels:
        assert (k.spill_bytes, k.stack_bytes) == (0, 0), k.kernel


def test_static_shared_memory_fits_every_device(kernels: list[Compiled]) -> None:
    for k in kernels:
        assert k.shared_bytes <= STATIC_SHARED_BYTES, k.kernel
        # The histogram takes exactly 32 KB: one word more and two blocks no longer fit on 7.5.
        assert (k.shared_bytes == 32 * 1024) == (k.kernel in ("build", "update", "sum_parts"))
        # Five blocks of 128 threads on 7.5, fifteen on 8.0.
        assert k.shared_bytes <= 11 * 1024 or k.kernel not in ("split_rows", "split_sums")


def test_registers_stay_within_the_bound(kernels: list[Compiled]) -> None:
    for k in kernels:
        assert 0 < k.registers <= MOST_REGISTERS.get(k.kernel, ROW_KERNEL_REGISTERS), k.kernel


def test_no_atomic_is_a_compare_and_swap_loop(kernels: list[Compiled]) -> None:
    for k in kernels:
        assert not [line for line in k.sass if re.search(r"ATOM\w*\.[\w.]*CAS", line)], k.kernel


def test_histogram_kernels_call_no_function(kernels: list[Compiled]) -> None:
    """A CALL to a local label is how ptxas leaves a loop on 8.0: a jump; functions start with $."""
    for k in kernels:
        if k.kernel in HISTOGRAMS:
            calls = [line for line in k.sass if "CALL" in line]
            assert not [line for line in calls if "`(.L_x_" not in line], k.kernel


def test_the_hot_loop_adds_32_codes_of_four_words(kernels: list[Compiled]) -> None:
    for k in kernels:
        if k.kernel in ("build", "update"):
            loop = loop_around(k.sass, "ATOMS.ADD")
            assert sum("ATOMS.ADD" in line for line in loop) == 32
            words = sum(bool(re.search(r"LDG\.E(\.\w+)*\.64", line)) for line in loop)
            assert words >= 4
            assert not [line for line in loop if "BAR." in line]


@pytest.mark.parametrize("name", KERNELS)
def test_a_cached_kernel_is_stamped_with_the_sources_of_all_kernels(name: str) -> None:
    """numba would look at the kernel's own file, and run old code after an edit elsewhere."""
    assert KERNELS[name]._cache._cache_file._source_stamp == digest(frozenset())
