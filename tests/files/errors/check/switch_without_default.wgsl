fn f(x: u32) {
    switch x {
        case 1, 2: {}
        case 3: {}
    }
}
