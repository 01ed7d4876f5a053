// Y = silu(X), element by element. Grid: ceil(N / 256), 1, 1.

#include "../shared/silu.wgsl"

@group(0) @binding(0) var<storage, read> X: array<f32>;
@group(0) @binding(1) var<storage, read_write> Y: array<f32>;

@compute @workgroup_size(256)
fn activate(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x < arrayLength(&Y) {
        Y[id.x] = silu_of_one(X[id.x]);
    }
}
