// A load, a store to a packed format, a size and a sample.
@group(0) @binding(0) var image: texture_2d<f32>;
@group(0) @binding(1) var blurred: texture_storage_2d<rgba8unorm, write>;
@group(0) @binding(2) var nearby: sampler;

@compute @workgroup_size(4)
fn main(@builtin(local_invocation_index) lane: u32) {
    let size = textureDimensions(image);
    let texel = textureLoad(image, vec2(lane, 0u), 0);
    let sample = textureSampleLevel(image, nearby, vec2(0.5, 0.25), 0.0);
    textureStore(blurred, vec2(lane, size.y - 1u), texel * sample);
}
