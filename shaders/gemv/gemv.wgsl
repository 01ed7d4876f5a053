// y = W @ x with W in f16: one token through a linear layer such as a language model's head. W is N x K, row-major, and
// what is called a column here is a column of transpose(W), that is, an element of y. K is a multiple of 4.
//
// A vocabulary asks for more workgroups than one dimension of a grid may have: they go on in the second.

enable f16;
enable subgroups;

@group(0) @binding(0) var<storage, read> X: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> W: array<vec4<f16>>;
@group(0) @binding(2) var<storage, read_write> Y: array<f32>;
@group(0) @binding(3) var<uniform> dims: vec4<u32>; // 1, N, K, unused

// The product of one column with what `thread` of its `threads` invocations takes of it; 0 past the last column.
fn dot_part(column: u32, thread: u32, threads: u32) -> f32 {
    var sum = vec4<f32>();
    if column < dims.y {
        for (var k = thread; k < dims.z / 4u; k += threads) {
            sum = fma(vec4<f32>(W[column * dims.z / 4u + k]), X[k], sum);
        }
    }
    return sum.x + sum.y + sum.z + sum.w;
}

var<workgroup> partials: array<f32, 256>; // one for each subgroup

// Four columns a workgroup, 64 invocations a column, in subgroups of 64 at most. Grid: ceil(N / 4) in x and y.
@compute @workgroup_size(256)
fn gemv_subgroup(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
    @builtin(subgroup_invocation_id) lane: u32,
    @builtin(subgroup_size) size: u32,
) {
    let first = (group.y * groups.x + group.x) * 4u;
    let sum = subgroupAdd(dot_part(first + thread / 64u, thread % 64u, 64u));
    if lane == 0u {
        partials[thread / size] = sum;
    }
    workgroupBarrier();
    if thread < 4u && first + thread < dims.y {
        let count = 64u / size;
        var total = 0.0;
        for (var i = thread * count; i < (thread + 1u) * count; i += 1u) {
            total += partials[i];
        }
        Y[first + thread] = total;
    }
}

// 32 columns a workgroup, eight invocations a column, in subgroups of eight at least. Grid: ceil(N / 32) in x and y.
@compute @workgroup_size(256)
fn gemv_subgroup_multicol(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    let column = (group.y * groups.x + group.x) * 32u + thread / 8u;
    var sum = dot_part(column, thread % 8u, 8u);
    sum += subgroupShuffleXor(sum, 4u);
    sum += subgroupShuffleXor(sum, 2u);
    sum += subgroupShuffleXor(sum, 1u);
    if thread % 8u == 0u && column < dims.y {
        Y[column] = sum;
    }
}
