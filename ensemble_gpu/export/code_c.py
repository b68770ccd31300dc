"""A model as a C99 file; it includes <math.h> for NAN, INFINITY and exp."""

from __future__ import annotations

from typing import Any

import numpy as np

from ensemble_gpu.arrays.exponentials import LARGEST_EXPONENT
from ensemble_gpu.export.code_arrays import table_arrays, tree_arrays
from ensemble_gpu.export.code_python import BELOW_ONE, EPS, WIDTH
from ensemble_gpu.export.source import SHARES, Source
from ensemble_gpu.model.additive import AdditiveModel
from ensemble_gpu.model.forest import Forest
from ensemble_gpu.model.link import INCREASING, LINEAR, LOG, LOGISTIC, VOTES

HEAD = """\
/* {name}: a model as plain C, exported by ensemble_gpu.
 *
 * Fingerprint {fingerprint}
 *
 *     cc -std=c99 -O2 -ffp-contract=off -c {name}.c
 *
 * and link with -lm. Scores have the bits of the model for any optimisation that keeps to IEEE 754
 * (no -ffast-math; on 32-bit x86 -msse2 -mfpmath=sse). No product feeds a sum in them, so that
 * they do not depend on -ffp-contract either.
 *
 * x is one row of {n_features} numbers; NAN is missing.
 *
{functions}
 */
#include <math.h>

"""

TABLES = """
void {name}_scores(const double *x, double *scores)
{{
    int u, k;
    for (k = 0; k < {K}; ++k) scores[k] = 0.0;
    for (u = 0; u < {n_tables}; ++u) {{
        const double v = x[feature[u]];
        const double *row = missing[u];
        if (v == v) {{
            int low = first[u], high = first[u + 1];
            while (low < high) {{
                const int middle = low + (high - low) / 2;
                if (threshold[middle] < v) low = middle + 1;
                else high = middle;
            }}
            row = value[low + u];
        }}
        for (k = 0; k < {K}; ++k) scores[k] += row[k];
    }}
    for (k = 0; k < {K}; ++k) scores[k] += intercept[k];
}}
"""

TREES = """
void {name}_scores(const double *x, double *scores)
{{
    int t, k;
{encode}    for (k = 0; k < {K}; ++k) scores[k] = 0.0;
    for (t = 0; t < {n_trees}; ++t) {{
        int i = root[t];
        while (feature[i] >= 0) {{
            const double v = {cell}[feature[i]];
            int left;
            if (v != v) left = missing_left[i];
{test}            else left = v <= threshold[i];
            i = left ? i + 1 : right[i];
        }}
        for (k = 0; k < {K}; ++k) scores[k] += value[right[i]][k];
    }}
    for (k = 0; k < {K}; ++k) scores[k] = scores[k] / {divisor} + intercept[k];
}}
"""

ENCODE = """\
    double cell[{n_features}];
    for (k = 0; k < {n_features}; ++k) cell[k] = x[k];
    for (t = 0; t < {n_categorical}; ++t) {{ /* numbers of categories; unknown is missing */
        const double v = x[categorical[t]];
        cell[categorical[t]] = NAN;
        for (k = category_first[t]; k < category_first[t + 1]; ++k)
            if (category[k] == v) cell[categorical[t]] = k - category_first[t];
    }}
"""

SUBSET = """\
            else if (subset[i] >= 0) left = set[subset[i]][(int)v / 8] >> ((int)v % 8) & 1;
"""

LABEL = """
const char *const {name}_classes[{n_classes}] = {{
{classes}
}};

int {name}_label(const double *x)
{{
    double F[{K}];
    {name}_scores(x, F);
{halve}{choose}}}

void {name}_probabilities(const double *x, double *p)
{{
    double F[{n_classes}], total = 0.0;
    int k;
    {name}_scores(x, F);
{halve}{body}    for (k = 0; k < {n_classes}; ++k) total += p[k];
    for (k = 0; k < {n_classes}; ++k) p[k] /= total;
}}
"""

SHARED_LABEL = """
const char *const {name}_classes[{n_classes}] = {{
{classes}
}};

int {name}_label(const double *x)
{{
    double F[{K}];
    {name}_scores(x, F);
{choose}}}

void {name}_probabilities(const double *x, double *p)
{{
    {name}_scores(x, p);
}}
"""

HALVE = "    {{ int k; for (k = 0; k < {K}; ++k) F[k] *= 0.5; }}\n"
SIGN = "    return F[0] > 0.0;\n"
LARGEST = """\
    {{
        int k, best = 0;
        for (k = 1; k < {K}; ++k)
            if (F[k] > F[best]) best = k;
        return best;
    }}
"""

TWO = """\
    {{
        const double ratio = fmin(exp({twice!r} * fabs(F[0])), {below!r});
        p[0] = F[0] <= 0.0 ? 1.0 : ratio;
        p[1] = F[0] >= 0.0 ? 1.0 : ratio;
    }}
"""

SEVERAL = """\
    {{
        double top = F[0], highest = -INFINITY;
        for (k = 0; k < {K}; ++k) {{
            const double v = {factor!r} * F[k];
            p[k] = {log};
            top = fmax(top, F[k]);
            highest = fmax(highest, p[k]);
        }}
        for (k = 0; k < {K}; ++k) {{
            p[k] = exp(p[k] - highest);
            if (F[k] < top) p[k] = fmin(p[k], {below!r});
        }}
    }}
"""

LINES = """\
    {{
        double top, most = 0.0;
{both}        top = F[0];
        for (k = 0; k < {n_classes}; ++k) {{
            p[k] = fmin(fmax(0.5 + 0.5 * ({scale!r} * F[k]), {eps!r}), 1.0);
            top = fmax(top, F[k]);
            most = fmax(most, p[k]);
        }}
        most *= {below!r};
        for (k = 0; k < {n_classes}; ++k)
            if (F[k] < top) p[k] = fmin(p[k], most);
    }}
"""
BOTH = "        F[1] = F[0];\n        F[0] = -F[0];\n"

PREDICTION = """
void {name}_prediction(const double *x, double *prediction)
{{
    {name}_scores(x, prediction);
{body}}}
"""

SORT = """\
    {{
        int j, k;
        for (k = 1; k < {K}; ++k) {{
            const double v = prediction[k];
            for (j = k; j > 0 && prediction[j - 1] > v; --j) prediction[j] = prediction[j - 1];
            prediction[j] = v;
        }}
    }}
"""


def c_code(source: Source, name: str) -> str:
    """The file as text."""
    model = source.model
    body = _tables(model, name) if isinstance(model, AdditiveModel) else _trees(model, name)
    functions = [(f"void {name}_scores(const double *x, double *scores)", f"{model.n_outputs}")]
    if source.classes is not None:
        functions += [
            (f"int {name}_label(const double *x)", f"an index of {name}_classes"),
            (f"void {name}_probabilities(const double *x, double *p)", f"{source.n_classes}"),
        ]
    elif source.link is not None:
        functions.append(
            (f"void {name}_prediction(const double *x, double *prediction)", f"{model.n_outputs}")
        )
    head = HEAD.format(
        name=name,
        fingerprint=model.fingerprint(),
        n_features=model.n_features,
        functions="\n".join(f" *     {call}: {what}" for call, what in functions),
    )
    return head + body + _outputs(source, name)


def _tables(model: AdditiveModel, name: str) -> str:
    arrays = table_arrays(model)
    text = [
        _array("int", "feature", arrays.feature),
        _array("int", "first", arrays.first),
        _array("double", "threshold", arrays.threshold),
        _array("double", "value", arrays.value),
        _array("double", "missing", arrays.missing),
        _array("double", "intercept", model.intercept),
    ]
    function = TABLES.format(name=name, K=model.n_outputs, n_tables=len(arrays.feature))
    return "".join(text) + function


def _trees(model: Forest, name: str) -> str:
    arrays = tree_arrays(model)
    text = [
        _array("int", "root", arrays.root),
        _array("int", "feature", arrays.feature),
        _array("double", "threshold", arrays.threshold),
        _array("unsigned char", "missing_left", arrays.missing_left.astype(np.int64)),
        _array("int", "right", arrays.right),
        _array("double", "value", arrays.value),
        _array("double", "intercept", model.intercept),
    ]
    encode = test = ""
    if model.categories:
        values = list(model.categories.values())
        text += [
            _array("int", "categorical", np.array(list(model.categories))),
            _array("int", "category_first", np.cumsum([0, *map(len, values)])),
            _array("double", "category", np.concatenate(values)),
        ]
        encode = ENCODE.format(n_features=model.n_features, n_categorical=len(values))
    if arrays.sets:
        octets = -(-max(len(values) for values in model.categories.values()) // 8)
        rows = [list(bits.to_bytes(octets, "little")) for bits in arrays.sets]
        text += [
            _array("int", "subset", arrays.subset),
            _array("unsigned char", "set", np.array(rows)),
        ]
        test = SUBSET
    return "".join(text) + TREES.format(
        name=name,
        K=model.n_outputs,
        n_trees=model.n_trees,
        encode=encode,
        test=test,
        cell="cell" if encode else "x",
        divisor=repr(float(model.packed.divisor)),
    )


def _number(item: Any) -> str:
    if isinstance(item, int):
        return str(item)
    if np.isnan(item):
        return "NAN"
    return repr(item) if np.isfinite(item) else ("INFINITY" if item > 0.0 else "-INFINITY")


def _array(kind: str, name: str, values: np.ndarray) -> str:
    """A constant; an array of no items gets one, which C demands."""
    shape = "".join(f"[{max(1, size)}]" for size in values.shape)
    items = values.tolist() or [0]
    words = [
        "{" + ", ".join(map(_number, item)) + "}" if isinstance(item, list) else _number(item)
        for item in items
    ]
    lines, line = [f"static const {kind} {name}{shape} = {{"], "   "
    for word in words:
        if len(line) + len(word) + 2 > WIDTH and line.strip():
            lines.append(line)
            line = "   "
        line += f" {word},"
    return "\n".join([*lines, line, "};\n"])


def _outputs(source: Source, name: str) -> str:
    if source.classes is not None:
        return _of_classes(source, name)
    if source.link is None:
        return ""
    body = ""
    if source.link == INCREASING:
        body = SORT.format(K=source.model.n_outputs)
    elif source.link == LOG:
        body = f"    prediction[0] = exp(fmin(prediction[0], {LARGEST_EXPONENT!r}));\n"
    return PREDICTION.format(name=name, body=body)


def _of_classes(source: Source, name: str) -> str:
    link, K, scale = source.link, source.model.n_outputs, source.scale
    one = K == 1 and link != SHARES
    if link == LINEAR:
        body = LINES.format(
            both=BOTH if one else "", scale=scale, eps=EPS, below=BELOW_ONE,
            n_classes=source.n_classes,
        )  # fmt: skip
    elif one:
        body = TWO.format(twice=-2.0 * scale, below=BELOW_ONE)
    else:
        votes = link == VOTES
        log = "v" if votes else "fmin(v, 0.0) - log1p(exp(-fabs(v)))"
        factor = scale if votes else 2.0 * scale
        body = SEVERAL.format(K=K, factor=factor, log=log, below=BELOW_ONE)
    return (SHARED_LABEL if link == SHARES else LABEL).format(
        name=name,
        n_classes=source.n_classes,
        K=K,
        classes="\n".join(f"    {_text(str(label))}," for label in source.labels),
        halve=HALVE.format(K=K) if link == LOGISTIC else "",
        choose=SIGN if one else LARGEST.format(K=K),
        body=body,
    )


def _text(label: str) -> str:
    """A C string: bytes of UTF-8, those that are no plain letters in octal."""
    plain = [
        chr(b) if 32 <= b < 127 and chr(b) not in '"\\?' else f"\\{b:03o}"
        for b in label.encode("utf-8", "surrogateescape")
    ]
    return '"' + "".join(plain) + '"'
