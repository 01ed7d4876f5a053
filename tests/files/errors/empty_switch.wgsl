fn f() {
    switch a {}
}
