@group(0) @binding(0) var<storage, read_write> last: array<u32, 1>;

// With --probes none, nothing looks for races; --schedules 4 shows that the last invocation to store wins.
@compute @workgroup_size(64)
fn keep_last(@builtin(local_invocation_index) i: u32) {
    last[0] = i;
}
