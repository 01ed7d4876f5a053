@group(0) @binding(0) var<storage, read_write> last: array<u32, 1>;

@compute @workgroup_size(64)
fn keep_last(@builtin(local_invocation_index) i: u32) {
    if i == 63u {
        last[0] = i;
    }
}
