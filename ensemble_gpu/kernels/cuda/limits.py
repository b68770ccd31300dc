"""How large a problem may be: what the counters of the kernels hold, checked before a launch."""

from __future__ import annotations

from ensemble_gpu.kernels.cuda import histogram

# Row counters are int32 and go up to a grid (below 2^20 threads) beyond the last row.
MOST_ROWS = 2**31 - 2**20
# A code is 16 bits of a word; a cell of a histogram with codes of 8 bits is a uint32.
MOST_CODES = 2**16
MOST_FEATURES = 2**32 // histogram.STRIDE


def check_rows(n: int) -> None:
    """Raise where a row counter would overflow."""
    if n > MOST_ROWS:
        raise ValueError(
            f"The CUDA engine takes at most {MOST_ROWS} rows of X at once; got {n}. Predict parts "
            "of X one after the other, fit on fewer rows, or use device='cpu'."
        )


def check_codes(n_features: int, width: int) -> None:
    """Raise where a code or the index of a sum would overflow."""
    if width > MOST_CODES:
        raise ValueError(
            f"The CUDA engine takes at most {MOST_CODES - 1} bins a feature; got {width - 1}. "
            "Give max_bins, or use device='cpu'."
        )
    if width <= histogram.STRIDE and n_features > MOST_FEATURES:
        raise ValueError(
            f"The CUDA engine takes at most {MOST_FEATURES} features; got {n_features}. Select "
            "features, or use device='cpu'."
        )
