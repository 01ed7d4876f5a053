fn f() {
    a.b;
}
