// A tile of vectors that is indexed as if it were one of rows: what is left is one number, which a vector cannot take on.
enable f16;

const TILE = 16u;
var<workgroup> left: array<vec4<f16>, TILE * TILE / 4u>;
var<workgroup> right: array<vec4<f16>, TILE * TILE / 4u>;

@compute @workgroup_size(TILE, TILE)
fn multiply(@builtin(local_invocation_id) local: vec3<u32>) {
    var sum = vec4<f32>();
    for (var k = 0u; k < TILE; k++) {
        sum += left[local.y][k] * right[k][local.x];
    }
}
