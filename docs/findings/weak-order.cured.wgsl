@group(0) @binding(0) var<storage, read_write> value: array<u32, 1>;
@group(0) @binding(1) var<storage, read_write> y: array<u32, 1>;

// A barrier orders the accesses of a workgroup.
@compute @workgroup_size(64)
fn pass_on(@builtin(local_invocation_index) i: u32) {
    if i == 0u {
        value[0] = 42u;
    }
    storageBarrier();
    if i == 1u {
        y[0] = 1u + value[0];
    }
}
