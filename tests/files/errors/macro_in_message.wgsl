#define N 4 +
const b = N;
