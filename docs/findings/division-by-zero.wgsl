@group(0) @binding(0) var<storage, read> width: array<u32, 64>;
@group(0) @binding(1) var<storage, read_write> rows: array<u32, 64>;

// The width of the first image is 0.
@compute @workgroup_size(64)
fn count(@builtin(local_invocation_index) i: u32) {
    rows[i] = 4096u / width[i];
}
