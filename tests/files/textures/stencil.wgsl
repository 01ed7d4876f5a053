// One step of diffusion in a volume, in place slice by slice: a texture that is read and written.
@group(0) @binding(0) var heat: texture_storage_2d_array<r32float, read_write>;
@group(0) @binding(1) var source: texture_3d<f32>;
@group(0) @binding(2) var<storage, read_write> extent: array<u32, 4>;

@compute @workgroup_size(4, 4)
fn stencil(@builtin(global_invocation_id) id: vec3u) {
    let size = textureDimensions(source);
    if all(id == vec3u()) {
        extent = array(size.x, size.y, size.z, textureNumLayers(heat));
    }
    if any(id >= size) {
        return;
    }
    for (var z = 0u; z < size.z; z++) {
        var sum = textureLoad(heat, id.xy, z).x;
        for (var step = -1; step <= 1; step += 2) {
            sum += textureLoad(source, vec3i(vec3u(id.xy, z)) + vec3(step, 0, 0), 0).x;
            sum += textureLoad(source, vec3i(vec3u(id.xy, z)) + vec3(0, step, 0), 0).y;
        }
        textureStore(heat, id.xy, z, vec4(sum * 0.25));
        let after = textureLoad(heat, id.xy, z);
        textureStore(heat, id.xy, z, after + 1);
    }
}
