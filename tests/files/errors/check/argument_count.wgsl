fn dot4(a: vec4f, b: vec4f) -> f32 {
    return dot(a, b);
}

fn f() -> f32 {
    return dot4(vec4f(1.0));
}
