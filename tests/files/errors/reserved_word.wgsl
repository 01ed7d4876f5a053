fn f() {
    let filter = 1;
}
