// Sums of 1,024 numbers, by a tree whose strides grow: half of the lanes idle after each step, and banks collide.

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
var<workgroup> sums: array<f32, 256>;

@compute @workgroup_size(256)
fn reduce(@builtin(local_invocation_index) lane: u32, @builtin(workgroup_id) group: vec3<u32>) {
    var sum = 0.0;
    for (var i = 0u; i < 4u; i += 1u) {
        sum += x[group.x * 1024u + i * 256u + lane];
    }
    sums[lane] = sum;
    workgroupBarrier();
    for (var reach = 1u; reach < 256u; reach *= 2u) {
        let at = 2u * reach * lane;
        if at < 256u {
            sums[at] += sums[at + reach];
        }
        workgroupBarrier();
    }
    if lane == 0u {
        y[group.x] = sums[0];
    }
}
