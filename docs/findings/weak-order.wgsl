@group(0) @binding(0) var<storage, read_write> value: atomic<u32>;
@group(0) @binding(1) var<storage, read_write> ready: atomic<u32>;
@group(0) @binding(2) var<storage, read_write> y: array<u32, 1>;

// Pass a value on. That it is ready may show before the value does.
@compute @workgroup_size(64)
fn pass_on(@builtin(local_invocation_index) i: u32) {
    if i == 0u {
        atomicStore(&value, 42u);
        atomicStore(&ready, 1u);
    } else if i == 1u && atomicLoad(&ready) == 1u {
        y[0] = 1u + atomicLoad(&value);
    }
}
