fn half(x: f32) -> f16 {
    return f16(x);
}
