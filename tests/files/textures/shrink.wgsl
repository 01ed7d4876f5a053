// An image at three fifths of its size, trilinearly from a chain of levels.
@group(0) @binding(0) var image: texture_2d<f32>;
@group(0) @binding(1) var trilinear: sampler;
@group(1) @binding(0) var small: texture_storage_2d<rgba16float, write>;

@compute @workgroup_size(8, 8)
fn shrink(@builtin(global_invocation_id) id: vec3u) {
    let size = textureDimensions(small);
    if all(id.xy < size) {
        let place = (vec2f(id.xy) + 0.5) / vec2f(size);
        textureStore(small, id.xy, textureSampleLevel(image, trilinear, place, log2(5.0 / 3.0)));
    }
}
