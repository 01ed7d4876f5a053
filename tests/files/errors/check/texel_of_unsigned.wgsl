// `vec2<i32>` is made of two i32, and converts only a vec2 as a whole. Nor does textureLoad need a sampler.
@group(0) @binding(0) var weights: texture_2d<u32>;

fn quad(row: u32, column: u32) -> vec4<u32> {
    return textureLoad(weights, vec2<i32>(column / 4u, row), 0);
}
