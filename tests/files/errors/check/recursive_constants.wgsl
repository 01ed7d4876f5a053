const a = b + 1;
const b = c * 2;
const c = a;
