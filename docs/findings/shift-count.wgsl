@group(0) @binding(0) var<storage, read> bits: array<u32, 2>;
@group(0) @binding(1) var<storage, read_write> y: array<u32, 64>;

// From invocation 32 on, the count is past the word.
@compute @workgroup_size(64)
fn unpack(@builtin(local_invocation_index) i: u32) {
    y[i] = (bits[i / 32u] >> i) & 1u;
}
