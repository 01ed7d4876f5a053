@compute @workgroup_size(64)
fn main(@builtin(local_invocation_id) lid: vec3u) {
    if lid.x < 32 {
        workgroupBarrier();
    }
}
