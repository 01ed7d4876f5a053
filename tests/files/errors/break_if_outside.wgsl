fn f() {
    loop { break if a; }
}
