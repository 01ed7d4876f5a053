@group(0) @binding(0) var<storage, read> x: array<f32, 64>;
@group(0) @binding(1) var<storage, read_write> y: array<f32, 64>;
var<workgroup> kept: array<u32, 64>;

@compute @workgroup_size(64)
fn compact(@builtin(local_invocation_index) i: u32) {
    kept[i] = u32(x[i] > 8.0);
    workgroupBarrier();
    var before = 0u; // the elements kept before this one: its place, in any order
    for (var k = 0u; k < i; k++) {
        before += kept[k];
    }
    if kept[i] == 1u {
        y[before] = x[i];
    }
}
