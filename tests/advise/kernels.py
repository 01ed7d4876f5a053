"""Kernels with arrays in workgroup memory, for the search of layouts: transposes, scans, reductions, histograms, tiles.

`KERNELS` has, by name, declarations, the workgroup size, the body, and the pitch that `PITCH` stands for (None for a
kernel without one). Each reads `x` and stores to `y`, 4,096 floats; `i`, `at` and `group` are its builtin inputs.
"""

HEAD = """\
{enabled}@group(0) @binding(0) var<storage, read> x: array<f32, 4096>;
@group(0) @binding(1) var<storage, read_write> y: array<f32, 4096>;
{declared}
@compute @workgroup_size({size})
fn main(@builtin(local_invocation_index) i: u32, @builtin(local_invocation_id) at: vec3<u32>,
        @builtin(workgroup_id) group: vec3<u32>) {{
    let first = group.x * {lanes}u;
{body}
}}
"""

LANES = {"32": 32, "64": 64, "128": 128, "32, 8": 256, "16, 16": 256, "8, 8": 64}

TRANSPOSE = """
    for (var row = at.y; row < 32u; row += 8u) { tile[row * PITCHu + at.x] = x[row * 32u + at.x]; }
    workgroupBarrier();
    for (var row = at.y; row < 32u; row += 8u) { y[group.x * 1024u + row * 32u + at.x] = tile[at.x * PITCHu + row]; }"""
SQUARE = """
    tile[at.y * PITCHu + at.x] = {};
    workgroupBarrier();
    y[first + i] = {};"""
SCAN = """
    tile[2u * i] = x[first + i];
    tile[2u * i + 1u] = x[first + i + 64u];
    for (var step = 1u; step < 128u; step *= 2u) {
        workgroupBarrier();
        let right = (i + 1u) * step * 2u - 1u;
        if right < 128u { tile[right] += tile[right - step]; }
    }
    workgroupBarrier();
    y[first + i] = tile[2u * i] + tile[2u * i + 1u];"""
DOUBLING = """
    tile[i] = x[first + i];
    for (var step = 1u; step < 64u; step *= 2u) {
        workgroupBarrier();
        let sum = tile[i] + select(0.0, tile[max(i, step) - step], i >= step);
        workgroupBarrier();
        tile[i] = sum;
    }
    y[first + i] = tile[i];"""
ROWS = """
    for (var k = 0u; k < 16u; k += 1u) { tile[i * PITCHu + k] = x[(i * 16u + k) % 4096u]; }
    for (var k = 1u; k < 16u; k += 1u) { tile[i * PITCHu + k] += tile[i * PITCHu + k - 1u]; }
    y[first + i] = tile[i * PITCHu + 15u];"""
INTERLEAVED = """
    tile[i] = x[first + i];
    for (var step = 1u; step < 128u; step *= 2u) {
        workgroupBarrier();
        let left = 2u * step * i;
        if left < 128u { tile[left] += tile[left + step]; }
    }
    workgroupBarrier();
    y[first + i] = tile[0];"""
SEQUENTIAL = (
    INTERLEAVED.replace("2u * step * i", "i + 0u")
    .replace("step = 1u", "step = 64u")
    .replace("step < 128u; step *= 2u", "step > 0u; step /= 2u")
    .replace("left < 128u", "left < step")
)
PRIVATE = """
    for (var k = 0u; k < 16u; k += 1u) { bins[i * PITCHu + k] = 0u; }
    for (var k = 0u; k < 8u; k += 1u) { bins[i * PITCHu + u32(abs(x[first + i + k * 64u]) * 8.0) % 16u] += 1u; }
    workgroupBarrier();
    var sum = 0u;
    for (var k = 0u; k < 32u; k += 1u) { sum += bins[k * PITCHu + i % 16u]; }
    y[first + i] = f32(sum);"""
ATOMIC = """
    for (var k = 0u; k < 4u; k += 1u) { atomicAdd(&bins[u32(abs(x[first + i + k * 64u]) * 8.0) % 16u * 16u], 1u); }
    workgroupBarrier();
    y[first + i] = f32(atomicLoad(&bins[i % 16u * 16u]));"""
SCORES = """
    for (var k = at.y; k < 16u; k += 8u) {
        queries[at.x * PITCHu + k] = x[at.x * 16u + k];
        keys[at.x * PITCHu + k] = x[2048u + at.x * 16u + k];
    }
    workgroupBarrier();
    for (var row = at.y; row < 32u; row += 8u) {
        var sum = 0.0;
        for (var k = 0u; k < 16u; k += 1u) { sum += queries[row * PITCHu + k] * keys[at.x * PITCHu + k]; }
        y[group.x * 1024u + row * 32u + at.x] = sum;
    }"""
VALUES = """
    for (var row = at.y; row < 32u; row += 8u) {
        weights[row * PITCHu + at.x] = x[row * 32u + at.x];
        if at.x < 16u { values[row * 16u + at.x] = x[2048u + row * 16u + at.x]; }
    }
    workgroupBarrier();
    let row = i / 8u;
    for (var column = i % 8u; column < 16u; column += 8u) {
        var sum = 0.0;
        for (var k = 0u; k < 32u; k += 1u) { sum += weights[row * PITCHu + k] * values[k * 16u + column]; }
        y[group.x * 512u + row * 16u + column] = sum;
    }"""
REGISTERS = """
    for (var k = 0u; k < 4u; k += 1u) { tile[i / 4u * PITCHu + i % 4u * 4u + k] = x[i * 4u + k]; }
    workgroupBarrier();
    var sum = vec4<f32>();
    for (var k = 0u; k < 16u; k += 1u) {
        sum += vec4<f32>(tile[at.y * 4u * PITCHu + k], tile[(at.y * 4u + 1u) * PITCHu + k],
                         tile[(at.y * 4u + 2u) * PITCHu + k], tile[(at.y * 4u + 3u) * PITCHu + k]);
    }
    y[first + i] = dot(sum, vec4<f32>(1.0, 2.0, 3.0, 4.0));"""
HALO = """
    for (var k = i; k < 100u; k += 64u) { tile[k / 10u * PITCHu + k % 10u] = x[first + k]; }
    workgroupBarrier();
    let row = at.y + 1u;
    y[first + i] = tile[row * PITCHu + at.x] + tile[row * PITCHu + at.x + 2u]
                 + tile[(row - 1u) * PITCHu + at.x + 1u] + tile[(row + 1u) * PITCHu + at.x + 1u];"""
BUTTERFLIES = """
    tile[i] = x[first + i];
    tile[i + 64u] = x[first + i + 64u];
    for (var half = 1u; half < 128u; half *= 2u) {
        workgroupBarrier();
        let low = i / half * 2u * half + i % half;
        let a = tile[low];
        let b = tile[low + half];
        tile[low] = a + b;
        tile[low + half] = a - b;
    }
    workgroupBarrier();
    y[first + i] = tile[i * 2u];"""
BITONIC = """
    tile[i] = x[first + i];
    for (var size = 2u; size <= 64u; size *= 2u) {
        for (var step = size / 2u; step > 0u; step /= 2u) {
            workgroupBarrier();
            let mine = tile[i];
            let other = tile[i ^ step];
            let keep_least = ((i & step) == 0u) == ((i & size) == 0u);
            workgroupBarrier();
            tile[i] = select(max(mine, other), min(mine, other), keep_least);
        }
    }
    y[first + i] = tile[i];"""
STRIDED = """
    for (var k = 0u; k < 4u; k += 1u) { tile[i * 4u + k] = x[first + i * 4u + k]; }
    workgroupBarrier();
    for (var k = 0u; k < 4u; k += 1u) { y[first + i + k * 64u] = tile[(i * 8u + k) % 256u]; }"""
GATHER = """
    for (var k = i; k < 256u; k += 64u) { tile[k] = x[k]; }
    workgroupBarrier();
    y[first + i] = tile[u32(abs(x[first + i]) * 64.0) * 4u % 256u];"""
TWELVE = """
    for (var k = i; k < 384u; k += 32u) { tile[k / 12u * PITCHu + k % 12u] = x[k]; }
    workgroupBarrier();
    var sum = 0.0;
    for (var k = 0u; k < 32u; k += 1u) {
        sum += x[k] * tile[i * PITCHu + 2u * i % 12u]
             + tile[i * PITCHu + 2u * i % 12u] * tile[i / 4u * PITCHu + 3u * i / 2u % 12u];
    }
    y[first + i] = sum;"""
NINE = """
    for (var k = i; k < 288u; k += 32u) { tile[k / 9u * PITCHu + k % 9u] = x[k]; }
    workgroupBarrier();
    var sum = 0.0;
    for (var k = 0u; k < 32u; k += 1u) {
        sum += x[k] * tile[5u * i / 8u * PITCHu + i / 2u % 9u] + tile[5u * i / 8u * PITCHu + i % 9u];
    }
    y[first + i] = sum;"""
BROADCAST = """
    for (var k = i; k < 512u; k += 64u) { tile[k] = x[k]; }
    workgroupBarrier();
    y[first + i] = tile[i / 2u * 16u];"""
HALVES = """
    tile[at.y * PITCHu + at.x] = f16(x[i]);
    workgroupBarrier();
    y[first + i] = f32(tile[at.x * PITCHu + at.y]);"""

F32 = "var<workgroup> tile: array<f32, {}>;"
KERNELS = {
    "transpose": (F32.format("32 * PITCH"), "32, 8", TRANSPOSE, 32),
    "transpose, padded": (F32.format("32 * PITCH"), "32, 8", TRANSPOSE, 33),
    "transpose, padded by two": (F32.format("32 * PITCH"), "32, 8", TRANSPOSE, 34),
    "transpose of rows": (
        "var<workgroup> tile: array<array<f32, PITCH>, 32>;", "32, 8",
        TRANSPOSE.replace("[row * PITCHu + at.x]", "[row][at.x]").replace("[at.x * PITCHu + row]", "[at.x][row]"), 32),
    "transpose of 16 columns": (F32.format("16 * PITCH"), "16, 16",
                                SQUARE.format("x[i]", "tile[at.x * PITCHu + at.y]"), 16),
    "transpose of pairs": (
        "var<workgroup> tile: array<vec2<f32>, 16 * PITCH>;", "16, 16",
        SQUARE.format("vec2<f32>(x[i], x[i + 256u])", "dot(tile[at.x * PITCHu + at.y], vec2<f32>(1.0, 2.0))"), 16),
    "transpose of vec4": (
        "var<workgroup> tile: array<vec4<f32>, 8 * PITCH>;", "8, 8",
        SQUARE.format("vec4<f32>(x[i])", "tile[at.x * PITCHu + at.y].y"), 8),
    "transpose of f16": ("var<workgroup> tile: array<f16, 16 * PITCH>;", "16, 16", HALVES, 16),
    "scan by Blelloch": (F32.format(128), "64", SCAN, None),
    "scan by doubling": (F32.format(64), "64", DOUBLING, None),
    "scan of rows": (F32.format("64 * PITCH"), "64", ROWS, 16),
    "interleaved reduction": (F32.format(128), "128", INTERLEAVED, None),
    "sequential reduction": (F32.format(128), "128", SEQUENTIAL, None),
    "private histograms": ("var<workgroup> bins: array<u32, 32 * PITCH>;", "32", PRIVATE, 16),
    "atomic histogram": ("var<workgroup> bins: array<atomic<u32>, 256>;", "64", ATOMIC, None),
    "attention scores": ("var<workgroup> queries: array<f32, 32 * PITCH>; var<workgroup> keys: array<f32, 32 * PITCH>;",
                         "32, 8", SCORES, 16),
    "attention values": ("var<workgroup> weights: array<f32, 32 * PITCH>; var<workgroup> values: array<f32, 512>;",
                         "32, 8", VALUES, 32),
    "tile in registers": (F32.format("64 * PITCH"), "16, 16", REGISTERS, 16),
    "halo": (F32.format("10 * PITCH"), "8, 8", HALO, 10),
    "butterflies": (F32.format(128), "64", BUTTERFLIES, None),
    "bitonic sort": (F32.format(64), "64", BITONIC, None),
    "strides": (F32.format(256), "64", STRIDED, None),
    "gather": (F32.format(256), "64", GATHER, None),
    "rows of twelve": (F32.format("32 * PITCH"), "32", TWELVE, 12),
    "rows of nine": (F32.format("32 * PITCH"), "32", NINE, 9),
    "broadcast": (F32.format(512), "64", BROADCAST, None),
}  # fmt: skip


def text_of(name: str, pitch: int | None = None) -> str:
    """The WGSL of a kernel, with another pitch than its own if one is given."""
    declared, size, body, own = KERNELS[name]
    text = HEAD.format(
        enabled="enable f16;\n" if "f16" in declared else "", declared=declared, size=size, lanes=LANES[size], body=body
    )
    return text.replace("PITCH", str(pitch or own))
