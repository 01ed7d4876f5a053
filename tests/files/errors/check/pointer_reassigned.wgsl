// A pointer that `let` holds stays what it is.
var<workgroup> tiles: array<array<f32, 64>, 2>;

@compute @workgroup_size(64)
fn exchange(@builtin(local_invocation_index) i: u32) {
    let now = &tiles[0];
    let next = &tiles[1];
    now = next;
}
