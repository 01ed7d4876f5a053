// Arithmetic of f16, conversions, and loads and stores of two bytes.
enable f16;

@group(0) @binding(0) var<storage, read> x: array<vec2<f16>>;
@group(0) @binding(1) var<storage, read_write> y: array<f16>;

@compute @workgroup_size(8)
fn main(@builtin(local_invocation_index) lane: u32) {
    let pair = x[lane] * 0.5h;
    let wide = f32(pair.x) / 3.0;
    y[lane] = fma(pair.y, f16(wide), 1.0h);
}
