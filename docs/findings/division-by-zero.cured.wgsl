@group(0) @binding(0) var<storage, read> width: array<u32, 64>;
@group(0) @binding(1) var<storage, read_write> rows: array<u32, 64>;

@compute @workgroup_size(64)
fn count(@builtin(local_invocation_index) i: u32) {
    if width[i] > 0u {
        rows[i] = 4096u / width[i];
    }
}
