var<workgroup> tileA: array<f32, 64>;

@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) i: u32) {
    tilaA[i] = 1.0;
}
