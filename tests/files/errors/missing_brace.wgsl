fn f() {
    if a {
        b();
}
