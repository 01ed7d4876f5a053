fn f(a, b: u32) {}
