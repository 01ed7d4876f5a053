// Each texel moves one to the left and up; what comes in at the edges is outside.
@group(0) @binding(0) var image: texture_2d<f32>;
@group(0) @binding(1) var moved: texture_storage_2d<rgba8unorm, write>;

@compute @workgroup_size(8, 8)
fn shift(@builtin(global_invocation_id) id: vec3u) {
    textureStore(moved, id.xy, textureLoad(image, vec2i(id.xy) + 1, 0));
}
