var<private> n = 64u;

@compute @workgroup_size(8, n)
fn main() {
}
