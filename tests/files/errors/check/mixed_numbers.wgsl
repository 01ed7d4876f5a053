fn rows(count: u32) -> u32 {
    return count;
}

fn f(n: i32) -> u32 {
    return rows(n);
}
