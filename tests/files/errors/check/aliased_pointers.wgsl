fn swap(a: ptr<function, f32>, b: ptr<function, f32>) {
    let kept = *a;
    *a = *b;
    *b = kept;
}

fn f() {
    var x = 1.0;
    swap(&x, &x);
}
