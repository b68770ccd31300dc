"""A model as a Python module that imports nothing but `math`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ensemble_gpu.arrays.exponentials import LARGEST_EXPONENT
from ensemble_gpu.export.code_arrays import table_arrays, tree_arrays
from ensemble_gpu.export.source import SHARES, Source
from ensemble_gpu.model.additive import AdditiveModel
from ensemble_gpu.model.forest import Forest
from ensemble_gpu.model.link import INCREASING, LINEAR, LOG, LOGISTIC, MARGINS, VOTES

WIDTH = 98
EPS = float(np.finfo(np.float64).eps)
BELOW_ONE = 1.0 - 4.0 * EPS

TABLES = '''

def scores(x):
    """Outputs of one row x, a sequence of {n_features} numbers; NaN is missing."""
    total = [0.0] * {n_outputs}
    for u, f in enumerate(FEATURE):
        v = float(x[f])
        if v != v:
            row = MISSING[u]
        else:
            low, high = FIRST[u], FIRST[u + 1]
            while low < high:
                middle = (low + high) // 2
                if THRESHOLD[middle] < v:
                    low = middle + 1
                else:
                    high = middle
            row = VALUE[low + u]
        total = [a + b for a, b in zip(total, row)]
    return [a + b for a, b in zip(total, INTERCEPT)]
'''

TREES = '''

def scores(x):
    """Outputs of one row x, a sequence of {n_features} numbers; NaN is missing."""
    x = [float(v) for v in x]
    for f, numbers in CATEGORIES.items():
        x[f] = numbers.get(x[f], nan)
    total = [0.0] * {n_outputs}
    for i in ROOT:
        while FEATURE[i] >= 0:
            v = x[FEATURE[i]]
            if v != v:
                left = MISSING_LEFT[i]
            elif SUBSET[i] >= 0:
                left = SETS[SUBSET[i]] >> int(v) & 1
            else:
                left = v <= THRESHOLD[i]
            i = i + 1 if left else RIGHT[i]
        total = [a + b for a, b in zip(total, VALUE[RIGHT[i]])]
    return [a / DIVISOR + b for a, b in zip(total, INTERCEPT)]
'''

LABEL = '''

def label(x):
    """The most probable class of one row."""
    F = {outputs}
    return CLASSES[{index}]


def probabilities(x):
    """Probabilities of the classes of one row, in the order of CLASSES."""
    F = {outputs}
{body}'''

NORMALISED = """    total = sum(p)
    return [q / total for q in p]
"""

TWO = """    ratio = min(math.exp({twice!r} * abs(F[0])), {below!r})
    p = [1.0 if F[0] <= 0.0 else ratio, 1.0 if F[0] >= 0.0 else ratio]
"""

SEVERAL = """    top, highest = max(F), max(logs)
    p = [math.exp(g - highest) for g in logs]
    p = [min(q, {below!r}) if f < top else q for q, f in zip(p, F)]
"""

LOGS = {
    VOTES: "    logs = [{scale!r} * f for f in F]\n",
    MARGINS: """    logs = [{double!r} * f for f in F]
    logs = [min(v, 0.0) - math.log1p(math.exp(-abs(v))) for v in logs]
""",
}

LINES = """    p = [min(max(0.5 + 0.5 * ({scale!r} * f), {eps!r}), 1.0) for f in F]
    top, most = max(F), max(p) * {below!r}
    p = [min(q, most) if f < top else q for q, f in zip(p, F)]
"""

PREDICTION = '''

def prediction(x):
    """{what} of one row."""
    return {value}
'''


def python_code(source: Source, name: str) -> str:
    """The module as text."""
    model = source.model
    head = [
        f'"""{name}: a model as plain Python, exported by ensemble_gpu.',
        "",
        f"Fingerprint {model.fingerprint()}",
        '"""',
        "",
        "import math",
        "",
        "nan, inf = math.nan, math.inf",
    ]
    body = _tables(model) if isinstance(model, AdditiveModel) else _trees(model)
    return "\n".join(head) + "\n" + body + _outputs(source)


def _tables(model: AdditiveModel) -> str:
    arrays = table_arrays(model)
    lines = [assigned(key.upper(), value) for key, value in vars(arrays).items()]
    lines.append(assigned("INTERCEPT", model.intercept))
    return "\n".join(lines) + "\n" + _filled(TABLES, model)


def _trees(model: Forest) -> str:
    arrays = tree_arrays(model)
    lines = [assigned(key.upper(), value) for key, value in vars(arrays).items()]
    lines.append(assigned("INTERCEPT", model.intercept))
    lines.append(f"DIVISOR = {model.packed.divisor!r}")
    numbers = {
        f: {value: float(k) for k, value in enumerate(values.tolist())}
        for f, values in model.categories.items()
    }
    lines.append(f"CATEGORIES = {numbers!r}")
    return "\n".join(lines) + "\n" + _filled(TREES, model)


def _filled(text: str, model: Any) -> str:
    return text.format(n_features=model.n_features, n_outputs=model.n_outputs)


def assigned(name: str, values: Any) -> str:
    """A tuple, of tuples where an array has two axes, broken into lines."""
    items = values.tolist() if isinstance(values, np.ndarray) else list(values)
    written = [_row(item) if isinstance(item, list) else repr(item) for item in items]
    lines, line = [f"{name} = ("], "   "
    for word in written:
        if len(line) + len(word) + 2 > WIDTH and line.strip():
            lines.append(line)
            line = "   "
        line += f" {word},"
    return "\n".join([*lines, *([line] if line.strip() else []), ")"])


def _row(items: list) -> str:
    return "(" + ", ".join(map(repr, items)) + ("," if len(items) == 1 else "") + ")"


def _outputs(source: Source) -> str:
    if source.classes is not None:
        return assigned("CLASSES", source.classes) + "\n" + _of_classes(source)
    if source.link is None:
        return ""
    if source.link == INCREASING:
        return PREDICTION.format(what="The quantiles, ascending,", value="sorted(scores(x))")
    value = "scores(x)[0]"
    if source.link == LOG:
        value = f"math.exp(min({value}, {LARGEST_EXPONENT!r}))"
    return PREDICTION.format(what="The prediction", value=value)


def _of_classes(source: Source) -> str:
    link, K = source.link, source.n_classes
    one = source.model.n_outputs == 1 and link != SHARES
    index = "F[0] > 0.0" if one else f"max(range({K}), key=F.__getitem__)"
    outputs = "[0.5 * f for f in scores(x)]" if link == LOGISTIC else "scores(x)"
    if link == SHARES:
        body = "    return F\n"
    elif link == LINEAR:
        body = ("    F = [-F[0], F[0]]\n" if one else "") + LINES + NORMALISED
    elif one:
        body = TWO + NORMALISED
    else:
        body = LOGS[VOTES if link == VOTES else MARGINS] + SEVERAL + NORMALISED
    body = body.format(
        scale=source.scale, double=2.0 * source.scale, twice=-2.0 * source.scale,
        below=BELOW_ONE, eps=EPS,
    )  # fmt: skip
    return LABEL.format(outputs=outputs, index=index, body=body)
