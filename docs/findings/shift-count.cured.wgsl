@group(0) @binding(0) var<storage, read> bits: array<u32, 2>;
@group(0) @binding(1) var<storage, read_write> y: array<u32, 64>;

@compute @workgroup_size(64)
fn unpack(@builtin(local_invocation_index) i: u32) {
    y[i] = (bits[i / 32u] >> (i % 32u)) & 1u;
}
