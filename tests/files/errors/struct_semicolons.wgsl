struct S {
    a: u32;
    b: u32;
}
