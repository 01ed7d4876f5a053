// `+` and `*` take a vector and a scalar, shifts do not.
fn high_nibbles(packed: vec4<u32>) -> vec4<u32> {
    return (packed >> 4u) & vec4<u32>(15u);
}
