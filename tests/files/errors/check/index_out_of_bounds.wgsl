const weights = array(1, 2, 3);

fn f() -> i32 {
    return weights[1 + 2];
}
