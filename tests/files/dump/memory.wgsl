// Storage, uniform and workgroup memory, a matrix, a runtime-sized array in a struct, and an array that is indexed.
struct Params {
    scale: vec2<f32>,
    count: u32,
}

struct Cells {
    size: u32,
    cells: array<vec4<f32>>,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: Cells;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
@group(0) @binding(3) var<storage, read> m: mat2x2<f32>;
var<workgroup> tile: array<array<f32, 4>, 8>;

@compute @workgroup_size(8)
fn main(@builtin(local_invocation_index) lane: u32) {
    tile[lane][lane % 4u] = x.cells[lane].z * params.scale.x;
    workgroupBarrier();
    var sums: array<f32, 4>;
    for (var i = 0u; i < params.count; i++) {
        sums[i & 3u] += tile[i][lane & 3u];
    }
    let point = m * vec2(sums[lane & 3u], 1.0);
    y[lane] = point.x + f32(arrayLength(&x.cells));
}
