@group(0) @binding(0) var<storage, read_write> a: array<u32>;

fn helper(x: u32) -> u32 {
    return y;
}

@compute @workgroup_size(1)
fn main(@builtin(global_invocation_id) id: vec3u) {
    let x: i32 = 1u;
    var from_x = x + 1;  // not complained of: x is what is wrong
    from_x = 1.5;
    a[0] = nowhere;
    a[1] = nowhere + 1;  // known to be missing
    a[2] = nowher;  // declared in none of the scopes
    let nowhere = 2u;
    a[2] = nowhere;
    if undeclared {
        a[3] = 1.5;  // only looked at once the condition is right
    }
    for (var i = 0u; i < 3; i++) {
        a[i] = 1.5;
        let inside = 5;
        inside = 6;
    }
    { let x = 3u; a[4] = helper(x); }
    a[5] = 1u + 1i;
    continue;
}
