fn f() {
    if a && b || c {}
}
