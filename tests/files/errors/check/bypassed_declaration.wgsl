fn f() {
    var i = 0;
    loop {
        if i == 3 {
            continue;
        }
        let step = 2;
        if i > 9 {
            break;
        }
        continuing {
            i += step;
        }
    }
}
