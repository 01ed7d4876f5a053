fn f() {
    let x = 1;
    {
        let x = 2;
    }
    var x = 3;
}
