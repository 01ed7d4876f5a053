"""Softmax and layer normalization of rows, and attention of one query per head."""

from __future__ import annotations

from collections.abc import Iterator

from tests.hardware.timed.dispatch import Timed, buffers, constants, eighths, seeded, shrink, zeros

SIZES = ((8192, 256), (4096, 1024), (1024, 4096))
SCALARS = buffers({"x": "f32"}, {"y": "f32"})
VECTORS = buffers({"x": "vec4f"}, {"y": "vec4f"})
LOWEST = "const LOWEST = -3.0e38;\n"

COMBINE = """\
var<workgroup> parts: array<f32, T>;

fn workgroup_max(lane: u32, value: f32) -> f32 {
    parts[lane] = value;
    workgroupBarrier();
    for (var half = T / 2u; half > 0u; half /= 2u) {
        if lane < half {
            parts[lane] = max(parts[lane], parts[lane + half]);
        }
        workgroupBarrier();
    }
    let found = parts[0];
    workgroupBarrier();
    return found;
}

fn workgroup_sum(lane: u32, value: f32) -> f32 {
    parts[lane] = value;
    workgroupBarrier();
    for (var half = T / 2u; half > 0u; half /= 2u) {
        if lane < half {
            parts[lane] += parts[lane + half];
        }
        workgroupBarrier();
    }
    let found = parts[0];
    workgroupBarrier();
    return found;
}

"""
THREAD = """\
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
    let first = id.x * COLS;
"""
WORKGROUP = """\
@compute @workgroup_size(T)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let first = group.x * COLS;
"""
SOFTMAX_BY_THREAD = (
    THREAD
    + """\
    var top = LOWEST;
    for (var i = 0u; i < COLS; i += 1u) {
        top = max(top, x[first + i]);
    }
    var sum = 0.0;
    for (var i = 0u; i < COLS; i += 1u) {
        sum += exp(x[first + i] - top);
    }
    for (var i = 0u; i < COLS; i += 1u) {
        y[first + i] = exp(x[first + i] - top) / sum;
    }
}
"""
)
SOFTMAX_ONLINE_BY_THREAD = (
    THREAD
    + """\
    var top = LOWEST;
    var sum = 0.0;
    for (var i = 0u; i < COLS; i += 1u) {
        let value = x[first + i];
        let higher = max(top, value);
        sum = sum * exp(top - higher) + exp(value - higher);
        top = higher;
    }
    for (var i = 0u; i < COLS; i += 1u) {
        y[first + i] = exp(x[first + i] - top) / sum;
    }
}
"""
)
SOFTMAX_BY_WORKGROUP = (
    WORKGROUP
    + """\
    var top = LOWEST;
    for (var i = lane; i < COLS; i += T) {
        top = max(top, x[first + i]);
    }
    top = workgroup_max(lane, top);
    var sum = 0.0;
    for (var i = lane; i < COLS; i += T) {
        sum += exp(x[first + i] - top);
    }
    sum = workgroup_sum(lane, sum);
    for (var i = lane; i < COLS; i += T) {
        y[first + i] = exp(x[first + i] - top) / sum;
    }
}
"""
)
SOFTMAX_ONLINE_BY_WORKGROUP = (
    WORKGROUP
    + """\
    var top = LOWEST;
    var sum = 0.0;
    for (var i = lane; i < COLS; i += T) {
        let value = x[first + i];
        let higher = max(top, value);
        sum = sum * exp(top - higher) + exp(value - higher);
        top = higher;
    }
    let highest = workgroup_max(lane, top);
    sum = workgroup_sum(lane, sum * exp(top - highest));
    for (var i = lane; i < COLS; i += T) {
        y[first + i] = exp(x[first + i] - highest) / sum;
    }
}
"""
)
SOFTMAX_VEC4 = """\
@compute @workgroup_size(T)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let first = group.x * (COLS / 4u);
    var tops = vec4f(LOWEST);
    for (var i = lane; i < COLS / 4u; i += T) {
        tops = max(tops, x[first + i]);
    }
    let top = workgroup_max(lane, max(max(tops.x, tops.y), max(tops.z, tops.w)));
    var sums = vec4f();
    for (var i = lane; i < COLS / 4u; i += T) {
        sums += exp(x[first + i] - top);
    }
    let sum = workgroup_sum(lane, dot(sums, vec4f(1.0)));
    for (var i = lane; i < COLS / 4u; i += T) {
        y[first + i] = exp(x[first + i] - top) / sum;
    }
}
"""
NORM_BY_THREAD = (
    THREAD
    + """\
    var sum = 0.0;
    for (var i = 0u; i < COLS; i += 1u) {
        sum += x[first + i];
    }
    let mean = sum / f32(COLS);
    var squares = 0.0;
    for (var i = 0u; i < COLS; i += 1u) {
        let off = x[first + i] - mean;
        squares += off * off;
    }
    let scale = inverseSqrt(squares / f32(COLS) + 1.0e-5);
    for (var i = 0u; i < COLS; i += 1u) {
        y[first + i] = (x[first + i] - mean) * scale;
    }
}
"""
)
NORM_BY_WORKGROUP = (
    WORKGROUP
    + """\
    var sum = 0.0;
    for (var i = lane; i < COLS; i += T) {
        sum += x[first + i];
    }
    let mean = workgroup_sum(lane, sum) / f32(COLS);
    var squares = 0.0;
    for (var i = lane; i < COLS; i += T) {
        let off = x[first + i] - mean;
        squares += off * off;
    }
    let scale = inverseSqrt(workgroup_sum(lane, squares) / f32(COLS) + 1.0e-5);
    for (var i = lane; i < COLS; i += T) {
        y[first + i] = (x[first + i] - mean) * scale;
    }
}
"""
)
NORM_ONE_PASS = (
    WORKGROUP
    + """\
    var sum = 0.0;
    var squares = 0.0;
    for (var i = lane; i < COLS; i += T) {
        let value = x[first + i];
        sum += value;
        squares += value * value;
    }
    let mean = workgroup_sum(lane, sum) / f32(COLS);
    let scale = inverseSqrt(workgroup_sum(lane, squares) / f32(COLS) - mean * mean + 1.0e-5);
    for (var i = lane; i < COLS; i += T) {
        y[first + i] = (x[first + i] - mean) * scale;
    }
}
"""
)
NORM_VEC4 = """\
@compute @workgroup_size(T)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let first = group.x * (COLS / 4u);
    var sums = vec4f();
    for (var i = lane; i < COLS / 4u; i += T) {
        sums += x[first + i];
    }
    let mean = workgroup_sum(lane, dot(sums, vec4f(1.0))) / f32(COLS);
    var squares = 0.0;
    for (var i = lane; i < COLS / 4u; i += T) {
        let off = x[first + i] - mean;
        squares += dot(off, off);
    }
    let scale = inverseSqrt(workgroup_sum(lane, squares) / f32(COLS) + 1.0e-5);
    for (var i = lane; i < COLS / 4u; i += T) {
        y[first + i] = (x[first + i] - mean) * scale;
    }
}
"""
BY_THREAD = {
    "softmax": {"thread per row": SOFTMAX_BY_THREAD, "thread per row, online": SOFTMAX_ONLINE_BY_THREAD},
    "layernorm": {"thread per row": NORM_BY_THREAD},
}
BY_WORKGROUP = {
    "softmax": {"workgroup": SOFTMAX_BY_WORKGROUP, "online": SOFTMAX_ONLINE_BY_WORKGROUP, "vec4": SOFTMAX_VEC4},
    "layernorm": {"workgroup": NORM_BY_WORKGROUP, "one pass": NORM_ONE_PASS, "vec4": NORM_VEC4},
}


def _normalized(family: str, scale: int) -> Iterator[Timed]:
    for size in SIZES:
        rows, cols = (shrink(side, scale, 256) for side in size)
        shape = f"{rows}x{cols}"
        variants = {name: (SCALARS + text, rows // 64) for name, text in BY_THREAD[family].items()}
        for threads in (64, 256):
            for name, body in BY_WORKGROUP[family].items():
                head = VECTORS if name == "vec4" else SCALARS
                variants[f"{name} of {threads} per row"] = constants(T=threads) + head + COMBINE + body, rows
        for kernel, (text, groups) in variants.items():
            bindings = {"x": eighths(seeded(family, shape), rows, cols), "y": zeros(rows, cols)}
            yield Timed(family, kernel, shape, constants(COLS=cols) + LOWEST + text, (groups, 1, 1), bindings)


def softmaxes(scale: int) -> Iterator[Timed]:
    return _normalized("softmax", scale)


def layer_norms(scale: int) -> Iterator[Timed]:
    return _normalized("layernorm", scale)


ATTENTION = """\
var<workgroup> scores: array<f32, KEYS>;
var<workgroup> query: array<f32, DIM>;

@compute @workgroup_size(T)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let head = group.x;
    for (var d = lane; d < DIM; d += T) {
        query[d] = q[head * DIM + d];
    }
    workgroupBarrier();
SCORES
    var top = LOWEST;
    for (var i = lane; i < KEYS; i += T) {
        top = max(top, scores[i]);
    }
    top = workgroup_max(lane, top);
    var sum = 0.0;
    for (var i = lane; i < KEYS; i += T) {
        let weight = exp(scores[i] - top);
        scores[i] = weight;
        sum += weight;
    }
    sum = workgroup_sum(lane, sum);
VALUES
}
"""
KEY_PER_THREAD = """\
    for (var i = lane; i < KEYS; i += T) {
        var score = 0.0;
        for (var d = 0u; d < DIM; d += 1u) {
            score += query[d] * k[(head * KEYS + i) * DIM + d];
        }
        scores[i] = score * 0.125;
    }
    workgroupBarrier();"""
KEY_PER_THREAD_VEC4 = """\
    for (var i = lane; i < KEYS; i += T) {
        var score = 0.0;
        for (var d = 0u; d < DIM; d += 4u) {
            let part = vec4f(query[d], query[d + 1u], query[d + 2u], query[d + 3u]);
            score += dot(part, k[((head * KEYS + i) * DIM + d) / 4u]);
        }
        scores[i] = score * 0.125;
    }
    workgroupBarrier();"""
KEY_PER_32_THREADS = """\
    for (var first = 0u; first < KEYS; first += T / 32u) {
        let i = first + lane / 32u;
        var score = 0.0;
        for (var d = lane % 32u; d < DIM; d += 32u) {
            score += query[d] * k[(head * KEYS + i) * DIM + d];
        }
        parts[lane] = score;
        workgroupBarrier();
        if lane % 32u == 0u {
            var total = 0.0;
            for (var j = 0u; j < 32u; j += 1u) {
                total += parts[lane + j];
            }
            scores[i] = total * 0.125;
        }
        workgroupBarrier();
    }"""
DIM_PER_THREAD = """\
    for (var d = lane; d < DIM; d += T) {
        var value = 0.0;
        for (var i = 0u; i < KEYS; i += 1u) {
            value += scores[i] * v[(head * KEYS + i) * DIM + d];
        }
        o[head * DIM + d] = value / sum;
    }"""
SPLIT_KEYS = """\
    let splits = T / DIM;
    var value = 0.0;
    for (var i = lane / DIM; i < KEYS; i += splits) {
        value += scores[i] * v[(head * KEYS + i) * DIM + lane % DIM];
    }
    parts[lane] = value;
    workgroupBarrier();
    if lane < DIM {
        var total = 0.0;
        for (var i = 0u; i < splits; i += 1u) {
            total += parts[i * DIM + lane];
        }
        o[head * DIM + lane] = total / sum;
    }"""
DIM = 64


def attentions(scale: int) -> Iterator[Timed]:
    """One query per head; a workgroup computes a head."""
    scores = {"key per thread": KEY_PER_THREAD, "key per thread vec4": KEY_PER_THREAD_VEC4,
              "key per 32 threads": KEY_PER_32_THREADS}  # fmt: skip
    values = {"values by dimension": DIM_PER_THREAD, "values by dimension, keys split": SPLIT_KEYS}
    for size in ((256, 512), (256, 1024), (128, 2048)):
        heads, keys = shrink(size[0], scale, 8), shrink(size[1], scale, 128)
        shape = f"{heads} heads x {keys} keys"
        for name, score in scores.items():
            for kernel, value in values.items():
                types = {"q": "f32", "k": "vec4f" if "vec4" in name else "f32", "v": "f32"}
                text = constants(T=256, KEYS=keys, DIM=DIM) + LOWEST + buffers(types, {"o": "f32"}) + COMBINE
                text += ATTENTION.replace("SCORES", score).replace("VALUES", value)
                rng = seeded("attention", shape)
                bindings = {
                    "q": eighths(rng, heads, DIM),
                    "k": eighths(rng, heads, keys, DIM),
                    "v": eighths(rng, heads, keys, DIM),
                    "o": zeros(heads, DIM),
                }
                yield Timed("attention", f"{name}, {kernel}", shape, text, (heads, 1, 1), bindings)
