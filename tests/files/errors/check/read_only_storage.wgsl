@group(0) @binding(0) var<storage> x: array<f32>;

@compute @workgroup_size(1)
fn main() {
    x[0] = 1.0;
}
