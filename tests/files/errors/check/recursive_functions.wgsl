fn even(n: u32) -> bool {
    if n == 0 {
        return true;
    }
    return odd(n - 1);
}

fn odd(n: u32) -> bool {
    return !even(n);
}
