@group(0) @binding(0) var<storage, read> x: array<f32, 64>;
@group(0) @binding(1) var<storage, read_write> y: array<f32, 64>;
@group(0) @binding(2) var<storage, read_write> used: atomic<u32>;

// Keep the elements over 8, in the order in which invocations happen to arrive.
@compute @workgroup_size(64)
fn compact(@builtin(local_invocation_index) i: u32) {
    if x[i] > 8.0 {
        y[atomicAdd(&used, 1u)] = x[i];
    }
}
