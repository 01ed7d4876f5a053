fn f() {
    @must_use g();
}
