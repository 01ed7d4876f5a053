fn f() {
    g(1) // a comment
}
