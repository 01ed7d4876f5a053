// Two tiles that are to change places: no variable can hold a pointer.
var<workgroup> tiles: array<array<f32, 64>, 2>;

@compute @workgroup_size(64)
fn exchange(@builtin(local_invocation_index) i: u32) {
    var now = &tiles[0];
    var next = &tiles[1];
    let kept = now;
    now = next;
    next = kept;
}
