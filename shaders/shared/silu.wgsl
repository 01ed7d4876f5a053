// The activation of a SwiGLU layer: silu(x) = x / (1 + e^-x) of the gate, times what is let through.

fn silu_of_one(x: f32) -> f32 {
    return x / (1.0 + exp(-x));
}

fn silu(x: vec4<f32>) -> vec4<f32> {
    return x / (1.0 + exp(-x));
}

fn swiglu(gate: vec4<f32>, up: vec4<f32>) -> vec4<f32> {
    return silu(gate) * up;
}
