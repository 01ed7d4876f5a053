fn f(a: f32, b: u32) -> f32 {
    return a + b;
}
