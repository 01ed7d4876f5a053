// H = silu(GATE) * UP, element by element: the pass over memory that the kernels with SWIGLU_A spare.
// Four elements to an invocation. Grid: ceil(elements / 1024), 1, 1.

#include "shared/silu.wgsl"

@group(0) @binding(0) var<storage, read> GATE: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> UP: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> H: array<vec4<f32>>;

@compute @workgroup_size(256)
fn mix(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x < arrayLength(&H) {
        H[id.x] = swiglu(GATE[id.x], UP[id.x]);
    }
}
