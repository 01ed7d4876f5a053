fn f() {
    loop {
        continuing {}
        g();
    }
}
